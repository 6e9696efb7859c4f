"""Check a checkout of a thousand records and ten thousand evidence files: how long and how much memory it takes.

    python -m benchmarks.records                 held against the goal
    python -m benchmarks.records --records 100 --runs 1000
    python -m benchmarks.records --keep DIR      write the checkout there, and keep it

The files are those of this repository, written again under other names, days and services, each sealed anew. The check
runs as a command of its own. Exit 1 when it takes longer than the goal or finds an error.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from benchmarks.checkout import CITED, ROOT, Shape, lay_out
from probes.ending import carry_out, leave
from probes.evidence import RunKind

GOAL_S: Final = 20.0
RECORDS: Final = 1000
RUNS: Final = 10_000
# Of a hundred files most are what services answered; devices are measured seldom, and their files are the largest.
MIX: Final = {RunKind.ENDPOINT: 80, RunKind.MICRO: 18, RunKind.DEVICES: 2}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one check took and found."""

    records: int
    runs: int
    bytes: int
    wall_s: float
    cpu_s: float
    memory_bytes: int
    errors: int
    warnings: int


def main(argv: Sequence[str] | None = None) -> int:
    """Write the checkout, check it, print the figures; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=RECORDS, metavar="N", help="record files (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="evidence files (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the checkout there instead of a folder that goes again")
    given = parser.parse_args(argv)
    if given.records < 1 or given.runs < CITED:
        parser.error(f"expected at least 1 record and {CITED} runs")
    if given.keep is not None:
        return _held(_measured(given.keep, given.records, given.runs))
    with tempfile.TemporaryDirectory(prefix="inference-adr-records-") as folder:
        return _held(_measured(Path(folder), given.records, given.runs))


def _measured(folder: Path, records: int, runs: int) -> Figures:
    minute, day = timedelta(minutes=1), timedelta(days=1)
    today = lay_out(folder, Shape(runs=runs, records=records, mix=MIX, spacing=minute, between_records=day))
    size = sum(path.stat().st_size for path in (folder / "adr").rglob("*") if path.is_file())
    argv = [sys.executable, "-m", "gen", "check", "--json", "--root", str(folder), "--today", today.isoformat()]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    wall_s = time.perf_counter() - start
    if done.returncode not in {0, 1}:
        sys.stderr.write(done.stderr)
        raise SystemExit(2)
    found = [one["severity"] for one in json.loads(done.stdout)]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Figures(
        records=records,
        runs=runs,
        bytes=size,
        wall_s=wall_s,
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        memory_bytes=after.ru_maxrss * 1024,
        errors=found.count("error"),
        warnings=found.count("warning"),
    )


def _held(figures: Figures) -> int:
    late = figures.wall_s > GOAL_S
    goal = f"goal {GOAL_S:g} s{', missed' if late else ''}"
    sys.stdout.write(
        f"{figures.records} records and {figures.runs} evidence files, {figures.bytes / 2**20:.0f} MiB: "
        f"checked in {figures.wall_s:.1f} s ({goal}; {figures.cpu_s:.1f} s of one core), "
        f"{figures.memory_bytes / 2**20:.0f} MiB at most, {figures.errors} errors, {figures.warnings} warnings, "
        f"{os.cpu_count()} cores\n"
    )
    return 1 if late or figures.errors else 0


if __name__ == "__main__":
    leave(carry_out("benchmarks.records", main, stopped="stopped"))
