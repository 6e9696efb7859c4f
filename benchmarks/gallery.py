"""Retake the pictures of the documentation from a built site: each kind of page, wide and light, on a phone and dark.

    python -m benchmarks.gallery                 of site/, after `nox -s docs`
    python -m benchmarks.gallery --site DIR --only service device
    python -m benchmarks.gallery --out DIR       somewhere else than in docs/

Needs the system's Chromium. Exit 1 when a kind of page is not in the site or the pictures together are too large.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, sync_playwright

from probes.ending import carry_out, leave
from probes.errors import UsageError

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = "gallery"
MOST_BYTES: Final = 2_500_000
QUALITY: Final = 72
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run")


@dataclass(frozen=True, kw_only=True)
class Frame:
    """How a page is looked at, and in which format the picture is kept."""

    width: int
    height: int
    scheme: Literal["light", "dark"]
    scale: float = 1.0
    format: Literal["webp", "png"] = "webp"


WIDE: Final = Frame(width=1280, height=860, scheme="light")
PHONE: Final = Frame(width=360, height=720, scheme="dark", scale=1.5)
# The README shows one screen of the first page as it opens.
COVER: Final = Frame(width=1180, height=1010, scheme="light", format="png")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of page: the file of the site that stands for it, of several the last by name: runs are named by time."""

    name: str
    pages: str
    anchor: str = ""


KINDS: Final = (
    Kind(name="matrix", pages="index.html"),
    Kind(name="technique", pages="techniques/speculative-decoding.html"),
    Kind(name="past", pages="as-of/2*.html"),
    Kind(name="coverage", pages="coverage.html"),
    Kind(name="fleet", pages="fleet.html", anchor="hosts"),
    Kind(name="service", pages="services/text-8b.html"),
    Kind(name="device", pages="devices/local-*-cpu.html", anchor="capabilities"),
    Kind(name="machine", pages="machines/local-*.html"),
    Kind(name="run", pages="runs/*-micro-prefix-caching.html"),
    Kind(name="comparison", pages="runs/*-contract-*.html"),
    Kind(name="records", pages="records/index.html"),
    Kind(name="record", pages="records/*-speculative-decoding-fleet.html"),
    Kind(name="planners", pages="planners.html", anchor="kv-capacity"),
    Kind(name="claims", pages="claims.html"),
    Kind(name="knowledge", pages="knowledge/ovms.html"),
    Kind(name="sources", pages="sources.html"),
    Kind(name="checklist", pages="checklists/text-8b.html"),
    Kind(name="contract", pages="contract.html"),
)
README: Final = "assets/first-page.png"


def main(argv: Sequence[str] | None = None) -> int:
    """Take the pictures and say how large they are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--site", type=Path, default=ROOT / "site", metavar="DIR", help="a built site (default: site/)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", metavar="DIR", help="where to put them (default: docs/)")
    parser.add_argument("--only", nargs="+", metavar="KIND", choices=[kind.name for kind in KINDS], help="some kinds of page")
    given = parser.parse_args(argv)
    wanted = [kind for kind in KINDS if not given.only or kind.name in given.only]
    try:
        return _taken(given.site, given.out, wanted)
    except UsageError as exc:
        sys.stderr.write(f"{exc}\n")
        return 2


def _taken(site: Path, out: Path, wanted: Sequence[Kind]) -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise UsageError("chromium: is not on the PATH; expected the system's browser (apt-get install chromium on Debian)")
    if not (site / "index.html").is_file():
        raise UsageError(f"{site}: holds no index.html; expected a built site (nox -s docs)")
    lost = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for kind in wanted:
            page = max(site.glob(kind.pages), default=None)
            if page is None:
                lost.append(kind)
                continue
            address = page.resolve().as_uri()
            place = f"{address}#{kind.anchor}" if kind.anchor else address
            _keep(out / FOLDER / f"{kind.name}-wide.webp", _shot(browser, place, WIDE))
            _keep(out / FOLDER / f"{kind.name}-phone.webp", _shot(browser, place, PHONE))
            if kind is KINDS[0]:
                _keep(out / README, _shot(browser, address, COVER))
        browser.close()
    for kind in lost:
        sys.stderr.write(f"{kind.name}: no page of {site} is called {kind.pages}; the picture stays as it was\n")
    size_bytes = sum(path.stat().st_size for path in (out / FOLDER).glob("*.webp"))
    sys.stdout.write(f"{out / FOLDER}: {size_bytes / 1e6:.2f} MB of at most {MOST_BYTES / 1e6:g} MB\n")
    return 1 if lost or size_bytes > MOST_BYTES else 0


def _shot(browser: Browser, address: str, frame: Frame) -> bytes:
    """Open a page as a reader would and photograph what fits the window."""
    context = browser.new_context(
        viewport={"width": frame.width, "height": frame.height},
        color_scheme=frame.scheme,
        device_scale_factor=frame.scale,
        reduced_motion="reduce",
    )
    with context:
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("time[data-aged], article:not(:has(time))", state="attached")
        page.wait_for_timeout(400)  # the theme fades its tabs in
        asked = {"format": frame.format} | ({"quality": QUALITY} if frame.format == "webp" else {})
        answer = context.new_cdp_session(page).send("Page.captureScreenshot", asked)
    return base64.b64decode(answer["data"])


def _keep(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    leave(carry_out("benchmarks.gallery", main, stopped="stopped"))
