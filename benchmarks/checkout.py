"""Made-up checkouts of any size: evidence of several machines and services over a span of days, and records that cite it."""

from __future__ import annotations

import json
import random
import shutil
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
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
from probes.evidence import Direction, Load, Metric, Per, Run, RunKind, run_id
from probes.fleet import ServiceKind
from tests.gen import compared

ROOT: Final = Path(__file__).parents[1]
CITED: Final = 3
_REQUESTS: Final = 200
# What a load keeps of every request, about as fast as a small model on a card.
_OF_A_REQUEST: Final = {"ttft_s": ("s", 0.35), "itl_s": ("s", 0.021), "latency_s": ("s", 2.4), "completion_tokens": ("", 96.0)}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How much a checkout holds, how far its files lie apart, and how often each kind comes among so many runs.

    Records begin after the newest run, or with the first one where they lie `among_runs`.
    """

    runs: int
    records: int
    mix: Mapping[RunKind, int]
    spacing: timedelta
    between_records: timedelta
    machines: int = 1
    among_runs: bool = False


def lay_out(folder: Path, shape: Shape) -> date:
    """Write a checkout and give the day to look at it; the same shape gives the same files.

    Each record takes the place of the one before it, so that the last of each technique is in force. They cite what was
    measured last before them, or run after run where all were.
    """
    (folder / "adr" / "evidence").mkdir(parents=True)
    shutil.copy(ROOT / "fleet.yml", folder / "fleet.yml")
    known = read_corpus(ROOT)
    cited = [_evidence(folder, document) for document in islice(_documents(known, shape), shape.runs)]
    start = last = cited[0 if shape.among_runs else -1][1]
    for record in _chains(known, shape, cited, start):
        (folder / "adr" / f"{record.name}.md").write_text(render_record(record), encoding="utf-8")
        last = max(last, record.date)
    return max(last, cited[-1][1]) + timedelta(days=1)


def _documents(known: Corpus, shape: Shape) -> Iterator[dict[str, JsonValue]]:
    """Give evidence without end: runs of this repository in the mix that is asked for, from place to place."""
    examples = {kind: cycle(_examples(known, kind)) for kind in shape.mix}
    places = {kind: cycle(_places(known, kind, shape.machines)) for kind in shape.mix}
    first = min(run.started_at for run in known.runs)
    for number, kind in enumerate(cycle([kind for kind, share in shape.mix.items() for _ in range(share)])):
        yield _moved(next(examples[kind]), number, first + shape.spacing * number, next(places[kind]))


def _examples(known: Corpus, kind: RunKind) -> list[Run]:
    found = [run for run in known.runs if run.kind is kind]
    if kind is RunKind.CONTRACT:
        return [compared.two_sides(), compared.one_side()]
    return [_load(known)] if kind is RunKind.LOAD else found


def _load(known: Corpus) -> Run:
    """Make a load of two hundred requests out of a run of this repository, which ships none."""
    run = next(run for run in known.runs if run.kind is RunKind.MICRO)
    metrics = tuple(
        Metric(name=name, unit=unit, direction=Direction.LOWER, per=Per.REQUEST, samples=(value,) * _REQUESTS)
        for name, (unit, value) in _OF_A_REQUEST.items()
    )
    load = Load(
        schedule="closed loop: 8 at a time", concurrency=8, requests=_REQUESTS, warmup_requests=8, prompt_tokens=(512,),
        max_tokens=128, prompt_set_sha256="ab" * 32,
    )  # fmt: skip
    changes = {"kind": RunKind.LOAD, "subject": "embedded", "arms": (), "metrics": metrics, "load": load, "native": {}}
    return run.model_copy(update=changes)


def _places(known: Corpus, kind: RunKind, machines: int) -> list[tuple[str, int]]:
    """Name where runs of a kind are made: at each service of the inventory, and on each machine."""
    local = [("", machine) for machine in range(machines)]
    if kind not in {RunKind.ENDPOINT, RunKind.LOAD, RunKind.CONTRACT}:
        return local
    every = kind is RunKind.ENDPOINT
    asked = [name for name, one in known.fleet.services.items() if every or one.kind is ServiceKind.TEXT_GENERATION]
    return [*((name, 0) for name in asked), *(local if machines > 1 else [])]


def _moved(run: Run, number: int, began: datetime, place: tuple[str, int]) -> dict[str, JsonValue]:
    """Write a run again as if it had been made elsewhere, on another day and with other samples."""
    service, machine = place
    document: dict[str, JsonValue] = json.loads(run.model_dump_json())
    document["started_at"] = began.isoformat()
    document["ended_at"] = (began + (run.ended_at - run.started_at)).isoformat()
    document["id"] = run_id(began, f"bench-{machine}", f"{run.kind.value}-{number}")
    document["metrics"] = [_jittered(metric, number) for metric in json.loads(run.model_dump_json())["metrics"]]
    if service:
        document |= {"scope": {"scope": "fleet", "service": service}, "subject": service}
        # What a run saw is no drift of the inventory here: what it finds is not what is timed.
        document["settings"] = []
        document["runtime"] = {"missing": "not measured", "detail": "a made-up service"}
    else:
        fingerprint = f"{machine:012x}"
        document["scope"] = {"scope": "local", "fingerprint": fingerprint}
        document["client"] = run.client.model_dump(mode="json") | {"alias": f"bench-{machine}", "fingerprint": fingerprint}
        document["server"] = document["client"]
    return document


def _jittered(metric: dict[str, JsonValue], number: int) -> dict[str, JsonValue]:
    """Scatter what was measured by two percent: the same samples twice would be the same chart. Counts stay as they are."""
    samples = [value for value in metric["samples"] if isinstance(value, float)] if isinstance(metric["samples"], list) else []
    if not samples or all(value == int(value) for value in samples[:8]):
        return metric
    # The same number gives the same file on every machine.
    chance = random.Random(f"{number}/{metric['name']}/{metric['arm']}")  # noqa: S311 (no secret)
    return {**metric, "samples": [float(f"{value * chance.gauss(1.0, 0.02):.6g}") for value in samples]}


def _evidence(folder: Path, document: dict[str, JsonValue]) -> tuple[EvidenceRef, date]:
    digest = content_hash(document)
    name = str(document["id"])
    text = json.dumps({**document, "content_sha256": digest}, indent=1, ensure_ascii=False) + "\n"
    (folder / "adr" / "evidence" / f"{name}.json").write_text(text, encoding="utf-8")
    return EvidenceRef(id=name, sha256=digest), date.fromisoformat(str(document["started_at"])[:10])


def _chains(known: Corpus, shape: Shape, cited: Sequence[tuple[EvidenceRef, date]], start: date) -> Iterator[Record]:
    """Give records of the fleet, each taking the place of the one before it."""
    bare = Corpus(
        fleet=known.fleet, knowledge=known.knowledge, runs=(), local_runs=(), records=(), local_records=(), problems=()
    )
    drafts = [parse_record(draft.name, draft.text, draft.path) for draft in propose(bare, start, "fleet")]
    days_of_runs = [day for _, day in cited]
    for position, draft in enumerate(drafts):
        length = len(range(position, shape.records, len(drafts)))
        # A technique's days lie between those of the others.
        days = [start + shape.between_records * (number + position / len(drafts)) for number in range(length)]
        names = [f"{day.isoformat()}-{draft.technique}-fleet" for day in days]
        for number, (name, day) in enumerate(zip(names, days, strict=True)):
            last = number == length - 1
            history = [Move(status=Status.ACCEPTED, on=day, by="platform team")]
            if not last:
                history.append(Move(status=Status.SUPERSEDED, on=days[number + 1], by="platform team"))
            before, own = bisect_left(days_of_runs, day), CITED * (1 + position)
            first = before - own if own <= before < len(cited) else CITED * (number * len(drafts) + position)
            yield draft.model_copy(
                update={
                    "name": name,
                    "date": day,
                    "status": Status.ACCEPTED if last else Status.SUPERSEDED,
                    "history": tuple(history),
                    "evidence": tuple(cited[(first + n) % len(cited)][0] for n in range(min(CITED, len(cited)))),
                    "supersedes": (names[number - 1],) if number else (),
                    "superseded_by": None if last else names[number + 1],
                    "review_by": day + timedelta(days=3650),
                }
            )
