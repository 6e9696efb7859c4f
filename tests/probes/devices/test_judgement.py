"""What a request comes to, for every way a trial can end and every effect it can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from probes.child import Outcome
from probes.devices.capabilities import CHECKED, KV_PRECISION, Effect, Request, default_trial, precise_trial, requests
from probes.devices.dump import Dump
from probes.devices.judgement import Proofs, judge
from probes.devices.properties import Check
from probes.devices.trial import Observation, Trial, Tried
from probes.evidence import Capability, CapabilityState

TOKENS = tuple(range(16))
OTHER = (*TOKENS[:-2], 98, 99)
EFFECTIVE, INERT, ACCEPTED = CapabilityState.EFFECTIVE, CapabilityState.INERT, CapabilityState.ACCEPTED
REFUSED, FAILED, SKIPPED = CapabilityState.REFUSED, CapabilityState.FAILED, CapabilityState.SKIPPED
ASKED = requests("CPU", {KV_PRECISION: Check(candidates=tuple(CHECKED[KV_PRECISION]))})


def request(name: str, requested: str) -> Request:
    return next(one for one in ASKED if one.name == name and one.requested.startswith(requested))


def observed(
    *answers: tuple[int, ...],
    live: Mapping[str, str] | None = None,
    title: str = "LLM with Paged Attention",
    devices: tuple[str, ...] = ("CPU",),
    **fields: Any,
) -> Observation:
    """See an engine that reports `live` values; without any it says nothing about itself."""
    tokens = answers or (TOKENS,)
    dump = Dump(title=title, properties=dict(live or {}), devices=dict.fromkeys(devices, "name"), scheduler={})
    plain: dict[str, Any] = {
        "dump": dump,
        "tokens": tokens,
        "log_likelihoods": tuple(-float(sum(one)) for one in tokens),
        "steps_to_first": (1,) * len(tokens),
        "bytes_per_token": 13680,
    }
    return Observation(**plain | fields)


def tried(observation: Observation | None, outcome: Outcome = Outcome.OK, words: str = "", *, loaded: bool = True) -> Tried:
    return Tried(outcome=outcome, observation=observation, loaded=loaded, words=words, seconds=5.0, peak_rss_bytes=1)


DEFAULT = observed(TOKENS, TOKENS, live={KV_PRECISION: "u8"})


def judged(asked: Request, seen: Observation | Tried | None, **changes: Any) -> Capability:
    """Judge a request beside a default engine that repeats itself; `None` is a trial that was not reached."""
    results = {default_trial("CPU"): tried(DEFAULT)} | changes.pop("others", {})
    if seen is not None and asked.trial not in results:
        results[asked.trial] = seen if isinstance(seen, Tried) else tried(seen)
    plain: dict[str, Any] = {"requests": ASKED, "tried": results, "refused": {}, "skipped": "no time", "lost": {}}
    return judge(asked, Proofs(**plain | changes))


U4 = request(KV_PRECISION, "u4")


# How a trial can end


def test_a_value_that_the_check_refuses_is_refused_with_its_words() -> None:
    found = judged(request(KV_PRECISION, "i8"), None, refused={KV_PRECISION: {"i8": "Wrong value i8"}})
    assert (found.state, found.words, found.seconds) == (REFUSED, "at the property check: Wrong value i8", None)


def test_a_number_is_refused_by_the_check_as_well() -> None:
    asked = request("DYNAMIC_QUANTIZATION_GROUP_SIZE", "128")
    found = judged(asked, None, refused={asked.name: {"128": "no such property"}})
    assert found.state is REFUSED


@pytest.mark.parametrize(("loaded", "stage"), [(False, "compilation"), (True, "generation")])
def test_a_value_that_raises_is_refused_and_says_when(loaded: bool, stage: str) -> None:
    words = "Exception from src/core.cpp:117:\nexpect kvcache type f32, current: u3 , u3"
    found = judged(request(KV_PRECISION, "u3"), tried(None, Outcome.RAISED, words, loaded=loaded))
    assert (found.state, found.seconds) == (REFUSED, 5.0)
    assert found.words == f"at {stage}: expect kvcache type f32, current: u3 , u3"


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY])
def test_a_child_that_did_not_answer_is_a_failure_and_no_refusal(outcome: Outcome) -> None:
    found = judged(U4, tried(None, outcome, "SIGSEGV"))
    assert (found.state, found.words) == (FAILED, f"the engine {outcome}: SIGSEGV")


def test_without_default_settings_nothing_is_proven_not_even_a_refusal_at_compilation() -> None:
    broken = {default_trial("CPU"): tried(None, Outcome.OUT_OF_MEMORY, "no room")}
    found = judged(U4, tried(None, Outcome.RAISED, "cannot open file"), others=broken)
    assert (found.state, found.words) == (FAILED, "not tried: with default settings the engine out of memory: no room")


def test_what_there_was_no_time_for_is_skipped_and_says_why() -> None:
    found = judged(U4, None)
    assert (found.state, found.words, found.effect) == (SKIPPED, "skipped: no time", "")


def test_a_run_on_another_device_fails_whatever_it_showed() -> None:
    asked = next(one for one in requests("GPU", {}) if one.requested == "f16" and one.name == KV_PRECISION)
    results = {default_trial("GPU"): tried(observed(TOKENS, TOKENS, devices=("GPU.0",)))}
    seen = tried(observed(live={KV_PRECISION: "f16"}))
    found = judge(asked, Proofs(requests=ASKED, tried={**results, asked.trial: seen}, refused={}, lost={}))
    assert (found.state, found.words) == (FAILED, "asked for GPU, and CPU executes")


def test_a_refusal_by_a_device_that_is_gone_is_none() -> None:
    found = judged(U4, tried(None, Outcome.RAISED, "lost"), lost={U4.trial: "the engine raised: CL_DEVICE_NOT_AVAILABLE"})
    assert found.state is FAILED
    assert found.words.endswith("with default settings the engine raised: CL_DEVICE_NOT_AVAILABLE")


# Bytes and answers


def test_other_bytes_are_an_effect() -> None:
    found = judged(request(KV_PRECISION, "f16"), observed(live={KV_PRECISION: "f16"}, bytes_per_token=23040))
    assert found.state is EFFECTIVE
    assert found.effect == "23040 bytes of KV cache per token against 13680 (the default); " + (
        "the same answer, from the same probabilities"
    )
    assert found.words == "the engine reports KV_CACHE_PRECISION f16"


def test_other_tokens_are_an_effect_and_the_first_difference_is_named() -> None:
    found = judged(U4, observed(OTHER))
    assert (found.state, found.effect.rpartition("; ")[2]) == (EFFECTIVE, "the answer differs from token 15 on")


def test_other_probabilities_of_the_same_tokens_are_an_effect() -> None:
    found = judged(U4, observed(log_likelihoods=(-120.5,)))
    assert (found.state, found.effect.rpartition("; ")[2]) == (EFFECTIVE, "the same answer, from other probabilities")


def test_agreement_is_counted_and_held_against_a_cache_that_loses_nothing() -> None:
    others = {
        default_trial("CPU"): tried(observed(*[TOKENS] * 6)),
        precise_trial("CPU"): tried(observed(TOKENS, OTHER, OTHER, bytes_per_token=46080)),
    }
    found = judged(U4, observed(TOKENS, TOKENS, OTHER), others=others)
    assert found.effect.endswith("; 2 of 3 answers the same; 2 of 3 are those of an f32 cache")


def test_answers_in_plain_words_are_held_against_a_cache_that_loses_nothing() -> None:
    precise = observed(TOKENS, bytes_per_token=46080).model_copy(update={"told": ((1, 2), (3, 4), (5, 6))})
    others = {default_trial("CPU"): tried(observed(*[TOKENS] * 6)), precise_trial("CPU"): tried(precise)}
    seen = observed(TOKENS).model_copy(update={"told": ((1, 2), (3, 9), (0, 6))})
    found = judged(U4, seen, others=others)
    told = "1 of 1 are those of an f32 cache, and 1 of 3 answers to questions in plain words (2 tokens each)"
    assert found.effect.endswith(f"; {told}")


def test_an_engine_that_does_not_repeat_itself_proves_nothing_by_its_answers() -> None:
    others = {default_trial("CPU"): tried(observed(TOKENS, OTHER))}
    found = judged(U4, observed(OTHER), others=others)
    assert found.state is ACCEPTED
    assert "does not repeat its own answers" in found.effect
    assert judged(U4, observed(OTHER, bytes_per_token=1), others=others).state is EFFECTIVE


def test_a_value_that_the_engine_drops_is_inert() -> None:
    found = judged(request(KV_PRECISION, "f16"), observed(live={KV_PRECISION: "u8"}))
    assert (found.state, found.words) == (INERT, "the engine reports KV_CACHE_PRECISION u8")


def test_the_default_itself_is_held_against_the_widest_other_value() -> None:
    sizes = {"f16": 23040, "f32": 46080}
    others = {request(KV_PRECISION, name).trial: tried(observed(bytes_per_token=size)) for name, size in sizes.items()}
    found = judged(
        request(KV_PRECISION, "u8"),
        observed(live={KV_PRECISION: "u8"}),
        others={default_trial("CPU"): tried(DEFAULT), **others},
    )
    assert found.state is EFFECTIVE
    assert found.effect.startswith("is the default: 13680 bytes of KV cache per token against 46080 (KV_CACHE_PRECISION f32)")


def test_the_default_with_nothing_to_hold_it_against_is_only_accepted() -> None:
    found = judged(request(KV_PRECISION, "u8"), observed(live={KV_PRECISION: "u8"}))
    assert (found.state, found.effect) == (ACCEPTED, "is the default: 13680 bytes of KV cache per token")


def test_an_algorithm_is_held_against_the_precision_it_is_asked_for_with() -> None:
    turbo = request("KEY_CACHE_QUANT_ALG and VALUE_CACHE_QUANT_ALG", "TURBO")
    assert turbo.against == U4.trial
    others = {default_trial("CPU"): tried(DEFAULT), U4.trial: tried(observed(OTHER, bytes_per_token=15840))}
    found = judged(turbo, observed(OTHER, bytes_per_token=15840), others=others)
    assert (found.state, found.effect.partition(";")[0]) == (
        INERT,
        "15840 bytes of KV cache per token against 15840 (KV_CACHE_PRECISION u4)",
    )


def test_nothing_to_hold_a_setting_against_is_told_with_the_reason() -> None:
    turbo = request("KEY_CACHE_QUANT_ALG and VALUE_CACHE_QUANT_ALG", "TURBO")
    broken = {default_trial("CPU"): tried(DEFAULT), U4.trial: tried(None, Outcome.CRASHED, "SIGSEGV")}
    found = judged(turbo, observed(OTHER), others=broken)
    assert (found.state, "SIGSEGV" in found.effect) == (ACCEPTED, True)
    assert "no time" in judged(turbo, observed(OTHER)).effect


def test_a_mode_that_may_be_the_default_s_own_is_not_called_inert_once_another_mode_has_an_effect() -> None:
    by_channel, by_token = (request("KEY_CACHE_QUANT_MODE", mode) for mode in ("BY_CHANNEL", "BY_TOKEN"))
    assert judged(by_channel, observed()).state is INERT
    others = {default_trial("CPU"): tried(DEFAULT), by_token.trial: tried(observed(bytes_per_token=12960))}
    found = judged(by_channel, observed(), others=others)
    assert (found.state, "as the default, which BY_TOKEN changes" in found.effect) == (ACCEPTED, True)


def test_a_hint_that_the_engine_already_follows_is_accepted() -> None:
    hint = request("INFERENCE_PRECISION_HINT", "f16")
    others = {default_trial("CPU"): tried(observed(TOKENS, TOKENS, live={hint.name: "f16"}))}
    assert judged(hint, observed(live={hint.name: "f16"}), others=others).state is ACCEPTED
    assert judged(hint, observed(live={hint.name: "f32"})).state is INERT


def test_sparse_attention_is_held_against_the_same_prompt_in_the_same_steps() -> None:
    sparse = [one for one in ASKED if one.name == "use_sparse_attention" and one.effect is Effect.ANSWERS]
    assert len(sparse) == 6
    for asked in sparse:
        left_out = {name for name, _ in asked.trial.scheduler} - {name for name, _ in asked.against.scheduler}
        assert all("sparse" in name for name in left_out)
        assert asked.trial.prompt_tokens == asked.against.prompt_tokens > 2600
        others = {default_trial("CPU"): tried(DEFAULT), asked.against: tried(observed())}
        assert judged(asked, observed(), others=others).state is INERT
        found = judged(asked, observed(OTHER), others=others)
        assert (found.state, found.effect) == (EFFECTIVE, "the answer differs from token 15 on")


# Steps, pools and eviction


@pytest.mark.parametrize(
    ("requested", "steps", "state"),
    [
        ("true", (4, 1), EFFECTIVE),
        ("true", (4, 4), INERT),
        ("true", (1, 1), ACCEPTED),
        ("false", (4, 4), EFFECTIVE),
        ("false", (4, 1), INERT),
    ],
)
def test_reuse_shows_in_steps(requested: str, steps: tuple[int, int], state: CapabilityState) -> None:
    found = judged(request("enable_prefix_caching", requested), observed(TOKENS, TOKENS, steps_to_first=steps))
    assert found.state is state
    assert f"took {steps[0]} steps to its first token, and {steps[1]} when repeated; same answer" in found.effect


def test_an_answer_that_reuse_changes_is_told() -> None:
    found = judged(request("enable_prefix_caching", "true"), observed(TOKENS, OTHER, steps_to_first=(4, 1)))
    assert found.effect.endswith("; another answer")


@pytest.mark.parametrize(("steps", "state"), [((1, 1), INERT), ((1, 5), INERT), ((1, 17), EFFECTIVE)])
def test_a_bound_of_one_sequence_makes_the_second_wait(steps: tuple[int, int], state: CapabilityState) -> None:
    found = judged(request("max_num_seqs", "1"), observed(TOKENS, OTHER, steps_to_first=steps))
    assert found.state is state


@pytest.mark.parametrize(("steps", "state"), [((1,) * 8, INERT), ((1,) * 7 + (2,), EFFECTIVE)])
def test_split_fuse_shows_in_the_steps_of_first_tokens(steps: tuple[int, ...], state: CapabilityState) -> None:
    default = tried(observed(*[TOKENS] * 16, steps_to_first=(1,) * 16))
    off = observed(*[TOKENS] * 8, steps_to_first=steps)
    found = judged(request("dynamic_split_fuse", "false"), off, others={default_trial("CPU"): default})
    assert found.state is state
    on = request("dynamic_split_fuse", "true")
    assert judged(on, None, others={default_trial("CPU"): default, on.against: tried(off)}).state is state


@pytest.mark.parametrize(
    ("name", "pool", "state"),
    [
        ("cache_size", (100, 100), EFFECTIVE),
        ("cache_size", (100, 200), INERT),
        ("cache_size", (0, 0), INERT),
        ("cache_size and num_kv_blocks", (100, 200), EFFECTIVE),
        ("cache_size and num_kv_blocks", (100, 100), INERT),
    ],
)
def test_a_pool_is_fixed_or_grows(name: str, pool: tuple[int, int], state: CapabilityState) -> None:
    found = judged(request(name, ""), observed(pool_bytes=pool))
    assert (found.state, found.effect) == (
        state,
        f"the pool had {pool[0]} bytes after the first step and {pool[1]} after the last",
    )


@pytest.mark.parametrize(("tokens", "state"), [(192, EFFECTIVE), (256, INERT), (0, INERT)])
def test_eviction_shows_in_what_the_cache_holds_at_the_end(tokens: int, state: CapabilityState) -> None:
    found = judged(request("use_cache_eviction", "start 32"), observed(held_bytes=tokens * 13680))
    assert (found.state, f"held {tokens} tokens of 239" in found.effect) == (state, True)


# What the engine says about itself, files, and what only time would show


@pytest.mark.parametrize(
    ("requested", "title", "state"),
    [
        ("SDPA", "Stateful LLM model", EFFECTIVE),
        ("SDPA", "LLM with Paged Attention", INERT),
        ("PA", "LLM with Paged Attention", EFFECTIVE),
        ("PA, the default", "Stateful LLM model", INERT),
    ],
)
def test_the_attention_path_is_the_one_the_engine_names(requested: str, title: str, state: CapabilityState) -> None:
    assert judged(request("ATTENTION_BACKEND", requested), observed(title=title)).state is state


def test_a_silent_engine_leaves_its_attention_path_open() -> None:
    assert judged(request("ATTENTION_BACKEND", "PA"), observed(dump=None)).state is ACCEPTED


def test_a_fallback_is_told_in_the_words_of_the_warning() -> None:
    seen = observed(title="Stateful LLM model", warnings=("Falling back to SDPA backend.",))
    found = judged(request("ATTENTION_BACKEND", "PA, the default"), seen)
    assert (found.state, found.words) == (INERT, "the engine warns: Falling back to SDPA backend.")
    assert found.documented


@pytest.mark.parametrize(("files", "state"), [((1, 1, 0), EFFECTIVE), ((1, 1, 1), INERT), ((0, 0, 0), INERT)])
def test_a_compiled_model_counts_only_when_it_is_loaded_again(files: tuple[int, ...], state: CapabilityState) -> None:
    found = judged(request("CACHE_DIR", ""), observed(files=files))
    assert (found.state, found.technique) == (state, None)


def test_what_shows_in_time_alone_is_accepted_unless_the_engine_drops_it() -> None:
    streams = request("NUM_STREAMS", "2")
    others = {default_trial("CPU"): tried(observed(TOKENS, TOKENS, live={"NUM_STREAMS": "1"}))}
    assert judged(streams, observed(live={"NUM_STREAMS": "2"}), others=others).state is ACCEPTED
    assert judged(streams, observed(live={"NUM_STREAMS": "1"}), others=others).state is INERT


def test_a_combination_that_runs_is_accepted_beside_what_a_document_says() -> None:
    found = judged(request("max_num_seqs", "128"), observed())
    assert (found.state, bool(found.documented)) == (ACCEPTED, True)


# What is asked


def test_no_two_requests_have_the_same_name_and_value() -> None:
    assert len({(one.name, one.requested) for one in ASKED}) == len(ASKED)


def test_every_effect_is_asked_for() -> None:
    assert {one.effect for one in ASKED} == set(Effect)


def test_a_trial_is_never_held_against_itself_unless_it_shows_its_effect_alone() -> None:
    alone = {Effect.REUSE, Effect.FIXED_POOL}
    assert {one.effect for one in ASKED if one.trial == one.against} <= alone


def test_a_quick_run_asks_few_and_nothing_long() -> None:
    trials: set[Trial] = {trial for one in ASKED if one.quick for trial in (one.trial, one.against)}
    assert 4 <= len(trials) <= 8
    assert all(trial.prompt_tokens <= 200 for trial in trials)
