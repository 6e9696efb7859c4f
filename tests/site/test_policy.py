"""The content-security policy of every page: it admits what the site needs, from disk and when served, and nothing else."""

from __future__ import annotations

import functools
import html
import re
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from gen.policy import CHARSET, guarded, policy
from tests.site.browsing import DESK, SAMPLE, Server, Silent, Witness
from tests.site.conftest import ROOT

META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">')
INJECTED = "<script>window.injected = true</script><img src=x onerror='window.injected = true'>"


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_page_states_its_policy_before_anything_it_speaks_of(site: Path) -> None:
    for path in pages(site):
        page = path.read_text(encoding="utf-8")
        found = META.findall(page)
        assert len(found) == 1, path
        assert found[0] == policy(page), path
        assert page.index("Content-Security-Policy") < re.search(r"<(script|link|style)", page).start(), path  # type: ignore[union-attr]
        assert "unsafe" not in found[0]
        assert "http" not in found[0]


def test_no_page_needs_what_the_policy_refuses(site: Path) -> None:
    """Neither a style nor a handler in an attribute, nor an address that is a script: no hash could admit them."""
    for path in pages(site):
        page = path.read_text(encoding="utf-8")
        assert not re.search(r"<[a-z][^<>]*\s(style|on[a-z]+)=", page), path
        assert not re.search(r"(href|src)=[\"']?\s*javascript:", page, re.IGNORECASE), path


def test_scripts_and_styles_are_admitted_by_hash_and_data_is_not_asked_for() -> None:
    page = f"<head>{CHARSET}<style>a{{}}</style><script>1 < 2 && 3</script><script src=x.js></script>"
    page += '<script type="application/json">{}</script></head>'
    said = policy(page)
    # printf '1 < 2 && 3' | openssl dgst -sha256 -binary | base64
    assert "script-src 'self' file: 'sha256-l+urroReXaeoYpnrrqtEV36XLY4oqmThfU+ajVeQf+A='; " in said
    assert "style-src 'self' file: 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='; " in said
    assert guarded(page).startswith(f"<head>{CHARSET}\n")


def test_a_policy_speaks_of_one_page_only() -> None:
    one, other = (policy(f"{CHARSET}<script>{n}</script>") for n in (1, 2))
    assert one != other


@pytest.mark.parametrize("page", ["<head></head>", CHARSET * 2])
def test_a_page_that_could_not_be_guarded_stops_the_build(page: str) -> None:
    with pytest.raises(ValueError, match="once, not"):
        guarded(page)


@pytest.mark.parametrize(("command", "there"), [("build", True), ("serve", False)])
def test_serve_goes_without_for_it_writes_a_script_into_each_answer(command: str, *, there: bool) -> None:
    hook = runpy.run_path(str(ROOT / "gen" / "policy.py"))
    hook["on_startup"](command=command, dirty=False)
    assert ("Content-Security-Policy" in hook["on_post_page"](CHARSET, page=None, config=None)) is there
    assert ("Content-Security-Policy" in hook["on_post_template"](CHARSET, template_name="404.html", config=None)) is there
    assert hook["on_post_template"]("<urlset>", template_name="sitemap.xml", config=None) == "<urlset>"


class Strict(Silent):
    """Serves each page with its own policy as a header as well, and with what only a header can say."""

    def end_headers(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.suffix == ".html" and path.is_file():
            found = META.search(path.read_text(encoding="utf-8"))
            assert found is not None
            self.send_header("Content-Security-Policy", f"{html.unescape(found[1])}; frame-ancestors 'none'")
        super().end_headers()


@pytest.fixture(scope="module")
def strict(site: Path) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), functools.partial(Strict, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def watched(page: Page, witness: Witness) -> Page:
    """Have every violation told, also one that a browser would keep off the console."""
    told = "addEventListener('securitypolicyviolation', (it) => console.error(it.effectiveDirective, it.blockedURI))"
    page.add_init_script(told)
    return witness.watch(page)


@pytest.mark.browser
@pytest.mark.parametrize("place", ["disk", "server"])
def test_nothing_that_a_reader_does_is_refused(browser: Browser, site: Path, strict: str, place: str) -> None:
    base = site.as_uri() + "/" if place == "disk" else strict
    witness = Witness()
    with browser.new_context(viewport=DESK) as desk:
        page = watched(desk.new_page(), witness)
        for path in SAMPLE:
            page.goto(base + path)
        page.goto(base + "index.html")
        page.locator(".md-search__input").click()
        page.keyboard.type("speculative")
        page.locator(".md-search-result__item").first.wait_for()
        page.keyboard.press("Escape")
        for _ in range(3):
            page.locator("label[for^='__palette']:visible").click()
        page.goto(base + "how-to/probe.html")
        page.locator("button[data-md-type='copy']").first.click()
        page.get_by_text("Copied to clipboard").wait_for()
        page.goto(base + "sources.html")
        page.get_by_role("button", name="Published").click()
        page.get_by_label("Find").fill("vllm")
        page.locator(".sift output.sifted").wait_for()
    witness.clean(base.rstrip("/"))


@pytest.mark.browser
@pytest.mark.parametrize("place", ["disk", "server"])
def test_a_script_that_somebody_puts_into_a_page_does_not_run(
    browser: Browser, site: Path, strict: str, tmp_path: Path, place: str
) -> None:
    page_with = (site / "index.html").read_text(encoding="utf-8").replace("</article>", f"{INJECTED}</article>")
    with browser.new_context(viewport=DESK) as desk:
        page = desk.new_page()
        if place == "disk":
            (tmp_path / "index.html").write_text(page_with, encoding="utf-8")
            page.goto((tmp_path / "index.html").as_uri())
        else:

            def answer(route: Route) -> None:
                route.fulfill(body=page_with, content_type="text/html")

            page.route("**/index.html", answer)
            page.goto(strict + "index.html")
        assert page.locator("article img[src=x]").count() == 1
        assert page.evaluate("window.injected") is None
