"""The metrics of a load run: each a unit, its samples and percentiles, or the reason why there are none."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pydantic import JsonValue

from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.load.answer import FirstToken, Usage
from probes.load.outcome import Failure, Outcome
from probes.load.statistics import percentiles, tpot_s
from probes.load.untrusted import rate
from probes.load.window import Phase, Window

COALESCED_AT_MOST: Final = 0.1
# A draft of five tokens that is all right brings five of six gaps of zero; only a path that holds answers back brings more.
BUFFERED_ABOVE: Final = 0.9
_FEWEST_GAPS: Final = 3
_TOKENS_PER_CHUNK_AT_MOST: Final = 1.1
_SLO_METRICS: Final = ("ttft_s", "tpot_s", "latency_s", "decode_tok_s")


@dataclass(frozen=True, kw_only=True)
class Series:
    """One metric. `rows` has one value per request where the metric has one, else it equals `samples`.

    Evidence keeps `rows`; percentiles are of `samples`, which for the inter-token latency are all gaps of all
    requests. `note` says what a reader must know about the numbers.
    """

    name: str
    unit: str
    direction: Direction
    per: Per
    samples: tuple[float, ...] = ()
    rows: tuple[float, ...] = ()
    missing: Missing | None = None
    note: str = ""

    def metric(self) -> Metric:
        """Give the metric as evidence holds it."""
        return Metric(
            name=self.name,
            unit=self.unit,
            direction=self.direction,
            per=self.per,
            samples=self.rows or self.samples,
            missing=self.missing,
        )

    def document(self) -> dict[str, JsonValue]:
        """Give the metric with its percentiles; those of a single number for the run are null."""
        document: dict[str, JsonValue] = {"unit": self.unit, "direction": self.direction.value, "per": self.per.value}
        if self.missing is not None:
            document |= {"missing": self.missing.missing.value, "detail": self.missing.detail}
        if self.per is Per.RUN:
            document["value"] = self.samples[0] if self.samples else None
        tails = percentiles(() if self.per is Per.RUN else self.samples)
        document |= {**tails, "n": len(self.samples), "samples": list(self.samples)}
        return document | ({"note": self.note} if self.note else {})


@dataclass(frozen=True, kw_only=True)
class Slo:
    """Bounds that a request has to keep to be good: seconds at most, tokens per second at least."""

    bounds: Mapping[str, float]

    def met(self, values: Mapping[str, float | None]) -> bool:
        """Tell whether one request kept every bound; a value that is not known keeps none."""
        for name, bound in self.bounds.items():
            value = values.get(name)
            if value is None or (value < bound if name == "decode_tok_s" else value > bound):
                return False
        return True


SLO_METRICS: Final = frozenset(_SLO_METRICS)
_LOWER, _HIGHER, _NEUTRAL = Direction.LOWER, Direction.HIGHER, Direction.NEUTRAL


def series(
    outcomes: Sequence[Outcome], window: Window, first_token: FirstToken, slo: Slo, *, uncounted: Missing | None = None
) -> tuple[Series, ...]:
    """Give every metric of a run. `outcomes` are all requests in the order of `window.phases`.

    `uncounted` says why a tokenizer that was given counted nothing.

    Latencies speak of the measured requests that succeeded. A failed one has none: averaging it in would
    make a broken server look fast.
    """
    measured = _of(Phase.MEASURED, outcomes, window)
    good = [o for o in measured if o.ok]
    nothing = _why_nothing(measured)
    values = [request_values(outcome, first_token) for outcome in good]
    held_back = buffered(good)
    parts: list[Series] = []
    for name, unit, direction, why in _PER_REQUEST:
        column = tuple(v for row in values if (v := row[name]) is not None)
        believed = not (held_back and name in _OF_ARRIVAL)
        column = column if believed else ()
        missing = None if column else nothing or _unmeasured(why if believed else held_back)
        parts.append(Series(name=name, unit=unit, direction=direction, per=Per.REQUEST, samples=column, missing=missing))
    parts.insert(3, _itl(good, nothing))
    parts.extend(_counts(values, nothing, uncounted))
    parts.extend(_rates(outcomes, window, first_token, slo))
    parts.extend(_failures(measured))
    return tuple(parts)


def request_values(outcome: Outcome, first_token: FirstToken) -> dict[str, float | None]:
    """Give what one successful request measured, None where it could not."""
    answer, usage = outcome.answer, outcome.answer.usage
    streamed = answer.streamed and not outcome.compressed
    ttft = answer.ttft_s(first_token) if streamed else None
    chunks = len(answer.arrivals_s) if streamed else None
    tokens = outcome.tokens
    span = answer.arrivals_s[-1] - ttft if ttft is not None and answer.arrivals_s else None
    at_first = answer.tokens_at(ttft) if ttft is not None else 1
    per_token = tpot_s(span, tokens, at_first) if span is not None and tokens else None
    return {
        "ttft_s": ttft,
        "first_event_s": answer.t_first_event_s if streamed else None,
        "first_text_s": answer.t_first_text_s if streamed else None,
        "tpot_s": per_token,
        "decode_tok_s": rate(1, per_token) if per_token else None,
        "latency_s": answer.t_end_s,
        "connect_s": outcome.connect_s,
        "schedule_lag_s": (outcome.sent_ns - outcome.due_ns) / 1e9,
        "prompt_tokens": _count(usage, lambda u: u.prompt_tokens),
        "completion_tokens": None if tokens is None else float(tokens),
        "cached_prompt_tokens": _count(usage, lambda u: u.cached_tokens),
        "chunks": None if chunks is None else float(chunks),
        "tokens_per_chunk": tokens / chunks if tokens and chunks else None,
        "attempts_per_request": float(outcome.attempts),
        "counted_tokens": None if outcome.counted is None else float(outcome.counted),
        "token_disagreement": _disagreement(outcome.usage_tokens, outcome.counted),
    }


_OF_ARRIVAL: Final = frozenset({"ttft_s", "first_event_s", "first_text_s", "tpot_s", "decode_tok_s"})
_PER_REQUEST: Final = (
    ("ttft_s", "s", _LOWER, "no output came in a stream"),
    ("first_event_s", "s", _LOWER, "no event came in a stream"),
    ("first_text_s", "s", _LOWER, "no visible text came in a stream"),
    ("tpot_s", "s", _LOWER, "the server counts no tokens, or no second one came apart in time"),
    ("decode_tok_s", "tok/s", _HIGHER, "the server counts no tokens, or no second one came apart in time"),
    ("latency_s", "s", _LOWER, "no end was seen"),
    ("connect_s", "s", _LOWER, "every request used an open connection"),
    ("schedule_lag_s", "s", _LOWER, "nothing was sent"),
    ("prompt_tokens", "tokens", _NEUTRAL, "the server does not count prompt tokens"),
    ("completion_tokens", "tokens", _NEUTRAL, "the server does not count tokens, or counts what cannot be"),
    ("cached_prompt_tokens", "tokens", _HIGHER, "the server does not report it"),
    ("chunks", "chunks", _NEUTRAL, "nothing came in a stream"),
    ("tokens_per_chunk", "tokens", _NEUTRAL, "the server does not count tokens"),
    ("attempts_per_request", "attempts", _LOWER, "nothing was sent"),
)


def _counts(
    values: Sequence[Mapping[str, float | None]], nothing: Missing | None, uncounted: Missing | None
) -> Iterator[Series]:
    """The tokens that were counted here, and how far the server's count is from them."""
    none = Missing(missing=MissingReason.NOT_CONFIGURED, detail="no tokenizer was given; name one with --tokenizer")
    rows = (("counted_tokens", "tokens", "no text came"), ("token_disagreement", "ratio", "the server counts no tokens"))
    given = any(row["counted_tokens"] is not None for row in values)
    for name, unit, why in rows:
        column = tuple(v for row in values if (v := row[name]) is not None)
        missing = None if column else uncounted or nothing or (_unmeasured(why) if given else none)
        note = "usage / counted - 1; text that is tokenised again seldom has the very number of tokens that made it"
        yield Series(
            name=name,
            unit=unit,
            direction=_NEUTRAL,
            per=Per.REQUEST,
            samples=column,
            missing=missing,
            note=note if name == "token_disagreement" and column else "",
        )


def _disagreement(usage: int | None, counted: int | None) -> float | None:
    return usage / counted - 1 if usage is not None and counted else None


def gaps(outcome: Outcome) -> tuple[float, ...]:
    """Give the times between chunks that brought output."""
    return tuple(later - earlier for earlier, later in pairwise(outcome.answer.arrivals_s))


def coalesced_share(outcomes: Sequence[Outcome]) -> float | None:
    """Give the share of gaps that are zero because one read brought several chunks."""
    every = [gap for outcome in outcomes if outcome.ok for gap in gaps(outcome)]
    return sum(gap <= 0 for gap in every) / len(every) if every else None


def buffered(outcomes: Sequence[Outcome]) -> str:
    """Say why no time of arrival can be believed: something on the way holds answers back. '' where it does not."""
    streams = [one for one in outcomes if one.ok and one.answer.streamed and len(gaps(one)) >= _FEWEST_GAPS]
    share = coalesced_share(streams) or 0.0
    if share <= BUFFERED_ABOVE:
        return ""
    return f"the path is buffered: {share:.0%} of the chunks came together with the one before, so no arrival is the server's"


def failures(outcomes: Sequence[Outcome]) -> dict[Failure, list[Outcome]]:
    """Group the failed requests by class, the most frequent class first."""
    groups: dict[Failure, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.failure is not None:
            groups.setdefault(outcome.failure, []).append(outcome)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def _itl(good: Sequence[Outcome], nothing: Missing | None) -> Series:
    """Real gaps, never a mean per token: that is TPOT. None where a chunk brings more than a token, or none came apart."""

    def no(why: str) -> Series:
        missing = nothing or _unmeasured(why)
        return Series(name="itl_s", unit="s", direction=_LOWER, per=Per.REQUEST, missing=missing)

    streams = [outcome for outcome in good if outcome.answer.streamed and not outcome.compressed and len(gaps(outcome)) > 0]
    every = tuple(gap for outcome in streams for gap in gaps(outcome))
    if not every:
        return no("no stream brought two chunks of output")
    share = coalesced_share(streams) or 0.0
    if share > COALESCED_AT_MOST:
        return no(f"the gaps mean nothing: {share:.0%} of the chunks came together with the one before")
    counted = [(outcome.tokens, len(outcome.answer.arrivals_s)) for outcome in streams if outcome.tokens]
    per_chunk = sum(tokens for tokens, _ in counted) / sum(chunks for _, chunks in counted) if counted else 1.0
    if per_chunk > _TOKENS_PER_CHUNK_AT_MOST:
        return no(f"a chunk brings {per_chunk:.1f} tokens, so the gaps between chunks are not those between tokens")
    return Series(
        name="itl_s",
        unit="s",
        direction=_LOWER,
        per=Per.REQUEST,
        samples=every,
        rows=tuple(statistics.median(gaps(outcome)) for outcome in streams),
        note="samples are all gaps between chunks of output; evidence keeps the median gap of each request",
    )


def _rates(outcomes: Sequence[Outcome], window: Window, first_token: FirstToken, slo: Slo) -> Iterator[Series]:
    """What the whole run carried, over the measured window and by time stamp: tokens and ends that fall into it."""
    seconds = window.seconds
    tokens, source = _tokens_inside(outcomes, window)
    ended = [o for o in outcomes if o.ok and window.start_ns < o.end_ns <= window.end_ns]
    yield _whole("aggregate_tok_s", "tok/s", _HIGHER, rate(tokens, seconds), note=_SOURCES[source])
    yield _whole("request_rate", "requests/s", _HIGHER, rate(len(ended), seconds))
    if not slo.bounds:
        none = Missing(missing=MissingReason.NOT_CONFIGURED, detail="no SLO was given; name one with --slo")
        for name, unit in (("goodput", "requests/s"), ("goodput_share", "ratio")):
            yield Series(name=name, unit=unit, direction=_HIGHER, per=Per.RUN, missing=none)
        return
    met = sum(slo.met(request_values(outcome, first_token)) for outcome in ended)
    measured = _of(Phase.MEASURED, outcomes, window)
    kept = sum(o.ok and slo.met(request_values(o, first_token)) for o in measured)
    words = ", ".join(f"{name} {'>=' if name == 'decode_tok_s' else '<='} {bound:g}" for name, bound in slo.bounds.items())
    yield _whole("goodput", "requests/s", _HIGHER, met / seconds if seconds > 0 else None, note=words)
    yield _whole("goodput_share", "ratio", _HIGHER, kept / len(measured) if measured else None, note=words)


_SOURCES: Final = {
    "usage": "",
    "tokenizer": "counted by the tokenizer that was given, because the server does not count all",
    "chunks": "counted in chunks, because the server does not count the tokens of every answer; chunks are not tokens",
}


def _tokens_inside(outcomes: Sequence[Outcome], window: Window) -> tuple[float, str]:
    """Count tokens whose chunk arrived in the window; a failed request is credited none.

    Tokens and chunks are never added up: where one answer is not counted, all are told in chunks.
    """
    answered = [outcome for outcome in outcomes if outcome.ok and outcome.answer.arrivals_s]
    in_chunks = any(outcome.tokens is None for outcome in answered)
    total, source = 0.0, "chunks" if in_chunks else "usage"
    for outcome in answered:
        arrivals = outcome.answer.arrivals_s
        low, high = (window.start_ns - outcome.start_ns) / 1e9, (window.end_ns - outcome.start_ns) / 1e9
        inside = sum(low < at <= high for at in arrivals)
        if outcome.by_tokenizer and source == "usage":
            source = "tokenizer"
        total += inside if in_chunks else inside * (outcome.tokens or 0) / len(arrivals)
    return total, source


def _failures(measured: Sequence[Outcome]) -> Iterator[Series]:
    n = len(measured)
    failed = sum(not o.ok for o in measured)
    memory = sum(o.failure is Failure.OUT_OF_MEMORY for o in measured)
    unexplained = sum(o.failure is Failure.SERVER for o in measured)
    yield _whole("error_rate", "ratio", _LOWER, failed / n if n else None)
    if unexplained and not memory:
        # A full card often answers with no more than 500.
        why = _unmeasured(f"{unexplained} of {n} requests ended in a server error that names no cause")
        yield Series(name="oom_rate", unit="ratio", direction=_LOWER, per=Per.RUN, missing=why)
    else:
        yield _whole("oom_rate", "ratio", _LOWER, memory / n if n else None)
    yield _whole("stalled_streams", "requests", _LOWER, float(sum(o.stalled for o in measured)) if n else None)


def _whole(name: str, unit: str, direction: Direction, value: float | None, *, note: str = "") -> Series:
    """Make a metric that is one number for the run; it has no percentiles."""
    samples = () if value is None else (float(value),)
    missing = None if samples else _unmeasured("no request was measured, or none succeeded")
    return Series(name=name, unit=unit, direction=direction, per=Per.RUN, samples=samples, missing=missing, note=note)


def _of(phase: Phase, outcomes: Sequence[Outcome], window: Window) -> list[Outcome]:
    return [outcome for outcome, its in zip(outcomes, window.phases, strict=True) if its is phase]


def _count(usage: Usage | None, pick: Callable[[Usage], int | None]) -> float | None:
    value = pick(usage) if usage is not None else None
    return None if value is None else float(value)


def _why_nothing(measured: Sequence[Outcome]) -> Missing | None:
    """Say why there is no successful request, None when there is one."""
    if any(outcome.ok for outcome in measured):
        return None
    if not measured:
        return _unmeasured("no request was measured: the run ended before its warm-up did")
    return Missing(missing=MissingReason.FAILED, detail=f"all {len(measured)} measured requests failed: {measured[0].words}")


def _unmeasured(why: str) -> Missing:
    return Missing(missing=MissingReason.NOT_MEASURED, detail=why)
