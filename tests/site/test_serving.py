"""`mkdocs serve` shows what changes, and keeps the last good site with the reason while something is broken."""

from __future__ import annotations

import html
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from probes.archive import write_run
from tests.gen import specimens
from tests.site.conftest import QUIET, ROOT, TODAY, lay_out

PATIENCE_S = 180
RECORD = "adr/2026-07-10-automatic-prefix-caching-fleet.md"
TITLE = 'title: "Automatic prefix caching on the fleet: keep"'
ABOUT = "Prompts that begin alike share the KV blocks of their common beginning"
# Past a proxy that the environment may name.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Served:
    """A checkout of its own, served from 127.0.0.1."""

    def __init__(self, folder: Path, port: int, log: Path) -> None:
        self.folder, self._port, self._log = folder, port, log

    def page(self, path: str) -> str:
        with DIRECT.open(f"http://127.0.0.1:{self._port}/{path}", timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def wait(self, path: str, shown: Callable[[str], bool]) -> str:
        """Read a page until it shows what is waited for; pages are answered while the next site is built or broken."""
        until, page = time.monotonic() + PATIENCE_S, ""
        while time.monotonic() < until:
            page = self.page(path)
            if shown(page):
                return page
            time.sleep(0.2)
        pytest.fail(f"{path} never showed it\n{self._log.read_text()[-3000:]}\n{page[:2000]}")

    def edit(self, path: str, old: str, new: str) -> None:
        place = self.folder / path
        text = place.read_text(encoding="utf-8")
        assert old in text, path
        place.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = lay_out(tmp_path_factory.mktemp("served"))
    for package in ("gen", "probes"):
        (folder / package).unlink()
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder.parent / "serve.log"
    command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", f"127.0.0.1:{port}"]
    environment = {**os.environ, **QUIET, "INFERENCE_ADR_TODAY": TODAY}
    with log.open("w") as told, subprocess.Popen(command, cwd=folder, env=environment, stdout=told, stderr=told) as process:  # noqa: S603
        until = time.monotonic() + PATIENCE_S
        while "Serving on" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)
        yield Served(folder, port, log)
        process.send_signal(signal.SIGINT)
        process.wait()


def test_records_evidence_and_inventory_are_shown_as_they_change(served: Served) -> None:
    late = specimens.invalid_run().model_copy(update={"id": "20261129T100000Z-bench-micro-late", "subject": "late-one"})
    served.edit(RECORD, TITLE, "title: Another title")
    write_run(late, served.folder / "adr" / "local" / "evidence")
    served.edit("fleet.yml", "  text-8b:\n    title: ", "  text-8b:\n    title: Renamed ")
    served.wait("records/index.html", lambda page: "Another title" in page)
    served.wait("runs/index.html", lambda page: "late-one" in page)
    served.wait("fleet.html", lambda page: "Renamed" in page)


def test_rules_and_knowledge_are_shown_as_they_change(served: Served) -> None:
    served.edit("gen/knowledge/techniques.yaml", ABOUT, "Beginnings are shared")
    served.edit("gen/pages/technique.py", 'text("What it needs")', 'text("What it asks for")')
    page = "techniques/automatic-prefix-caching.html"
    served.wait(page, lambda shown: "Beginnings are shared" in shown and "What it asks for" in shown)


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        (RECORD, "status: accepted", "status: acepted", "status 'acepted' is not one of proposed, accepted"),
        ("gen/techniques/prefix_caching.py", "STABLE_FIRST = ", "STABLE_FIRST == ", "NameError"),
        ("gen/techniques/prefix_caching.py", "STABLE_FIRST = ", "STABLE_FIRST = = ", "SyntaxError"),
    ],
    ids=["record", "rule", "grammar"],
)
def test_what_is_broken_is_told_on_the_last_good_pages_until_it_is_mended(
    served: Served, path: str, old: str, new: str, said: str
) -> None:
    place = "techniques/automatic-prefix-caching.html"
    good = served.page(place)
    served.edit(path, old, new)
    told = html.unescape(served.wait(place, lambda page: 'role="alert"' in page))
    assert said in told
    assert Path(path).name in told
    assert "Traceback" not in told
    assert '<h1 id="automatic-prefix-caching">' in told
    assert served.page("assets/site.css")
    served.edit(path, new, old)
    mended = served.wait(place, lambda page: 'role="alert"' not in page)
    assert len(mended) == len(good)
