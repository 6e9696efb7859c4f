"""Which knowledge was never checked for a release that runs: told beside an assessment, and never part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import get_args

from gen.assess import scopes, view
from gen.corpus import Corpus
from gen.drift import fleet_view
from gen.knowledge import Checked, Engine, Knowledge
from gen.knowledge.schema import DeviceKind, Foreign, Known, KnownConflict, Supports
from gen.versions import known_version, parse_version
from gen.view import FLEET, RELEASE, ServiceView, View


@dataclass(frozen=True, kw_only=True)
class Running:
    """A release of a runtime that a service was seen to run, or is declared to; `kinds` are the devices it may run on."""

    scope: str
    service: str
    title: str
    engine: Engine
    version: str
    kinds: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Unverified:
    """A piece of knowledge beside a service that runs a release it was not checked for.

    `comparable` is false where the service's version is none, such as a commit: then nothing tells whether it is newer,
    and no new check could settle it.
    """

    id: str
    checked: Checked
    comparable: bool
    by: Running


def running(corpus: Corpus, on: date) -> tuple[Running, ...]:
    """Give every release that runs in the fleet and on measured machines, as all runs of this checkout show them."""
    return tuple(one for scope in scopes(corpus) for one in running_in(corpus, scope, on))


def running_in(corpus: Corpus, scope: str, on: date) -> tuple[Running, ...]:
    """Give every release that runs in one scope; none in one of which no run is here."""
    if scope not in scopes(corpus):
        return ()
    return tuple(_running(fleet_view(corpus, on) if scope == FLEET else view(corpus, scope, on)))


def unverified(knowledge: Knowledge, services: Iterable[Running], on: date) -> tuple[Unverified, ...]:
    """Find all that was checked for older releases only than the one a service runs, in the order of the services."""
    return tuple(found for one in services for found in _of_service(knowledge, one, on))


def _running(seen: View) -> Iterator[Running]:
    for service in seen.services:
        version = _version(service)
        if service.engine is not None and version is not None:
            yield Running(
                scope=seen.scope,
                service=service.name,
                title=service.title,
                engine=service.engine,
                version=version,
                kinds=frozenset(kind for kind in get_args(DeviceKind) if seen.runs_on(service, (kind,))),
            )


def _version(service: ServiceView) -> str | None:
    """Prefer what was seen to what was declared, and a release to what is none."""
    said = (str(sighting.value) for sighting in reversed(service.claims(RELEASE)))
    return next((one for one in said if known_version(one) is not None), service.version)


def _of_service(knowledge: Knowledge, by: Running, on: date) -> Iterator[Unverified]:
    release = known_version(by.version)
    for known in knowledge.of_engine(by.engine):
        if not knowledge.applies(known, by.engine, by.version, on) or not _concerns(known, by):
            continue
        checked = knowledge.checked_for(known, by.engine)
        if release is None or checked.release is None or parse_version(checked.release) < release:
            yield Unverified(id=known.id, checked=checked, comparable=release is not None, by=by)
    newest = knowledge.newest_release(by.engine, on)
    if release is not None and newest is not None and parse_version(newest.version) < release:
        checked = Checked(release=newest.version, source=newest.source)
        yield Unverified(id=f"releases/{by.engine}", checked=checked, comparable=True, by=by)


def _concerns(known: Known, by: Running) -> bool:
    """Tell whether knowledge speaks of a kind of device that a service may run on: of a card nothing is owed on a CPU."""
    if isinstance(known, Foreign):
        return "gpu" in by.kinds
    devices = known.devices if isinstance(known, Supports | KnownConflict) else ()
    return not devices or not by.kinds.isdisjoint(devices)
