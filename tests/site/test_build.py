"""mkdocs builds the pages strictly, the same bytes each time, and stops with a message where inputs are broken."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.site.conftest import QUIET, ROOT, TODAY, build, lay_out


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


@pytest.fixture(scope="module")
def elsewhere(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the same inputs on another day, for a repository with links to edit pages, where keys are set."""
    copy = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(project, copy, symlinks=True, dirs_exist_ok=True)
    settings = (copy / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings.replace("features:\n", "features:\n    - content.action.edit\n", 1)
    hosted = "repo_url: https://git.example/group/project\nedit_uri: edit/main/docs/\n"
    (copy / "mkdocs.yml").write_text(hosted + settings, encoding="utf-8")
    folder = tmp_path_factory.mktemp("later")
    keys = {"OVMS_API_KEY": CANARY, "OVMS_8B_URL": f"http://user:{CANARY}@127.0.0.1:1/v3?key={CANARY}", "HTTP_PROXY": CANARY}
    done = build(copy, folder, INFERENCE_ADR_TODAY="2026-12-31", **keys)
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stderr + done.stdout
    return folder


def test_another_day_changes_dates_and_no_addresses(site: Path, elsewhere: Path) -> None:
    assert set(digest(elsewhere)) == set(digest(site))
    assert digest(elsewhere)["index.html"] != digest(site)["index.html"]


def test_a_link_to_edit_leads_to_what_a_person_wrote(elsewhere: Path) -> None:
    """A generated page has no source under docs/, so a pencil on it would lead nowhere."""
    pencils = {}
    for page in elsewhere.rglob("*.html"):
        found = re.search(r'<a href="([^"]+)"[^>]*rel="edit"', page.read_text(encoding="utf-8"))
        if found:
            pencils[page.relative_to(elsewhere).with_suffix(".md").as_posix()] = found[1]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pencils == {path: f"https://git.example/group/project/edit/main/docs/{path}" for path in written}


def test_what_the_environment_holds_is_on_no_page(elsewhere: Path) -> None:
    for path in elsewhere.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


def test_a_build_writes_nothing_that_serve_watches(project: Path, site: Path) -> None:
    """Or every build would cause the next one."""
    assert site.is_dir()
    inputs = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
    assert {path for path in inputs if path.startswith("docs/")} == written
    assert {path.split("/")[0] for path in inputs} <= {"docs", "adr", "mkdocs.yml", "fleet.yml", ".cache"}, "none of it watched"
    assert len([path for path in inputs if path.startswith("adr/")]) == INPUTS_IN_ADR


def test_no_cell_shows_what_a_library_makes_of_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", page.read_text(encoding="utf-8"), re.DOTALL)
        for cell in cells:
            assert re.sub(r"<[^>]+>", "", cell).strip() not in {"", "nan", "NaN", "None", "NaT", "null", "inf", "-inf"}, page


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


def test_the_search_index_holds_hostile_text_as_text(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    said = " ".join(entry["title"] + entry["text"] for entry in index["docs"])
    assert "alert(1)" in said
    assert not re.search(r"<(script|img|style|think|iframe)", said)


def test_the_first_page_is_small(site: Path) -> None:
    assert (site / "index.html").stat().st_size < 300_000


CANARY = "canary-key-8f2d"
# Four local runs, one that is committed, one record: what lay_out put there.
INPUTS_IN_ADR = 6
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


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    """Out of docs/ as well: adr/ lies beside it, and is on the site under another address."""
    project = lay_out(tmp_path / "project")
    lost = "# Q\n\n[a record](../adr/README.md) [a part](contract.md#no-such-part)"
    (project / "docs" / "quality.md").write_text(lost, encoding="utf-8")
    done = build(project, tmp_path / "site")
    assert done.returncode != 0
    assert "'../adr/README.md', but the target is not found" in done.stderr
    assert "does not contain an anchor '#no-such-part'" in done.stderr


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
