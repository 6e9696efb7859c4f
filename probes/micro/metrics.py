"""From rounds to metrics: one sample per repetition and arm, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.micro.rounds import Report, Request, Round

P95_MIN_REQUESTS = 20
# A setting of the arms by which a benchmark of drafts is known.
DRAFTED = "num_assistant_tokens"


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A metric of the contract or beside it: its unit and which way it improves."""

    name: str
    unit: str
    direction: Direction


TTFT = Quantity(name="ttft_s", unit="s", direction=Direction.LOWER)
DECODE = Quantity(name="decode_tok_s", unit="tok/s", direction=Direction.HIGHER)
AGGREGATE = Quantity(name="aggregate_tok_s", unit="tok/s", direction=Direction.HIGHER)
LATENCY = Quantity(name="latency_s", unit="s", direction=Direction.LOWER)
P95_LATENCY = Quantity(name="p95_latency_s", unit="s", direction=Direction.LOWER)
ERROR_RATE = Quantity(name="error_rate", unit="share", direction=Direction.LOWER)
MEMORY = Quantity(name="memory_bytes", unit="B", direction=Direction.LOWER)
VRAM = Quantity(name="vram_bytes", unit="B", direction=Direction.LOWER)
POWER = Quantity(name="power_w", unit="W", direction=Direction.LOWER)
QUALITY = Quantity(name="task_quality", unit="share", direction=Direction.HIGHER)
CACHE_USAGE = Quantity(name="cache_usage_percent", unit="%", direction=Direction.NEUTRAL)
TOKENS_PER_STEP = Quantity(name="tokens_per_step", unit="tokens/step", direction=Direction.HIGHER)
BREAK_EVEN = Quantity(name="break_even_tokens_per_step", unit="tokens/step", direction=Direction.LOWER)
ACCEPTED = Quantity(name="accepted_tokens", unit="tokens", direction=Direction.NEUTRAL)
KV_BYTES = Quantity(name="kv_bytes_per_token", unit="B", direction=Direction.LOWER)
WORST_ITL = Quantity(name="worst_itl_s", unit="s", direction=Direction.LOWER)
ITL = Quantity(name="itl_s", unit="s", direction=Direction.LOWER)
LATE_TTFT = Quantity(name="late_ttft_s", unit="s", direction=Direction.LOWER)
AGREEMENT = Quantity(name="token_agreement", unit="share", direction=Direction.HIGHER)
CONTRACT = (TTFT, DECODE, AGGREGATE, P95_LATENCY, ERROR_RATE, MEMORY, VRAM, POWER, QUALITY)


def measured(report: Report, seconds: Sequence[float], peak_rss_bytes: int, device: str) -> tuple[Metric, ...]:
    """Turn a report and the time of each of its rounds into metrics per arm.

    Memory belongs to the run as a whole: the arms share one process. Where a request joined a running batch,
    times and speeds are those of the others, and what it did to them is beside.
    """
    timed = list(zip(report.rounds, seconds, strict=True))
    found = [metric_of(MEMORY, "", Per.RUN, (float(peak_rss_bytes),)), _vram(device)]
    baseline = next(arm.name for arm in report.arms if arm.role == "baseline")
    drafting = any(DRAFTED in arm.settings for arm in report.arms)
    reference = [row for row, _ in timed if row.arm == baseline]
    for arm in report.arms:
        rows = [(row, time_s) for row, time_s in timed if row.arm == arm.name]
        found += _of_arm(arm.name, rows)
        if arm.name != baseline:
            shares = tuple(_agreement(other, row) for other, (row, _) in zip(reference, rows, strict=True))
            found.append(metric_of(AGREEMENT, arm.name, Per.REPETITION, shares))
            if drafting:
                found += _drafting(arm.name, reference, [row for row, _ in rows])
    quantities = (*CONTRACT, *((TOKENS_PER_STEP, BREAK_EVEN, ACCEPTED) if drafting else ()))
    for left_out in report.skipped:
        name, reason = left_out.arm.name, MissingReason.REFUSED if left_out.refused else MissingReason.SKIPPED
        found += [
            missing_of(quantity, name, reason, left_out.reason) for quantity in quantities if quantity not in (MEMORY, VRAM)
        ]
    return tuple(found)


def unmeasured(words: str, reason: MissingReason = MissingReason.FAILED) -> tuple[Metric, ...]:
    """Say for the whole contract that the benchmark came to nothing, and why."""
    return tuple(missing_of(quantity, "", reason, words) for quantity in CONTRACT)


def tokens_per_step(rows: Sequence[Request]) -> float:
    """Count the tokens after the first of each request by the engine's steps that made them; 1 without drafts."""
    return sum(len(row.tokens) - 1 for row in rows) / sum(row.steps - row.steps_to_first for row in rows)


def _drafting(arm: str, plain: Sequence[Round], rows: Sequence[Round]) -> list[Metric]:
    """Say what drafts brought and what they cost.

    The break-even is how many tokens a step has to bring for drafts to be as fast as plain decoding:
    the time of a step with drafts by that of one without, in the same repetition.
    """
    reached = tuple(tokens_per_step(row.requests) for row in rows)
    speeds = ([median(request.decode_tok_s for request in row.requests) for row in side] for side in (plain, rows))
    needed = tuple(count * one / other for count, one, other in zip(reached, *speeds, strict=True))
    accepted = tuple(float(sum(len(one.tokens) - 1 - (one.steps - one.steps_to_first) for one in row.requests)) for row in rows)
    return [
        metric_of(TOKENS_PER_STEP, arm, Per.REPETITION, reached),
        metric_of(BREAK_EVEN, arm, Per.REPETITION, needed),
        metric_of(ACCEPTED, arm, Per.REPETITION, accepted),
    ]


def p95(values: Sequence[float]) -> float:
    """Pick the nearest rank: the smallest value that at least 95 % of all are not above; never interpolated."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def p95_latency(arm: str, latencies: Sequence[float]) -> Metric:
    """Give the p95 of all requests of an arm, or say that they are too few."""
    if len(latencies) < P95_MIN_REQUESTS:
        detail = f"{len(latencies)} requests; a p95 needs {P95_MIN_REQUESTS}"
        return missing_of(P95_LATENCY, arm, MissingReason.TOO_FEW_SAMPLES, detail)
    return metric_of(P95_LATENCY, arm, Per.RUN, (p95(latencies),))


def metric_of(quantity: Quantity, arm: str, per: Per, samples: tuple[float, ...]) -> Metric:
    """Give the samples of a quantity in an arm; "" is the run as a whole."""
    return Metric(name=quantity.name, unit=quantity.unit, direction=quantity.direction, per=per, arm=arm, samples=samples)


def missing_of(quantity: Quantity, arm: str, reason: MissingReason, detail: str) -> Metric:
    """Say why a quantity has no samples in an arm."""
    return Metric(
        name=quantity.name,
        unit=quantity.unit,
        direction=quantity.direction,
        per=Per.REPETITION,
        arm=arm,
        missing=Missing(missing=reason, detail=detail),
    )


def _joined(row: Round) -> Request | None:
    """Find the request that joined the others while they ran."""
    return next((request for request in row.requests if request.added_s > 0), None)


def waits(row: Round) -> tuple[float, ...]:
    """Give how long the running requests waited for each token that was due while the late prompt was computed.

    A wait counts when any part of it lies between the prompt's arrival and its first token.
    """
    late = _joined(row)
    if late is None:
        return ()
    begin, end = late.added_s, late.added_s + late.ttft_s
    pairs = [pair for request in row.requests if request is not late for pair in pairwise(request.token_s)]
    return tuple(after - before for before, after in pairs if after > begin and before < end)


def _joining(arm: str, rows: Sequence[Round]) -> list[Metric]:
    """Say what a long prompt did to the requests that ran when it came, and how long it waited itself."""
    found = [(waits(row), late) for row in rows if (late := _joined(row)) is not None]
    if not found:
        return []
    return [
        metric_of(WORST_ITL, arm, Per.REPETITION, tuple(max(waited) for waited, _ in found)),
        metric_of(ITL, arm, Per.REPETITION, tuple(median(waited) for waited, _ in found)),
        metric_of(LATE_TTFT, arm, Per.REPETITION, tuple(late.ttft_s for _, late in found)),
    ]


def _kept(arm: str, rows: Sequence[Round]) -> list[Metric]:
    sizes = tuple(float(row.kv_bytes_per_token) for row in rows if row.kv_bytes_per_token is not None)
    return [metric_of(KV_BYTES, arm, Per.REPETITION, sizes)] if len(sizes) == len(rows) else []


def _of_arm(arm: str, rows: Sequence[tuple[Round, float]]) -> list[Metric]:
    def per_repetition(quantity: Quantity, value: Callable[[Request], float]) -> Metric:
        samples = tuple(median(value(one) for one in row.requests if one.added_s == 0) for row, _ in rows)
        return metric_of(quantity, arm, Per.REPETITION, samples)

    latencies = tuple(request.latency_s for row, _ in rows for request in row.requests)
    return [
        per_repetition(TTFT, lambda request: request.ttft_s),
        per_repetition(DECODE, lambda request: request.decode_tok_s),
        metric_of(AGGREGATE, arm, Per.REPETITION, tuple(_tokens(row) / time_s for row, time_s in rows)),
        metric_of(LATENCY, arm, Per.REQUEST, latencies),
        p95_latency(arm, latencies),
        # A request that fails or answers short ends the benchmark, so a report holds none.
        metric_of(ERROR_RATE, arm, Per.REPETITION, tuple(0.0 for _ in rows)),
        _power(arm, [row.power_w for row, _ in rows]),
        missing_of(QUALITY, arm, MissingReason.NOT_MEASURED, "no task suite ran; token_agreement compares the greedy tokens"),
        metric_of(CACHE_USAGE, arm, Per.REPETITION, tuple(row.cache_usage_percent for row, _ in rows)),
        *_kept(arm, [row for row, _ in rows]),
        *_joining(arm, [row for row, _ in rows]),
    ]


def _vram(device: str) -> Metric:
    if device == "CPU":
        return missing_of(VRAM, "", MissingReason.NOT_APPLICABLE, "runs on CPU; memory_bytes holds the process")
    return missing_of(VRAM, "", MissingReason.NOT_MEASURED, f"no reading of {device} memory was taken")


def _power(arm: str, readings: Sequence[float | Missing]) -> Metric:
    watts = tuple(reading for reading in readings if not isinstance(reading, Missing))
    absent = next((reading for reading in readings if isinstance(reading, Missing)), None)
    if absent is not None:
        return Metric(name=POWER.name, unit=POWER.unit, direction=POWER.direction, per=Per.REPETITION, arm=arm, missing=absent)
    return metric_of(POWER, arm, Per.REPETITION, watts)


def _tokens(row: Round) -> int:
    return sum(len(request.tokens) for request in row.requests)


def _agreement(baseline: Round, candidate: Round) -> float:
    """Give the share of the baseline's tokens that the candidate repeats before it first differs."""
    pairs = zip(baseline.requests, candidate.requests, strict=True)
    same = sum(_same_start(one.tokens, other.tokens) for one, other in pairs)
    return same / _tokens(baseline)


def _same_start(one: Sequence[int], other: Sequence[int]) -> int:
    return next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))
