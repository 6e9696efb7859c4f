"""Whether EAGLE-3 can pay, said from prices that are known."""

from __future__ import annotations

import pytest

from probes.context import Context
from probes.drafts.capabilities import not_tried
from probes.drafts.verdict import conclusion, lines, prices
from probes.evidence import Arm, Capability, CapabilityState, Direction, Metric, Per, Run, RunKind, Scalar, Technique

PLAIN = Arm(name="plain", role="baseline")


def metric(name: str, arm: str, *samples: float) -> Metric:
    return Metric(name=name, unit="x", direction=Direction.LOWER, per=Per.REPETITION, arm=arm, samples=samples)


def measured(context: Context, *arms: tuple[int, tuple[float, ...], float], head: str = "random weights") -> Run:
    made = [
        Arm(name=f"EAGLE-3, k={k}", role="candidate", settings={"num_assistant_tokens": k, "head": head}) for k, _, _ in arms
    ]
    metrics = [
        one
        for arm, (_, needed, reached) in zip(made, arms, strict=True)
        for one in (
            metric("break_even_tokens_per_step", arm.name, *needed),
            metric("tokens_per_step", arm.name, *[reached] * len(needed)),
        )
    ]
    invalid = () if arms else ("skipped: budget: too slow",)
    return context.run(
        RunKind.MICRO, "speculative-break-even", context.clock(), arms=(PLAIN, *made), metrics=tuple(metrics), invalid=invalid
    )


def proven(context: Context, state: CapabilityState = CapabilityState.EFFECTIVE) -> Run:
    found = Capability(
        name="EAGLE-3",
        technique=Technique.SPECULATIVE_DECODING,
        requested="num_assistant_tokens=3; one request at a time",
        state=state,
        words="no port" if state is CapabilityState.REFUSED else "",
    )
    return context.run(RunKind.DEVICES, "cpu", context.clock(), capabilities=(found,))


def test_prices_are_sorted_and_know_their_limit(context: Context) -> None:
    one, three = prices(measured(context, (3, (1.8, 2.0, 1.9), 1.0), (1, (1.3, 1.2, 1.4), 1.0)))
    assert (one.arm, one.most, one.needed, one.low, one.high) == ("EAGLE-3, k=1", 2, 1.3, 1.2, 1.4)
    assert (three.most, three.needed, three.within_reach) == (4, 1.9, True)


def test_a_tree_reaches_its_depth_and_one(context: Context) -> None:
    settings: dict[str, Scalar] = {"num_assistant_tokens": 8, "tree_depth": 3}
    arm = Arm(name="EAGLE-3 tree", role="candidate", settings=settings)
    metrics = (metric("break_even_tokens_per_step", arm.name, 3.6), metric("tokens_per_step", arm.name, 1.0))
    (tree,) = prices(context.run(RunKind.MICRO, "s", context.clock(), arms=(PLAIN, arm), metrics=metrics))
    assert tree.most == 4


def test_a_price_within_reach_is_a_conditional_yes(context: Context) -> None:
    run = measured(context, (1, (1.9, 1.9), 1.0), (3, (1.9, 2.1), 1.0))
    assert conclusion(proven(context), [run]) == [
        "Can EAGLE-3 pay here for one request? Yes, if a head reaches 2.00 (1.90 to 2.10) tokens per step with EAGLE-3, k=3, "
        "of the 4 that a head which is always right would reach."
    ]
    assert "  EAGLE-3, k=1: 1.90 (1.90 to 1.90), at most 2 can be reached" in lines(proven(context), [run])


def test_prices_above_what_can_be_reached_are_a_no(context: Context) -> None:
    (word,) = conclusion(proven(context), [measured(context, (1, (2.1,), 1.0), (3, (4.5,), 1.0))])
    assert word.endswith("No: even a head that is always right would not pay at any length measured.")


@pytest.mark.parametrize(("reached", "word"), [(2.5, "Yes"), (1.5, "No"), (2.0, "Within the noise")])
def test_a_given_head_is_held_to_its_own_tokens(context: Context, reached: float, word: str) -> None:
    (said,) = conclusion(proven(context), [measured(context, (3, (1.9, 2.1), reached), head="given")])
    assert f"? {word}: with EAGLE-3, k=3 this head reaches {reached:.2f} tokens per step and needs 2.00" in said


@pytest.mark.parametrize(("reached", "word"), [(2.5, "Yes"), (1.5, "No")])
def test_a_given_draft_model_is_held_to_its_own_tokens(context: Context, reached: float, word: str) -> None:
    arm = Arm(name="draft model, k=3", role="candidate", settings={"num_assistant_tokens": 3, "draft": "given"})
    metrics = (metric("break_even_tokens_per_step", arm.name, 1.9, 2.1), metric("tokens_per_step", arm.name, reached, reached))
    run = context.run(RunKind.MICRO, "speculative-break-even", context.clock(), arms=(PLAIN, arm), metrics=metrics)
    found = Capability(
        name="draft model",
        technique=Technique.SPECULATIVE_DECODING,
        requested="num_assistant_tokens=3; one request at a time",
        state=CapabilityState.EFFECTIVE,
    )
    drafted = context.run(RunKind.DEVICES, "cpu", context.clock(), capabilities=(found,))
    assert conclusion(drafted, [run]) == [
        f"Can a draft model pay here for one request? {word}: with draft model, k=3 this draft model reaches {reached:.2f} "
        "tokens per step and needs 2.00 (1.90 to 2.10)."
    ]
    refused = found.model_copy(update={"state": CapabilityState.REFUSED, "words": "another tokenizer"})
    broken = context.run(RunKind.DEVICES, "cpu", context.clock(), capabilities=(refused,))
    assert conclusion(broken, []) == ["Can a draft model pay here? No: another tokenizer"]


def test_what_was_not_measured_is_said(context: Context) -> None:
    assert conclusion(proven(context), [measured(context)]) == [
        "Can EAGLE-3 pay here for one request? Not measured: skipped: budget: too slow."
    ]


def test_a_refusal_ends_the_matter(context: Context) -> None:
    assert conclusion(proven(context, CapabilityState.REFUSED), []) == ["Can EAGLE-3 pay here? No: no port"]
    failed = context.run(RunKind.DEVICES, "cpu", context.clock(), capabilities=(not_tried("not tried: no room"),))
    assert lines(failed, [])[-1] == "Can EAGLE-3 pay here? No: not tried: no room"
