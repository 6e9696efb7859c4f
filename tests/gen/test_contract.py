"""The eight metrics of a record: the newest valid run speaks, arms are compared, and nothing is blank."""

from __future__ import annotations

from typing import Any

import pytest

from gen.contract import QUANTITIES, Compared, ContractMetric, Measured, standing
from gen.words import Verdict
from probes.archive import seal
from probes.evidence import Arm, Direction, Metric, Missing, MissingReason, Per, Run, RunKind, Validity
from probes.fleet import Gates
from tests.gen.specimens import endpoint_run, micro_run, run

GATES = Gates()
ARMS = (Arm(name="off", role="baseline"), Arm(name="on", role="candidate"))


def metric(name: str, *samples: float, per: Per = Per.REPETITION, arm: str = "", unit: str = "s") -> Metric:
    return Metric(name=name, unit=unit, direction=Direction.LOWER, per=per, arm=arm, samples=samples)


def absent(name: str, reason: MissingReason) -> Metric:
    lower = Direction.LOWER
    return Metric(name=name, unit="B", direction=lower, per=Per.RUN, missing=Missing(missing=reason, detail="why"))


def measured(*metrics: Metric, minute: int = 0, **fields: Any) -> Run:
    return run(RunKind.MICRO, "x", minute=minute, metrics=metrics, **fields)


def test_every_metric_has_a_value_or_a_reason_whatever_there_is() -> None:
    for runs in ([], [endpoint_run()], [micro_run(), endpoint_run()]):
        contract = standing(runs, GATES)
        assert list(contract) == list(ContractMetric)
        assert all(entry.detail for entry in contract.values() if isinstance(entry, Missing) and "not" in entry.missing.value)
    assert set(QUANTITIES) == set(ContractMetric)


def test_the_newest_valid_run_speaks() -> None:
    old, new = measured(metric("ttft_s", 1.0)), measured(metric("ttft_s", 2.0), minute=5)
    invalid = measured(metric("ttft_s", 3.0), minute=9, validity=Validity(valid=False, reasons=("host busy",)))
    entry = standing([new, invalid, old], GATES)[ContractMetric.TTFT]
    assert isinstance(entry, Measured)
    assert (entry.value, entry.run) == (2.0, new.id)


def test_an_older_value_is_better_than_a_newer_reason() -> None:
    old, new = measured(metric("power_w", 30.0, unit="W")), measured(absent("power_w", MissingReason.NO_SENSOR), minute=5)
    assert isinstance(standing([old, new], GATES)[ContractMetric.POWER], Measured)
    entry = standing([new], GATES)[ContractMetric.POWER]
    assert entry == Missing(missing=MissingReason.NO_SENSOR, detail="why")


def test_memory_stands_in_where_there_is_no_vram() -> None:
    on_cpu = measured(absent("vram_bytes", MissingReason.NOT_APPLICABLE), metric("memory_bytes", 2**30, unit="B"))
    entry = standing([on_cpu], GATES)[ContractMetric.MEMORY]
    assert isinstance(entry, Measured)
    assert entry.value == pytest.approx(2**30, rel=1e-5)


def test_arms_are_compared_by_the_rule_of_comparison() -> None:
    entry = standing([micro_run()], GATES)[ContractMetric.TTFT]
    assert isinstance(entry, Compared)
    assert (entry.verdict, entry.baseline.arm, entry.candidate.arm) == (Verdict.BETTER, "cold", "warm")
    assert entry.low is not None
    assert entry.high is not None
    assert entry.low <= entry.candidate.value / entry.baseline.value <= entry.high


def test_a_candidate_without_samples_is_no_comparison() -> None:
    half = measured(metric("ttft_s", 1.0, arm="off"), arms=ARMS)
    entry = standing([half], GATES)[ContractMetric.TTFT]
    assert isinstance(entry, Measured)
    assert entry.arm == "off"


def test_a_p95_needs_twenty_requests_and_is_one_of_them() -> None:
    few = measured(metric("latency_s", *range(1, 20), per=Per.REQUEST))
    assert standing([few], GATES)[ContractMetric.P95_LATENCY] == Missing(
        missing=MissingReason.TOO_FEW_SAMPLES, detail="19 of the 20 requests that a p95 needs"
    )
    enough = measured(metric("latency_s", *range(1, 21), per=Per.REQUEST))
    entry = standing([enough], GATES)[ContractMetric.P95_LATENCY]
    assert isinstance(entry, Measured)
    assert entry.value == 19


def test_a_p95_that_the_tool_made_itself_is_taken_as_it_is() -> None:
    entry = standing([measured(metric("p95_latency_s", 0.7, per=Per.RUN))], GATES)[ContractMetric.P95_LATENCY]
    assert isinstance(entry, Measured)
    assert entry.value == 0.7


def test_a_comparison_has_a_whole_range_or_none() -> None:
    side = Measured(value=1.0, unit="s", samples=7, run="r")
    for low, high in ((2.0, 1.0), (1.0, None)):
        with pytest.raises(ValueError, match="low not above high"):
            Compared(baseline=side, candidate=side, verdict=Verdict.SAME, low=low, high=high)


def test_the_same_runs_in_another_order_say_the_same() -> None:
    runs = [micro_run(), endpoint_run(), seal(measured(metric("ttft_s", 5.0), minute=90))]
    assert standing(runs, GATES) == standing(runs[::-1], GATES)
