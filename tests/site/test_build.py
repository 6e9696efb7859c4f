"""mkdocs builds the pages strictly, the same bytes each time, and stops with a message where inputs are broken."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.site.conftest import QUIET, TODAY, build, lay_out


class Links(HTMLParser):
    """Collects what a page points to, what it loads, and what can be pointed to."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.targets.append(found["href"])
        if tag in {"script", "img", "iframe", "source"} and "src" in found:
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") != "canonical":
            self.loaded.append(found["href"])


def links(page: Path) -> Links:
    parser = Links()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def digest(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_two_builds_of_one_day_are_the_same_bytes(project: Path, site: Path, tmp_path: Path) -> None:
    assert build(project, tmp_path / "again").returncode == 0
    assert digest(tmp_path / "again") == digest(site)


def test_another_day_changes_dates_and_no_addresses(project: Path, site: Path, tmp_path: Path) -> None:
    assert build(project, tmp_path / "later", INFERENCE_ADR_TODAY="2026-12-31").returncode == 0
    assert set(digest(tmp_path / "later")) == set(digest(site))
    assert digest(tmp_path / "later")["index.html"] != digest(site)["index.html"]


def test_every_link_and_anchor_resolves(site: Path) -> None:
    pages = {page: links(page) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}
    assert len(pages) > 50
    for page, found in pages.items():
        for target in found.targets + found.loaded:
            parts = urlsplit(target)
            if parts.scheme:
                assert parts.scheme in {"https", "http"}, (page, target)
                continue
            place = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if place.is_dir():
                place /= "index.html"
            assert place.is_file(), (page, target)
            if parts.fragment and place in pages:
                assert parts.fragment in pages[place].anchors, (page, target)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not [target for target in links(page).loaded if urlsplit(target).scheme or target.startswith("//")], page
    for sheet in [*site.rglob("*.css"), *site.glob("assets/*.js")]:
        assert not re.search(r"""(url\(|import\s*)["']?(https?:)?//""", sheet.read_text(encoding="utf-8")), sheet


def test_pages_carry_no_style_or_handler_of_their_own(site: Path) -> None:
    """What a content-security policy without exceptions would refuse must not be needed to read a page."""
    for page in site.rglob("*.html"):
        article = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
        assert article is not None, page
        assert not re.search(r"<[a-z]+[^<>]*\s(style|on[a-z]+)=", article[0]), page


def test_the_search_index_holds_hostile_text_as_text(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    said = " ".join(entry["title"] + entry["text"] for entry in index["docs"])
    assert "alert(1)" in said
    assert not re.search(r"<(script|img|style|think|iframe)", said)


def test_the_first_page_is_small(site: Path) -> None:
    assert (site / "index.html").stat().st_size < 300_000


WRONG_STATUS = "---\ntitle: x\nstatus: acepted\ndate: 2026-07-10\nscope: project\nreview-by: 2027-01-01\n---\n\n# x\n"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("adr/local/evidence/broken.json", "{", "broken.json: is not JSON"),
        ("adr/2026-07-10-words.md", WRONG_STATUS, "adr/2026-07-10-words.md: status 'acepted' is not one of proposed, accepted"),
        ("fleet.yml", "schema: inference-adr/fleet/1\nname: [", "fleet.yml"),
        ("docs/coverage.md", "# Mine", "coverage.md: would replace coverage.md"),
        ("docs/fleet/index.md", "# Mine", "fleet.md: would replace fleet/index.md"),
    ],
)
def test_a_broken_input_stops_the_build_with_its_place(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    project = lay_out(tmp_path / "project")
    place = project / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content, encoding="utf-8")
    done = build(project, tmp_path / "site")
    assert done.returncode != 0
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "site" / "index.html").exists()


def test_a_day_that_is_none_stops_the_build(project: Path, tmp_path: Path) -> None:
    done = build(project, tmp_path / "site", INFERENCE_ADR_TODAY="soon")
    assert done.returncode != 0
    assert "INFERENCE_ADR_TODAY: is 'soon'; expected a date such as 2026-07-10" in done.stderr


# Stands in for a full disk: no file may grow beyond so many bytes.
LIMITED = """import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.argv[1:] = sys.argv[2:]
runpy.run_module("mkdocs", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("most_bytes", "said"),
    [
        (10_000, "cannot be written to the folder for temporary files (File too large)"),
        (600_000, "cannot be written (File too large); expected a writable folder with room"),
    ],
    ids=["while generating", "while writing the site"],
)
def test_a_full_disk_stops_the_build_with_one_message(project: Path, tmp_path: Path, most_bytes: int, said: str) -> None:
    arguments = ["-c", LIMITED, str(most_bytes), "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = build(project, tmp_path / "site", command=arguments)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


def test_a_file_in_the_place_of_the_site_stops_the_build_with_one_message(project: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    done = build(project, tmp_path / "taken" / "site")
    assert done.returncode != 0
    said = "cannot be written (Not a directory); expected a writable folder with room"
    assert done.stderr == f"{tmp_path / 'taken' / 'site'}: {said}\n"


def test_ctrl_c_stops_the_build_with_one_word(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    settings = {**os.environ, **QUIET, "INFERENCE_ADR_TODAY": TODAY}
    with subprocess.Popen(command, cwd=project, env=settings, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        for line in process.stderr:
            if "Building documentation to directory" in line:
                break
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
    assert process.returncode == 1
    assert told.strip() == "Aborted!"
    assert not (tmp_path / "site" / "index.html").exists()
