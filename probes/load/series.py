"""The metrics of a load run: each a unit, its samples and percentiles, or the reason why there are none."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from pydantic import JsonValue

from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.load.answer import FirstToken, Usage
from probes.load.kinds import KINDS
from probes.load.objective import Objective
from probes.load.outcome import Failure, Outcome
from probes.load.statistics import percentiles, tpot_s
from probes.load.untrusted import rate
from probes.load.window import Phase, Window

COALESCED_AT_MOST: Final = 0.1
# A draft of five tokens that is all right brings five of six gaps of zero; only a path that holds answers back brings more.
BUFFERED_ABOVE: Final = 0.9
_FEWEST_GAPS: Final = 3
_TOKENS_PER_CHUNK_AT_MOST: Final = 1.1


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


def series(
    outcomes: Sequence[Outcome],
    window: Window,
    first_token: FirstToken,
    slo: Objective | Missing,
    *,
    uncounted: Missing | None = None,
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
    for name, why in _PER_REQUEST:
        column = tuple(v for row in values if (v := row[name]) is not None)
        believed = not (held_back and name in _OF_ARRIVAL)
        column = column if believed else ()
        missing = None if column else nothing or _unmeasured(why if believed else held_back)
        parts.append(_each(name, column, missing))
    parts.insert(3, _itl(good, nothing))
    parts.extend(_counts(values, nothing, uncounted))
    parts.extend(_rates(outcomes, window))
    parts.extend(_goodput(outcomes, window, first_token, _decidable(slo, parts, good)))
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
    ("ttft_s", "no output came in a stream"),
    ("first_event_s", "no event came in a stream"),
    ("first_text_s", "no visible text came in a stream"),
    ("tpot_s", "the server counts no tokens, or no second one came apart in time"),
    ("decode_tok_s", "the server counts no tokens, or no second one came apart in time"),
    ("latency_s", "no end was seen"),
    ("connect_s", "every request used an open connection"),
    ("schedule_lag_s", "nothing was sent"),
    ("prompt_tokens", "the server does not count prompt tokens"),
    ("completion_tokens", "the server does not count tokens, or counts what cannot be"),
    ("cached_prompt_tokens", "the server does not report it"),
    ("chunks", "nothing came in a stream"),
    ("tokens_per_chunk", "the server does not count tokens"),
    ("attempts_per_request", "nothing was sent"),
)


def _counts(
    values: Sequence[Mapping[str, float | None]], nothing: Missing | None, uncounted: Missing | None
) -> Iterator[Series]:
    """The tokens that were counted here, and how far the server's count is from them."""
    none = Missing(missing=MissingReason.NOT_CONFIGURED, detail="no tokenizer was given; name one with --tokenizer")
    rows = (("counted_tokens", "no text came"), ("token_disagreement", "the server counts no tokens"))
    given = any(row["counted_tokens"] is not None for row in values)
    for name, why in rows:
        column = tuple(v for row in values if (v := row[name]) is not None)
        missing = None if column else uncounted or nothing or (_unmeasured(why) if given else none)
        note = "usage / counted - 1; text that is tokenised again seldom has the very number of tokens that made it"
        yield _each(name, column, missing, note=note if name == "token_disagreement" and column else "")


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
        return _each("itl_s", (), nothing or _unmeasured(why))

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
    rows = tuple(statistics.median(gaps(outcome)) for outcome in streams)
    note = "samples are all gaps between chunks of output; evidence keeps the median gap of each request"
    return _each("itl_s", every, None, rows=rows, note=note)


def _rates(outcomes: Sequence[Outcome], window: Window) -> Iterator[Series]:
    """What the whole run carried, over the measured window and by time stamp: tokens and ends that fall into it."""
    source = token_source(outcomes)
    tokens = _tokens_inside(outcomes, window, source)
    yield _whole("aggregate_tok_s", rate(tokens, window.seconds), note=_SOURCES[source] if source else "")
    # None at all that succeeded is a rate of 0, and no throughput of tokens that were never seen.
    yield _whole("request_rate", _per_second(len(_ended(outcomes, window)), window))


def _decidable(slo: Objective | Missing, parts: Sequence[Series], good: Sequence[Outcome]) -> Objective | Missing:
    """Keep an objective only where what it bounds could be measured: what nobody saw was neither good nor bad."""
    if isinstance(slo, Missing) or not good:
        return slo
    for one in parts:
        if one.name in slo.bounds and one.missing is not None:
            return Missing(missing=one.missing.missing, detail=f"{slo.words}, and {one.name} is missing: {one.missing.detail}")
    return slo


def _goodput(
    outcomes: Sequence[Outcome], window: Window, first_token: FirstToken, slo: Objective | Missing
) -> Iterator[Series]:
    """Requests that keep the objective: those that ended in the window for each second of it, and the share of all measured."""
    if isinstance(slo, Missing):
        yield _whole("goodput", None, missing=slo)
        yield _whole("goodput_share", None, missing=slo)
        return
    measured = _of(Phase.MEASURED, outcomes, window)
    met = sum(slo.met(request_values(one, first_token)) for one in _ended(outcomes, window))
    kept = sum(one.ok and slo.met(request_values(one, first_token)) for one in measured)
    yield _whole("goodput", _per_second(met, window), note=slo.words)
    yield _whole("goodput_share", kept / len(measured) if measured else None, note=slo.words)


def _ended(outcomes: Sequence[Outcome], window: Window) -> list[Outcome]:
    """Give the requests that succeeded and ended inside the window."""
    return [one for one in outcomes if one.ok and window.start_ns < one.end_ns <= window.end_ns]


def _per_second(number: int, window: Window) -> float | None:
    return number / window.seconds if window.seconds > 0 else None


class TokenSource(StrEnum):
    """Who counted the tokens of a run, the most telling first; rates of different sources measure different things."""

    USAGE = "usage"
    TOKENIZER = "tokenizer"
    CHUNKS = "chunks"


_SOURCES: Final = {
    TokenSource.USAGE: "",
    TokenSource.TOKENIZER: "counted by the tokenizer that was given, because the server does not count all",
    TokenSource.CHUNKS: (
        "counted in chunks, because the server does not count the tokens of every answer; chunks are not tokens"
    ),
}


def token_source(outcomes: Sequence[Outcome]) -> TokenSource | None:
    """Tell by what the tokens of a run are counted, None where nothing came that could be.

    Tokens and chunks are never added up: where one answer is not counted, all are told in chunks.
    """
    answered = _answered(outcomes)
    if not answered:
        return None
    if any(one.tokens is None for one in answered):
        return TokenSource.CHUNKS
    return TokenSource.TOKENIZER if any(one.by_tokenizer for one in answered) else TokenSource.USAGE


def _answered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.ok and outcome.answer.arrivals_s]


def _tokens_inside(outcomes: Sequence[Outcome], window: Window, source: TokenSource | None) -> float:
    """Count tokens whose chunk arrived in the window; a failed request is credited none."""
    total = 0.0
    for outcome in _answered(outcomes):
        arrivals = outcome.answer.arrivals_s
        low, high = (window.start_ns - outcome.start_ns) / 1e9, (window.end_ns - outcome.start_ns) / 1e9
        inside = sum(low < at <= high for at in arrivals)
        total += inside if source is TokenSource.CHUNKS else inside * (outcome.tokens or 0) / len(arrivals)
    return total


def _failures(measured: Sequence[Outcome]) -> Iterator[Series]:
    n = len(measured)
    failed = sum(not o.ok for o in measured)
    memory = sum(o.failure is Failure.OUT_OF_MEMORY for o in measured)
    unexplained = sum(o.failure is Failure.SERVER for o in measured)
    yield _whole("error_rate", failed / n if n else None)
    if unexplained and not memory:
        # A full card often answers with no more than 500.
        why = _unmeasured(f"{unexplained} of {n} requests ended in a server error that names no cause")
        yield _whole("oom_rate", None, missing=why)
    else:
        yield _whole("oom_rate", memory / n if n else None)
    yield _whole("stalled_streams", float(sum(o.stalled for o in measured)) if n else None)


def _each(
    name: str, samples: tuple[float, ...], missing: Missing | None, *, rows: tuple[float, ...] = (), note: str = ""
) -> Series:
    """Make a metric with a value for each request."""
    unit, direction = KINDS[name]
    return Series(
        name=name, unit=unit, direction=direction, per=Per.REQUEST, samples=samples, rows=rows, missing=missing, note=note
    )


def _whole(name: str, value: float | None, *, missing: Missing | None = None, note: str = "") -> Series:
    """Make a metric that is one number for the run; it has no percentiles."""
    unit, direction = KINDS[name]
    samples = () if value is None else (float(value),)
    if not samples:
        missing = missing or _unmeasured("no request was measured, or none succeeded")
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
