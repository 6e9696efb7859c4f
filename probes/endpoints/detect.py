"""What runs at an address: a few questions that change nothing, answered by the shape of bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from probes.endpoints.address import Address
from probes.endpoints.fault import Fault, FaultKind
from probes.endpoints.llamacpp import LlamaCpp
from probes.endpoints.openai import OpenAiCompatible
from probes.endpoints.ovms import EMBEDDED, OVMS, SERVER
from probes.endpoints.reading import CHAT, NOWHERE, Adapter, Reading, Replies, list_paths, says_loading, words_of
from probes.endpoints.vllm import Vllm
from probes.endpoints.wire import Reply, Wire
from probes.evidence import EndpointState
from probes.fleet import RuntimeName
from probes.load.untrusted import one_line

ADAPTERS: Final[Mapping[RuntimeName, Adapter]] = {
    RuntimeName.OVMS: OVMS,
    RuntimeName.OPENVINO_GENAI_EMBEDDED: EMBEDDED,
    RuntimeName.LLAMACPP: LlamaCpp(),
    RuntimeName.VLLM: Vllm(),
}
FALLBACK: Final[Adapter] = OpenAiCompatible()
_NAMES_ITSELF: Final = {RuntimeName.OVMS, RuntimeName.OPENVINO_GENAI_EMBEDDED}
_FAULT_STATES: Final = {
    FaultKind.NOT_HTTP: EndpointState.NOT_AN_INFERENCE_SERVER,
    FaultKind.REDIRECT: EndpointState.NOT_AN_INFERENCE_SERVER,
    FaultKind.TOO_LARGE: EndpointState.NOT_AN_INFERENCE_SERVER,
    FaultKind.LOGIN: EndpointState.NEEDS_KEY,
}
_HANGS: Final = {FaultKind.SILENT, FaultKind.DEADLINE, FaultKind.UNREACHABLE, FaultKind.REFUSED}


@dataclass(frozen=True, kw_only=True)
class Detection:
    """What an address turned out to be. `reading` and `adapter` are there for an inference server only."""

    state: EndpointState
    detail: str
    replies: Replies = field(default_factory=dict)
    reading: Reading | None = None
    adapter: Adapter | None = None


async def detect(wire: Wire, *, expected: RuntimeName | None, nowhere: str, within_s: float, has_key: bool) -> Detection:
    """Ask what runs at an address.

    `nowhere` is a path that no server has: it shows whether the status of an answer means anything, and
    its own answer is never taken for one. Each question may take `within_s`; a server that leaves one
    unanswered is asked no further.
    """
    replies: dict[str, Reply | Fault] = {NOWHERE: await wire.get(nowhere, within_s=within_s)}
    first = replies[NOWHERE]
    if isinstance(first, Fault):
        return Detection(state=fault_state(first), detail=first.words, replies=replies)
    adapter: Adapter | None = None
    for path in _questions(wire.address, expected):
        await _ask(wire, replies, path, within_s)
        adapter = next((one for one in ADAPTERS.values() if one.recognises(_telling(replies))), None)
        if adapter is not None:
            break
    if adapter is None and FALLBACK.recognises(_telling(replies)):
        adapter = FALLBACK
    elif adapter is None and first.status == 404:
        for path in [f"{api}{CHAT}" for api in ([wire.address.api] if wire.address.api else ["/v1", "/v3"])]:
            await _ask(wire, replies, path, within_s)
        adapter = FALLBACK if FALLBACK.recognises(_telling(replies)) else None
    if adapter is None:
        state, detail = _unrecognised(replies, has_key=has_key)
        return Detection(state=state, detail=detail, replies=replies)
    for path in adapter.paths:
        await _ask(wire, replies, path, within_s)
    reading = adapter.read(_telling(replies), wire.address.api)
    return Detection(state=reading.state, detail=reading.detail, replies=replies, reading=reading, adapter=adapter)


def fault_state(fault: Fault) -> EndpointState:
    """Tell an address that nothing answers at from one where something else does."""
    return _FAULT_STATES.get(fault.kind, EndpointState.NOT_REACHABLE)


def key_words(words: str, *, has_key: bool) -> str:
    """Add to a refusal whether a key was sent."""
    return f"{words}; the key was not accepted" if has_key else f"{words}; no key is configured"


def _questions(address: Address, expected: RuntimeName | None) -> tuple[str, ...]:
    lists = list_paths(address)
    return (SERVER, *lists) if expected in _NAMES_ITSELF else (*lists, SERVER)


async def _ask(wire: Wire, replies: dict[str, Reply | Fault], path: str, within_s: float) -> None:
    hangs = any(isinstance(reply, Fault) and reply.kind in _HANGS for reply in replies.values())
    if path not in replies and not hangs:
        replies[path] = await wire.get(path, within_s=within_s)


def _telling(replies: Mapping[str, Reply | Fault]) -> Replies:
    """Leave out what the server says to any path; LM Studio answers 200 to all of them."""
    nowhere = replies[NOWHERE]
    if not isinstance(nowhere, Reply) or nowhere.status != 200:
        return replies
    return {
        path: reply
        for path, reply in replies.items()
        if path == NOWHERE or not (isinstance(reply, Reply) and reply.status == 200 and reply.body == nowhere.body)
    }


def _unrecognised(replies: Replies, *, has_key: bool) -> tuple[EndpointState, str]:
    """Say what an address is that no adapter knows."""
    answers = [reply for reply in replies.values() if isinstance(reply, Reply)]
    faults = [reply for reply in replies.values() if isinstance(reply, Fault)]
    guarded = next((reply for reply in answers if reply.status in {401, 403}), None)
    gateway = next((reply for reply in answers if reply.status in {502, 503, 504}), None)
    html = next((reply for reply in answers if reply.content_type == "text/html" or _is_html(reply.text)), None)
    if guarded is not None:
        return EndpointState.NEEDS_KEY, key_words(f"HTTP {guarded.status}: {words_of(guarded)}", has_key=has_key)
    if any(says_loading(reply) for reply in answers):
        return EndpointState.LOADING, "HTTP 503: the model is loading"
    if gateway is not None:
        words = "HTML" if _is_html(gateway.text) else words_of(gateway)
        return EndpointState.NOT_REACHABLE, f"HTTP {gateway.status}: {words}"
    if faults:
        return fault_state(faults[0]), faults[0].words
    if html is not None:
        return EndpointState.NOT_AN_INFERENCE_SERVER, f"it answers HTML{_title(html.text)}"
    statuses = ", ".join(sorted({f"HTTP {reply.status}" for reply in answers}))
    return EndpointState.NOT_AN_INFERENCE_SERVER, f"it answers {statuses} and none of the APIs known here"


def _is_html(text: str) -> bool:
    return text[:200].lstrip("\ufeff \t\r\n").lower().startswith(("<!doctype html", "<html"))


def _title(text: str) -> str:
    match = re.search(r"<title[^>]*>([^<]{1,2000})", text[:20000], re.IGNORECASE)
    return f", titled {one_line(match.group(1))!r}" if match else ""
