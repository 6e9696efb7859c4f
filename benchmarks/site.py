"""Build the site of this repository, and of made-up ones of two years: how long it takes, how it grows, how large it is.

    python -m benchmarks.site                    all but the whole build of a made-up one, about five minutes
    python -m benchmarks.site --whole            that as well: mkdocs over every page, some minutes more
    python -m benchmarks.site --runs 500 --records 75 --small 200 --large 2000

A generation is the reading of all files and the writing of all pages, in a process of its own: once without the charts
that were rendered before, once with them. Exit 1 when a limit is missed. On a machine that others use, too, the seconds of
CPU say more than those of the clock; a limit is held against the smaller of the two.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from benchmarks.checkout import ROOT, Shape, lay_out
from gen.album import FOLDER, Album
from probes.ending import carry_out, leave
from probes.evidence import RunKind

SHIPPED_S: Final = 20.0
COLD_S: Final = 20.0
WARM_S: Final = 5.0
MOST_BYTES: Final = 60_000_000
FIRST_PAGE_BYTES: Final = 300_000
GROWTH: Final = 1.2
"""So many times more than in proportion: ten times the runs take at most twelve times as long."""
SPAN: Final = timedelta(days=730)
MACHINES: Final = 3
MIX: Final = {RunKind.ENDPOINT: 66, RunKind.MICRO: 18, RunKind.LOAD: 9, RunKind.CONTRACT: 5, RunKind.DEVICES: 2}
_RECORDS_A_RUN: Final = 0.1
_QUIET: Final = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}


@dataclass(frozen=True, kw_only=True)
class Took:
    """What one process took."""

    wall_s: float
    cpu_s: float
    memory_bytes: int
    said: str = ""

    @property
    def least_s(self) -> float:
        """Give the smaller of the two: others' work makes the clock late, several cores the CPU."""
        return min(self.wall_s, self.cpu_s)

    def __str__(self) -> str:
        return f"{self.wall_s:.1f} s ({self.cpu_s:.1f} s of CPU, {self.memory_bytes / 2**20:.0f} MiB)"


@dataclass(frozen=True, kw_only=True)
class Generated:
    """What a generation gave, and what it took without the start of Python. `evidence_bytes` are the raw files."""

    wall_s: float
    cpu_s: float
    pages: int
    runs: int
    bytes: int
    evidence_bytes: int


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and say with the exit code whether every limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, metavar="N", help="evidence files (default: %(default)s)")
    parser.add_argument("--records", type=int, default=300, metavar="N", help="records (default: %(default)s)")
    parser.add_argument("--small", type=int, default=1000, metavar="N", help="runs to begin the growth with (%(default)s)")
    parser.add_argument("--large", type=int, default=10_000, metavar="N", help="runs to end it with (%(default)s)")
    parser.add_argument("--whole", action="store_true", help="build the whole site of the made-up checkout, too")
    parser.add_argument("--only", choices=_PARTS, action="append", help="some of it")
    parser.add_argument("--generate", nargs=2, metavar=("DIR", "DAY"), help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.generate is not None:
        return _generate(Path(given.generate[0]), date.fromisoformat(given.generate[1]))
    if min(given.runs, given.records, given.small, given.large) < 10:
        parser.error("expected at least 10 of each")
    chosen = given.only or [name for name in _PARTS if name != "whole" or given.whole]
    day = datetime.now(UTC).date().isoformat()
    python = platform.python_version()
    sys.stdout.write(f"{day}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {python}\n")
    kept = [_PARTS[name](given) for name in _PARTS if name in chosen]
    return 0 if all(kept) else 1


def _shipped(_given: argparse.Namespace) -> bool:
    """Build the repository as it is."""
    with tempfile.TemporaryDirectory(prefix="inference-adr-site-") as folder:
        took = _build(ROOT, Path(folder))
        return _held(f"this repository: built in {took}", took.least_s, SHIPPED_S, "s") & _small_enough(Path(folder), None)


def _made_up(given: argparse.Namespace) -> bool:
    """Generate a checkout of two years without and with the charts of before."""
    with tempfile.TemporaryDirectory(prefix="inference-adr-site-") as folder:
        root = Path(folder)
        today = lay_out(root, _shape(given.runs, given.records))
        what = f"{given.runs} runs and {given.records} records"
        cold, pages = _generated(root, today)
        warm, _ = _generated(root, today)
        charts = list((root / FOLDER).iterdir())
        sys.stdout.write(
            f"{what}: {pages.pages} pages, {pages.runs} of them of runs, {pages.bytes / 1e6:.1f} MB without "
            f"{pages.evidence_bytes / 1e6:.1f} MB of evidence; {len(charts)} charts and parts of pages kept, "
            f"{sum(path.stat().st_size for path in charts) / 1e6:.1f} MB\n"
        )
        return _held(f"{what}, no chart kept: generated in {cold}", cold.least_s, COLD_S, "s") & _held(
            f"{what}, all charts kept: generated in {warm}", warm.least_s, WARM_S, "s"
        )


def _growth(given: argparse.Namespace) -> bool:
    """Generate a small and a large checkout, and hold the times against each other."""
    times = []
    for runs in (given.small, given.large):
        with tempfile.TemporaryDirectory(prefix="inference-adr-site-") as folder:
            root, records = Path(folder), round(runs * _RECORDS_A_RUN)
            today = lay_out(root, _shape(runs, records))
            cold, pages = _generated(root, today)
            warm, _ = _generated(root, today)
            times.append((cold, warm))
            sys.stdout.write(f"{runs} runs and {records} records: {pages.pages} pages; {cold} without charts, {warm} with\n")
    times_more = given.large / given.small
    kept = True
    for name, before, after in zip(("without charts", "with charts"), *times, strict=True):
        factor, most = after.cpu_s / before.cpu_s, times_more * GROWTH
        kept &= _held(f"{times_more:g} times the runs, {name}: {factor:.1f} times the CPU", factor, most, "times")
    return kept


def _whole(given: argparse.Namespace) -> bool:
    """Let mkdocs build the made-up checkout as a whole."""
    with tempfile.TemporaryDirectory(prefix="inference-adr-site-") as folder:
        root, site = Path(folder) / "checkout", Path(folder) / "site"
        root.mkdir()
        lay_out(root, _shape(given.runs, given.records))
        shutil.copytree(ROOT / "docs", root / "docs")
        shutil.copy(ROOT / "mkdocs.yml", root)
        for package in ("gen", "probes"):
            (root / package).symlink_to(ROOT / package, target_is_directory=True)
        took = _build(root, site)
        sys.stdout.write(f"{given.runs} runs and {given.records} records: the whole site is built in {took}\n")
        return _small_enough(site, MOST_BYTES)


_PARTS: Final[dict[str, Callable[[argparse.Namespace], bool]]] = {
    "shipped": _shipped,
    "made-up": _made_up,
    "growth": _growth,
    "whole": _whole,
}


def _shape(runs: int, records: int) -> Shape:
    techniques = 7
    return Shape(
        runs=runs,
        records=records,
        mix=MIX,
        spacing=SPAN / runs,
        between_records=SPAN / (records / techniques),
        machines=MACHINES,
        among_runs=True,
    )


def _generated(root: Path, today: date) -> tuple[Took, Generated]:
    took = _run("-m", "benchmarks.site", "--generate", str(root), today.isoformat(), cwd=ROOT)
    found = Generated(**json.loads(took.said))
    return replace(took, wall_s=found.wall_s, cpu_s=found.cpu_s), found


def _generate(root: Path, today: date) -> int:
    """Read a checkout and write its pages in memory, as the build does."""
    from gen.corpus import read_corpus
    from gen.site import pages

    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    album = Album(root / FOLDER)
    found = pages(read_corpus(root, texts=True, memory=album), today, album)
    wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    sizes = {path: len(content.encode()) for path, content in found.items()}
    evidence = sum(size for path, size in sizes.items() if path.startswith("evidence/"))
    result = Generated(
        wall_s=wall_s,
        cpu_s=cpu_s,
        pages=sum(path.endswith(".md") for path in found),
        runs=sum(path.startswith("runs/") for path in found),
        bytes=sum(sizes.values()) - evidence,
        evidence_bytes=evidence,
    )
    sys.stdout.write(json.dumps(asdict(result)))
    return 0


def _build(root: Path, site: Path) -> Took:
    return _run("-m", "mkdocs", "build", "--strict", "--site-dir", str(site), cwd=root)


def _run(*words: str, cwd: Path) -> Took:
    """Run Python and wait for it alone: what its elders used is no part of it."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, *words], cwd=cwd, env={**os.environ, **_QUIET}, stdout=out, stderr=err)  # noqa: S603
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            sys.stderr.write(err.read())
            raise SystemExit(2)
        cpu_s = used.ru_utime + used.ru_stime
        return Took(wall_s=wall_s, cpu_s=cpu_s, memory_bytes=used.ru_maxrss * 1024, said=out.read())


def _small_enough(site: Path, most: int | None) -> bool:
    """Measure a built site: all of it but raw evidence, its search index, and its first page as a server sends it."""
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    search = sum(size for path, size in sizes.items() if path.startswith("search/"))
    rest = sum(size for path, size in sizes.items() if not path.startswith("evidence/"))
    first = len(gzip.compress((site / "index.html").read_bytes(), mtime=0))
    said = f"the site: {len(sizes)} files, {rest / 1e6:.1f} MB without raw evidence, {search / 1e6:.1f} MB of that for search"
    held = _held(said, rest / 1e6, most / 1e6, "MB") if most is not None else True
    if most is None:
        sys.stdout.write(f"{said}\n")
    return held & _held(f"the first page: {first / 1e3:.1f} kB compressed", first / 1e3, FIRST_PAGE_BYTES / 1e3, "kB")


def _held(said: str, value: float, most: float, unit: str) -> bool:
    late = value > most
    sys.stdout.write(f"{said} (limit {most:g} {unit}{', missed' if late else ''})\n")
    sys.stdout.flush()
    return not late


if __name__ == "__main__":
    leave(carry_out("benchmarks.site", main, stopped="stopped"))
