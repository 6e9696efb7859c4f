"""What a request comes to, for every way a trial can end and every effect it can have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.child import Outcome
from probes.devices.capabilities import (
    KV_PRECISION,
    Reference,
    Request,
    default_trial,
    judge,
    precision_requests,
    prefix_requests,
    sequence_requests,
)
from probes.devices.dump import Dump
from probes.devices.trial import ANSWER_TOKENS, Observation, Tried
from probes.evidence import Capability, CapabilityState, Technique

TOKENS = tuple(range(ANSWER_TOKENS))
OTHER = (*TOKENS[:-2], 98, 99)


def observed(
    precision: str | None = "u8",
    bytes_per_token: int = 13680,
    tokens: tuple[tuple[int, ...], ...] = (TOKENS,),
    steps: tuple[int, ...] = (4,),
    devices: tuple[str, ...] = ("CPU",),
) -> Observation:
    dump = Dump(
        title="LLM with Paged Attention",
        properties={KV_PRECISION: precision or ""},
        devices=dict.fromkeys(devices, "name"),
        scheduler={"enable_prefix_caching": "true"},
    )
    return Observation(dump=dump if precision else None, bytes_per_token=bytes_per_token, tokens=tokens, steps_to_first=steps)


def tried(observation: Observation | None, outcome: Outcome = Outcome.OK, words: str = "", *, loaded: bool = True) -> Tried:
    return Tried(outcome=outcome, observation=observation, loaded=loaded, words=words, seconds=5.0, peak_rss_bytes=1)


def precision(value: str) -> Request:
    return precision_requests("CPU", [value])[0]


def prefix(value: str) -> Request:
    return next(request for request in prefix_requests("CPU") if request.requested == value)


DEFAULT = observed(tokens=(TOKENS, TOKENS), steps=(4, 4))


def judged(
    request: Request,
    result: Tried,
    *,
    default: Observation | None = DEFAULT,
    others: tuple[Reference, ...] = (),
    refusal: str | None = None,
) -> Capability:
    references = () if default is None else (Reference(name="the default", observation=default), *others)
    standing = tried(default, words="no room") if default else tried(None, Outcome.OUT_OF_MEMORY, "no room")
    return judge(
        request,
        refusal=refusal,
        tried={default_trial("CPU"): standing, request.trial: result},
        references=references,
    )


def test_a_value_that_the_check_refuses_is_refused_with_its_words() -> None:
    found = judged(precision("i8"), tried(None), refusal="Wrong value i8")
    assert (found.state, found.words) == (CapabilityState.REFUSED, "at the property check: Wrong value i8")
    assert (found.name, found.requested, found.technique) == (KV_PRECISION, "i8", Technique.KV_CACHE)
    assert found.seconds is None


@pytest.mark.parametrize(("loaded", "stage"), [(False, "compilation"), (True, "generation")])
def test_a_value_that_raises_is_refused_and_says_when(loaded: bool, stage: str) -> None:
    words = "Exception from src/core.cpp:117:\nexpect kvcache type f32, current: u3 , u3"
    found = judged(precision("u3"), tried(None, Outcome.RAISED, words, loaded=loaded))
    assert found.state is CapabilityState.REFUSED
    assert found.words == f"at {stage}: expect kvcache type f32, current: u3 , u3"
    assert found.seconds == 5.0


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY])
def test_a_child_that_did_not_answer_is_a_failure_and_no_refusal(outcome: Outcome) -> None:
    found = judged(precision("f16"), tried(None, outcome, "SIGSEGV"))
    assert (found.state, found.words) == (CapabilityState.FAILED, f"the engine {outcome}: SIGSEGV")


def test_without_default_settings_nothing_is_proven_not_even_a_refusal_at_compilation() -> None:
    found = judged(precision("u4"), tried(None, Outcome.RAISED, "cannot open file"), default=None)
    assert found.state is CapabilityState.FAILED
    assert found.words == "not tried: with default settings the engine out of memory: no room"


def test_a_run_on_another_device_fails_whatever_it_showed() -> None:
    request = precision_requests("GPU", ["f16"])[0]
    result = tried(observed("f16", 23040, devices=("CPU",)))
    found = judge(
        request,
        refusal=None,
        tried={request.trial: result, default_trial("GPU"): tried(DEFAULT)},
        references=(Reference(name="the default", observation=DEFAULT),),
    )
    assert (found.state, found.words) == (CapabilityState.FAILED, "asked for GPU, and CPU executes")


def test_other_bytes_are_an_effect() -> None:
    found = judged(precision("f16"), tried(observed("f16", 23040)))
    assert found.state is CapabilityState.EFFECTIVE
    assert (
        found.effect == f"23040 bytes of KV cache per token against 13680 (the default); the same {ANSWER_TOKENS} greedy tokens"
    )
    assert found.words == "the engine reports KV_CACHE_PRECISION f16"


def test_other_tokens_are_an_effect_and_the_first_difference_is_named() -> None:
    found = judged(precision("u4"), tried(observed("u4", tokens=(OTHER,))))
    assert found.state is CapabilityState.EFFECTIVE
    assert found.effect.endswith(f"greedy tokens differ from number {ANSWER_TOKENS - 1} on")


def test_other_tokens_prove_nothing_where_the_engine_differs_from_itself() -> None:
    restless = observed(tokens=(TOKENS, OTHER), steps=(4, 4))
    found = judged(precision("u4"), tried(observed("u4", tokens=(OTHER,))), default=restless)
    assert found.state is CapabilityState.INERT


def test_the_same_bytes_and_tokens_are_inert() -> None:
    found = judged(precision("f16"), tried(observed("u8")))
    assert found.state is CapabilityState.INERT
    assert found.words == "the engine reports KV_CACHE_PRECISION u8"


def test_the_default_itself_is_held_against_the_widest_other_precision() -> None:
    others = tuple(
        Reference(name=f"KV_CACHE_PRECISION={name}", observation=observed(name, size))
        for name, size in {"f16": 23040, "f32": 46080}.items()
    )
    found = judged(precision("u8"), tried(observed()), others=others)
    assert found.state is CapabilityState.EFFECTIVE
    assert found.effect.startswith("is the default: 13680 bytes of KV cache per token against 46080 (KV_CACHE_PRECISION=f32)")


def test_the_default_with_nothing_to_hold_it_against_is_only_accepted() -> None:
    found = judged(precision("u8"), tried(observed()))
    assert (found.state, found.effect) == (CapabilityState.ACCEPTED, "is the default: 13680 bytes of KV cache per token")


def test_an_engine_that_prints_nothing_is_judged_by_its_effects() -> None:
    silent = observed(None, tokens=(TOKENS, TOKENS), steps=(4, 4))
    found = judged(precision("f16"), tried(observed(None, 23040)), default=silent)
    assert (found.state, found.words) == (CapabilityState.EFFECTIVE, "")


@pytest.mark.parametrize(
    ("requested", "steps", "state"),
    [
        ("true", (4, 1), CapabilityState.EFFECTIVE),
        ("true", (4, 4), CapabilityState.INERT),
        ("true", (1, 1), CapabilityState.ACCEPTED),
        ("false", (4, 4), CapabilityState.EFFECTIVE),
        ("false", (4, 1), CapabilityState.INERT),
    ],
)
def test_reuse_shows_in_steps(requested: str, steps: tuple[int, int], state: CapabilityState) -> None:
    found = judged(prefix(requested), tried(observed(tokens=(TOKENS, TOKENS), steps=steps)))
    assert found.state is state
    assert f"took {steps[0]} steps to its first token, and {steps[1]} when repeated; same answer" in found.effect


def test_an_answer_that_reuse_changes_is_told() -> None:
    found = judged(prefix("true"), tried(observed(tokens=(TOKENS, OTHER), steps=(4, 1))))
    assert found.effect.endswith("; another answer")


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ((1, 1), CapabilityState.INERT),
        ((1, 5), CapabilityState.INERT),
        ((1, ANSWER_TOKENS + 1), CapabilityState.EFFECTIVE),
    ],
)
def test_a_bound_of_one_sequence_makes_the_second_wait(steps: tuple[int, int], state: CapabilityState) -> None:
    request = sequence_requests("CPU")[0]
    found = judged(request, tried(observed(tokens=(TOKENS, OTHER), steps=steps)))
    assert (found.state, found.technique) == (state, Technique.CONTINUOUS_BATCHING)


def test_off_is_proven_by_the_default_trial_which_is_not_repeated() -> None:
    assert prefix("false").trial == default_trial("CPU")
    assert prefix("true").trial != default_trial("CPU")
    assert replace(prefix("true").trial, scheduler=default_trial("CPU").scheduler) == default_trial("CPU")
