"""Long tables can be searched, narrowed, sorted and linked to, by pointer and by keyboard, on paper and without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.site.browsing import DESK, PHONE, Witness

pytestmark = pytest.mark.browser

BY_AGE = "knowledge/by-age.html"
SOURCES = "sources.html"


@pytest.fixture(params=["disk", "server"])
def base(request: pytest.FixtureRequest, site: Path, served: str) -> str:
    return site.as_uri() + "/" if request.param == "disk" else served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport=DESK) as desk:
        witness = Witness()
        yield witness.watch(desk.new_page())
        assert witness.errors == []


def rows(page: Page) -> Locator:
    return page.locator(".table[data-facets] tbody tr:visible")


def chooser(page: Page, title: str) -> Locator:
    return page.get_by_role("combobox", name=title, exact=True)


def column(page: Page, number: int) -> list[str]:
    """Read a column as it stands, without the age that a script adds."""
    read = """(cells) => cells.map((cell) => {
      const copy = cell.cloneNode(true);
      copy.querySelectorAll('.label, .age, .stale').forEach((each) => each.remove());
      return copy.textContent.trim();
    })"""
    return [str(text) for text in rows(page).locator(f"td:nth-child({number})").evaluate_all(read)]


def test_what_is_typed_narrows_the_rows_and_is_counted(page: Page, base: str) -> None:
    page.goto(base + BY_AGE)
    every = rows(page).count()
    assert page.locator(".sift output").inner_text() == f"{every} rows"
    page.get_by_role("searchbox", name="Find").fill("eagle ovms")
    left = rows(page).count()
    assert 0 < left < every
    assert all("eagle" in text.lower() and "ovms" in text.lower() for text in rows(page).all_text_contents())
    assert page.locator(".sift output").inner_text() == f"{left} of {every} shown"
    page.get_by_role("searchbox", name="Find").fill("no such words anywhere")
    assert page.locator(".sift output").inner_text() == f"0 of {every} shown"
    page.get_by_role("button", name="Show all").click()
    assert rows(page).count() == every
    assert page.evaluate("document.activeElement.name") == "find"


def test_a_column_offers_each_of_its_values_with_their_number(page: Page, base: str) -> None:
    page.goto(base + BY_AGE)
    choice = chooser(page, "Runtime")
    offered = [re.fullmatch(r"(.+) \((\d+)\)", text) for text in choice.locator("option").all_text_contents()[1:]]
    assert len(offered) > 3
    for found in offered[:3]:
        assert found is not None
        choice.select_option(label=found[0])
        assert rows(page).count() == int(found[2])
        assert all(found[1] in text for text in rows(page).all_text_contents())


def test_the_choice_is_in_the_address_and_survives_leaving(page: Page, base: str) -> None:
    page.goto(base + BY_AGE)
    chooser(page, "What is known").select_option("price")
    page.get_by_role("button", name="Last checked").click()
    narrowed = rows(page).all_text_contents()
    assert page.url == f"{base}{BY_AGE}?what-is-known=price&sort=last-checked"
    page.goto(base + SOURCES)
    page.go_back()
    page.wait_for_selector(".sift")
    assert rows(page).all_text_contents() == narrowed
    assert chooser(page, "What is known").input_value() == "price"
    page.reload()
    assert rows(page).all_text_contents() == narrowed


@pytest.mark.parametrize("query", ["?runtime=nothing-like-it", "?sort=nowhere", "?find=", "?other=1&runtime=", "?find=%F0%28"])
def test_an_address_that_means_nothing_hides_nothing_else(page: Page, site: Path, query: str) -> None:
    page.goto(site.as_uri() + "/" + BY_AGE)
    every = rows(page).count()
    page.goto(site.as_uri() + "/" + BY_AGE + query)
    assert rows(page).count() in {0, every} if "find=%" in query else rows(page).count() == every


def test_a_link_to_a_row_leads_past_the_filter_that_hides_it(page: Page, site: Path) -> None:
    page.goto(site.as_uri() + "/rules.html?find=certainly-no-rule#ia013")
    page.locator("#ia013").locator("xpath=ancestor::tr").wait_for()
    assert rows(page).count() > 8
    assert "find" not in page.url
    page.get_by_role("searchbox", name="Find").fill("certainly-no-rule")
    page.evaluate("location.hash = '#ia014'")
    page.locator("#ia014").locator("xpath=ancestor::tr").wait_for()


def test_titles_sort_up_down_and_back(page: Page, base: str) -> None:
    page.goto(base + SOURCES)
    written = column(page, 1)
    numbers = "Entries that rest on it"
    title = page.get_by_role("columnheader", name=numbers)
    assert title.get_attribute("aria-sort") is None
    title.get_by_role("button").click()
    rising = [int(text) for text in column(page, 6)]
    assert rising == sorted(rising)
    assert rising[0] < 10 <= rising[-1], "numbers, not letters"
    assert title.get_attribute("aria-sort") == "ascending"
    title.get_by_role("button").press("Enter")
    assert [int(text) for text in column(page, 6)] == sorted(rising, reverse=True)
    assert title.get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Published").press("Space")
    assert title.get_attribute("aria-sort") is None
    dates = column(page, 3)
    known = [text for text in dates if text != "bears no date"]
    assert known == sorted(known)
    assert dates == known + ["bears no date"] * (len(dates) - len(known)), "what is not known comes last"
    for _ in range(2):
        page.get_by_role("button", name="Published").click()
    assert column(page, 1) == written


SMALL = """<!doctype html><div class="table cards" data-facets="1"><table><thead><tr><th>Release</th><th>Kind</th>
<th align="right">Size</th></tr></thead><tbody>%s</tbody></table></div><script src="%s"></script>"""


def small(page: Page, site: Path, folder: Path, cells: list[tuple[str, str, str]]) -> Page:
    """Show a table of our own; the script under test is the site's."""
    body = "".join(f"<tr><td>{a}</td><td>{b}</td><td>{c}</td></tr>" for a, b, c in cells)
    (folder / "small.html").write_text(SMALL % (body, (site / "assets" / "tables.js").as_uri()), encoding="utf-8")
    page.goto((folder / "small.html").as_uri())
    return page


def test_releases_sort_as_releases_and_sizes_by_their_key(page: Page, site: Path, tmp_path: Path) -> None:
    cells = [
        ("2026.10", "x", '<span data-sort="1073741824">1 GiB</span>'),
        ("2026.9", "x", '<span data-sort="536870912">512 MiB</span>'),
        ("2026.9.1", "y", '<span class="absent">no sensor</span>'),
        ("b7211", "y", '<span data-sort="2199023255552">2 TiB</span>'),
    ]
    small(page, site, tmp_path, cells)
    page.get_by_role("button", name="Release").click()
    assert column(page, 1) == ["2026.9", "2026.9.1", "2026.10", "b7211"]
    page.get_by_role("button", name="Size").click()
    assert column(page, 3) == ["512 MiB", "1 GiB", "2 TiB", "no sensor"]
    page.get_by_role("button", name="Size").click()
    assert column(page, 3) == ["2 TiB", "1 GiB", "512 MiB", "no sensor"]


def test_words_of_a_server_stay_words_in_the_choices(page: Page, site: Path, tmp_path: Path) -> None:
    hostile = "&lt;img src=x onerror=alert(1)&gt;"
    small(page, site, tmp_path, [("1", hostile, "1"), ("2", f'<span data-facet="{hostile}">two</span>', "2"), ("3", "z", "3")])
    choice = chooser(page, "Kind")
    assert choice.locator("option").all_text_contents() == ["all", "<img src=x onerror=alert(1)> (2)", "z (1)"]
    choice.select_option(index=1)
    assert column(page, 1) == ["1", "2"]
    assert page.locator("img").count() == 0


def test_cards_without_a_header_row_are_sorted_by_a_choice(browser: Browser, site: Path) -> None:
    with browser.new_context(viewport=PHONE) as phone:
        page = phone.new_page()
        page.goto(f"{site.as_uri()}/{SOURCES}")
        assert not page.get_by_role("button", name="Published").is_visible()
        chooser(page, "Sort by").select_option(label="Published, falling")
        known = [text for text in column(page, 3) if text != "bears no date"]
        assert known == sorted(known, reverse=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_every_control_is_reached_by_keyboard_and_shows_its_focus(page: Page, site: Path) -> None:
    page.goto(f"{site.as_uri()}/{BY_AGE}")
    wanted = page.locator(".sift :is(input, select, button):visible, .sortable th button").count()
    page.get_by_role("searchbox", name="Find").focus()
    seen = 0
    for _ in range(wanted):
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")
        seen += page.evaluate("document.activeElement.matches('.sift *, .sortable th button')")
        page.keyboard.press("Tab")
    assert seen == wanted


def test_paper_shows_what_is_left_and_says_how_much(page: Page, site: Path) -> None:
    page.goto(f"{site.as_uri()}/{BY_AGE}?what-is-known=price")
    page.emulate_media(media="print")
    assert page.locator(".sift output").is_visible()
    assert not page.get_by_role("searchbox", name="Find").is_visible()
    assert 0 < rows(page).count() < page.locator(".table[data-facets] tbody tr").count()


def test_without_scripts_every_row_is_there(browser: Browser, site: Path) -> None:
    with browser.new_context(viewport=DESK, java_script_enabled=False) as plain:
        page = plain.new_page()
        page.goto(f"{site.as_uri()}/{BY_AGE}?what-is-known=price")
        assert page.locator(".sift").count() == 0
        assert rows(page).count() == page.locator(".table[data-facets] tbody tr").count() > 100
