"""What a probe run is about to do, and to whom, said before it is done."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from probes.errors import UsageError
from probes.fleet import Fleet, ProbeLimits, reference_name, resolve
from probes.micro.catalogue import Extent, of_extent

EMBEDDED = "embedded"


class Part(StrEnum):
    """The parts of a probe run, in the order they run."""

    DEVICES = "devices"
    ENDPOINTS = "endpoints"
    MICRO = "micro"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One line of the plan. `about_s` is a guess for two CPU cores, for the person who waits."""

    part: Part
    subject: str
    target: str
    load: str
    about_s: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What runs where with how much load."""

    parts: tuple[Part, ...]
    services: tuple[str, ...]
    embedded: bool
    quick: bool
    steps: tuple[Step, ...]

    @property
    def extent(self) -> Extent:
        """How much of the micro-benchmarks there is time for: all of them only where other parts are left out."""
        return _extent(self.parts, quick=self.quick)

    @property
    def about_s(self) -> float:
        """How long the whole plan takes on two cores, in seconds, once the model is prepared."""
        return sum(step.about_s for step in self.steps)


def plan(fleet: Fleet, environ: Mapping[str, str], *, parts: Collection[Part], services: Collection[str], quick: bool) -> Plan:
    """Lay out a run. Empty `parts` means all of them; `services` narrows it to the endpoints of those services.

    Raises:
        UsageError: a service that the inventory does not know, or that has no address to ask.
    """
    known = (EMBEDDED, *fleet.services)
    for name in services:
        if name not in known:
            raise UsageError(_did_you_mean(name, known))
        if name != EMBEDDED and fleet.services[name].url is None:
            raise UsageError(f"--service {name}: has no 'url' in fleet.yml; expected a service with an address to ask")
    if services and set(parts) - {Part.ENDPOINTS}:
        raise UsageError("--service asks endpoints only; expected no other part beside it")
    chosen = (Part.ENDPOINTS,) if services else tuple(part for part in Part if not parts or part in parts)
    asked = tuple(name for name in fleet.services if name in services or not services)
    embedded = not services or EMBEDDED in services
    alone, extent = len(chosen) == 1, _extent(chosen, quick=quick)
    steps = [
        step
        for part in chosen
        for step in _steps(part, fleet, environ, asked, embedded=embedded, quick=quick, alone=alone, extent=extent)
    ]
    return Plan(
        parts=chosen,
        services=asked if Part.ENDPOINTS in chosen else (),
        embedded=embedded and Part.ENDPOINTS in chosen,
        quick=quick,
        steps=tuple(steps),
    )


def _extent(parts: Collection[Part], *, quick: bool) -> Extent:
    return Extent.QUICK if quick else Extent.CORE if len(parts) == len(Part) else Extent.WHOLE


def _steps(
    part: Part,
    fleet: Fleet,
    environ: Mapping[str, str],
    asked: Collection[str],
    *,
    embedded: bool,
    quick: bool,
    alone: bool,
    extent: Extent,
) -> Iterator[Step]:
    if part is Part.DEVICES:
        yield Step(
            part=part,
            subject="every OpenVINO device",
            target="this machine",
            load="short generations, each in a child process",
            about_s=65 if quick else 330 if alone else 240,
        )
    elif part is Part.MICRO:
        for one in of_extent(extent):
            yield Step(
                part=part,
                subject=one.compares,
                target="this machine",
                load="SmolLM2-135M, at least 6 repetitions a side",
                about_s=one.about_s[extent],
            )
    else:
        if embedded:
            yield Step(
                part=part,
                subject=EMBEDDED,
                target="127.0.0.1 (started for the run)",
                load=_load(fleet.embedded.probing),
                about_s=10,
            )
        for name in asked:
            service = fleet.services[name]
            if service.url is not None:
                yield _ask(name, service.url, service.probing, environ)


def _ask(name: str, url: str, limits: ProbeLimits, environ: Mapping[str, str]) -> Step:
    if resolve(url, environ) is None:
        target = f"{reference_name(url)} is unset"
        return Step(part=Part.ENDPOINTS, subject=name, target=target, load="none: not configured", about_s=0)
    return Step(part=Part.ENDPOINTS, subject=name, target=url, load=_load(limits), about_s=5)


def _load(limits: ProbeLimits) -> str:
    if not limits.requests:
        return "none: it is asked what it is, not to generate"
    return f"2 requests of at most {limits.max_tokens} tokens, one at a time"


def _did_you_mean(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"--service {name}: is not in fleet.yml{hint} Expected one of {', '.join(known)}"
