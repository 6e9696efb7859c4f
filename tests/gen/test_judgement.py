"""The whole contract: a verdict per quantity, one for all of them, and noise that is never sold as a difference."""

from __future__ import annotations

import pytest

from benchmarks.verdicts import wrong
from gen.contract import ContractMetric, standing
from gen.judgement import Judgement, judge_run, judge_runs
from gen.noise import noise_of
from gen.verdict import Scale
from gen.words import Verdict
from probes.errors import UsageError
from probes.evidence import Decoding, Direction, Metric, Per, Validity
from probes.fleet import Gates
from tests.gen.compared import FASTER, STEADY, one_side, two_sides

GATES = Gates()
SAME = ({"enable_prefix_caching": True}, {"enable_prefix_caching": True})


def verdicts(one: Judgement) -> dict[ContractMetric, Verdict]:
    return {metric: row.verdict for metric, row in one.rows.items()}


def test_a_gain_is_better_on_its_quantity_and_the_rest_is_the_same() -> None:
    found = judge_run(two_sides(), GATES)
    told = verdicts(found)
    assert told.pop(ContractMetric.TTFT) is Verdict.BETTER
    assert told.pop(ContractMetric.POWER) is Verdict.NOT_MEASURED
    assert set(told.values()) == {Verdict.SAME}
    assert found.verdict is Verdict.BETTER
    assert [str(one) for one in found.likeness.under_test] == ["enable_prefix_caching: false against true"]


def test_what_no_sensor_tells_is_told_and_decides_nothing() -> None:
    row = judge_run(two_sides(), GATES).rows[ContractMetric.POWER]
    assert row.reason == "baseline no sensor: no RAPL here"


def test_sides_that_differ_elsewhere_get_no_verdict_on_anything() -> None:
    sampled = one_side(FASTER, minute=5, decoding=Decoding(temperature=0.7, do_sample=True, ignore_eos=True))
    found = judge_runs(one_side(), sampled, GATES)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert {row.verdict for row in found.rows.values()} == {Verdict.NOT_COMPARABLE, Verdict.NOT_MEASURED}
    assert "decoding: greedy" in found.rows[ContractMetric.TTFT].reason
    assert judge_runs(one_side(), sampled, GATES, ["decoding"]).verdict is Verdict.BETTER


def test_a_gain_that_brings_back_stalled_streams_is_worse() -> None:
    found = judge_run(two_sides(candidate=FASTER | {"stalled_streams": (1.0,) * 6}), GATES)
    assert found.rows[ContractMetric.TTFT].verdict is Verdict.BETTER
    assert found.verdict is Verdict.WORSE


def test_errors_of_the_candidate_are_worse_whatever_it_gains() -> None:
    found = judge_run(two_sides(candidate=FASTER | {"error_rate": (0.05,) * 6}), GATES)
    assert (found.rows[ContractMetric.ERROR_RATE].verdict, found.verdict) == (Verdict.WORSE, Verdict.WORSE)


def test_the_record_gets_what_the_comparison_says() -> None:
    """A drafted record must not compare what the comparison refuses to compare."""
    lengths = two_sides(candidate=FASTER | {"completion_tokens": (17.0,) * 6})
    entry = standing([lengths], GATES)[ContractMetric.TTFT]
    assert getattr(entry, "verdict", None) is Verdict.NOT_COMPARABLE
    assert getattr(standing([two_sides()], GATES)[ContractMetric.TTFT], "verdict", None) is Verdict.BETTER


def test_invalid_runs_are_refused_with_their_reason() -> None:
    died = two_sides(validity=Validity(valid=False, reasons=("candidate: run-of-errors",)))
    with pytest.raises(UsageError, match=r"is invalid \(candidate: run-of-errors\)"):
        judge_run(died, GATES)
    with pytest.raises(UsageError, match="is invalid"):
        judge_runs(one_side(), one_side(minute=5, validity=died.validity), GATES)


def test_what_cannot_be_held_against_each_other_is_a_misuse() -> None:
    with pytest.raises(UsageError, match="holds one side"):
        judge_run(one_side(), GATES)
    with pytest.raises(UsageError, match="holds 2 sides itself"):
        judge_runs(two_sides(), one_side(), GATES)
    with pytest.raises(UsageError, match="is both baseline and candidate"):
        judge_runs(one_side(), one_side(), GATES)


def test_the_same_thing_twice_gives_the_noise_and_what_it_can_tell() -> None:
    found = judge_run(two_sides(STEADY, STEADY, settings=SAME), GATES)
    assert found.likeness.same_thing
    assert found.verdict is Verdict.SAME
    noise = found.noise[ContractMetric.TTFT]
    assert noise.scale is Scale.RELATIVE
    assert noise.share == pytest.approx((0.421 - 0.402) / 2 / 0.4105)


def test_a_change_of_the_detectable_size_is_told_and_a_smaller_one_is_not() -> None:
    noise = noise_of(judge_run(two_sides(STEADY, STEADY, settings=SAME), GATES).rows[ContractMetric.TTFT])
    assert noise is not None

    def of(factor: float) -> Verdict:
        faster = STEADY | {"ttft_s": tuple(value / factor for value in STEADY["ttft_s"])}
        return judge_run(two_sides(STEADY, faster), GATES).rows[ContractMetric.TTFT].verdict

    assert of(1 + noise.detectable * 1.01) is Verdict.BETTER
    assert of(1 + noise.detectable * 0.9) is Verdict.INCONCLUSIVE


def test_noise_wider_than_the_gate_says_how_many_more_repetitions_settle_it() -> None:
    loud = STEADY | {"ttft_s": (0.30, 0.55, 0.42, 0.38, 0.47, 0.35)}
    found = judge_run(two_sides(loud, loud, settings=SAME), GATES)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.more_runs == found.rows[ContractMetric.TTFT].more_runs
    assert found.more_runs is not None


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("repetitions", [6, 10])
def test_at_most_two_of_two_hundred_comparisons_of_a_thing_with_itself_find_a_difference(
    noise: float, repetitions: int
) -> None:
    assert wrong(noise, repetitions).false <= 2


def test_a_true_gain_of_a_quarter_is_found_at_two_per_cent_noise() -> None:
    assert wrong(0.02, 10).found >= 190


def test_answers_that_repeat_word_for_word_have_no_noise() -> None:
    """Two passes of the same answers are no two samples, and yet all there is to know of these tasks."""
    twice = {arm: STEADY | {"task_quality": (share, share)} for arm, share in (("baseline", 0.62), ("candidate", 0.5))}
    open_run = two_sides(*twice.values())
    assert judge_run(open_run, GATES).rows[ContractMetric.QUALITY].verdict is Verdict.INCONCLUSIVE
    agreed = tuple(
        Metric(name="quality_repeat_agreement", unit="share", direction=Direction.HIGHER, per=Per.RUN, arm=arm, samples=(1.0,))
        for arm in twice
    )
    exact = two_sides(metrics=(*open_run.metrics, *agreed))
    assert judge_run(exact, GATES).rows[ContractMetric.QUALITY].verdict is Verdict.WORSE
    assert getattr(standing([exact], GATES)[ContractMetric.QUALITY], "verdict", None) is Verdict.WORSE


def test_scores_of_different_tasks_are_not_compared() -> None:
    sides = {"baseline": {"tasks_sha256": "aa"}, "candidate": {"tasks_sha256": "bb"}}
    found = judge_run(two_sides(native={"quality": sides}), GATES)
    assert found.rows[ContractMetric.QUALITY].verdict is Verdict.NOT_COMPARABLE
    assert found.rows[ContractMetric.TTFT].verdict is Verdict.BETTER
