"""What a machine measured overrules its declarations, speaks for itself and its release, and noise moves no key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from gen.assess import assess, scopes
from gen.words import Decision, State
from probes.evidence import (
    Arm,
    Capability,
    CapabilityState,
    Device,
    Direction,
    LocalScope,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    Per,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Technique,
    Validity,
)
from tests.gen.ledger import ledger
from tests.gen.measured import (
    CPU,
    DECLARED,
    EFFECTIVE,
    GENAI,
    LOCAL,
    STEADY,
    batching,
    cell,
    devices,
    endpoint,
    everything,
    fleet,
    keys,
    local,
    prefix,
)
from tests.gen.specimens import START, run


def test_a_machine_that_was_measured_keeps_what_pays_and_says_how_it_knows() -> None:
    rows = local(*everything())
    expected = {
        Technique.QUANTIZATION: (State.ENABLED, Decision.KEEP),
        Technique.PREFIX_CACHING: (State.ENABLED, Decision.KEEP),
        Technique.DISAGGREGATION: (State.UNSUPPORTED, Decision.DO_NOT_DEPLOY),
        Technique.FLASH_ATTENTION: (State.ENABLED, Decision.NO_CHANGE),
        Technique.CONTINUOUS_BATCHING: (State.ENABLED, Decision.KEEP),
        Technique.KV_CACHE: (State.ENABLED, Decision.KEEP),
        Technique.SPECULATIVE_DECODING: (State.DISABLED, Decision.BENCHMARK_FIRST),
    }
    assert {technique: (row.state, row.decision) for technique, row in rows.items()} == expected
    measured = cell(rows, Technique.PREFIX_CACHING)
    fact = next(fact for fact in measured.facts if fact.provenance is ProvenanceKind.MEASURED)
    assert fact.value == "better"
    assert "n = 7" in fact.text
    assert "ratio 0.20 to 0.20" in fact.text
    assert fact.ref.target in rows[Technique.PREFIX_CACHING].evidence
    assert "Q8_0 weights and u8 KV cache" in rows[Technique.QUANTIZATION].state_text
    assert "u8 KV cache, effective on this device" in cell(rows, Technique.KV_CACHE).summary
    assert "nothing to split" in rows[Technique.DISAGGREGATION].decision_text
    assert "EAGLE-3" in rows[Technique.SPECULATIVE_DECODING].next_step


def test_a_machine_speaks_for_itself_and_not_for_the_fleet() -> None:
    runs = everything()
    assert keys(fleet(*runs)) == keys(fleet())
    told = " ".join(row.decision_text + " ".join(row.why) + row.next_step for row in local(*runs).values())
    for word in ("#2244", "Jellyfin", "Paperclip", "B580", "hangs", "Alerts"):
        assert word not in told


def test_the_fleet_is_first_and_the_machine_measured_last_comes_next() -> None:
    older = prefix(0.2, scope=LocalScope(fingerprint="0" * 12), id="older", minute=0)
    assert scopes(ledger(local_runs=(older, *everything()))) == ("fleet", LOCAL, f"local-{'0' * 12}")


def test_a_second_run_with_other_numbers_moves_no_key() -> None:
    again = (
        prefix(0.23, samples=[v * 1.3 for v in STEADY], minute=50),
        batching(2.1, samples=[v * 0.8 for v in STEADY], minute=55),
        devices(EFFECTIVE, minute=45, words="other words at other times"),
        endpoint(DECLARED, minute=58, id="second-endpoint", model=ModelFacts(id="SmolLM2-135M-Instruct", quantization="Q8_0")),
    )
    first, second = local(*everything()), local(*everything(), *again)
    assert keys(first) == keys(second)
    assert first[Technique.PREFIX_CACHING].evidence != second[Technique.PREFIX_CACHING].evidence


def test_a_quick_run_asks_less_and_takes_nothing_away() -> None:
    quick = (
        devices({"u8": CapabilityState.EFFECTIVE}, minute=45),
        prefix(0.5, samples=STEADY[:3], minute=50),
    )
    assert keys(local(*everything())) == keys(local(*everything(), *quick))


def capability(name: str, requested: str, technique: Technique | None, state: CapabilityState) -> Capability:
    return Capability(name=name, requested=requested, technique=technique, state=state)


def asked(*capabilities: Capability, minute: int = 0) -> Run:
    return run(RunKind.DEVICES, "cpu", minute=minute, runtime=GENAI, device=CPU, capabilities=capabilities)


def test_what_there_was_no_time_for_says_nothing_and_takes_nothing_away() -> None:
    skipped = dict.fromkeys((*EFFECTIVE, "f16"), CapabilityState.SKIPPED)
    assert keys(local(*everything())) == keys(local(*everything(), devices(skipped, minute=45)))
    rows = local(devices(skipped), endpoint(DECLARED))
    assert not any("skipped" in fact.value for row in rows.values() for fact in row.facts)
    assert rows[Technique.KV_CACHE].decision is Decision.BENCHMARK_FIRST


def test_only_the_setting_of_the_same_name_speaks_for_the_served_precision() -> None:
    other = capability("KEY_CACHE_PRECISION", "u8", Technique.KV_CACHE, CapabilityState.REFUSED)
    rows = local(*everything(), asked(other, minute=45))
    assert rows[Technique.KV_CACHE].decision is Decision.KEEP


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ((CapabilityState.INERT, CapabilityState.EFFECTIVE), "XATTENTION changes answers to long prompts on this device"),
        ((CapabilityState.INERT, CapabilityState.ACCEPTED), "XATTENTION changes nothing on this device"),
        ((CapabilityState.REFUSED,), "XATTENTION is refused by this device"),
        ((CapabilityState.FAILED,), "no sparse attention is declared"),
    ],
)
def test_sparse_attention_is_told_by_what_it_did(states: tuple[CapabilityState, ...], told: str) -> None:
    tried = (
        capability("use_sparse_attention", f"XATTENTION, way {number}", Technique.FLASH_ATTENTION, state)
        for number, state in enumerate(states)
    )
    rows = local(*everything(), asked(*tried, minute=45))
    assert told in cell(rows, Technique.FLASH_ATTENTION).summary
    assert rows[Technique.FLASH_ATTENTION].decision is Decision.NO_CHANGE


def test_many_values_of_a_setting_are_one_reason_and_as_many_facts() -> None:
    row = local(*everything())[Technique.KV_CACHE]
    assert "CPU: KV_CACHE_PRECISION was effective for u4 and u8; refused for bf16." in row.why
    assert {fact.id: fact.value for fact in row.facts}["cpu/KV_CACHE_PRECISION/bf16"] == "refused"


def test_bounds_of_a_batch_that_were_tried_are_facts_of_batching() -> None:
    tried = capability("dynamic_split_fuse", "false", Technique.CONTINUOUS_BATCHING, CapabilityState.EFFECTIVE)
    nothing = capability("CACHE_DIR", "a folder", None, CapabilityState.INERT)
    row = local(*everything(), asked(tried, nothing, minute=45))[Technique.CONTINUOUS_BATCHING]
    assert "CPU: dynamic_split_fuse was effective for false." in row.why
    assert row.decision is Decision.KEEP


def test_a_busy_machine_settles_nothing_and_takes_nothing_away() -> None:
    busy = batching(2.5, samples=[0.2, 1.0, 4.0, 0.5, 2.0, 0.3, 3.0], minute=50)
    assert local(endpoint(DECLARED), busy)[Technique.CONTINUOUS_BATCHING].decision is Decision.KEEP
    assert "inconclusive" in str(keys(local(endpoint(DECLARED), busy)))
    assert keys(local(*everything())) == keys(local(*everything(), busy))


def test_the_answer_to_one_request_may_change_with_a_later_run() -> None:
    rows = local(*everything(), devices({"u4": CapabilityState.REFUSED}, minute=45))
    fact = next(f for f in rows[Technique.KV_CACHE].facts if f.id == "cpu/KV_CACHE_PRECISION/u4")
    assert fact.value == "refused"


@pytest.mark.parametrize(
    ("factor", "samples", "decision", "word"),
    [
        (0.3, STEADY, Decision.KEEP, "sooner than a cold one"),
        (1.6, STEADY, Decision.INVESTIGATE, "does not pay"),
        (1.0, STEADY, Decision.NO_CHANGE, "no sooner than a cold one"),
        (0.9, STEADY[:4], Decision.KEEP, "is not settled"),
    ],
)
def test_the_measured_effect_of_prefix_caching_decides(
    factor: float, samples: Sequence[float], decision: Decision, word: str
) -> None:
    rows = local(endpoint(DECLARED), prefix(factor, samples=samples))
    assert rows[Technique.PREFIX_CACHING].decision is decision
    assert word in cell(rows, Technique.PREFIX_CACHING).summary


@pytest.mark.parametrize(("factor", "decision"), [(2.0, Decision.KEEP), (0.7, Decision.INVESTIGATE), (1.0, Decision.NO_CHANGE)])
def test_the_measured_effect_of_batching_decides(factor: float, decision: Decision) -> None:
    assert local(endpoint(DECLARED), batching(factor))[Technique.CONTINUOUS_BATCHING].decision is decision


def test_a_gain_with_errors_is_no_gain() -> None:
    rows = local(endpoint(DECLARED), prefix(0.2, worse="error_rate"))
    assert rows[Technique.PREFIX_CACHING].decision is Decision.INVESTIGATE
    fact = next(f for f in cell(rows, Technique.PREFIX_CACHING).facts if f.provenance is ProvenanceKind.MEASURED)
    assert fact.value == "worse"
    assert "error_rate worse" in fact.text


def test_what_was_not_measured_is_measured_first() -> None:
    rows = local(endpoint(DECLARED))
    for technique in (Technique.PREFIX_CACHING, Technique.CONTINUOUS_BATCHING, Technique.KV_CACHE):
        assert rows[technique].decision is Decision.BENCHMARK_FIRST
        assert rows[technique].next_step


def test_an_invalid_run_decides_nothing() -> None:
    invalid = prefix(5.0, validity=Validity(valid=False, reasons=("host busy",)), minute=50)
    assert keys(local(*everything())) == keys(local(*everything(), invalid))


def test_a_measurement_of_another_release_is_history() -> None:
    old = prefix(5.0, runtime=Runtime(name="openvino-genai", version="2026.3.0.0"), minute=5)
    assert local(endpoint(DECLARED), old)[Technique.PREFIX_CACHING].decision is Decision.BENCHMARK_FIRST
    build = prefix(0.2, runtime=Runtime(name="openvino-genai", version="2026.4.1"))
    assert local(endpoint(DECLARED), build)[Technique.PREFIX_CACHING].decision is Decision.KEEP


def test_what_was_found_later_is_not_known_earlier() -> None:
    before = assess(ledger(local_runs=everything()), LOCAL, START.date() - timedelta(days=1))
    assert all(not row.evidence for row in before)


@pytest.mark.parametrize("state", [CapabilityState.REFUSED, CapabilityState.FAILED])
def test_a_kv_precision_that_the_device_refuses_is_investigated(state: CapabilityState) -> None:
    rows = local(devices({"u8": state}), endpoint(DECLARED))
    assert rows[Technique.KV_CACHE].decision is Decision.INVESTIGATE


def test_a_setting_seen_to_differ_is_a_drift_on_its_cell() -> None:
    rows = local(devices(EFFECTIVE), endpoint(DECLARED | {"enable_prefix_caching": False}), prefix(0.2), batching(2.0))
    row = rows[Technique.PREFIX_CACHING]
    assert row.decision is Decision.INVESTIGATE
    found = cell(rows, Technique.PREFIX_CACHING)
    assert found.state is State.DISABLED
    assert found.drift == ("enable_prefix_caching: declared true, observed false",)
    assert "declared true, observed false" in row.decision_text
    assert {fact.id for fact in found.facts} >= {
        "embedded/enable_prefix_caching",
        "embedded/enable_prefix_caching/declared",
    }
    others = {technique for technique, row in rows.items() if row.decision is Decision.INVESTIGATE}
    assert others == {Technique.PREFIX_CACHING, Technique.QUANTIZATION}  # nothing tells the weights here


def test_settings_written_another_way_do_not_drift() -> None:
    rows = local(endpoint(DECLARED | {"KV_CACHE_PRECISION": "U8", "cache_size": 1.0}))
    assert not any(cell.drift for row in rows.values() for cell in row.cells)


def test_a_machine_with_nothing_but_devices_still_has_seven_rows() -> None:
    rows = local(devices(EFFECTIVE))
    assert set(rows) == set(Technique)
    assert rows[Technique.KV_CACHE].decision is Decision.KEEP
    assert rows[Technique.PREFIX_CACHING].decision is Decision.BENCHMARK_FIRST


def test_a_failed_benchmark_is_not_measured_with_its_reason() -> None:
    failed = Missing(missing=MissingReason.FAILED, detail="out of memory")
    arms = (Arm(name="off", role="baseline"), Arm(name="on", role="candidate"))
    metrics = tuple(
        Metric(name="ttft_s", unit="s", direction=Direction.LOWER, per=Per.REPETITION, arm=arm.name, missing=failed)
        for arm in arms
    )
    broken = run(RunKind.MICRO, "prefix-caching", minute=20, runtime=GENAI, arms=arms, metrics=metrics)
    rows = local(endpoint(DECLARED), broken)
    assert rows[Technique.PREFIX_CACHING].decision is Decision.BENCHMARK_FIRST
    assert any("out of memory" in fact.text for fact in cell(rows, Technique.PREFIX_CACHING).facts)


def test_prices_of_a_gpu_are_not_charged_to_a_cpu() -> None:
    rows = local(endpoint(DECLARED))
    prices = {conflict.id for conflict in rows[Technique.FLASH_ATTENTION].conflicts}
    assert prices == {"openvino-genai.xattention.changes-answers"}
    gpu = local(endpoint(DECLARED, device=Device(name="GPU.0", full_name="Example card")))
    prices = {conflict.id for conflict in gpu[Technique.FLASH_ATTENTION].conflicts}
    assert prices == {"openvino.xattention.refused-on-xe2"}


def test_a_measurement_that_failed_is_told_from_one_that_nobody_made() -> None:
    broken = batching(2.0, validity=Validity(valid=False, reasons=("the benchmark raised",)))
    rows = local(endpoint(DECLARED), broken)
    assert rows[Technique.CONTINUOUS_BATCHING].decision is Decision.BENCHMARK_FIRST
    assert "its measurement failed: the benchmark raised" in cell(rows, Technique.CONTINUOUS_BATCHING).summary
    assert "not measured here" in cell(rows, Technique.PREFIX_CACHING).summary
