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
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from gen.changes import propose
from gen.corpus import Corpus, read_corpus
from gen.records import Record, parse_record, render_record
from gen.records.record import EvidenceRef, Move
from gen.words import Status
from probes.archive import content_hash
from probes.evidence import RunKind, run_id

ROOT: Final = Path(__file__).parents[1]
GOAL_S: Final = 20.0
RECORDS: Final = 1000
RUNS: Final = 10_000
CITED: Final = 3
SPACING_S: Final = 60
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
    today = _write(folder, records, runs)
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


def _write(folder: Path, records: int, runs: int) -> date:
    """Lay the checkout out and give the day to check it by."""
    (folder / "adr" / "evidence").mkdir(parents=True)
    shutil.copy(ROOT / "fleet.yml", folder / "fleet.yml")
    known = read_corpus(ROOT)
    cited = [_evidence(folder, document) for document in islice(_documents(known), runs)]
    newest = max(day for _, day in cited)
    refs = [ref for ref, _ in cited]
    for record in _chains(known, records, refs, newest):
        (folder / "adr" / f"{record.name}.md").write_text(render_record(record), encoding="utf-8")
    return newest + timedelta(days=records)


def _documents(known: Corpus) -> Iterator[dict[str, JsonValue]]:
    """Give evidence without end: runs of this repository in the usual mix, one a minute, from service to service."""
    examples = {kind: cycle([run for run in known.runs if run.kind is kind]) for kind in MIX}
    services = cycle(known.fleet.services)
    first = min(run.started_at for run in known.runs)
    for number, kind in enumerate(cycle([kind for kind, share in MIX.items() for _ in range(share)])):
        run = next(examples[kind])
        began = first + timedelta(seconds=SPACING_S * number)
        document: dict[str, JsonValue] = json.loads(run.model_dump_json())
        document["started_at"] = began.isoformat()
        document["ended_at"] = (began + (run.ended_at - run.started_at)).isoformat()
        document["id"] = run_id(began, "bench", f"{kind.value}-{number}")
        if kind is RunKind.ENDPOINT:
            service = next(services)
            document |= {"scope": {"scope": "fleet", "service": service}, "subject": service}
            # What a run saw is no drift of the inventory here: the check is timed, and not what it would find.
            document["settings"] = []
            document["runtime"] = {"missing": "not measured", "detail": "a made-up service"}
        yield document


def _evidence(folder: Path, document: dict[str, JsonValue]) -> tuple[EvidenceRef, date]:
    digest = content_hash(document)
    name = str(document["id"])
    text = json.dumps({**document, "content_sha256": digest}, indent=1, ensure_ascii=False) + "\n"
    (folder / "adr" / "evidence" / f"{name}.json").write_text(text, encoding="utf-8")
    return EvidenceRef(id=name, sha256=digest), date.fromisoformat(str(document["started_at"])[:10])


def _chains(known: Corpus, count: int, refs: Sequence[EvidenceRef], newest: date) -> Iterator[Record]:
    """Give records of the fleet, each taking the place of the one before it, the last of each technique in force."""
    bare = Corpus(
        fleet=known.fleet, knowledge=known.knowledge, runs=(), local_runs=(), records=(), local_records=(), problems=()
    )
    drafts = [parse_record(draft.name, draft.text, draft.path) for draft in propose(bare, newest, "fleet")]
    cited = cycle(refs)
    for position, draft in enumerate(drafts):
        length = len(range(position, count, len(drafts)))
        days = [newest + timedelta(days=number) for number in range(length)]
        names = [f"{day.isoformat()}-{draft.technique}-fleet" for day in days]
        for number, (name, day) in enumerate(zip(names, days, strict=True)):
            last = number == length - 1
            history = [Move(status=Status.ACCEPTED, on=day, by="platform team")]
            if not last:
                history.append(Move(status=Status.SUPERSEDED, on=days[number + 1], by="platform team"))
            yield draft.model_copy(
                update={
                    "name": name,
                    "date": day,
                    "status": Status.ACCEPTED if last else Status.SUPERSEDED,
                    "history": tuple(history),
                    "evidence": tuple(islice(cited, CITED)),
                    "supersedes": (names[number - 1],) if number else (),
                    "superseded_by": None if last else names[number + 1],
                    "review_by": day + timedelta(days=3650),
                }
            )


if __name__ == "__main__":
    sys.exit(main())
