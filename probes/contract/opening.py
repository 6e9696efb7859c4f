"""Getting a side ready: start it where it is ours, ask what answers there, and find the way for the load."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from probes.context import Context
from probes.contract.shape import ContractShape, fitted
from probes.contract.side import Side, SideKind
from probes.endpoints.address import check_key, parse_address
from probes.endpoints.embedded.server import running
from probes.endpoints.examine import Means, examine, find_door
from probes.endpoints.findings import Findings, Target, why_unmeasured
from probes.endpoints.probe import service_target
from probes.endpoints.quoting import Quoter
from probes.endpoints.record import record
from probes.errors import ProbeError, UsageError
from probes.evidence import EndpointState, Missing, MissingReason, ModelFacts, Run
from probes.fleet import Fleet, ProbeLimits, RuntimeName, reference_name
from probes.load.observation import Observer
from probes.load.outcome import Failure
from probes.load.permission import latency_guards, permission
from probes.load.run import Gate, Shape, ask_once, doors
from probes.load.task import Door
from probes.model import prepare_model

_IGNORE_EOS: Final = json.dumps({"ignore_eos": True})
_STALL_S: Final = 30.0
_HERE: Final = "http://127.0.0.1 (started for the run)"


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a person gave to reach addresses outside the inventory."""

    model: str | None = None
    key: str | None = None
    ca_file: str | None = None
    insecure: bool = False
    allow_load: bool = False


@dataclass(frozen=True, kw_only=True)
class World:
    """What opening a side may use."""

    context: Context
    fleet: Fleet | None
    environ: Mapping[str, str]
    access: Access


@dataclass(frozen=True, kw_only=True)
class Approach:
    """An address with what may be asked there. `place` names the limit in messages.

    `model` is known of our own child only: no path of OVMS tells what the weights are.
    """

    side: Side
    target: Target
    limits: ProbeLimits | None
    place: str
    model: ModelFacts | None = None


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A side that answers: what it says of itself, who watches it, and the load of one block."""

    side: Side
    target: Target
    seen: Run
    observer: Observer
    load: Shape
    quoter: Quoter
    limits: ProbeLimits | None
    tls: ssl.SSLContext | None


@dataclass(frozen=True, kw_only=True)
class Closed:
    """A side that cannot be measured, and why; `seen` is what it did when it was asked."""

    side: Side
    why: Missing
    seen: Run | None = None


def approach(side: Side, shape: ContractShape, world: World, stack: contextlib.ExitStack) -> Approach | Closed:
    """Find a side's address and its limits; an embedded side that may be asked is started and ends with `stack`.

    Raises:
        UsageError, InputError, HostError: what a person wrote cannot be used, or this machine cannot start it.
        ProbeError: the engine refused the settings, in its words.
    """
    if side.kind is SideKind.EMBEDDED:
        return _embedded(side, shape, world, stack)
    if side.kind is SideKind.SERVICE and world.fleet is not None:
        service = world.fleet.services[side.name]
        target = service_target(side.name, service, world.environ)
        if target is None:
            variable = reference_name(service.url or "") or "its url"
            return Closed(side=side, why=Missing(missing=MissingReason.NOT_CONFIGURED, detail=f"{variable} is not set"))
        place = f"services.{side.name}.probing.requests in fleet.yml"
        return Approach(side=side, target=target, limits=service.probing, place=place)
    return _address(side, world)


def open_side(there: Approach, shape: ContractShape, context: Context) -> Opened | Closed:
    """Ask what answers, then send one request of the load to learn how it has to be written.

    Raises:
        InputError: the address, the key or the authority's file cannot be used as written.
        KeyboardInterrupt: stopped with Ctrl-C.
    """
    door = find_door(there.target, context.root)
    findings = asyncio.run(examine(door, context.clock(), Means()))
    seen = record(context, findings)
    seen = seen.model_copy(update={"model": there.model}) if there.model is not None else seen
    reading = findings.detection.reading
    if (
        reading is None
        or findings.model is None
        or seen.endpoint is None
        or seen.endpoint.state is not EndpointState.GENERATING
    ):
        return Closed(side=there.side, why=why_unmeasured(findings), seen=seen)
    target = there.target
    authority = str(context.root / target.ca_file) if target.ca_file else ""
    address = replace(findings.address, api=reading.api)
    gate = Gate(address=address, key=target.key, ca_file=authority, insecure=target.insecure)
    quoter = Quoter(context.redact, key=target.key, address=findings.address, shown=target.shown_url)
    try:
        way, load = _way(gate, _load(shape, findings, there.limits), context)
    except ProbeError as exc:
        return Closed(side=there.side, why=Missing(missing=MissingReason.FAILED, detail=quoter.line(str(exc))), seen=seen)
    # What the inventory bounds is not asked for its metrics while it is under load; our own child may be.
    ours = there.limits is None or there.side.kind is SideKind.EMBEDDED
    observer = Observer(gate, way, expected=target.expected, during=ours)
    return Opened(
        side=there.side,
        target=target,
        seen=seen,
        observer=observer,
        load=load,
        quoter=quoter,
        limits=there.limits,
        tls=door.tls,
    )


def allowed(shape: ContractShape, there: Approach, sides: int) -> ContractShape:
    """Cut a shape down to what an address may be asked; `sides` is on how many it stands."""
    return fitted(shape, there.limits, sides, there.place)


def _embedded(side: Side, shape: ContractShape, world: World, stack: contextlib.ExitStack) -> Approach:
    context, place = world.context, "embedded.probing.requests in fleet.yml"
    limits = world.fleet.embedded.probing if world.fleet is not None else None
    fitted(shape, limits, 1, place)
    model = prepare_model(context.cache)
    context.say(f"Starting {side.word} on 127.0.0.1")
    try:
        address = stack.enter_context(running(side.settings, context.cache))
    except ProbeError as exc:
        raise ProbeError(f"{side.word}: {exc}") from exc
    target = Target(
        subject=side.name,
        url=address.url,
        scope=context.local,
        limits=limits or ProbeLimits(),
        shown_url=_HERE,
        expected=RuntimeName.OPENVINO_GENAI_EMBEDDED,
        model=model.facts.id,
    )
    return Approach(side=side, target=target, limits=limits, place=place, model=model.facts)


def _address(side: Side, world: World) -> Approach | Closed:
    access, context = world.access, world.context
    address = parse_address(side.word, side.name)
    try:
        found = doors(Gate(address=address))
    except ProbeError as exc:
        return Closed(side=side, why=Missing(missing=MissingReason.NOT_REACHABLE, detail=str(exc)))
    hosts = [str(door.address[0]) for door in found]
    given = permission(address, hosts, world.fleet, world.environ, allow_load=access.allow_load)
    if given.name is not None:
        raise UsageError(f"{side.word}: is the service {given.name} of fleet.yml; expected its name, which brings its key")
    key = None if access.key is None else check_key(access.key, "--key-env")
    target = Target(
        subject=urlsplit(address.root).netloc,
        url=side.word,
        scope=context.local,
        limits=given.limits or ProbeLimits(timeout_s=60.0),
        shown_url=side.word,
        expected=None,
        key=key,
        ca_file=None if access.ca_file is None else str(Path(access.ca_file).resolve()),
        insecure=access.insecure,
        model=access.model,
        place=side.name,
    )
    return Approach(side=side, target=target, limits=given.limits, place=f"{side.name} ({given.why})")


def _load(shape: ContractShape, findings: Findings, limits: ProbeLimits | None) -> Shape:
    reading = findings.detection.reading
    return Shape(
        model=findings.model or "",
        max_tokens=shape.max_tokens,
        concurrency=shape.concurrency,
        requests=shape.requests,
        warmup=shape.concurrency,
        at_most=shape.block_requests,
        prompts=shape.prompts,
        usage=not any(one.without_usage for one in findings.asked),
        extra=_IGNORE_EOS if shape.full_length else "",
        guards=latency_guards(limits, shape.timeout_s, stall_s=min(_STALL_S, shape.timeout_s)),
        slo=shape.slo,
        first_token=reading.first_token if reading else Shape.first_token,
    )


def _way(gate: Gate, load: Shape, context: Context) -> tuple[Door, Shape]:
    """Find the address of a name that answers, and whether the server takes `ignore_eos`."""
    words = "its name leads to no address"
    for door in doors(gate):
        for extra in dict.fromkeys((load.extra, "")):
            outcome = ask_once(gate, replace(load, extra=extra), door, context.clock())
            if outcome.failure is None:
                # A server may take the word and not heed it; only a whole answer shows that it did.
                heeded = outcome.tokens is None or outcome.tokens == load.max_tokens
                return door, replace(load, extra=extra if heeded else "")
            words = f"{outcome.failure}: {outcome.words}"
            if outcome.failure is not Failure.REFUSED:
                break
        if outcome.failure is not Failure.UNREACHABLE:
            break
    raise ProbeError(words)
