"""One endpoint from its address to findings: identify, read its metrics, ask for a few tokens, read them again."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import httpx

from probes.endpoints.address import Address, check_key, parse_address
from probes.endpoints.asking import Asked, ask
from probes.endpoints.detect import Detection, Limits, detect
from probes.endpoints.findings import Findings, Target, pick_model, unasked
from probes.endpoints.metrics import Scrape, ScrapeState
from probes.endpoints.wire import Wire, tls_context
from probes.evidence import EndpointState
from probes.load.answer import Ending


@dataclass(frozen=True, kw_only=True)
class Pacing:
    """How long to wait for what, in seconds, and how many addresses to examine at once.

    Each address has one connection at a time, so that `at_once` bounds them all. It is high because one that hangs
    keeps its place until its time is over; `apart_s` lies between the starts of two, or all would wait for this machine.
    """

    question_s: float = 6.0
    questions_s: float = 20.0
    loading_s: float = 10.0
    poll_s: float = 2.0
    at_once: int = 256
    apart_s: float = 0.02


def random_mark() -> str:
    """Give letters that nobody has used before, for a path that no server has and a prompt that none has cached."""
    return secrets.token_hex(6)


@dataclass(frozen=True, kw_only=True)
class Means:
    """What reaches the world: `transport` replaces the network, `mark` the randomness."""

    transport: httpx.AsyncBaseTransport | None = None
    pacing: Pacing = Pacing()
    mark: Callable[[], str] = random_mark


@dataclass(frozen=True, kw_only=True)
class Door:
    """A target whose address, key and authority were checked."""

    target: Target
    address: Address
    tls: ssl.SSLContext | None


def find_door(target: Target, root: Path) -> Door:
    """Check what a person wrote about a target; `root` is where a relative ca_file lies.

    Raises:
        InputError: the address, the key or the authority's file cannot be used as written.
    """
    address = parse_address(target.url, target.place)
    if target.key is not None:
        check_key(target.key, target.key_place or f"key of {target.subject}")
    tls = None
    if address.secure:
        authority = root / target.ca_file if target.ca_file else None
        tls = tls_context(f"{target.subject}: ca_file {target.ca_file}", ca_file=authority, insecure=target.insecure)
    return Door(target=target, address=address, tls=tls)


async def examine(door: Door, started_at: datetime, means: Means) -> Findings:
    """Examine one endpoint within its limits. A request for text is sent only to a model that stands ready."""
    target = door.target
    async with Wire(door.address, key=target.key, tls=door.tls, transport=means.transport) as wire:
        detection = await _detect(wire, target, means)
        findings = Findings(
            target=target,
            address=door.address,
            started_at=started_at,
            detection=detection,
            model=pick_model(target, detection),
            before=_before(detection),
        )
        return findings if unasked(target, detection, findings.model) else await _ask(wire, findings, means)


async def _detect(wire: Wire, target: Target, means: Means) -> Detection:
    """Ask what runs there, and again for a while as long as it says that it is loading."""
    clock, pacing = asyncio.get_running_loop().time, means.pacing
    within_s = target.limits.timeout_s
    question_s = min(pacing.question_s, within_s)
    limits = Limits(question_s=question_s, all_s=max(pacing.questions_s, question_s))
    patience_s = min(pacing.loading_s, within_s)
    has_key, began = target.key is not None, clock()
    while True:
        nowhere = f"/{means.mark()}"
        detection = await detect(wire, expected=target.expected, nowhere=nowhere, limits=limits, has_key=has_key)
        if detection.state is not EndpointState.LOADING:
            return detection
        if clock() - began + pacing.poll_s > patience_s:
            return replace(detection, detail=f"{detection.detail}; still so after {patience_s:g} s")
        await asyncio.sleep(pacing.poll_s)


async def _ask(wire: Wire, findings: Findings, means: Means) -> Findings:
    """Send one request and, if it was answered, the same again; a server in trouble is asked no second time."""
    target, reading, model = findings.target, findings.detection.reading, findings.model
    if reading is None or model is None:
        return findings
    mark, limits = means.mark(), target.limits
    asked: list[Asked] = []
    for _ in range(min(limits.requests, 2)):
        one = await ask(
            wire,
            api=reading.api,
            model=model,
            mark=mark,
            max_tokens=target.max_tokens,
            within_s=limits.timeout_s,
            silence_s=limits.silence_s,
        )
        asked.append(one)
        if one.answer.ending is not Ending.COMPLETE:
            break
    findings = replace(findings, asked=tuple(asked))
    # One that hangs is asked nothing more: its answer would come as late.
    hangs = asked and asked[-1].answer.ending is Ending.TIMED_OUT
    return findings if hangs else replace(findings, after=await _scrape_again(wire, findings, means))


def _before(detection: Detection) -> Scrape | None:
    """Read the load figures as they stood before any request; None where they were not asked for."""
    adapter = detection.adapter
    if adapter is None or not adapter.quantities:
        return None
    if not adapter.metrics:
        return Scrape(state=ScrapeState.READ)
    reply = detection.replies.get(adapter.metrics)
    return None if reply is None else adapter.scrape(reply)


async def _scrape_again(wire: Wire, findings: Findings, means: Means) -> Scrape | None:
    adapter = findings.detection.adapter
    if findings.before is None or adapter is None or not adapter.metrics:
        return None
    within_s = min(means.pacing.question_s, findings.target.limits.timeout_s)
    return adapter.scrape(await wire.get(adapter.metrics, within_s=within_s))
