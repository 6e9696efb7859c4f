"""A checkout of its own with evidence of one machine, and the site that mkdocs builds from it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from gen.records import render_record
from probes.archive import write_run
from tests.gen import ledger, specimens
from tests.site.browsing import FLAGS, Server, Silent

ROOT = Path(__file__).parents[2]
QUIET = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
TODAY = "2026-11-30"


def lay_out(folder: Path) -> Path:
    """Copy what people write; link the code."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copy(ROOT / "fleet.yml", folder)
    for package in ("gen", "probes"):
        (folder / package).symlink_to(ROOT / package, target_is_directory=True)
    fleet = specimens.fleet()
    runs = (specimens.devices_run(), specimens.endpoint_run(), specimens.survey_run(fleet), specimens.invalid_run())
    for run in runs:
        write_run(run, folder / "adr" / "local" / "evidence")
    write_run(specimens.micro_run(), folder / "adr" / "evidence")
    record = ledger.record(
        body=f"# Keep it\n\nSee [the run](evidence/{specimens.micro_run().id}.json).\n\n{specimens.HOSTILE[6]}"
    )
    (folder / "adr" / f"{record.name}.md").write_text(render_record(record), encoding="utf-8")
    return folder


def build(
    project: Path, site: Path, *, command: Sequence[str] | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Build strictly, as the `docs` session does, and give what it said but for its progress.

    `command` is another way to start Python. Never with --quiet: mkdocs then drops its warnings before --strict counts them.
    """
    usual = ["-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    settings = {**os.environ, **QUIET, "INFERENCE_ADR_TODAY": TODAY, **environ}
    line = [sys.executable, *(command or usual)]
    done = subprocess.run(line, cwd=project, env=settings, capture_output=True, text=True, check=False)  # noqa: S603
    done.stderr = "".join(said for said in done.stderr.splitlines(keepends=True) if not said.startswith("INFO "))
    return done


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def site(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(project, folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("no chromium on the PATH; CI is to show the site in a browser")
        pytest.skip("no chromium on the PATH")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def served(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the site below a sub-path, as a project's pages are."""
    root = tmp_path_factory.mktemp("served")
    (root / "group" / "project").mkdir(parents=True)
    (root / "group" / "project" / "docs").symlink_to(site, target_is_directory=True)
    server = Server(("127.0.0.1", 0), functools.partial(Silent, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/group/project/docs/"
    server.shutdown()
    server.server_close()
    thread.join()
