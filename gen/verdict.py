"""The rule of comparison: which of two sets of samples is better, and when nobody can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gen.spread import FEWEST_FOR_P95, Spread, percentile, spread
from gen.words import Verdict
from probes.evidence import Direction, Metric, Per
from probes.fleet import Gates

MIN_SAMPLES = 6  # of five samples not even the whole range bounds the median at 95 %: 1 - 2/2^5 = 0.9375
MOST_SAMPLES = 1000
ACROSS_THE_GATE = "the medians' intervals reach across the gate"
# Shares and counts of what must not happen: held to an amount, because nothing divides by the zero that they should be.
_FAILURES = ("error_rate", "oom_rate", "stalled_streams", "device_resets")


class Scale(StrEnum):
    """Whether a gate is a share of the value or an amount in its own unit."""

    RELATIVE = "relative"
    ABSOLUTE = "absolute"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """How far a metric may move before it counts: 0.05 is 5 % on a relative scale."""

    scale: Scale
    width: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome for one metric and what it rests on.

    `low` and `high` are the smallest and the largest ratio candidate/baseline that the intervals of the
    medians allow (differences on an absolute scale). `more_runs` estimates how many further samples a
    side would settle an inconclusive outcome; None when no affordable number would, or none is needed.
    """

    metric: str
    unit: str
    verdict: Verdict
    gate: Gate
    baseline: Spread | None = None
    candidate: Spread | None = None
    low: float | None = None
    high: float | None = None
    more_runs: int | None = None
    reason: str = ""


def tail(metric: Metric) -> float | None:
    """Give the bad end that is worth a name: p95 of times, p5 of rates; None from fewer than 20 samples."""
    if len(metric.samples) < FEWEST_FOR_P95:
        return None
    return percentile(metric.samples, 0.05 if metric.direction is Direction.HIGHER else 0.95)


def gate_for(metric: Metric, gates: Gates) -> Gate:
    """Choose the gate of the inventory's policies that a metric is held to."""
    if metric.name.endswith(_FAILURES):
        return Gate(scale=Scale.ABSOLUTE, width=gates.error_rate)
    if "quality" in metric.name:
        return Gate(scale=Scale.ABSOLUTE, width=gates.quality_points / (100 if metric.unit == "share" else 1))
    percent = gates.throughput_percent if metric.direction is Direction.HIGHER else gates.latency_percent
    return Gate(scale=Scale.RELATIVE, width=percent / 100)


def compare(baseline: Metric | None, candidate: Metric | None, gates: Gates, *, exact: bool = False) -> Comparison:
    """Hold a candidate against a baseline on one metric.

    Better or worse only if even the most cautious ratio of the two medians clears the gate, same only
    if every ratio stays inside it, else inconclusive. The relative gate is symmetric, from 1/(1+g) to
    1+g, so that swapping the sides swaps better and worse. `exact` says that repetitions are known to
    give the same value each time, so that any number of them bounds the median.

    Raises:
        ValueError: neither side is given.
    """
    named = candidate or baseline
    if named is None:
        raise ValueError("at least one of two metrics")
    gate = gate_for(named, gates)

    def outcome(verdict: Verdict, reason: str, more_runs: int | None = None) -> Comparison:
        return Comparison(metric=named.name, unit=named.unit, verdict=verdict, gate=gate, reason=reason, more_runs=more_runs)

    if baseline is None or candidate is None:
        return outcome(Verdict.NOT_MEASURED, f"the {'baseline' if baseline is None else 'candidate'} has no such metric")
    for side, metric in (("baseline", baseline), ("candidate", candidate)):
        if metric.missing is not None:
            detail = f": {metric.missing.detail}" if metric.missing.detail else ""
            return outcome(Verdict.NOT_MEASURED, f"{side} {metric.missing.missing}{detail}")
    if reason := _mismatch(baseline, candidate):
        return outcome(Verdict.NOT_COMPARABLE, reason)
    one, two = spread(baseline.samples), spread(candidate.samples)
    if not (exact or (one.bounds_median and two.bounds_median)):
        return outcome(Verdict.INCONCLUSIVE, f"fewer than {MIN_SAMPLES} samples a side", MIN_SAMPLES - min(one.n, two.n))
    if gate.scale is Scale.RELATIVE and min(one.low, two.low) <= 0:
        return outcome(Verdict.NOT_COMPARABLE, "a ratio needs values above zero")
    return _judge(named, gate, one, two)


def overall(comparisons: Sequence[Comparison]) -> Verdict:
    """Sum up metrics that all have to hold: one worse is worse; better needs one better and none in doubt."""
    verdicts = {comparison.verdict for comparison in comparisons}
    for verdict in (Verdict.NOT_COMPARABLE, Verdict.WORSE, Verdict.INCONCLUSIVE, Verdict.NOT_MEASURED, Verdict.BETTER):
        if verdict in verdicts:
            return verdict
    return Verdict.SAME if verdicts else Verdict.NOT_MEASURED


def _judge(metric: Metric, gate: Gate, one: Spread, two: Spread) -> Comparison:
    if gate.scale is Scale.RELATIVE:
        grow = 1 + gate.width
        low, high = two.low / one.high, two.high / one.low
        below, above = two.high * grow < one.low, two.low > one.high * grow
        inside = two.high <= one.low * grow and one.high <= two.low * grow
    else:
        low, high = two.low - one.high, two.high - one.low
        below, above = high < -gate.width, low > gate.width
        inside = -gate.width <= low and high <= gate.width
    more, reason = None, ""
    if inside:
        verdict = Verdict.SAME
    elif metric.direction is Direction.NEUTRAL:
        verdict, reason = Verdict.INCONCLUSIVE, "neither way counts as better"
    elif below or above:
        verdict = Verdict.BETTER if below is (metric.direction is Direction.LOWER) else Verdict.WORSE
    else:
        verdict, reason = Verdict.INCONCLUSIVE, ACROSS_THE_GATE
        more = _more_runs(gate, one, two)
    return Comparison(
        metric=metric.name,
        unit=metric.unit,
        verdict=verdict,
        gate=gate,
        baseline=one,
        candidate=two,
        low=low,
        high=high,
        more_runs=more,
        reason=reason,
    )


def _mismatch(baseline: Metric, candidate: Metric) -> str:
    """Name what makes two metrics different things."""
    if (baseline.name, _unit(baseline)) != (candidate.name, _unit(candidate)):
        return f"{baseline.name} in {baseline.unit} is not {candidate.name} in {candidate.unit}"
    if baseline.direction is not candidate.direction:
        return "the two sides disagree on which way is better"
    if Per.REQUEST in {baseline.per, candidate.per}:
        return "requests of one run share the machine's mood; repetitions are compared"
    return ""


def _unit(metric: Metric) -> str:
    """Name the unit of a metric; earlier contract runs spell bytes out."""
    return "B" if metric.unit == "bytes" else metric.unit


def _more_runs(gate: Gate, one: Spread, two: Spread) -> int | None:
    """Estimate further samples a side: intervals shrink with the square root of their number."""
    if gate.scale is Scale.RELATIVE:
        centre, edge = math.log(two.median / one.median), math.log1p(gate.width)
        low, high = math.log(two.low / one.high), math.log(two.high / one.low)
    else:
        centre, edge = two.median - one.median, gate.width
        low, high = two.low - one.high, two.high - one.low
    reach, room = max(high - centre, centre - low), abs(abs(centre) - edge)
    if reach <= 0 or room <= 0:
        return None
    n = min(one.n, two.n)
    needed = n * (reach / room) ** 2
    return max(math.ceil(needed) - n, 1) if needed <= MOST_SAMPLES else None
