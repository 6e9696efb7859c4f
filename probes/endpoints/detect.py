"""What runs at an address: a few questions that change nothing, answered by the shape of bodies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from probes.endpoints.adapter import Adapter
from probes.endpoints.adapters import ADAPTERS, FALLBACK, candidates
from probes.endpoints.fault import Fault, FaultKind
from probes.endpoints.reading import CHAT, NOWHERE, Reading, Replies, list_paths, listed, says_loading, words_of
from probes.endpoints.wire import Reply, Wire
from probes.evidence import EndpointState
from probes.fleet import RuntimeName
from probes.load.untrusted import error_words, one_line

_FAULT_STATES: Final = {
    FaultKind.NOT_HTTP: EndpointState.NOT_AN_INFERENCE_SERVER,
    FaultKind.REDIRECT: EndpointState.NOT_AN_INFERENCE_SERVER,
    FaultKind.TOO_LARGE: EndpointState.NOT_AN_INFERENCE_SERVER,
    FaultKind.LOGIN: EndpointState.NEEDS_LOGIN,
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


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long one question and all of them may take, in seconds."""

    question_s: float
    all_s: float


async def detect(wire: Wire, *, expected: RuntimeName | None, nowhere: str, limits: Limits, has_key: bool) -> Detection:
    """Ask what runs at an address.

    `nowhere` is a path that no server has: it shows whether the status of an answer means anything, and
    its own answer is never taken for one. A server that leaves a question unanswered is asked no further.
    """
    interview = _Interview(wire, limits)
    first = await interview.ask(NOWHERE, nowhere)
    if isinstance(first, Fault):
        return Detection(state=fault_state(first), detail=first.words, replies=interview.replies)
    adapter = await _recognise(interview, expected, wire)
    if adapter is None:
        state, detail = _unrecognised(interview.replies, has_key=has_key)
        return Detection(state=state, detail=detail, replies=interview.replies)
    while path := next((one for one in adapter.questions(interview.telling) if one not in interview.replies), ""):
        if await interview.ask(path) is None:
            break
    reading = adapter.read(interview.telling, wire.address.api)
    return Detection(state=reading.state, detail=reading.detail, replies=interview.replies, reading=reading, adapter=adapter)


class _Interview:
    """The questions to one server and its answers."""

    def __init__(self, wire: Wire, limits: Limits) -> None:
        self._wire = wire
        self._clock = asyncio.get_running_loop().time
        self._question_s = limits.question_s
        self._all_s = limits.all_s
        self._ends = self._clock() + limits.all_s
        self.replies: dict[str, Reply | Fault] = {}

    async def ask(self, path: str, real: str = "") -> Reply | Fault | None:
        """Ask for a path, `real` where it is called otherwise; None once the server hangs or its time is over."""
        left_s = self._ends - self._clock()
        hangs = any(isinstance(reply, Fault) and reply.kind in _HANGS for reply in self.replies.values())
        if hangs:
            return None
        if left_s < self._question_s and self.replies:
            # One more could not be given its time; what it did not answer would say nothing about it.
            words = f"it answered {len(self.replies)} questions and was given {self._all_s:g} s for all"
            self.replies[path] = Fault(kind=FaultKind.DEADLINE, words=words)
            return None
        self.replies[path] = await self._wire.get(real or path, within_s=self._question_s)
        return self.replies[path]

    @property
    def telling(self) -> Replies:
        """Leave out what the server says to any path; LM Studio answers 200 to all of them."""
        nowhere = self.replies[NOWHERE]
        if not isinstance(nowhere, Reply) or nowhere.status != 200:
            return self.replies
        return {
            path: reply
            for path, reply in self.replies.items()
            if path == NOWHERE or not (isinstance(reply, Reply) and reply.status == 200 and reply.body == nowhere.body)
        }


async def _recognise(interview: _Interview, expected: RuntimeName | None, wire: Wire) -> Adapter | None:
    """Ask for the model list, then what tells one runtime from another; the inventory's runtime is asked for first."""
    awaited = ADAPTERS.get(expected) if expected else None
    lists = list_paths(wire.address)
    for path in (*(awaited.identity[:1] if awaited else ()), *lists):
        if path in interview.replies or (path in lists and listed(interview.telling)):
            continue
        await interview.ask(path)
        if found := _known(interview.telling):
            return found
    for adapter in candidates(expected, with_list=listed(interview.telling) is not None):
        while path := next((one for one in adapter.asks(interview.telling) if one not in interview.replies), ""):
            if await interview.ask(path) is None:
                break
            if found := _known(interview.telling):
                return found
    first = interview.replies[NOWHERE]
    if not FALLBACK.recognises(interview.telling) and isinstance(first, Reply) and first.status == 404:
        for api in [wire.address.api] if wire.address.api else ["/v1", "/v3"]:
            await interview.ask(f"{api}{CHAT}")
    return FALLBACK if FALLBACK.recognises(interview.telling) else None


def _known(replies: Replies) -> Adapter | None:
    return next((one for one in ADAPTERS.values() if one.recognises(replies)), None)


def fault_state(fault: Fault) -> EndpointState:
    """Tell an address that nothing answers at from one where something else does."""
    return _FAULT_STATES.get(fault.kind, EndpointState.NOT_REACHABLE)


def key_words(words: str, *, has_key: bool) -> str:
    """Add to a refusal whether a key was sent."""
    return f"{words}; the key was not accepted" if has_key else f"{words}; no key is configured"


def _unrecognised(replies: Replies, *, has_key: bool) -> tuple[EndpointState, str]:
    """Say what an address is that no adapter knows."""
    answers = [reply for reply in replies.values() if isinstance(reply, Reply)]
    faults = [reply for reply in replies.values() if isinstance(reply, Fault)]
    guarded = next((reply for reply in answers if reply.status in {401, 403}), None)
    gateway = next((reply for reply in answers if reply.status in {502, 503, 504}), None)
    if guarded is not None:
        return EndpointState.NEEDS_KEY, key_words(f"HTTP {guarded.status}: {words_of(guarded)}", has_key=has_key)
    if any(says_loading(reply) for reply in answers):
        return EndpointState.LOADING, "HTTP 503: the model is loading"
    if gateway is not None:
        words = "HTML" if _is_html(gateway.text) else words_of(gateway)
        return EndpointState.NOT_REACHABLE, f"HTTP {gateway.status}: {words}"
    if faults:
        return fault_state(faults[0]), faults[0].words
    if refusal := _refusal(replies):
        return EndpointState.ANSWERS_ERROR, refusal
    return EndpointState.NOT_AN_INFERENCE_SERVER, _other(answers)


def _other(answers: Sequence[Reply]) -> str:
    """Say what a server that is none for inference answers."""
    html = next((reply for reply in answers if reply.content_type == "text/html" or _is_html(reply.text)), None)
    if html is not None:
        return f"it answers HTML{_title(html.text)}"
    statuses = ", ".join(sorted({f"HTTP {reply.status}" for reply in answers}))
    return f"it answers {statuses} and none of the APIs known here"


def _refusal(replies: Replies) -> str:
    """Give the error that a server sends with status 200 where its model list should be, unless it says so to any path."""
    nowhere = replies[NOWHERE]
    for path, reply in replies.items():
        tells_apart = not isinstance(nowhere, Reply) or nowhere.status != 200
        if path.endswith("/models") and tells_apart and isinstance(reply, Reply) and reply.status == 200:
            words = error_words(reply.document) if isinstance(reply.document, dict) and "error" in reply.document else None
            if words:
                return f"GET {path}: {words}"
    return ""


def _is_html(text: str) -> bool:
    return text[:200].lstrip("\ufeff \t\r\n").lower().startswith(("<!doctype html", "<html"))


def _title(text: str) -> str:
    match = re.search(r"<title[^>]*>([^<]{1,2000})", text[:20000], re.IGNORECASE)
    return f", titled {one_line(match.group(1))!r}" if match else ""
