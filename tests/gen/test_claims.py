"""Claims beside measurements: when they agree, disagree, or speak of other conditions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gen.claims import Relation, answers, relation
from gen.corpus import read_corpus
from gen.knowledge.claim import Claim
from probes.evidence import Device, Run, Runtime
from probes.fleet import Gates
from tests.gen.ledger import NOVEMBER, knowledge
from tests.gen.specimens import ROOT, micro_run

GATES = Gates()


def claim(**changes: Any) -> Claim:
    values: dict[str, Any] = {
        "id": "claim.test",
        "technique": "automatic-prefix-caching",
        "text": "Repeated beginnings are 5 times as fast.",
        "figure": {"low": 5, "high": 5.5, "unit": "times"},
        "conditions": {"text": "none are named"},
        "answered": {"subject": "prefix-caching", "metric": "ttft_s", "candidate": {"enable_prefix_caching": True}},
        "needs": "nox -s probe -- micro",
        "source": "vllm-docs",
        "checked": NOVEMBER,
        "reading": "read",
    }
    return Claim.model_validate_json(json.dumps({**values, "checked": NOVEMBER.isoformat(), **changes}))


def stands(one: Claim, *runs: Run) -> Relation:
    return relation(answers(one, runs, GATES))


def test_an_improvement_is_told_in_times_whichever_way_the_metric_improves() -> None:
    """Medians 412 and 81 ms: 5.1 times; intervals 0.402 to 0.431 and 0.078 to 0.086 allow 4.67 to 5.53."""
    (answer,) = answers(claim(), (micro_run(),), GATES)
    assert answer.span.value == pytest.approx(0.412 / 0.081)
    assert answer.span.low == pytest.approx(0.402 / 0.086)
    assert answer.span.high == pytest.approx(0.431 / 0.078)
    assert answer.samples == 7
    (slower,) = answers(claim(answered={"subject": "prefix-caching", "metric": "decode_tok_s"}), (micro_run(),), GATES)
    assert slower.span.value == pytest.approx(60.9 / 60.8)


def test_a_claim_stands_while_its_range_meets_the_interval() -> None:
    assert stands(claim(), micro_run()) is Relation.AGREES
    assert stands(claim(figure={"low": 11, "high": 11, "unit": "times"}), micro_run()) is Relation.DISAGREES
    assert stands(claim(figure={"low": 4, "unit": "times"}), micro_run()) is Relation.AGREES


def test_what_does_better_than_it_was_said_to_is_not_called_a_disagreement() -> None:
    assert stands(claim(figure={"low": 1, "high": 2, "unit": "times"}), micro_run()) is Relation.EXCEEDS
    reads = {"subject": "prefix-caching", "metric": "ttft_s", "candidate": {"enable_prefix_caching": True}, "reads": "value"}
    promised = claim(answered=reads, figure={"low": 0.2, "high": 0.3, "unit": "times"})
    assert stands(promised, micro_run()) is Relation.EXCEEDS, "81 ms, where lower is better"
    missed = claim(answered=reads, figure={"low": 0.01, "high": 0.05, "unit": "times"})
    assert stands(missed, micro_run()) is Relation.DISAGREES


def test_a_size_that_is_another_one_is_no_better() -> None:
    shape = {"layers": 40, "kv_heads": 40, "head_size": 128, "precision": "fp16", "sequences": 32, "context_tokens": 4096}
    one = claim(answered=None, arithmetic=shape, figure={"low": 1, "high": 2, "unit": "GiB"})
    assert stands(one) is Relation.DISAGREES


@pytest.mark.parametrize(
    ("conditions", "apart"),
    [
        ({"devices": ["gpu"]}, ("device",)),
        ({"engines": ["vllm"]}, ("runtime",)),
        ({"model": "Llama-3.1-70B"}, ("model",)),
        ({"devices": ["gpu"], "engines": ["vllm"], "model": "T5"}, ("device", "runtime", "model")),
        ({"devices": ["cpu"], "engines": ["openvino-genai"], "model": "smollm2"}, ()),
    ],
)
def test_a_run_under_other_conditions_neither_proves_nor_disproves(conditions: dict[str, Any], apart: tuple[str, ...]) -> None:
    one = claim(conditions={"text": "some", **conditions}, figure={"low": 11, "high": 11, "unit": "times"})
    (answer,) = answers(one, (micro_run(),), GATES)
    assert answer.apart == apart
    assert answer.relation is (Relation.OTHER_CONDITIONS if apart else Relation.DISAGREES)


def test_a_run_of_any_runtime_speaks_to_the_claims_about_it() -> None:
    one = claim(conditions={"text": "some", "engines": ["vllm"]})
    served = micro_run().model_copy(update={"runtime": Runtime(name="vllm", version="0.11.0")})
    assert stands(one, served) is Relation.AGREES


def test_a_cache_whose_layout_is_not_known_is_not_worked_out() -> None:
    shape = {"layers": 1, "kv_heads": 1, "head_size": 1, "precision": "u3", "sequences": 1, "context_tokens": 1}
    assert stands(claim(answered=None, arithmetic=shape)) is Relation.NOT_MEASURED


def test_without_a_run_or_with_an_invalid_one_nothing_is_measured() -> None:
    assert stands(claim()) is Relation.NOT_MEASURED
    broken = micro_run().model_copy(
        update={"validity": micro_run().validity.model_copy(update={"valid": False, "reasons": ("x",)})}
    )
    assert stands(claim(), broken) is Relation.NOT_MEASURED
    assert stands(claim(answered={"subject": "kv-cache", "metric": "ttft_s"}), micro_run()) is Relation.NOT_MEASURED


def test_each_device_speaks_for_itself() -> None:
    other = micro_run().model_copy(update={"device": Device(name="CPU", full_name="Another CPU"), "id": "other"})
    assert {answer.speaks_for for answer in answers(claim(), (micro_run(), other), GATES)} == {
        "Example CPU 3000, openvino-genai 2026.4.1.0",
        "Another CPU, openvino-genai 2026.4.1.0",
    }


def test_a_published_shape_speaks_by_arithmetic() -> None:
    """Llama-2-13B: 40 x 40 x 128 x 2 x 2 bytes are 800 KiB; 32 x 4096 tokens of them are 100 GiB, where the text says 80."""
    found = {one.id: answers(one, (), GATES) for one in knowledge().claims if one.arithmetic}
    (cache,) = found["claim.llama-2-13b-cache"]
    assert (cache.span.value, cache.relation) == (100.0, Relation.DISAGREES)
    (context,) = found["claim.70b-cache-32k"]
    assert (context.span.value, context.relation) == (10.0, Relation.DISAGREES)


def test_the_shipped_evidence_counts_eight_bits_as_less_than_half() -> None:
    """23,040 bytes of f16 against 13,680 of u8 and 15,840 of u4."""
    corpus = read_corpus(ROOT)
    found = {one.id: answers(one, corpus.runs, GATES) for one in corpus.knowledge.claims}
    assert found["claim.kv-8-bit-halves"][0].span.value == pytest.approx(23_040 / 13_680)
    assert found["claim.kv-4-bit-quarters"][0].span.value == pytest.approx(23_040 / 15_840)
    assert relation(found["claim.awq-throughput"]) is Relation.OTHER_CONDITIONS


def test_every_claim_is_a_sentence_and_stands_beside_claims_that_there_are() -> None:
    for one in knowledge().claims:
        assert one.text.endswith("."), one.id
        assert one.id.startswith("claim."), one.id
        assert set(one.beside) <= {other.id for other in knowledge().claims}, one.id


def test_both_answers_at_once_are_refused() -> None:
    shape = {"layers": 1, "kv_heads": 1, "head_size": 1, "precision": "f16", "sequences": 1, "context_tokens": 1}
    with pytest.raises(ValueError, match="and not both"):
        claim(arithmetic=shape)
