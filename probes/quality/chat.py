"""Asking a chat endpoint one question at a time: what a suite needs of it, and the way over HTTP."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from pydantic import JsonValue

from probes.endpoints.address import Address
from probes.endpoints.fault import Fault, FaultKind
from probes.endpoints.reading import CHAT, words_of
from probes.endpoints.wire import Reply as HttpReply
from probes.endpoints.wire import Wire
from probes.load.answer import Ending, ToolCall
from probes.load.stream import Decoder, decode_whole
from probes.load.untrusted import string, well_formed

_TIMED_OUT: Final = {FaultKind.SILENT, FaultKind.DEADLINE}
_TOO_LONG: Final = re.compile(
    r"context[ _-]*(?:length|size|window|limit)|prompt[^.]{0,60}\btoo long|too many (?:input )?tokens"
    r"|exceed\w*[^.]{0,60}\b(?:context|max_model_len|max length|maximum length)",
    re.IGNORECASE,
)
_TOOLS: Final = re.compile(r"\btools?\b|\btool_choice\b|\bfunctions?(?:[ _-]call\w*)?\b", re.IGNORECASE)
_REFUSALS: Final = frozenset({400, 404, 405, 413, 415, 422, 501})


class Trouble(StrEnum):
    """Why there is no answer to judge."""

    REFUSED = "refused"
    SERVER = "server error"
    TIMED_OUT = "timed out"
    NOT_REACHABLE = "not reachable"
    BROKEN = "broken answer"
    WITHHELD = "withheld by the server"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer, or the reason why there is none.

    `text` is what the server calls the answer, `reasoning` what it calls thinking; `tokens` are the answer's tokens
    where the server names them (logprobs). `trouble` is None for an answer, and `error` holds the server's or the
    connection's words, not yet redacted.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    tokens: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    status: int | None = None
    trouble: Trouble | None = None
    error: str = ""
    seconds: float | None = None

    @property
    def refuses_tools(self) -> bool:
        """Tell whether the server says that it has no tool calls; older llama.cpp says so with status 500."""
        return self.trouble is not None and self.status in _REFUSALS | {500} and bool(_TOOLS.search(self.error))

    @property
    def refuses_length(self) -> bool:
        """Tell whether the server says that the prompt is longer than its context."""
        return self.trouble is not None and self.status in {400, 413, 422, 500} and bool(_TOO_LONG.search(self.error))

    def refuses(self, field: str) -> bool:
        """Tell whether the server turned the request down for one of its fields."""
        return self.trouble is Trouble.REFUSED and field in self.error


class Chat(Protocol):
    """One model behind something that answers chat requests."""

    def complete(self, body: Mapping[str, JsonValue]) -> Reply:
        """Answer one request without streaming; `body` has all fields but the model. Never raises for what a server does."""


class HttpChat:
    """A model of an OpenAI-shaped server, asked over connections that know no proxy and follow no redirect elsewhere."""

    def __init__(
        self,
        address: Address,
        *,
        model: str,
        key: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """`address.api` is the prefix of the API; `timeout_s` covers one whole answer."""
        self._address = address
        self._model = model
        self._key = key
        self._tls = tls
        self._timeout_s = timeout_s

    def complete(self, body: Mapping[str, JsonValue]) -> Reply:
        """Send one request and read its answer to the end."""
        return asyncio.run(self._complete({"model": self._model, **body, "stream": False}))

    async def _complete(self, document: Mapping[str, JsonValue]) -> Reply:
        decoder = Decoder()
        async with Wire(self._address, key=self._key, tls=self._tls) as wire:
            got = await wire.post(f"{self._address.api}{CHAT}", document, within_s=self._timeout_s, take=decoder.feed)
        if isinstance(got, Fault):
            return Reply(trouble=_trouble(got), error=got.words)
        return _read(got, decoder)


def _read(got: HttpReply, decoder: Decoder) -> Reply:
    """Read a body as what it is: some proxies stream whatever was asked."""
    if got.status != 200:
        trouble = Trouble.REFUSED if 400 <= got.status < 500 else Trouble.SERVER
        return Reply(status=got.status, trouble=trouble, error=f"HTTP {got.status}: {words_of(got)}", seconds=got.end_s)
    if got.cut is not None:
        return Reply(status=200, trouble=_trouble(got.cut), error=got.cut.words, seconds=got.end_s)
    whole = isinstance(got.document, dict)
    answer = decode_whole(got.document, got.end_s) if whole else decoder.finish(got.end_s)
    message = _message(got.document)
    if answer.ending is not Ending.COMPLETE:
        trouble = Trouble.SERVER if answer.ending is Ending.ERROR else Trouble.BROKEN
        return Reply(status=200, trouble=trouble, error=answer.words, seconds=got.end_s)
    refusal = string(message.get("refusal"))
    if refusal or answer.finish_reason == "content_filter":
        words = refusal or "finish_reason content_filter"
        return Reply(status=200, trouble=Trouble.WITHHELD, error=words, finish_reason=answer.finish_reason, seconds=got.end_s)
    return Reply(
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
        finish_reason=answer.finish_reason,
        tokens=_tokens(got.document),
        prompt_tokens=answer.usage.prompt_tokens if answer.usage else None,
        completion_tokens=answer.usage.completion_tokens if answer.usage else None,
        status=200,
        seconds=got.end_s,
    )


def _trouble(fault: Fault) -> Trouble:
    if fault.kind in _TIMED_OUT:
        return Trouble.TIMED_OUT
    return Trouble.BROKEN if fault.kind in {FaultKind.LOST, FaultKind.TOO_LARGE} else Trouble.NOT_REACHABLE


def _choice(document: JsonValue) -> dict[str, JsonValue]:
    choices = document.get("choices") if isinstance(document, dict) else None
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _message(document: JsonValue) -> dict[str, JsonValue]:
    message = _choice(document).get("message")
    return message if isinstance(message, dict) else {}


def _tokens(document: JsonValue) -> tuple[str, ...]:
    logprobs = _choice(document).get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    return tuple(well_formed(string(one.get("token"))) for one in content if isinstance(one, dict))
