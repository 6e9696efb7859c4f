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
from probes.endpoints.asking import ask
from probes.endpoints.detect import Detection, detect
from probes.endpoints.findings import Findings, Target, pick_model, unasked
from probes.endpoints.metrics import Scrape, scrape
from probes.endpoints.reading import METRICS
from probes.endpoints.wire import Wire, tls_context
from probes.evidence import EndpointState
from probes.load.answer import Ending


@dataclass(frozen=True, kw_only=True)
class Pacing:
    """How long to wait for what, in seconds, and how many addresses to examine at once."""

    question_s: float = 8.0
    loading_s: float = 10.0
    poll_s: float = 2.0
    at_once: int = 64


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
        reply = detection.replies.get(METRICS)
        findings = Findings(
            target=target,
            address=door.address,
            started_at=started_at,
            detection=detection,
            model=pick_model(target, detection),
            before=None if reply is None else scrape(reply),
        )
        return findings if unasked(target, detection, findings.model) else await _ask(wire, findings, means)


async def _detect(wire: Wire, target: Target, means: Means) -> Detection:
    """Ask what runs there, and again for a while as long as it says that it is loading."""
    clock, pacing = asyncio.get_running_loop().time, means.pacing
    question_s = min(pacing.question_s, target.limits.timeout_s)
    patience_s = min(pacing.loading_s, target.limits.timeout_s)
    has_key, began = target.key is not None, clock()
    while True:
        nowhere = f"/{means.mark()}"
        detection = await detect(wire, expected=target.expected, nowhere=nowhere, within_s=question_s, has_key=has_key)
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
    mark, within_s = means.mark(), target.limits.timeout_s
    asked = []
    for _ in range(min(target.limits.requests, 2)):
        one = await ask(wire, api=reading.api, model=model, mark=mark, max_tokens=target.max_tokens, within_s=within_s)
        asked.append(one)
        if one.answer.ending is not Ending.COMPLETE:
            break
    return replace(findings, asked=tuple(asked), after=await _scrape_again(wire, findings, means))


async def _scrape_again(wire: Wire, findings: Findings, means: Means) -> Scrape | None:
    if findings.before is None:
        return None
    return scrape(await wire.get(METRICS, within_s=min(means.pacing.question_s, findings.target.limits.timeout_s)))
