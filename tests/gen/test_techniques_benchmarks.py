"""Each rule decides by one candidate of a benchmark; the others are told, and noise in them moves no record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gen.assess import assess
from gen.assessment import Assessment
from gen.benchmarks import BENCHMARKS, TOLD
from gen.changes import compare
from gen.knowledge import load_knowledge
from gen.words import Decision, State
from probes.evidence import Arm, Direction, Load, Metric, Missing, MissingReason, Per, Run, RunKind, Scalar, Technique
from tests.gen.ledger import NOVEMBER, ledger
from tests.gen.measured import CPU, GENAI, LOCAL, STEADY, endpoint, everything
from tests.gen.specimens import run

Arms = Mapping[str, tuple[float, dict[str, Scalar]]]


def bench(
    subject: str, metric: str, arms: Arms, *, minute: int = 30, samples: Sequence[float] = STEADY, quick: bool = False
) -> Run:
    """A run whose first arm is the baseline; each arm's samples are those given times its factor."""
    lower = metric.endswith("_s") and not metric.endswith("tok_s")

    def of(name: str, factor: float, which: str, unit: str) -> Metric:
        way = Direction.LOWER if lower and which == metric else Direction.HIGHER
        values = tuple(factor * value for value in samples)
        return Metric(name=which, unit=unit, direction=way, per=Per.REPETITION, arm=name, samples=values)

    load = Load(
        schedule="one at a time", concurrency=1, requests=7, warmup_requests=1, prompt_tokens=(32,), max_tokens=8,
        prompt_set_sha256="ab" * 32, quick=quick,
    )  # fmt: skip
    return run(
        RunKind.MICRO,
        subject,
        minute=minute,
        id=f"{subject}-{minute}",
        runtime=GENAI,
        device=CPU,
        load=load,
        arms=tuple(
            Arm(name=name, role="candidate" if number else "baseline", settings=settings)
            for number, (name, (_, settings)) in enumerate(arms.items())
        ),
        metrics=tuple(of(name, factor, metric, "s" if lower else "tok/s") for name, (factor, _) in arms.items()),
    )


def rows(*runs: Run) -> dict[Technique, Assessment]:
    return {row.technique: row for row in assess(ledger(local_runs=(*everything(), *runs)), LOCAL, NOVEMBER)}


def weights(shipped: float, int8: float = 1.0, **fields: Any) -> Run:
    arms = {
        "f16": (1.0, {"weights": "f16", "as_shipped": False}),
        "int8": (int8, {"weights": "int8", "as_shipped": False}),
        "u4, as shipped": (shipped, {"weights": "u4", "as_shipped": True}),
    }
    return bench("quantization", "decode_tok_s", arms, **fields)  # type: ignore[arg-type]


def sizes(two: float, four: float, eight: float, **fields: Any) -> Run:
    factors = {1: 1.0, 2: two, 8: eight, 4: four}
    arms = {f"{size} at once": (factor, {"concurrency": size}) for size, factor in factors.items()}
    return bench("continuous-batching", "aggregate_tok_s", arms, **fields)  # type: ignore[arg-type]


def lookup(factor: float, text: str = "repetitive", **fields: Any) -> Run:
    settings: dict[str, Scalar] = {"num_assistant_tokens": 3, "text": text}
    arms: Arms = {"plain": (1.0, {"text": text}), "prompt lookup, k=3": (factor, settings)}
    return bench(f"drafts-{text}", "decode_tok_s", arms, **fields)


def test_weights_are_decided_by_those_that_are_served() -> None:
    row = rows(weights(0.8, int8=2.0))[Technique.QUANTIZATION]
    assert row.decision is Decision.INVESTIGATE
    assert "decodes slower with its weights than in full precision" in row.decision_text
    assert any("Int8 against f16: decode_tok_s better" in why for why in row.why)
    assert any("U4, as shipped against f16: decode_tok_s worse" in why for why in row.why)


def test_weights_that_are_no_slower_are_kept_for_the_memory_they_save() -> None:
    faster, same = rows(weights(1.5))[Technique.QUANTIZATION], rows(weights(1.0))[Technique.QUANTIZATION]
    assert faster.decision is same.decision is Decision.KEEP
    assert faster.key() == same.key()


@pytest.mark.parametrize(("two", "eight"), [(0.5, 3.0), (3.0, 0.5)])
def test_batching_is_decided_by_four_at_once(two: float, eight: float) -> None:
    row = rows(sizes(two, 2.0, eight))[Technique.CONTINUOUS_BATCHING]
    assert (row.state, row.decision) == (State.ENABLED, Decision.KEEP)
    assert row.key() == rows(sizes(1.0, 2.0, 1.0))[Technique.CONTINUOUS_BATCHING].key()
    assert any("8 at once against 1 at once" in why for why in row.why)


def test_a_quick_or_noisy_run_never_displaces_a_settled_verdict() -> None:
    settled = sizes(1.5, 2.0, 3.0)
    before = rows(settled)[Technique.CONTINUOUS_BATCHING]
    quick = sizes(0.5, 0.5, 0.5, minute=40, quick=True)
    noisy = sizes(1.0, 1.0, 1.0, minute=50, samples=(0.2, 5.0, 1.0, 0.3, 4.0, 2.0, 1.5))
    after = rows(settled, quick, noisy)[Technique.CONTINUOUS_BATCHING]
    assert after.key() == before.key()
    assert [fact.text for fact in after.all_facts()] == [fact.text for fact in before.all_facts()]


def test_an_arm_that_was_skipped_takes_no_verdict_away() -> None:
    settled = sizes(1.5, 2.0, 3.0)
    later = sizes(1.5, 2.0, 3.0, minute=45)
    reason = Missing(missing=MissingReason.SKIPPED, detail="budget")
    cut = tuple(m.model_copy(update={"samples": (), "missing": reason}) if m.arm == "4 at once" else m for m in later.metrics)
    skipped = later.model_copy(update={"metrics": cut})
    assert rows(settled, skipped)[Technique.CONTINUOUS_BATCHING].key() == rows(settled)[Technique.CONTINUOUS_BATCHING].key()


def test_prompt_lookup_that_pays_says_nothing_of_eagle_3() -> None:
    before, after = rows()[Technique.SPECULATIVE_DECODING], rows(lookup(2.0))[Technique.SPECULATIVE_DECODING]
    assert (after.decision, after.next_step) == (before.decision, before.next_step)
    assert any(why.startswith("CPU, drafts on repetitive text: Prompt lookup, k=3 against plain: ") for why in after.why)
    assert "drafts-repetitive-30" in after.evidence


def test_each_kind_of_text_is_told_apart_and_a_second_run_moves_no_key() -> None:
    first = rows(lookup(2.0), lookup(0.5, "random", minute=31))
    second = rows(lookup(2.0), lookup(0.5, "random", minute=31), lookup(0.9, minute=50), lookup(1.2, "random", minute=51))
    assert first[Technique.SPECULATIVE_DECODING].key() == second[Technique.SPECULATIVE_DECODING].key()
    ids = {fact.id for fact in first[Technique.SPECULATIVE_DECODING].facts}
    assert {"CPU/drafts-repetitive/prompt lookup, k=3", "CPU/drafts-random/prompt lookup, k=3"} <= ids


def test_a_second_run_of_everything_on_a_noisy_machine_drafts_no_record() -> None:
    def once(factor: float, minute: int) -> tuple[Run, ...]:
        cache: Arms = {"f16": (1.0, {"KV_CACHE_PRECISION": "f16"}), "u8": (factor, {"KV_CACHE_PRECISION": "u8"})}
        fuse: Arms = {"off": (1.0, {"dynamic_split_fuse": False}), "on": (factor, {"dynamic_split_fuse": True})}
        sparse: Arms = {"dense attention": (1.0, {}), "XATTENTION": (factor, {})}
        return (
            weights(1.0 + factor / 2, minute=minute),
            bench("kv-cache", "aggregate_tok_s", cache, minute=minute),
            bench("split-fuse", "worst_itl_s", fuse, minute=minute),
            bench("sparse-attention-2640", "ttft_s", sparse, minute=minute),
            lookup(factor, minute=minute),
        )

    first, second = rows(*once(1.1, 30)), rows(*once(1.1, 30), *once(0.7, 45))
    assert {t: row.key() for t, row in first.items()} == {t: row.key() for t, row in second.items()}


def test_sparse_attention_that_is_on_is_decided_by_its_longest_prompts() -> None:
    on = endpoint({"use_sparse_attention": True}, id="sparse-endpoint", minute=15)
    arms: Arms = {"dense attention": (1.0, {}), "XATTENTION": (0.5, {})}
    short: Arms = {"dense attention": (1.0, {}), "XATTENTION": (2.0, {})}
    long = bench("sparse-attention-2640", "ttft_s", arms)
    row = rows(on, bench("sparse-attention-700", "ttft_s", short), long)[Technique.FLASH_ATTENTION]
    assert row.decision is Decision.KEEP
    assert "measured on long prompts: better" in row.cells[0].summary


def test_what_decides_nothing_has_no_place_in_a_contract() -> None:
    runs = (*everything(), bench("split-fuse", "worst_itl_s", {"off": (1.0, {}), "on": (0.5, {})}, minute=55))
    checkout = ledger(local_runs=runs)
    row = next(row for row in assess(checkout, LOCAL, NOVEMBER) if row.technique is Technique.CONTINUOUS_BATCHING)
    (draft,) = compare(checkout, [row], NOVEMBER)
    table = draft.text.partition("## Measurement")[2].partition("\n## ")[0]
    assert "split-fuse-55" in draft.text
    assert "split-fuse-55" not in table


def test_every_subject_that_decides_is_the_one_of_its_technique() -> None:
    entries = load_knowledge().techniques
    for one in BENCHMARKS:
        if one.technique is not None and one.subject not in TOLD:
            assert entries[one.technique].subject == one.subject
            assert entries[one.technique].pays_in == (one.metric,)
