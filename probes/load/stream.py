"""Decoding the streams of OpenAI-shaped APIs: reads with arrival times in, one Answer out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from probes.load.answer import Answer, Ending, ToolCall, Usage, read_usage
from probes.load.sse import Event, Framer, TooLargeError
from probes.load.untrusted import count, error_words, one_line, parse_json, string, well_formed

# How vLLM (FinishReason in vllm/v1/engine), SGLang and OpenRouter end an answer that they could not finish.
_GIVEN_UP: Final = frozenset({"abort", "error"})


class Decoder:
    """Collects one answer from its reads; times are set once, by the read that completed an event."""

    def __init__(self, *, max_tokens: int | None = None, framer: Framer | None = None) -> None:
        self._framer = framer or Framer()
        self._max_tokens = max_tokens
        self._failure: tuple[Ending, str] | None = None
        self._terminated = False
        self._finish_reason: str | None = None
        self._t_first_event_s: float | None = None
        self._t_first_output_s: float | None = None
        self._t_first_text_s: float | None = None
        self._t_last_s: float | None = None
        self._arrivals_s: list[float] = []
        self._first_tokens: int | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._usage: dict[str, JsonValue] = {}
        self._timings: dict[str, JsonValue] = {}
        self._events = 0
        self._unreadable = 0
        self._stray = ""

    def feed(self, read: bytes, at_s: float) -> bool:
        """Take one read and tell whether the answer is over but for usage and terminator.

        The connection may stay open after that; some servers never close it.
        """
        if not self._closed:
            try:
                for event in self._framer.feed(read, at_s):
                    self._take(event)
            except TooLargeError as exc:
                self._failure = (Ending.TOO_LARGE, str(exc))
        return self._closed or self._finish_reason is not None

    def finish(self, at_s: float, cut: tuple[Ending, str] | None = None) -> Answer:
        """Close the stream and give the answer; `cut` says why reading stopped short of the server's end."""
        last = None if self._closed else self._framer.close(at_s)
        if last is not None:
            self._take(last)
        ending, words = self._end(cut)
        return Answer(
            ending=ending,
            words=words,
            t_first_event_s=self._t_first_event_s,
            t_first_output_s=self._t_first_output_s,
            t_first_text_s=self._t_first_text_s,
            t_end_s=self._t_last_s,
            arrivals_s=tuple(self._arrivals_s),
            first_chunk_tokens=self._first_tokens,
            text=well_formed("".join(self._text)),
            reasoning=well_formed("".join(self._reasoning)),
            tool_calls=tuple(call.whole() for _, call in sorted(self._calls.items())),
            finish_reason=self._finish_reason,
            usage=self._counted(),
            timings=self._timings,
            unreadable_events=self._unreadable,
            comments=self._framer.comments,
        )

    @property
    def events(self) -> int:
        """How many events could be read so far; comments are none."""
        return self._events

    @property
    def _closed(self) -> bool:
        return self._terminated or self._failure is not None

    def _end(self, cut: tuple[Ending, str] | None) -> tuple[Ending, str]:
        if self._failure is not None:
            return self._failure
        if self._finish_reason in _GIVEN_UP:
            return Ending.ERROR, f"the server gave the answer up: its finish_reason is {self._finish_reason!r}"
        if self._terminated and self._t_first_event_s is None:
            # A failure that is worded in no known way must not pass for a quick answer of no tokens.
            return Ending.ERROR, self._stray or "the stream ended without a single choice"
        if self._terminated or self._finish_reason is not None:
            return Ending.COMPLETE, ""
        seen = f"after {self._events} events" if self._events else "without a single event"
        return cut or (Ending.TRUNCATED, f"the stream ended {seen}, with neither a finish_reason nor [DONE]")

    def _take(self, event: Event) -> None:
        data = event.data.strip()
        if self._closed or not (data or event.name == "error"):
            return
        document = None if data == "[DONE]" else parse_json(data)
        if data == "[DONE]":
            self._terminated = True
            self._t_last_s = event.at_s
        elif event.name == "error" or _is_error(document):
            self._failure = (Ending.ERROR, error_words(document) or one_line(data) or "an error event without a word")
            self._t_last_s = event.at_s
        elif isinstance(document, dict):
            self._events += 1
            self.take_chunk(document, event.at_s)
        else:
            self._unreadable += event.whole

    def take_chunk(self, document: dict[str, JsonValue], at_s: float) -> None:
        """Take one chunk that is parsed already."""
        self._t_last_s = at_s
        if isinstance(usage := document.get("usage"), dict) and usage:
            self._usage = usage
        if isinstance(timings := document.get("timings"), dict):
            self._timings = timings
        choice = _first_choice(document)
        if choice is None:
            self._stray = self._stray or error_words(document) or ""
            return
        if self._t_first_event_s is None:
            self._t_first_event_s = at_s
        text, reasoning, fragments = _channels(choice)
        called = self._add_calls(fragments)
        if text or reasoning or called:
            self._arrivals_s.append(at_s)
            if self._t_first_output_s is None:
                self._t_first_output_s = at_s
                self._first_tokens = count(self._usage.get("completion_tokens"))
        if text and self._t_first_text_s is None:
            self._t_first_text_s = at_s
        self._text.append(text)
        self._reasoning.append(reasoning)
        self._finish_reason = string(choice.get("finish_reason")) or self._finish_reason

    def _add_calls(self, fragments: list[dict[str, JsonValue]]) -> bool:
        """Merge tool-call fragments by index; a name or arguments are output, an id alone is not."""
        output = False
        for fragment in fragments:
            function = fragment.get("function")
            function = function if isinstance(function, dict) else {}
            name, arguments = string(function.get("name")), function.get("arguments")
            added = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
            call = self._calls.setdefault(_call_index(fragment, self._calls), _Call())
            call.id = call.id or string(fragment.get("id"))
            call.name = call.name or name
            call.arguments.append(added)
            output = output or bool(name or added)
        return output

    def _counted(self) -> Usage | None:
        if not self._usage:
            return None
        parts = [*self._text, *self._reasoning]
        parts += [part for call in self._calls.values() for part in (call.name, *call.arguments)]
        output_bytes = sum(len(part.encode("utf-8", "replace")) for part in parts)
        return read_usage(self._usage, max_tokens=self._max_tokens, output_bytes=output_bytes)


def decode(reads: Iterable[tuple[bytes, float]], *, max_tokens: int | None = None) -> Answer:
    """Decode a recorded stream of (bytes, seconds since the request was sent)."""
    decoder = Decoder(max_tokens=max_tokens)
    closed_at_s = 0.0
    for read, at_s in reads:
        decoder.feed(read, at_s)
        closed_at_s = at_s
    return decoder.finish(closed_at_s)


def decode_whole(document: JsonValue, at_s: float, *, max_tokens: int | None = None) -> Answer:
    """Read an answer that came in one piece; it has an end and no first token."""
    choice = _first_choice(document) if isinstance(document, dict) and not _is_error(document) else None
    if choice is None or not isinstance(document, dict):
        words = error_words(document) or "the answer is not an OpenAI completion"
        return Answer(ending=Ending.ERROR, words=words, streamed=False, t_end_s=at_s)
    decoder = Decoder(max_tokens=max_tokens)
    decoder.take_chunk({**document, "choices": [{**choice, "delta": choice.get("message")}]}, at_s)
    answer = decoder.finish(at_s)
    given_up = answer.ending is Ending.ERROR
    return replace(
        answer,
        ending=Ending.ERROR if given_up else Ending.COMPLETE,
        words=answer.words if given_up else "",
        streamed=False,
        t_first_event_s=None,
        t_first_output_s=None,
        t_first_text_s=None,
        arrivals_s=(),
    )


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def whole(self) -> ToolCall:
        return ToolCall(id=well_formed(self.id), name=well_formed(self.name), arguments=well_formed("".join(self.arguments)))


def _is_error(document: JsonValue) -> bool:
    """Only a truthy error is one: good chunks carry `"error": null`. vLLM once marked errors by object.

    What holds words in place of choices and counts is one too, however it is called: `{"code": 500, "message": "..."}`.
    """
    if not isinstance(document, dict):
        return False
    if document.get("error") or "error" in (document.get("object"), document.get("type")):
        return True
    worded = any(isinstance(document.get(name), str | list) and document.get(name) for name in ("message", "detail"))
    return worded and not {"choices", "usage"} & document.keys()


def _first_choice(document: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    choices = document.get("choices")
    if not isinstance(choices, list):
        return None
    return next((c for c in choices if isinstance(c, dict) and c.get("index") in (0, "0", None)), None)


def _channels(choice: dict[str, JsonValue]) -> tuple[str, str, list[dict[str, JsonValue]]]:
    """Give text, reasoning and tool-call fragments; `completions` put their text beside, not in, a delta."""
    delta = choice.get("delta") or choice.get("message")
    if not isinstance(delta, dict):
        return string(choice.get("text")), "", []
    content, calls, call = delta.get("content"), delta.get("tool_calls"), delta.get("function_call")
    # The same words often come under two names at once, so the first name that has any is taken.
    named = next(filter(None, (string(delta.get(name)) for name in ("reasoning_content", "reasoning", "thinking"))), "")
    fragments = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    if not fragments and isinstance(call, dict):
        # What calls were before there were several.
        fragments = [{"index": 0, "function": call}]
    text = content if isinstance(content, str) else _texts(content)
    return text or string(delta.get("refusal")), named or _texts(delta.get("reasoning_details")), fragments


def _texts(parts: JsonValue) -> str:
    if not isinstance(parts, list):
        return ""
    return "".join(string(part.get("text")) for part in parts if isinstance(part, dict))


def _call_index(fragment: dict[str, JsonValue], known: dict[int, _Call]) -> int:
    """Use the index; without one, a new id starts a call and anything else continues the last."""
    index = count(fragment.get("index"))
    if index is not None:
        return index
    last, new_id = max(known, default=-1), string(fragment.get("id"))
    return last + 1 if last < 0 or (new_id and new_id != known[last].id) else last
