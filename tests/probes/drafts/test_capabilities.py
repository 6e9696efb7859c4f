"""What a claim comes to, for every way an engine can answer or break."""

from __future__ import annotations

from typing import Any

import pytest

from probes.child import Outcome
from probes.devices.dump import Dump
from probes.drafts.capabilities import (
    Method,
    Plain,
    beside_claim,
    broken_chain,
    default_cache_claims,
    draft_model_claims,
    eagle_claims,
    judge,
    lookup_claims,
    not_tried,
)
from probes.drafts.trial import Reply, Tried
from probes.evidence import Capability, CapabilityState, Technique

ANSWERS = tuple((n, n + 1, n + 2) for n in range(6))
OTHER = (*ANSWERS[:4], (9, 9, 9), (8, 8, 8))
PLAIN = Plain(precision="f32", alone=ANSWERS, at_once=ANSWERS)
UNSTEADY = Plain(precision="default", alone=ANSWERS, at_once=OTHER)
ONE, CHAIN = eagle_claims(quick=True)[:2]
DEFAULT, SAMPLED = default_cache_claims()


def answered(claim: Any = CHAIN, **fields: Any) -> Reply:
    values: dict[str, Any] = {"tokens": ANSWERS, "draft_steps": 20, "drafted": 60, "accepted": 5} | fields
    return Reply(name=claim.ask.name, **values)


def tried(*replies: Reply, outcome: Outcome = Outcome.OK, words: str = "", loaded: bool = True, device: str = "CPU") -> Tried:
    dump = Dump(title="LLM", properties={}, devices={device: "name"}, scheduler={}) if outcome is Outcome.OK else None
    return Tried(outcome=outcome, loaded=loaded, replies=replies, dump=dump, words=words, seconds=3.0, peak_rss_bytes=1)


def judged(result: Tried, claim: Any = CHAIN, plain: Plain = PLAIN) -> Capability:
    return judge(claim, tried=result, device="CPU", plain=plain)


def test_accepted_drafts_and_equal_answers_are_an_effect() -> None:
    found = judged(tried(answered()))
    assert (found.name, found.technique, found.state) == ("EAGLE-3", Technique.SPECULATIVE_DECODING, CapabilityState.EFFECTIVE)
    assert found.requested == "num_assistant_tokens=3; one request at a time"
    assert found.effect == (
        "6 of 6 answers equal plain decoding (f32 KV cache); 5 of 60 drafted tokens accepted, in 20 draft steps"
    )


def test_drafts_that_are_never_right_are_only_accepted() -> None:
    assert judged(tried(answered(accepted=0))).state is CapabilityState.ACCEPTED


def test_no_drafts_are_inert_whatever_ran() -> None:
    found = judged(tried(answered(ONE, tokens=ANSWERS[:1], drafted=0, accepted=0, draft_steps=16)), ONE)
    assert (found.requested, found.state) == ("num_assistant_tokens=0", CapabilityState.INERT)
    assert found.effect.startswith("1 of 1 answers equal plain decoding")


def test_other_answers_under_an_exact_cache_break_the_promise() -> None:
    found = judged(tried(answered(tokens=OTHER)))
    assert found.state is CapabilityState.FAILED
    assert found.effect.startswith("4 of 6 answers equal plain decoding (f32 KV cache); 5 of 60")


def test_other_answers_prove_nothing_where_plain_decoding_differs_from_itself() -> None:
    for claim in (CHAIN, DEFAULT):
        found = judged(tried(answered(claim, tokens=OTHER)), claim, UNSTEADY)
        assert found.state is CapabilityState.EFFECTIVE
        assert "plain decoding itself keeps 4 of 6 when all run at once" in found.effect


def test_a_default_cache_promises_nothing() -> None:
    assert judged(tried(answered(DEFAULT, tokens=OTHER)), DEFAULT).state is CapabilityState.EFFECTIVE


def test_sampled_answers_are_not_compared() -> None:
    found = judged(tried(answered(SAMPLED, tokens=((1, 1, 1),))), SAMPLED)
    assert found.state is CapabilityState.ACCEPTED
    assert "decodes greedily whatever is asked" in found.documented


@pytest.mark.parametrize(("steps", "state"), [(1.5, CapabilityState.EFFECTIVE), (1.0, CapabilityState.ACCEPTED)])
def test_where_nothing_counts_drafts_the_steps_do(steps: float, state: CapabilityState) -> None:
    claim = lookup_claims()[0]
    assert not claim.ask.counted
    reply = answered(claim, drafted=None, accepted=None, draft_steps=None, tokens_per_step=steps)
    found = judged(tried(reply), claim)
    assert (found.name, found.state) == ("prompt lookup", state)
    assert found.effect.endswith(f"; {steps:.2f} tokens per step")


def test_a_refused_question_ends_itself_and_no_other() -> None:
    words = "Check 'x' failed at /a/b.cpp:35:\nEagle3 only supports num_assistant_tokens"
    refused = answered(ONE, tokens=(), refusal=words)
    engine = tried(refused, answered())
    assert judged(engine, ONE).words == "at generation: Eagle3 only supports num_assistant_tokens"
    assert judged(engine, ONE).state is CapabilityState.REFUSED
    assert judged(engine).state is CapabilityState.EFFECTIVE


def test_an_engine_that_is_not_built_refuses_and_one_that_breaks_fails() -> None:
    beside = beside_claim("prompt_lookup")
    refused = judged(tried(outcome=Outcome.RAISED, words="mutually exclusive", loaded=False), beside)
    assert (refused.requested, refused.state) == ("prompt_lookup", CapabilityState.REFUSED)
    assert refused.words == "at compilation: mutually exclusive"
    for outcome in (Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY):
        broken = judged(tried(outcome=outcome, words="SIGSEGV"), beside)
        assert (broken.state, broken.words) == (CapabilityState.FAILED, f"the engine {outcome}: SIGSEGV")


def test_what_was_answered_before_a_crash_counts() -> None:
    engine = tried(answered(), outcome=Outcome.CRASHED, words="SIGSEGV")
    assert judged(engine).state is CapabilityState.EFFECTIVE


def test_another_device_proves_nothing() -> None:
    found = judged(tried(answered(), device="GPU.0"))
    assert (found.state, found.words) == (CapabilityState.FAILED, "asked for CPU, and GPU.0 executes")


def test_a_document_stands_beside_what_was_seen() -> None:
    at_once = eagle_claims(quick=True)[2]
    documented = judged(tried(answered(at_once)), at_once).documented
    assert documented == "the OVMS guide of 2026.0 to 2026.3 allows one request at a time"


def test_every_question_of_an_engine_has_a_name_of_its_own() -> None:
    for claims in (eagle_claims(quick=False), default_cache_claims(), draft_model_claims(), lookup_claims()):
        assert len({claim.ask.name for claim in claims}) == len(claims)
    asked = {claim.requested for claim in eagle_claims(quick=False) if claim.method is Method.EAGLE3}
    assert {f"num_assistant_tokens={n}" for n in (0, 1, 2, 4, 5)} < asked


def test_chains_that_do_not_work_are_found() -> None:
    assert broken_chain([judged(tried(answered()))]) is None
    other = judged(tried(outcome=Outcome.RAISED, words="no", loaded=False), beside_claim("XATTENTION"))
    assert broken_chain([other]) is None
    broken = not_tried("not tried: no room")
    assert broken_chain([other, broken]) == broken
    assert broken.state is CapabilityState.FAILED
