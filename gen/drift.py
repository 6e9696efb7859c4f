"""Where what is declared, observed and inferred of a service disagree, over everything this checkout holds.

The matrix of the fleet judges by committed evidence alone. A drift is worth knowing before it is committed, so it
is told beside the matrix, like staleness, and is no part of what records compare.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

from gen.assess import view
from gen.corpus import Corpus
from gen.view import FLEET, ServiceView, Sighting, View
from probes.evidence import ProvenanceKind, Run, Technique

MODEL = "model kind"


@dataclass(frozen=True, kw_only=True)
class Drift:
    """One control of one service and the sources that differ, from words to deeds. A version has no technique."""

    service: str
    title: str
    control: str
    technique: Technique | None
    sightings: tuple[Sighting, ...]

    def __str__(self) -> str:
        return f"{self.title}: {self.control}: {', '.join(one.said(dated=True) for one in self.sightings)}"


def drifts(corpus: Corpus, on: date) -> tuple[Drift, ...]:
    """Find every drift of the inventory's services as of a day, in its order."""
    everything = {run.id: run for run in corpus.runs + corpus.local_runs}
    seen = fleet_view(corpus, on)
    return tuple(one for service in seen.services for one in _of_service(seen, service, everything.values()))


def fleet_view(corpus: Corpus, on: date) -> View:
    """See the inventory's services with all runs against them, committed or not."""
    everything = {run.id: run for run in corpus.local_runs + corpus.runs}
    runs = tuple(sorted(everything.values(), key=lambda run: (run.started_at, run.id)))
    return view(replace(corpus, runs=runs), FLEET, on)


def _of_service(seen: View, service: ServiceView, runs: Iterable[Run]) -> Iterable[Drift]:
    yield from _of_kind(seen, service)
    named = {setting.control: setting.technique for run in runs for setting in run.settings}
    for control in dict.fromkeys(sighting.control for sighting in service.sightings):
        if service.drift((control,)):
            known = seen.knowledge.control(service.engine, control)
            yield Drift(
                service=service.name,
                title=service.title,
                control=control,
                technique=known.technique if known else named.get(control),
                sightings=service.claims(control),
            )


def _of_kind(seen: View, service: ServiceView) -> Iterable[Drift]:
    """Tell where the inventory's word, files and answers disagree on what the model is."""
    if not service.known.drift(seen.knowledge):
        return
    word = Sighting(
        control=MODEL,
        value=service.known.word.value,
        kind=ProvenanceKind.DECLARED,
        date=seen.fleet.services[service.name].as_of or seen.fleet.as_of,
        source=seen.fleet.source,
    )
    told = tuple(
        Sighting(control=MODEL, value=one.kind.value, kind=one.provenance, date=one.date, source=one.where, run=one.run)
        for one in reversed(service.known.claims)
    )
    yield Drift(service=service.name, title=service.title, control=MODEL, technique=None, sightings=(word, *told))
