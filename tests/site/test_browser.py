"""The site in the system's Chromium: from disk and under a sub-path, wide and narrow, light and dark, scripts on and off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.gen import specimens
from tests.site.browsing import DESK, PHONE, SAMPLE, Scheme, Witness, settled

pytestmark = pytest.mark.browser

# What scripts add to a page goes again; the title of a column stays when it stops being a button.
BARE = """(page) => {
  page.querySelectorAll("th button").forEach((title) => title.replaceWith(...title.childNodes));
  page.querySelectorAll(".age, .sift, button").forEach((added) => added.remove());
}"""
# WCAG 2.2, 1.4.3: contrast of text with what lies behind it, 4.5 to 1, or 3 to 1 for large text.
CONTRAST = """() => {
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const rgba = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((v, i) => v * a + below[i] * (1 - a));
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const weak = [];
  for (const element of document.querySelectorAll("article *, .md-tabs__link, .md-nav__link")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility({ opacityProperty: true })) continue;
    const style = getComputedStyle(element);
    if (element.matches(".headerlink") || element.closest("svg")) continue;
    const back = behind(element), front = over(rgba(style.color), back);
    const [light, dark] = [luminance(front), luminance(back)].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const ratio = (light + 0.05) / (dark + 0.05);
    const words = element.textContent.trim().slice(0, 40);
    if (ratio < (large ? 3 : 4.5)) weak.push(`${ratio.toFixed(2)} ${element.className} ${words}`);
  }
  return [...new Set(weak)];
}"""


def context(browser: Browser, **options: Any) -> BrowserContext:
    return browser.new_context(viewport=PHONE, **options)


def test_every_page_opens_from_disk_on_a_phone(browser: Browser, site: Path) -> None:
    """No error, no request elsewhere, and nothing to scroll sideways."""
    witness = Witness()
    with context(browser) as phone:
        page = witness.watch(phone.new_page())
        for path in sorted(site.rglob("*.html")):
            if path.name == "404.html":
                continue
            page.goto(path.as_uri())
            page.wait_for_selector("time[data-aged], article:not(:has(time))", state="attached")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
    witness.clean(site.as_uri())


def test_pages_work_under_a_sub_path(browser: Browser, served: str) -> None:
    witness = Witness()
    with browser.new_context(viewport=DESK) as desk:
        page = witness.watch(desk.new_page())
        for path in SAMPLE:
            answer = page.goto(served + path)
            assert answer is not None
            assert answer.ok, path
        page.goto(served)
        page.get_by_role("link", name="Speculative decoding").first.click()
        page.get_by_role("heading", level=1, name="Speculative decoding").wait_for()
    witness.clean(served)


@pytest.mark.parametrize("place", ["disk", "server"])
def test_search_finds_and_shows_text_only(browser: Browser, site: Path, served: str, place: str) -> None:
    base = site.as_uri() + "/" if place == "disk" else served
    witness = Witness()
    with browser.new_context(viewport=DESK) as desk:
        page = witness.watch(desk.new_page())
        page.goto(base + "index.html")
        for words in ("speculative", "alert", "onerror"):
            page.locator(".md-search__input").click()
            page.keyboard.press("Control+A")
            page.keyboard.type(words)
            page.locator(".md-search-result__item").filter(has_text=words).first.wait_for()
            assert page.locator(".md-search-result img, .md-search-result script").count() == 0
    witness.clean(base)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("prefix caching", "techniques/automatic-prefix-caching.html"),
        ("eagle", "techniques/speculative-decoding.html"),
        ("kv cache", "techniques/kv-cache-management.html"),
        ("B60", "devices/b60.html"),
        ("IA013", "rules.html"),
        ("text-8b", "services/text-8b"),
        ("vllm", "knowledge/vllm.html"),
        ("matrix.json", "for-programs.html"),
        ("20261128T092000Z-bench-micro-prefix-caching", "runs/20261128t092000z-bench-micro-prefix-caching.html"),
    ],
)
def test_the_search_leads_to_the_page_that_was_meant(found_first: Callable[[str], str], words: str, first: str) -> None:
    assert found_first(words).startswith(first)


@pytest.fixture(scope="module")
def found_first(browser: Browser, site: Path) -> Iterator[Callable[[str], str]]:
    """Type into the search of one page, from disk; give the address of the first result."""
    base = site.as_uri() + "/"
    with browser.new_context(viewport=DESK) as desk:
        page = desk.new_page()
        page.goto(base + "index.html")

        def find(words: str) -> str:
            page.locator(".md-search__input").fill("")
            page.locator(".md-search-result__item").first.wait_for(state="detached")
            page.locator(".md-search__input").click()
            page.keyboard.type(words)
            page.locator(".md-search-result__item").first.wait_for()
            page.wait_for_function("(was) => document.querySelector('.md-search-result__meta').textContent !== was", arg="")
            return str(page.locator(".md-search-result__link").first.get_attribute("href")).removeprefix(base)

        yield find


def test_without_scripts_every_fact_is_there(browser: Browser, site: Path) -> None:
    with context(browser, java_script_enabled=False) as plain, context(browser) as scripted:
        bare, full = plain.new_page(), scripted.new_page()
        for path in SAMPLE:
            bare.goto((site / path).as_uri())
            full.goto((site / path).as_uri())
            full.wait_for_selector("time[data-aged], article:not(:has(time))", state="attached")
            full.locator("article").evaluate(BARE)
            with_scripts = str(full.locator("article").text_content())
            assert bare.locator("article").text_content() is not None
            # A blank before what was taken out again is no fact.
            assert "".join(str(bare.locator("article").text_content()).split()) == "".join(with_scripts.split()), path
        bare.goto((site / "index.html").as_uri())
        assert bare.locator(".matrix").first.locator("tbody tr").count() == 7
        assert bare.locator(".matrix .chip").first.is_visible()
        assert bare.locator("time").first.inner_text() == "2026-07-10"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_lies_behind_it(browser: Browser, site: Path, scheme: Scheme) -> None:
    with browser.new_context(viewport=DESK, color_scheme=scheme, reduced_motion="reduce") as desk:
        page = desk.new_page()
        for path in SAMPLE:
            page.goto((site / path).as_uri())
            settled(page)
            assert page.evaluate(CONTRAST) == [], path


def test_the_first_page_is_reached_by_keyboard_and_landmarks(browser: Browser, site: Path) -> None:
    with browser.new_context(viewport=DESK) as desk:
        page = desk.new_page()
        page.goto((site / "index.html").as_uri())
        for role in ("banner", "main", "navigation"):
            assert page.get_by_role(role).count() >= 1
        assert page.get_by_role("heading", level=1).count() == 1
        chips = page.locator("a.chip")
        assert chips.count() >= 14
        reached = set()
        for _ in range(120):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.matches('a.chip') ? document.activeElement.href : ''"))
        assert {chips.nth(n).evaluate("e => e.href") for n in range(14)} <= reached


def test_the_colour_scheme_is_the_readers_choice(browser: Browser, site: Path) -> None:
    with browser.new_context(viewport=DESK, color_scheme="dark") as desk:
        page = desk.new_page()
        page.goto((site / "index.html").as_uri())
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for _ in range(2):
            page.locator("label[for^='__palette']:visible").click()
        assert page.evaluate("document.body.dataset.mdColorScheme") in {"default", "slate"}
        page.emulate_media(color_scheme="light")
        page.reload()
        page.evaluate("localStorage.clear()")
        page.reload()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_a_chart_is_drawn_and_has_words(browser: Browser, site: Path) -> None:
    with context(browser) as phone:
        page = phone.new_page()
        page.goto((site / "runs/20261128t092000z-bench-micro-prefix-caching.html").as_uri())
        chart = page.locator("figure.chart svg").first
        box = chart.bounding_box()
        assert box is not None
        assert 200 < box["width"] <= PHONE["width"]
        assert chart.get_attribute("role") == "img"
        assert page.locator("figure.chart figcaption").first.inner_text().startswith("ttft_s. cold: median 412 ms")
        assert page.locator("details.data summary").first.is_visible()


def test_hostile_words_of_a_server_are_seen(browser: Browser, site: Path) -> None:
    witness = Witness()
    with context(browser) as phone:
        page = witness.watch(phone.new_page())
        page.goto((site / "runs/20261128t091000z-bench-endpoint-embedded.html").as_uri())
        seen = " ".join(page.locator("article").inner_text().split())
        for words in specimens.HOSTILE[:10]:
            assert " ".join(words.split()) in seen
    witness.clean(site.as_uri())


def test_paper_shows_what_is_folded(browser: Browser, site: Path) -> None:
    with browser.new_context(viewport=DESK) as desk:
        page = desk.new_page()
        page.goto((site / "runs/20261128t092000z-bench-micro-prefix-caching.html").as_uri())
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        assert not page.locator(".md-header").is_visible()
