"""One small streamed request for text, read to its end, with its times."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from probes.endpoints.fault import Fault, FaultKind
from probes.endpoints.reading import CHAT, words_of
from probes.endpoints.wire import Reply, Wire
from probes.evidence import EndpointState
from probes.load.answer import Answer, Ending
from probes.load.stream import Decoder, decode_whole

# The mark comes first, so that no prompt shares a prefix with an earlier one by accident.
PROMPT: Final = "[{mark}] Write one short sentence about the sea."
PROMPT_SHA256: Final = hashlib.sha256(PROMPT.encode()).hexdigest()
_COALESCED_AT_MOST = 0.9
_WORDS_SEARCHED = 2000
_HTML: Final = "HTTP 200 with HTML"
_ENDINGS = {
    FaultKind.SILENT: Ending.TIMED_OUT,
    FaultKind.DEADLINE: Ending.TIMED_OUT,
    FaultKind.TOO_LARGE: Ending.TOO_LARGE,
}
# OVMS refuses a key with status 500 and these words (src/http_rest_api_handler.cpp).
_NEEDS_KEY = re.compile(r"\bunauthori[sz]ed\b.*\bapi[- ]key\b", re.IGNORECASE)
_LOGIN = "redirects to the login page"
_NOT_LOADED = re.compile(r"\bloading\b|not loaded yet", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request and what came of it. `status` is None when no answer began."""

    answer: Answer
    status: int | None
    connect_s: float | None = None
    compressed: bool = False
    without_usage: bool = False

    @property
    def held_back(self) -> str:
        """Say why no time inside the stream means anything: it was compressed, or came in one piece."""
        if self.compressed:
            return "the path compresses the stream, so arrival times are those of the compressor"
        share = self.answer.coalesced_share
        if share is not None and len(self.answer.arrivals_s) >= 4 and share > _COALESCED_AT_MOST:
            return f"the path holds the stream back: {share:.0%} of the chunks came together"
        return ""

    @property
    def state(self) -> EndpointState:
        """Tell what the answer says about the endpoint."""
        words, ending = self.answer.words[:_WORDS_SEARCHED], self.answer.ending
        if self.status is None and words.startswith(_LOGIN):
            return EndpointState.NEEDS_LOGIN
        if self.status in {401, 403} or _NEEDS_KEY.search(words):
            return EndpointState.NEEDS_KEY
        if ending is Ending.COMPLETE:
            return EndpointState.GENERATING if self.answer.produced else EndpointState.LISTED
        return EndpointState.HANGS if ending is Ending.TIMED_OUT else self._failure(words)

    def _failure(self, words: str) -> EndpointState:
        if self.status is not None and self.status >= 500 and _NOT_LOADED.search(words):
            return EndpointState.LOADING
        told = self.status == 200 and self.answer.ending is Ending.ERROR and not words.startswith(_HTML)
        return EndpointState.ANSWERS_ERROR if told else EndpointState.FAILED


async def ask(wire: Wire, *, api: str, model: str, mark: str, max_tokens: int, within_s: float, silence_s: float) -> Asked:
    """Ask for at most `max_tokens` tokens, greedily; wait `within_s` for the whole answer and `silence_s` for each event.

    Usage in a stream has to be asked for; a server that refuses the question is asked once more without it.
    """
    body: dict[str, JsonValue] = {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT.format(mark=mark)}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    patience = (within_s, silence_s)
    asked = await _send(wire, f"{api}{CHAT}", body, max_tokens, patience)
    if asked.status not in {400, 422}:
        return asked
    del body["stream_options"]
    again = await _send(wire, f"{api}{CHAT}", body, max_tokens, patience, without_usage=True)
    # Servers do not always say what they refuse; where it was something else, the first words stand.
    return again if again.answer.ending is Ending.COMPLETE or names_usage(asked.answer.words) else asked


def names_usage(words: str) -> bool:
    """Tell whether a refusal speaks of the question for token counts."""
    return "stream_options" in words or "include_usage" in words


async def _send(
    wire: Wire,
    path: str,
    body: dict[str, JsonValue],
    max_tokens: int,
    patience: tuple[float, float],
    *,
    without_usage: bool = False,
) -> Asked:
    decoder = Decoder(max_tokens=max_tokens)
    within_s, silence_s = patience
    reply = await wire.post(
        path, body, within_s=within_s, take=decoder.feed, silence_s=silence_s, progress=lambda: decoder.events
    )
    if isinstance(reply, Fault):
        ending = _ENDINGS.get(reply.kind, Ending.LOST)
        return Asked(answer=Answer(ending=ending, words=reply.words), status=None, without_usage=without_usage)
    return Asked(
        answer=_answer(reply, decoder, max_tokens),
        status=reply.status,
        connect_s=reply.connect_s,
        compressed=reply.encoding not in {"", "identity"},
        without_usage=without_usage,
    )


def _answer(reply: Reply, decoder: Decoder, max_tokens: int) -> Answer:
    """Read the body as what it says it is; a proxy may call an event stream text/plain."""
    if reply.status != 200:
        return Answer(ending=Ending.ERROR, words=f"HTTP {reply.status}: {words_of(reply)}", t_end_s=reply.end_s)
    cut = (_ENDINGS.get(reply.cut.kind, Ending.LOST), reply.cut.words) if reply.cut else None
    if reply.content_type == "application/json" and cut is None and not decoder.events:
        return decode_whole(reply.document, reply.end_s, max_tokens=max_tokens)
    if reply.content_type == "text/html":
        return Answer(ending=Ending.ERROR, words=f"{_HTML} in place of an answer", t_end_s=reply.end_s)
    return decoder.finish(reply.end_s, cut)
