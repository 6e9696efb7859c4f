"""What a probe run is about to do, and to whom, said before it is done."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from probes.endpoints.address import parse_address
from probes.errors import InputError, UsageError
from probes.fleet import Fleet, ProbeLimits, reference_name, resolve
from probes.micro.catalogue import Extent, of_extent
from probes.workloads.catalogue import WORKLOADS, of_subject

EMBEDDED = "embedded"
_DEVICE_S = {Extent.QUICK: 65, Extent.CORE: 240, Extent.WHOLE: 330}


class Part(StrEnum):
    """The parts of a probe run, in the order they run: a file that cannot be read is told before anything is measured."""

    DECLARED = "declared"
    DEVICES = "devices"
    ENDPOINTS = "endpoints"
    MICRO = "micro"
    WORKLOADS = "workloads"


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
    declared: tuple[str, ...]
    embedded: bool
    quick: bool
    steps: tuple[Step, ...]
    workloads: tuple[str, ...] = ()

    @property
    def extent(self) -> Extent:
        """How much of the micro-benchmarks there is time for: all of them only where other parts are left out."""
        return _extent(self.parts, quick=self.quick)

    @property
    def about_s(self) -> float:
        """How long the whole plan takes on two cores, in seconds, once the model is prepared."""
        return sum(step.about_s for step in self.steps)


def plan(
    fleet: Fleet,
    environ: Mapping[str, str],
    *,
    parts: Collection[Part],
    services: Collection[str],
    quick: bool,
    installed: Collection[str] = (),
) -> Plan:
    """Lay out a run. Empty `parts` means all of them; `services` narrows it to those services and what declares them.

    Small models that write no text are a part to name: what they show of a machine does not change from day to day, and
    their packages are their own. `installed` are those whose packages are here; the others say so.

    Raises:
        UsageError: a service that the inventory does not know, or that has no address to ask.
    """
    known = (EMBEDDED, *fleet.services)
    for name in services:
        if name not in known:
            raise UsageError(_did_you_mean(name, known))
        if name != EMBEDDED and fleet.services[name].url is None and Part.DECLARED not in parts:
            raise UsageError(f"--service {name}: has no 'url' in fleet.yml; expected a service with an address to ask")
    of_services = (Part.DECLARED, Part.ENDPOINTS)
    if services and set(parts) - set(of_services):
        raise UsageError("--service asks endpoints only, and reads their files; expected no other part beside it")
    asked = tuple(name for name in fleet.services if name in services or not services)
    declared = tuple(name for name in asked if fleet.services[name].config)
    if Part.DECLARED in parts and not declared:
        raise UsageError("declared: no file to read; expected `config` with a path, in a service of fleet.yml")
    chosen = tuple(part for part in (of_services if services else Part) if not parts or part in parts)
    workloads = tuple(one.subject for one in WORKLOADS) if Part.WORKLOADS in parts else ()
    empty = {Part.DECLARED: not declared, Part.WORKLOADS: not workloads}
    chosen = tuple(part for part in chosen if not empty.get(part))
    embedded = not services or EMBEDDED in services
    extent = _extent(chosen, quick=quick)
    steps = [step for part in chosen for step in _steps(part, fleet, environ, asked, embedded=embedded, extent=extent)]
    steps += _of_workloads(workloads, installed, quick=quick)
    return Plan(
        parts=chosen,
        services=asked if Part.ENDPOINTS in chosen else (),
        declared=declared if Part.DECLARED in chosen else (),
        embedded=embedded and Part.ENDPOINTS in chosen,
        quick=quick,
        steps=tuple(steps),
        workloads=workloads,
    )


def _extent(parts: Collection[Part], *, quick: bool) -> Extent:
    everything = {Part.DEVICES, Part.ENDPOINTS, Part.MICRO} <= set(parts)
    return Extent.QUICK if quick else Extent.CORE if everything else Extent.WHOLE


def _steps(
    part: Part,
    fleet: Fleet,
    environ: Mapping[str, str],
    asked: Collection[str],
    *,
    embedded: bool,
    extent: Extent,
) -> Iterator[Step]:
    if part is Part.DECLARED:
        for name in asked:
            files = [one.path for one in fleet.config_files(name)]
            if files:
                yield Step(part=part, subject=name, target=", ".join(files), load="none: files are read", about_s=0)
    elif part is Part.DEVICES:
        yield Step(
            part=part,
            subject="every OpenVINO device",
            target="this machine",
            load="short generations, each in a child process",
            about_s=_DEVICE_S[extent],
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
    elif part is Part.ENDPOINTS:
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


def _of_workloads(subjects: Collection[str], installed: Collection[str], *, quick: bool) -> Iterator[Step]:
    for one in map(of_subject, subjects):
        there = one.subject in installed
        yield Step(
            part=Part.WORKLOADS,
            subject=one.title.lower(),
            target="this machine" if there else f"not installed: {', '.join(one.needs)}",
            load=f"{one.package}: one at a time, and {one.arms[1].name}" if there else "none",
            about_s=(one.quick_s if quick else one.about_s) if there else 0,
        )


def _ask(name: str, url: str, limits: ProbeLimits, environ: Mapping[str, str]) -> Step:
    if resolve(url, environ) is None:
        target = f"{reference_name(url)} is unset"
        return Step(part=Part.ENDPOINTS, subject=name, target=target, load="none: not configured", about_s=0)
    target = f"{url}{_api(url, environ)}"
    return Step(part=Part.ENDPOINTS, subject=name, target=target, load=_load(limits), about_s=5)


def _api(url: str, environ: Mapping[str, str]) -> str:
    """Say where the API is looked for: a prefix that is doubled or lost is seen before anything is asked."""
    try:
        address = parse_address(resolve(url, environ) or "", url)
    except InputError:
        return ""  # told with its place before the first part starts
    root = "" if reference_name(url) else address.root
    return f" (API at {root}{address.api})" if address.api else f" (API looked for at {root}/v1 and /v3)"


def _load(limits: ProbeLimits) -> str:
    if not limits.requests:
        return "none: it is asked what it is, not to generate"
    return f"2 requests of at most {limits.max_tokens} tokens, one at a time"


def _did_you_mean(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"--service {name}: is not in fleet.yml{hint} Expected one of {', '.join(known)}"
