"""Writes answers in the shapes of OVMS: whole ones, and the chunks of a stream.

The shapes are those of openai_completions.cpp and openai_json_response.hpp at 7e4df0c7 (2026-08-21). One thing is
different on purpose: an error inside a stream is sent as an event, where OVMS writes bare JSON between the events.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from probes.endpoints.embedded.frames import FinishReason
from probes.endpoints.embedded.request import Completion

DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, kw_only=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What every part of one answer repeats; `created` is the second the request came in."""

    request: Completion
    created: int

    def whole(self, text: str, finish: FinishReason, usage: Usage) -> bytes:
        """Write an answer that is not streamed."""
        choice: dict[str, Any] = {"finish_reason": finish, "index": 0, "logprobs": None}
        if self.request.chat:
            choice["message"] = {"content": text, "role": "assistant", "tool_calls": []}
        else:
            choice["text"] = text
        return dumps(self._body("chat.completion", "text_completion", [choice]) | {"usage": _usage(usage)})

    def first_chunk(self) -> bytes:
        """Write the chunk that says that the first token exists, before any text can be shown (OVMS 2026.1 and later)."""
        part = {"delta": {"role": "assistant", "content": None}} if self.request.chat else {"text": ""}
        return self._event([{"index": 0, **part, "finish_reason": None}])

    def chunk(self, text: str, finish: FinishReason | None) -> bytes:
        """Write new text; the last one carries the finish reason."""
        delta = {"content": text} if text else {}
        part: dict[str, Any] = {"delta": delta} if self.request.chat else {"text": text}
        usage = {"usage": None} if self.request.include_usage else {}
        return self._event([{"index": 0, "logprobs": None, **part, "finish_reason": finish}], usage)

    def end(self, usage: Usage) -> bytes:
        """Write what follows the last chunk of text."""
        counted = self._event([], {"usage": _usage(usage)}) if self.request.include_usage else b""
        return counted + DONE

    def _event(self, choices: list[dict[str, Any]], more: dict[str, Any] | None = None) -> bytes:
        return event(self._body("chat.completion.chunk", "text_completion.chunk", choices) | (more or {}))

    def _body(self, chat: str, text: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind = chat if self.request.chat else text
        return {"choices": choices, "created": self.created, "model": self.request.model, "object": kind}


def event(document: dict[str, Any]) -> bytes:
    """Frame a document as one server-sent event."""
    return b"data: " + dumps(document) + b"\n\n"


def dumps(document: dict[str, Any]) -> bytes:
    """Serialise without spaces, and without escapes for what UTF-8 can say."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _usage(usage: Usage) -> dict[str, int]:
    total = usage.prompt_tokens + usage.completion_tokens
    return {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens, "total_tokens": total}
