"""What one request for text brought: the words, their arrival times, the server's counts and the end."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from pydantic import JsonValue

from probes.load.untrusted import count, parse_json, rate

# Far above any tokenizer, so that only counters gone wrong are doubted: OVMS once said 19503 for 197 tokens.
_TOKENS_PER_BYTE_AT_MOST = 16
_HIDDEN_TOKENS_AT_MOST = 256
_OUT_OF_MEMORY = re.compile(
    r"out[ _-]of[ _-](host[ _-]|device[ _-]|gpu[ _-])?memory|CL_OUT_OF_RESOURCES|CL_MEM_OBJECT_ALLOCATION_FAILURE"
    r"|\bbad_alloc\b|\bOOM\b|cannot allocate|failed to allocate",
    re.IGNORECASE,
)


class Ending(StrEnum):
    """How an answer ended; everything but COMPLETE is a failed request."""

    COMPLETE = "complete"
    ERROR = "error from the server"
    TRUNCATED = "closed without an end"
    LOST = "connection lost"
    TIMED_OUT = "deadline passed"
    TOO_LARGE = "too large"


class FirstToken(StrEnum):
    """Which arrival stands for the first token; the adapter of a runtime says.

    OVMS since 2026.1 sends an empty chunk when the first token exists while the detokenizer may still
    hold its text back (docs/model_server_rest_api_chat.md); other servers send one on acceptance.
    """

    FIRST_EVENT = "first event"
    FIRST_OUTPUT = "first output"


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call rebuilt from its fragments; `arguments` is the text as sent."""

    id: str
    name: str
    arguments: str

    @property
    def well_formed(self) -> bool:
        """Tell whether a client could carry the call out."""
        return bool(self.name) and isinstance(parse_json(self.arguments), dict)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Token counts as the server gives them, None where it gives none. `doubt` says why not to use them."""

    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    doubt: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, complete or not. Times are seconds since the request was sent.

    `t_first_output_s` is the first token of any channel (text, reasoning, tool call), `t_first_text_s`
    the first visible text. `arrivals_s` has one time per chunk that carried output. `first_chunk_tokens` are
    the tokens counted up to the first of them, where the server counts along. `finish_reason` None means
    that the server never said.
    """

    ending: Ending
    words: str = ""
    streamed: bool = True
    t_first_event_s: float | None = None
    t_first_output_s: float | None = None
    t_first_text_s: float | None = None
    t_end_s: float | None = None
    arrivals_s: tuple[float, ...] = ()
    first_chunk_tokens: int | None = None
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    timings: dict[str, JsonValue] = field(default_factory=dict)
    unreadable_events: int = 0
    comments: int = 0

    @property
    def out_of_memory(self) -> bool:
        """Tell a failure for lack of memory from other failures, by the server's words."""
        return self.ending is not Ending.COMPLETE and bool(_OUT_OF_MEMORY.search(self.words))

    @property
    def produced(self) -> bool:
        """Tell whether any token was seen or counted."""
        counted = self.usage.completion_tokens if self.usage else None
        return bool(self.arrivals_s or self.text or self.reasoning or self.tool_calls or counted)

    @property
    def coalesced_share(self) -> float | None:
        """Share of the gaps between output chunks that are zero because one read brought several.

        Near 1 the path holds the stream back and no gap means anything. None for fewer than two chunks.
        """
        gaps = [later - earlier for earlier, later in pairwise(self.arrivals_s)]
        return sum(gap <= 0 for gap in gaps) / len(gaps) if gaps else None

    def ttft_s(self, first_token: FirstToken) -> float | None:
        """Time to first token by the rule of the runtime that answered."""
        if first_token is FirstToken.FIRST_EVENT and self.t_first_event_s is not None:
            return self.t_first_event_s
        return self.t_first_output_s

    def decode_tok_s(self, first_token: FirstToken) -> float | None:
        """Tokens after the first per second by the server's count, from first to last token.

        Chunks are never counted: with speculative decoding one chunk brings several tokens.
        """
        start, counted = self.ttft_s(first_token), self.usage
        if start is None or not self.arrivals_s or counted is None or counted.doubt or not counted.completion_tokens:
            return None
        return rate(counted.completion_tokens - self.tokens_at(start), self.arrivals_s[-1] - start)

    def tokens_at(self, start_s: float) -> int:
        """Tell how many tokens were there when the first one was: one, unless the server counted more in that chunk."""
        return max(1, self.first_chunk_tokens or 1) if start_s == self.t_first_output_s else 1


def read_usage(usage: dict[str, JsonValue], *, max_tokens: int | None, output_bytes: int) -> Usage:
    """Read token counts, and doubt those that cannot be. Zero prompt tokens mean that they are not counted."""
    details = usage.get("prompt_tokens_details")
    completion = count(usage.get("completion_tokens"))
    return Usage(
        prompt_tokens=count(usage.get("prompt_tokens")) or None,
        completion_tokens=completion,
        cached_tokens=count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        doubt="" if completion is None else _doubt(completion, max_tokens, output_bytes),
    )


def _doubt(tokens: int, max_tokens: int | None, output_bytes: int) -> str:
    if max_tokens is not None and tokens > max_tokens:
        return f"the server counts {tokens} tokens where at most {max_tokens} were asked for"
    if output_bytes and (tokens == 0 or tokens > _TOKENS_PER_BYTE_AT_MOST * output_bytes + _HIDDEN_TOKENS_AT_MOST):
        return f"the server counts {tokens} tokens for {output_bytes} bytes of output"
    return ""
