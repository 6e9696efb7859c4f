"""What the probe's own requests measured, one sample per request, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from probes.endpoints.asking import Asked
from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.load.answer import Answer, Ending, FirstToken, Usage
from probes.load.untrusted import count, rate


@dataclass(frozen=True, kw_only=True)
class _Measure:
    """One metric of the requests from `start` to `end`; the first has a fresh prompt, the second repeats it."""

    name: str
    unit: str
    direction: Direction
    read: Callable[[Asked], float | Missing]
    start: int = 0
    end: int | None = None


def request_metrics(asked: Sequence[Asked], first_token: FirstToken, unasked: Missing) -> tuple[Metric, ...]:
    """Give every metric of the requests that were sent; `unasked` is the reason when none was.

    `ttft_s` speaks of the fresh prompt alone: the repeated one may come from the prefix cache, and is
    kept apart as `ttft_repeat_s`.
    """

    def ttft(one: Asked) -> float | Missing:
        return _inside(one, one.answer.ttft_s(first_token), "no output came")

    def decode(one: Asked) -> float | Missing:
        return _inside(one, one.answer.decode_tok_s(first_token), _why_no_rate(one.answer))

    lower, higher, neutral = Direction.LOWER, Direction.HIGHER, Direction.NEUTRAL
    measures = (
        _Measure(name="ttft_s", unit="s", direction=lower, read=ttft, end=1),
        _Measure(name="ttft_repeat_s", unit="s", direction=lower, read=ttft, start=1),
        _Measure(name="t_first_event_s", unit="s", direction=lower, read=_first_event),
        _Measure(name="t_first_text_s", unit="s", direction=lower, read=_first_text),
        _Measure(name="decode_tok_s", unit="tok/s", direction=higher, read=decode),
        _Measure(name="chunks_per_s", unit="chunks/s", direction=neutral, read=_chunk_rate),
        _Measure(name="prefill_tok_s", unit="tok/s", direction=higher, read=_prefill_rate),
        _Measure(name="latency_s", unit="s", direction=lower, read=_latency),
        _Measure(name="connect_s", unit="s", direction=lower, read=_connect),
        _Measure(name="prompt_tokens", unit="tokens", direction=neutral, read=_counted(lambda u: u.prompt_tokens)),
        _Measure(name="completion_tokens", unit="tokens", direction=neutral, read=_completion_tokens),
        _Measure(name="cached_prompt_tokens", unit="tokens", direction=higher, read=_counted(lambda u: u.cached_tokens)),
    )
    return (
        *(_metric(measure, asked[measure.start : measure.end], unasked) for measure in measures),
        _error_rate(asked, unasked),
    )


def _metric(measure: _Measure, asked: Sequence[Asked], unasked: Missing) -> Metric:
    values = [measure.read(one) for one in asked]
    samples = tuple(float(value) for value in values if not isinstance(value, Missing))
    reasons = [value for value in values if isinstance(value, Missing)]
    return Metric(
        name=measure.name,
        unit=measure.unit,
        direction=measure.direction,
        per=Per.REQUEST,
        samples=samples,
        missing=None if samples else next(iter(reasons), unasked),
    )


def _error_rate(asked: Sequence[Asked], unasked: Missing) -> Metric:
    failed = sum(one.answer.ending is not Ending.COMPLETE for one in asked)
    return Metric(
        name="error_rate",
        unit="ratio",
        direction=Direction.LOWER,
        per=Per.RUN,
        samples=(failed / len(asked),) if asked else (),
        missing=None if asked else unasked,
    )


def _failed(answer: Answer) -> Missing | None:
    """A failed request has no latency: averaging it in would make a broken server look fast."""
    if answer.ending is Ending.COMPLETE:
        return None
    return Missing(missing=MissingReason.FAILED, detail=f"{answer.ending}: {answer.words}")


def _inside(one: Asked, value: float | None, why: str) -> float | Missing:
    """Give a time inside the stream, unless the stream was none."""
    failed = _failed(one.answer)
    if failed is not None:
        return failed
    if not one.answer.streamed:
        return _unmeasured("the server answered in one piece")
    if one.held_back:
        return _unmeasured(one.held_back)
    return _unmeasured(why) if value is None else value


def _first_event(one: Asked) -> float | Missing:
    return _inside(one, one.answer.t_first_event_s, "no event came")


def _first_text(one: Asked) -> float | Missing:
    why = "the answer ended before any visible text" if one.answer.produced else "no text came"
    return _inside(one, one.answer.t_first_text_s, why)


def _chunk_rate(one: Asked) -> float | Missing:
    """Chunks are not tokens; this is kept apart for servers that count none."""
    arrivals = one.answer.arrivals_s
    value = rate(len(arrivals) - 1, arrivals[-1] - arrivals[0]) if len(arrivals) > 1 else None
    return _inside(one, value, "fewer than two chunks came")


def _prefill_rate(one: Asked) -> float | Missing:
    """Read llama.cpp's own clock; with cached tokens the rate would be that of the few that were left."""
    processed, cached = count(one.answer.timings.get("prompt_n")), count(one.answer.timings.get("cache_n"))
    milliseconds = one.answer.timings.get("prompt_ms")
    asked = one.answer.usage.prompt_tokens if one.answer.usage else None
    if failed := _failed(one.answer):
        return failed
    if processed is None or isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return _unmeasured("the server does not time its prompts")
    # Releases before the one that tells cache_n process less than was asked, and say nothing.
    cached = cached or max(0, (asked or 0) - processed)
    if cached:
        return _unmeasured(f"a warm prefix: {cached} prompt tokens came from the cache")
    value = rate(processed, milliseconds / 1000)
    return _unmeasured("the server gives no duration") if value is None else value


def _latency(one: Asked) -> float | Missing:
    failed = _failed(one.answer)
    if failed is not None:
        return failed
    return _unmeasured("no end was seen") if one.answer.t_end_s is None else one.answer.t_end_s


def _connect(one: Asked) -> float | Missing:
    return _unmeasured("no connection was made") if one.connect_s is None else one.connect_s


def _counted(pick: Callable[[Usage], int | None]) -> Callable[[Asked], float | Missing]:
    def read(one: Asked) -> float | Missing:
        usage = one.answer.usage
        if usage is None:
            return _failed(one.answer) or _unmeasured("the server reports no usage")
        value = pick(usage)
        return _unmeasured("the server does not report it") if value is None else value

    return read


def _completion_tokens(one: Asked) -> float | Missing:
    doubt = one.answer.usage.doubt if one.answer.usage else ""
    return _unmeasured(doubt) if doubt else _counted(lambda usage: usage.completion_tokens)(one)


def _why_no_rate(answer: Answer) -> str:
    usage = answer.usage
    if usage is None or usage.completion_tokens is None:
        return f"the server reports no usage; {len(answer.arrivals_s)} chunks came, and chunks are not tokens"
    if usage.doubt:
        return usage.doubt
    return "fewer than two tokens came apart in time"


def _unmeasured(why: str) -> Missing:
    return Missing(missing=MissingReason.NOT_MEASURED, detail=why)
