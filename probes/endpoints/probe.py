"""Probing addresses: one, or every service of the inventory side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from probes.context import Context
from probes.endpoints.address import ignored_proxies
from probes.endpoints.examine import Door, Means, Pacing, examine, find_door
from probes.endpoints.findings import Target
from probes.endpoints.record import record
from probes.errors import InputError, Problem, UsageError
from probes.evidence import Endpoint, EndpointState, FleetScope, Missing, MissingReason, Run, RunKind
from probes.fleet import Fleet, Service, reference_name, resolve

__all__ = ["INTERRUPTED", "Means", "Pacing", "Target", "find_doors", "probe_endpoint", "service_target", "survey"]

INTERRUPTED = "interrupted"

# States in which something was learned that a run of its own is worth keeping for.
_REACHED = {
    EndpointState.LOADING,
    EndpointState.EMPTY,
    EndpointState.ANSWERS_ERROR,
    EndpointState.FAILED,
    EndpointState.HANGS,
    EndpointState.LISTED,
    EndpointState.GENERATING,
}


def probe_endpoint(context: Context, target: Target, *, means: Means | None = None) -> Run:
    """Examine one address; whatever it does is a state in the run.

    Raises:
        InputError: the address, the key or the authority's file cannot be used as written.
    """
    return asyncio.run(_probe(context, find_door(target, context.root), means or Means()))


def survey(
    context: Context,
    fleet: Fleet,
    environ: Mapping[str, str],
    names: Sequence[str] | None = None,
    *,
    means: Means | None = None,
) -> tuple[list[Run], Run]:
    """Examine the services of the inventory; give a run for each that was reached, and one of what all did.

    They are examined side by side, so that one that hangs delays no other; results keep the inventory's order.
    Ctrl-C ends the asking: then the runs are those that were finished, and the one of all tells of no other
    service and is invalid as INTERRUPTED.

    Raises:
        KeyboardInterrupt: before any service was examined.
        UsageError: a name that the inventory does not know.
        InputError: every address, key and authority's file that cannot be used as written.
    """
    unknown = sorted(set(names or ()) - set(fleet.services))
    if unknown:
        raise UsageError(f"--service {unknown[0]}: is not in the inventory; expected one of {', '.join(fleet.services)}")
    started_at = context.clock()
    chosen = [name for name in fleet.services if names is None or name in names]
    doors = find_doors(context.root, fleet, environ, chosen)
    proxies = ignored_proxies(environ)
    if doors and proxies:
        context.say(proxies)
    runs: dict[str, Run] = {}
    interrupted = False
    try:
        asyncio.run(_probe_all(context, doors, means or Means(), runs.__setitem__))
    except KeyboardInterrupt:
        if not runs:
            raise
        interrupted = True
    unasked = {door.target.subject for door in doors} - set(runs)
    seen = {name: _seen(fleet.services[name], runs.get(name)) for name in chosen if name not in unasked}
    reached = [runs[name] for name in chosen if name in runs and seen[name].state in _REACHED]
    invalid = (INTERRUPTED,) if interrupted else ()
    return reached, context.run(RunKind.SURVEY, "fleet", started_at, survey=seen, invalid=invalid)


def find_doors(root: Path, fleet: Fleet, environ: Mapping[str, str], names: Sequence[str]) -> list[Door]:
    """Check the address, the key and the authority's file of every named service that has an address here.

    Raises:
        InputError: with each of them that cannot be used as written.
    """
    doors: list[Door] = []
    problems: list[Problem] = []
    for name in names:
        target = service_target(name, fleet.services[name], environ)
        if target is not None:
            try:
                doors.append(find_door(target, root))
            except InputError as exc:
                problems.extend(exc.problems)
    if problems:
        raise InputError(problems)
    return doors


async def _probe(context: Context, door: Door, means: Means) -> Run:
    started_at = context.clock()
    return record(context, await examine(door, started_at, means))


async def _probe_all(context: Context, doors: Sequence[Door], means: Means, keep: Callable[[str, Run], None]) -> None:
    turns = asyncio.Semaphore(means.pacing.at_once)

    async def one(place: int, door: Door) -> None:
        await asyncio.sleep(place * means.pacing.apart_s)
        async with turns:
            run = await _probe(context, door, means)
        keep(door.target.subject, run)
        if run.endpoint is not None:
            detail = f" ({run.endpoint.detail})" if run.endpoint.detail else ""
            context.say(f"{door.target.subject}: {run.endpoint.state}{detail}")

    await asyncio.gather(*(one(place, door) for place, door in enumerate(doors)))


def service_target(name: str, service: Service, environ: Mapping[str, str]) -> Target | None:
    """Resolve a service's references; None when it has no address here."""
    url = resolve(service.url, environ) if service.url else None
    if service.url is None or url is None:
        return None
    variable, key_variable = reference_name(service.url), reference_name(service.api_key or "")
    return Target(
        subject=name,
        url=url,
        scope=FleetScope(service=name),
        limits=service.probing,
        shown_url=service.url,
        expected=service.runtime,
        key=resolve(service.api_key, environ) if service.api_key else None,
        ca_file=service.ca_file,
        insecure=service.insecure_tls,
        model=service.model.id if service.model and isinstance(service.model.id, str) else None,
        kind=service.kind,
        place=f"environment variable {variable}" if variable else f"services.{name}.url",
        key_place=f"environment variable {key_variable}",
    )


def _seen(service: Service, run: Run | None) -> Endpoint:
    if run is not None and run.endpoint is not None:
        return run.endpoint
    why = f"{reference_name(service.url)} is not set" if service.url else "the inventory has no address for it"
    absent = Missing(missing=MissingReason.NOT_CONFIGURED, detail=why)
    return Endpoint(url=absent, state=EndpointState.NOT_CONFIGURED, detail=why)
