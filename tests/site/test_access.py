"""Readers without a pointer, without sight or with a wish for quiet: axe-core, landmarks, keyboard, zoom, motion."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, ViewportSize

from tests.site.browsing import DESK, PHONE, SAMPLE, Scheme, settled

pytestmark = pytest.mark.browser

# One of every kind of page.
KINDS = (
    *SAMPLE,
    "planners.html",
    "claims.html",
    "comparisons.html",
    "as-of/2026-07-10.html",
    "rules.html",
    "sources.html",
    "for-programs.html",
    "checklists/text-8b.html",
    "knowledge/index.html",
    "knowledge/ovms.html",
    "machines/local-abc123abc123.html",
    "records/index.html",
    "runs/index.html",
    "techniques/index.html",
)
# Those that change most where room is scarce.
NARROW = (
    "index.html",
    "knowledge/by-age.html",
    "techniques/automatic-prefix-caching.html",
    "services/text-8b.html",
    "runs/20261128t092000z-bench-micro-prefix-caching.html",
    "records/2026-07-10-automatic-prefix-caching-fleet.html",
)
# The rows of a long table are alike, and each costs time.
AXE = """async () => {
  document.querySelectorAll("tbody tr:nth-child(n+9)").forEach((row) => row.remove());
  const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false });
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 4).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""


@pytest.mark.parametrize(
    ("scheme", "window", "kinds"), [("light", DESK, KINDS), ("dark", PHONE, NARROW)], ids=["light and wide", "dark and narrow"]
)
def test_axe_finds_nothing_serious_on_any_kind_of_page(
    browser: Browser, site: Path, scheme: Scheme, window: ViewportSize, kinds: Sequence[str]
) -> None:
    found = {}
    with browser.new_context(viewport=window, color_scheme=scheme, reduced_motion="reduce") as reader:
        page = reader.new_page()
        for path in kinds:
            page.goto((site / path).as_uri())
            settled(page)
            page.evaluate(AXE_SCRIPT)
            if violations := page.evaluate(AXE):
                found[path] = violations
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport=DESK, reduced_motion="reduce") as desk:
        yield desk.new_page()


def test_each_kind_of_page_has_landmarks_and_one_title(page: Page, site: Path) -> None:
    for path in KINDS:
        page.goto((site / path).as_uri())
        assert page.get_by_role("heading", level=1).count() == 1, path
        assert page.get_by_role("main").count() == 1, path
        assert page.get_by_role("banner").count() == 1, path
        assert page.get_by_role("contentinfo").count() == 1, path
        assert page.title(), path


@pytest.mark.parametrize("path", ["index.html", "techniques/automatic-prefix-caching.html", "services/text-8b.html"])
def test_every_chip_that_leads_somewhere_is_reached_by_keyboard_and_seen_when_it_is(page: Page, site: Path, path: str) -> None:
    page.goto((site / path).as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    wanted = set(page.locator("a.chip").evaluate_all("(chips) => chips.map((chip, at) => Number(chip.dataset.at = at))"))
    reached = set()
    stops = page.locator("a[href], button, input, select, summary, [tabindex]").count()
    for _ in range(stops):
        page.keyboard.press("Tab")
        found = page.evaluate("""() => {
          const chip = document.activeElement.closest("a.chip");
          if (!chip) return null;
          const { outlineStyle, outlineWidth } = getComputedStyle(chip);
          return [Number(chip.dataset.at), outlineStyle !== "none" && parseFloat(outlineWidth) >= 2];
        }""")
        if found is not None:
            assert found[1], f"chip {found[0]} shows no focus"
            reached.add(found[0])
        if reached == wanted:
            break
    assert reached == wanted


def test_twice_the_size_loses_nothing(browser: Browser, site: Path) -> None:
    """WCAG 2.2, 1.4.4 and 1.4.10: at 200 % a window of 1280 pixels has room for 640."""
    with browser.new_context(viewport={"width": 640, "height": 450}, device_scale_factor=2) as zoomed:
        page = zoomed.new_page()
        for path in KINDS:
            page.goto((site / path).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 640, path
            cut = page.evaluate("""() => [...document.querySelectorAll("article :is(td, p, li, summary, figcaption)")]
              .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1 && each.clientWidth)
              .filter((each) => getComputedStyle(each).overflowX === "hidden")
              .map((each) => each.textContent.trim().slice(0, 60))""")
            assert cut == [], path


def test_who_wants_quiet_sees_nothing_move(page: Page, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    moving = page.evaluate("""() => [...document.querySelectorAll("article, article *")].filter((each) => {
      const { animationName, transitionDuration } = getComputedStyle(each);
      return animationName !== "none" || transitionDuration.split(",").some((time) => parseFloat(time) > 0.01);
    }).map((each) => each.outerHTML.slice(0, 80))""")
    assert moving == []
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_every_command_has_a_button_that_copies_it(page: Page, site: Path) -> None:
    """Commands that are to be run stand in blocks; the button is reached by keyboard and copies what is shown, from disk."""
    page.goto((site / "services" / "text-8b.html").as_uri())
    block = page.locator(".highlight", has_text="nox -s probe -- --service text-8b").first
    button = block.locator("button[data-md-type='copy']")
    button.focus()
    page.keyboard.press("Enter")
    page.get_by_text("Copied to clipboard").wait_for()
    page.locator(".md-search__input").focus()
    page.keyboard.press("Control+V")
    assert page.locator(".md-search__input").input_value() == "nox -s probe -- --service text-8b"
