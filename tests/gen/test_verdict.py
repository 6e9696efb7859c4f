"""The laws of comparison: swapping sides swaps better and worse, and no change never reads as better."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.spread import spread
from gen.verdict import MIN_SAMPLES, Comparison, Gate, Scale, compare, gate_for, overall, tail
from gen.words import Verdict
from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.fleet import Gates

GATES = Gates()
OPPOSITE = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
positive = st.lists(st.floats(1e-6, 1e6, allow_nan=False), min_size=MIN_SAMPLES, max_size=30)
few = st.lists(st.floats(1e-6, 1e6, allow_nan=False), min_size=1, max_size=30)
directions = st.sampled_from([Direction.LOWER, Direction.HIGHER])


def times(samples: Sequence[float], **changes: object) -> Metric:
    values = {"name": "ttft_s", "unit": "s", "direction": Direction.LOWER, "per": Per.REPETITION, "samples": tuple(samples)}
    return Metric.model_validate(values | changes)


def rates(samples: Sequence[float], **changes: object) -> Metric:
    return times(samples, name="aggregate_tok_s", unit="tok/s", direction=Direction.HIGHER, **changes)


def verdict(baseline: Metric, candidate: Metric) -> Verdict:
    return compare(baseline, candidate, GATES).verdict


@given(few, few, directions)
def test_swapping_the_sides_swaps_better_and_worse(one: list[float], two: list[float], direction: Direction) -> None:
    left, right = times(one, direction=direction), times(two, direction=direction)
    there, back = compare(left, right, GATES), compare(right, left, GATES)
    assert back.verdict is OPPOSITE.get(there.verdict, there.verdict)
    assert back.more_runs == there.more_runs


@given(few, directions)
def test_the_same_samples_are_never_better_or_worse(samples: list[float], direction: Direction) -> None:
    metric = times(samples, direction=direction)
    assert verdict(metric, metric) in {Verdict.SAME, Verdict.INCONCLUSIVE}


@given(positive, positive)
def test_which_way_is_better_only_turns_the_word(one: list[float], two: list[float]) -> None:
    lower, higher = verdict(times(one), times(two)), verdict(rates(one), rates(two))
    assert higher is OPPOSITE.get(lower, lower)


@given(positive, st.floats(1.2, 100.0))
def test_better_means_that_every_pair_of_medians_in_the_intervals_clears_the_gate(one: list[float], factor: float) -> None:
    found = compare(times([value * factor for value in one]), times(one), GATES)
    baseline, candidate = found.baseline, found.candidate
    assert baseline is not None
    assert candidate is not None
    cautious = candidate.high * (1 + found.gate.width) < baseline.low
    assert (found.verdict is Verdict.BETTER) == cautious


@given(few, few)
def test_a_verdict_never_rests_on_fewer_than_six_samples_a_side(one: list[float], two: list[float]) -> None:
    found = compare(times(one), times(two), GATES)
    if found.verdict in {Verdict.BETTER, Verdict.WORSE, Verdict.SAME}:
        assert min(len(one), len(two)) >= MIN_SAMPLES
    elif min(len(one), len(two)) < MIN_SAMPLES:
        assert found.more_runs == MIN_SAMPLES - min(len(one), len(two))


@given(positive, positive)
def test_the_ratios_enclose_that_of_the_sample_medians(one: list[float], two: list[float]) -> None:
    found = compare(times(one), times(two), GATES)
    assert found.low is not None
    assert found.high is not None
    ratio = statistics.median(two) / statistics.median(one)
    assert found.low <= ratio * (1 + 1e-9)
    assert found.high >= ratio * (1 - 1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), directions)
def test_a_tail_is_a_value_that_was_seen_and_is_not_named_from_fewer_than_twenty(
    samples: list[float], direction: Direction
) -> None:
    found = tail(times(samples, direction=direction))
    assert (found is None) == (len(samples) < 20)
    assert found is None or found in samples


def test_the_tail_of_a_rate_is_its_low_end() -> None:
    values = [float(n) for n in range(1, 21)]
    assert tail(times(values)) == 19
    assert tail(rates(values)) == 1


def test_noise_wider_than_the_gate_is_not_sold_as_no_difference() -> None:
    baseline = rates((49.1, 51.0, 52.0, 53.0, 54.0, 55.0))
    candidate = rates((50.2, 52.1, 53.1, 54.1, 55.1, 56.1))
    found = compare(baseline, candidate, GATES)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "the medians' intervals reach across the gate"
    assert found.more_runs is not None


def test_more_samples_of_the_estimated_number_settle_what_was_open() -> None:
    def samples(centre: float, n: int) -> list[float]:
        normal = statistics.NormalDist(centre, centre * 0.06)
        return [normal.inv_cdf((k + 0.5) / n) for k in range(n)]

    found = compare(times(samples(1.0, 9)), times(samples(0.9, 9)), GATES)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.more_runs is not None
    enough = 9 + 2 * found.more_runs
    assert verdict(times(samples(1.0, enough)), times(samples(0.9, enough))) is Verdict.BETTER


def test_clear_differences_are_told_apart_and_small_ones_are_the_same() -> None:
    steady = [1.0, 1.001, 0.999, 1.0, 1.002, 0.998]
    assert verdict(times(steady), times([v * 0.5 for v in steady])) is Verdict.BETTER
    assert verdict(times(steady), times([v * 1.5 for v in steady])) is Verdict.WORSE
    assert verdict(times(steady), times([v * 1.01 for v in steady])) is Verdict.SAME
    assert verdict(rates(steady), rates([v * 1.5 for v in steady])) is Verdict.BETTER


def test_requests_of_one_run_are_not_repetitions() -> None:
    requests = times([1.0] * 40, per=Per.REQUEST)
    found = compare(requests, requests, GATES)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "requests of one run" in found.reason


def test_what_is_missing_is_not_measured_with_its_reason() -> None:
    absent = Missing(missing=MissingReason.NO_SENSOR, detail="no RAPL here")
    power = Metric(name="ttft_s", unit="s", direction=Direction.LOWER, per=Per.REPETITION, missing=absent)
    found = compare(times([1.0] * 6), power, GATES)
    assert (found.verdict, found.reason) == (Verdict.NOT_MEASURED, "candidate no sensor: no RAPL here")
    assert compare(None, times([1.0]), GATES).reason == "the baseline has no such metric"
    with pytest.raises(ValueError, match="at least one of two"):
        compare(None, None, GATES)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (times([1.0] * 6, unit="ms"), "ttft_s in s is not ttft_s in ms"),
        (times([1.0] * 6, name="latency_s"), "ttft_s in s is not latency_s in s"),
        (times([1.0] * 6, direction=Direction.HIGHER), "the two sides disagree on which way is better"),
        (times([0.0] * 6), "a ratio needs values above zero"),
    ],
)
def test_different_things_are_not_compared(other: Metric, reason: str) -> None:
    found = compare(times([1.0] * 6), other, GATES)
    assert (found.verdict, found.reason) == (Verdict.NOT_COMPARABLE, reason)


def test_one_error_more_is_never_the_same() -> None:
    def errors(samples: Sequence[float]) -> Metric:
        return times(samples, name="error_rate", unit="share")

    clean = errors([0.0] * 9)
    assert verdict(clean, clean) is Verdict.SAME
    assert verdict(clean, errors([0.1] * 9)) is Verdict.WORSE
    assert verdict(errors([0.1] * 9), clean) is Verdict.BETTER
    assert verdict(clean, errors([0.0] * 7 + [0.1] * 2)) is Verdict.INCONCLUSIVE


def test_gates_come_from_the_policies_by_what_a_metric_is() -> None:
    gates = Gates(latency_percent=10.0, throughput_percent=3.0, error_rate=0.01, quality_points=2.0)
    relative, absolute = Scale.RELATIVE, Scale.ABSOLUTE
    assert gate_for(times([1.0]), gates) == Gate(scale=relative, width=0.1)
    assert gate_for(rates([1.0]), gates) == Gate(scale=relative, width=0.03)
    assert gate_for(times([1.0], name="oom_rate"), gates) == Gate(scale=absolute, width=0.01)
    quality = times([1.0], name="task_quality", unit="share", direction=Direction.HIGHER)
    assert gate_for(quality, gates) == Gate(scale=absolute, width=0.02)


def test_a_metric_without_a_direction_is_the_same_or_undecided() -> None:
    usage = times([50.0] * 6, name="cache_usage_percent", unit="%", direction=Direction.NEUTRAL)
    assert verdict(usage, usage) is Verdict.SAME
    assert verdict(usage, usage.model_copy(update={"samples": (80.0,) * 6})) is Verdict.INCONCLUSIVE


def test_one_metric_that_got_worse_outweighs_all_that_got_better() -> None:
    def outcome(word: Verdict) -> Comparison:
        return Comparison(metric="m", unit="s", verdict=word, gate=Gate(scale=Scale.RELATIVE, width=0.05))

    assert overall([outcome(Verdict.BETTER), outcome(Verdict.WORSE)]) is Verdict.WORSE
    assert overall([outcome(Verdict.BETTER), outcome(Verdict.INCONCLUSIVE)]) is Verdict.INCONCLUSIVE
    assert overall([outcome(Verdict.BETTER), outcome(Verdict.SAME)]) is Verdict.BETTER
    assert overall([outcome(Verdict.SAME)]) is Verdict.SAME
    assert overall([]) is Verdict.NOT_MEASURED


@pytest.mark.parametrize("n", range(1, 40))
def test_the_interval_of_a_median_holds_its_promise(n: int) -> None:
    """1 - 2 P(Bin(n, 1/2) <= k) is the exact coverage of the (k+1)-th and (n-k)-th of n values."""
    found = spread([float(value) for value in range(n)])
    assert found.bounds_median == (n >= MIN_SAMPLES)
    if found.bounds_median:
        k = int(found.low)

        def coverage(rank: int) -> float:
            return 1 - sum(math.comb(n, i) for i in range(rank + 1)) / float(2 ** (n - 1))

        assert coverage(k) >= 0.95 > coverage(k + 1)
        assert found.high == n - 1 - k
