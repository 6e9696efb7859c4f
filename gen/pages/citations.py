"""Which runs have a page of their own: those that something rests on, and the newest of everything that was measured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gen.assessment import Assessment, RefKind
from gen.claims import Answer
from gen.planners.plan import Plan
from gen.records import Record
from gen.view import View
from probes.evidence import Run

_FILE = re.compile(r"evidence/([A-Za-z0-9._-]+)\.json")


def of_records(records: Iterable[Record]) -> Iterator[str]:
    """Name the runs that records cite, in their head, in their snapshot or in what people wrote below it."""
    for record in records:
        yield from (ref.id for ref in record.evidence)
        yield from _FILE.findall(record.body)
        if record.assessment is not None:
            yield from of_assessments([record.assessment])


def of_assessments(assessments: Iterable[Assessment]) -> Iterator[str]:
    """Name the runs that cells of the matrix rest on."""
    for one in assessments:
        yield from one.evidence
        yield from (fact.ref.target for fact in one.all_facts() if fact.ref.kind is RefKind.RUN)


def of_view(seen: View) -> Iterator[str]:
    """Name the runs that tell what the services and devices of a scope are and do."""
    yield from (run.id for run, _ in seen.capabilities)
    for service in seen.services:
        yield from (one.run for one in service.sightings)
        yield from (claim.run for claim in service.known.claims)


def of_answers(found: Iterable[Answer]) -> Iterator[str]:
    """Name the runs that speak to claims of articles."""
    return (answer.run for answer in found)


def of_plans(plans: Iterable[Plan]) -> Iterator[str]:
    """Name the runs that planners reckon with."""
    return (given.run for plan in plans for given in plan.given)


def newest(runs: Sequence[Run], scope_of: Mapping[str, str]) -> Iterator[Run]:
    """Give the last run of each scope, kind and subject, and the last of each that may be used, quick or whole.

    `runs` are the newest first.
    """
    seen: set[tuple[object, ...]] = set()
    for run in runs:
        thing = (scope_of[run.id], run.kind, run.subject)
        for key in (thing, *([(*thing, run.quick)] if run.validity.valid else [])):
            if key not in seen:
                seen.add(key)
                yield run
