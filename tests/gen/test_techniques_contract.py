"""A contract run of a service with a technique off and on decides about the technique."""

from __future__ import annotations

from typing import Any

import pytest

from gen.assess import assess
from gen.words import Decision, State
from probes.evidence import (
    Arm,
    Direction,
    FleetScope,
    Metric,
    Per,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Technique,
    Validity,
)
from tests.gen.ledger import JULY, NOVEMBER, inventory, ledger
from tests.gen.measured import (
    DECLARED,
    LOCAL,
    STEADY,
    ab,
    cell,
    endpoint,
    fleet,
    keys,
    local,
    moved,
    prefix,
)

SPECULATIVE = Technique.SPECULATIVE_DECODING


def contract(subject: str, metric: str, direction: Direction, factor: float, /, **fields: Any) -> Run:
    """A contract run; `off` and `on` are the settings of its sides."""
    off, on = fields.pop("off"), fields.pop("on")
    arms = (Arm(name="off", role="baseline", settings=off), Arm(name="on", role="candidate", settings=on))
    values: dict[str, Any] = {"kind": RunKind.CONTRACT, "arms": arms, "minute": 30}
    return ab(subject, metric, direction, factor, **(values | fields))


def drafting(factor: float, service: str = "text-8b-b580", **fields: Any) -> Run:
    ovms = Runtime(name="ovms", version="2026.2.0.1a2b3c4d")
    off, on = {"draft_models_path": ""}, {"draft_models_path": "draft"}
    values: dict[str, Any] = {"runtime": ovms, "scope": FleetScope(service=service), "off": off, "on": on}
    return contract(service, "decode_tok_s", Direction.HIGHER, factor, **(values | fields))


def caching(factor: float, **fields: Any) -> Run:
    off, on = {"enable_prefix_caching": False}, {"enable_prefix_caching": True}
    return contract("embedded", "ttft_s", Direction.LOWER, factor, **({"off": off, "on": on} | fields))


@pytest.mark.parametrize(("factor", "decision"), [(0.5, Decision.KEEP), (1.5, Decision.INVESTIGATE), (1.0, Decision.NO_CHANGE)])
def test_a_contract_run_decides_before_a_micro_benchmark(factor: float, decision: Decision) -> None:
    rows = local(endpoint(DECLARED), prefix(0.2, minute=40), caching(factor))
    found = cell(rows, Technique.PREFIX_CACHING)
    assert found.decision is decision
    fact = next(one for one in found.facts if one.provenance is ProvenanceKind.MEASURED)
    assert ": With enable_prefix_caching true against enable_prefix_caching false: ttft_s" in fact.text


def test_what_a_contract_run_has_measured_is_not_asked_for_again() -> None:
    rows = local(endpoint({**DECLARED, "enable_prefix_caching": False}), caching(0.5))
    assert rows[Technique.PREFIX_CACHING].decision is Decision.INVESTIGATE  # declared on, seen off
    off = inventory().model_copy(
        update={"embedded": inventory().embedded.model_copy(update={"settings": {**DECLARED, "enable_prefix_caching": False}})}
    )
    corpus = ledger(fleet=off, local_runs=(endpoint({**DECLARED, "enable_prefix_caching": False}), caching(0.5)))
    row = next(one for one in assess(corpus, LOCAL, NOVEMBER) if one.technique is Technique.PREFIX_CACHING)
    assert (row.decision, row.next_step) == (
        Decision.ENABLE,
        "Switch it on for Embedded SmolLM2-135M, and measure the same again: nox -s confirm.",
    )


def test_a_contract_run_with_the_technique_on_in_its_baseline_says_the_same() -> None:
    off, on = {"enable_prefix_caching": True}, {"enable_prefix_caching": False}
    turned = caching(2.0, off=off, on=on)
    assert keys(local(endpoint(DECLARED), turned)) == keys(local(endpoint(DECLARED), caching(0.5)))


@pytest.mark.parametrize(
    "fields",
    [
        {"off": {"enable_prefix_caching": False, "max_num_seqs": 1}, "on": {"enable_prefix_caching": True, "max_num_seqs": 16}},
        {"off": {"enable_prefix_caching": True}, "on": {"enable_prefix_caching": True}},
        {"off": {"max_num_seqs": 1}, "on": {"max_num_seqs": 16}},
        {"validity": Validity(valid=False, reasons=("the instrument fell behind",))},
        {"runtime": Runtime(name="openvino-genai", version="2026.3.0"), "minute": 5},
        {"samples": STEADY[:3]},
    ],
    ids=["two changes", "none", "another technique", "invalid", "another release", "too few"],
)
def test_a_contract_run_that_cannot_tell_leaves_the_decision_to_the_micro_benchmark(fields: dict[str, Any]) -> None:
    assert keys(local(endpoint(DECLARED), prefix(0.2), caching(9.0, **fields))) == keys(local(endpoint(DECLARED), prefix(0.2)))


@pytest.mark.parametrize("regression", ["stalled_streams", "device_resets", "oom_rate"])
def test_a_gain_that_brings_failures_back_is_a_regression(regression: str) -> None:
    rows = local(endpoint(DECLARED), caching(0.5, worse=regression))
    assert cell(rows, Technique.PREFIX_CACHING).decision is Decision.INVESTIGATE


def test_poorer_answers_are_a_regression_where_every_task_repeats_its_answer() -> None:
    """Two repetitions are enough then: the score has no noise."""
    fast = caching(0.5)

    def score(arm: str, name: str, *values: float) -> Metric:
        way = Direction.HIGHER
        return Metric(name=name, unit="share", direction=way, per=Per.RUN, arm=arm, samples=values)

    for poorer, decision in ((0.5, Decision.INVESTIGATE), (0.8, Decision.KEEP)):
        scored = (
            *(score(arm, "quality_repeat_agreement", 1.0, 1.0) for arm in ("off", "on")),
            score("off", "task_quality", 0.8, 0.8),
            score("on", "task_quality", poorer, poorer),
        )
        told = fast.model_copy(update={"metrics": (*fast.metrics, *scored)})
        assert cell(local(endpoint(DECLARED), told), Technique.PREFIX_CACHING).decision is decision


@pytest.mark.parametrize(
    ("factor", "decision", "word"),
    [
        (1.8, Decision.ENABLE, "where it was measured to pay"),
        (1.0, Decision.DO_NOT_DEPLOY, "it does not pay"),
        (0.6, Decision.DO_NOT_DEPLOY, "it does not pay"),
    ],
)
def test_a_measured_draft_decides_speculative_decoding_and_nothing_else(factor: float, decision: Decision, word: str) -> None:
    rows = fleet(drafting(factor))
    assert moved(rows) == {(SPECULATIVE, "row"), (SPECULATIVE, "text-8b-b580")}
    assert cell(rows, SPECULATIVE, "text-8b-b580").decision is decision
    assert rows[SPECULATIVE].decision is decision
    assert word in rows[SPECULATIVE].decision_text


def test_an_inconclusive_draft_leaves_the_benchmark_open() -> None:
    rows = fleet(drafting(1.5, samples=STEADY[:3]))
    assert rows[SPECULATIVE].decision is Decision.BENCHMARK_FIRST


def test_a_gain_still_minds_the_co_tenant() -> None:
    assert "Jellyfin" in fleet(drafting(1.8))[SPECULATIVE].decision_text


def test_a_draft_that_is_set_and_does_not_pay_is_investigated() -> None:
    seen = endpoint(
        {"draft_models_path": "draft", "draft_eagle3_mode": True},
        subject="text-8b-b580",
        scope=FleetScope(service="text-8b-b580"),
        runtime=Runtime(name="ovms", version="2026.2"),
    )
    rows = fleet(seen, drafting(0.8))
    assert cell(rows, SPECULATIVE, "text-8b-b580").state is State.ENABLED
    assert rows[SPECULATIVE].decision is Decision.INVESTIGATE


def test_evidence_of_november_is_not_known_in_july() -> None:
    corpus = ledger(runs=(drafting(1.8),))
    july = {row.technique: row.key() for row in assess(corpus, "fleet", JULY)}
    assert july == {row.technique: row.key() for row in assess(ledger(), "fleet", JULY)}
