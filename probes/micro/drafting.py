"""The arms of a benchmark of drafts: plain decoding, heads of several lengths, a draft model, the prompt itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probes.devices.prompts import token_ids
from probes.devices.questions import question_ids
from probes.drafts.capabilities import Method
from probes.drafts.pair import Pair, make_pair
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant
from probes.micro.rounds import Skipped

# What a fleet would try first comes first: the arms at the end go when the budget is short.
LENGTHS = (3, 1, 5, 2, 4)
TREE: dict[str, Scalar] = {"branching_factor": 3, "tree_depth": 3, "num_assistant_tokens": 8}
PROMPT_TOKENS = 32
ANSWER_TOKENS = 12
REPETITIONS = 9
BUDGET_S = 30.0
# Each method beside the head loads the target again, and the draft model twice.
SMALL_TARGET_BYTES = 2**30
SHARED: dict[str, Scalar] = {"num_kv_blocks": 64, "max_num_batched_tokens": 256, "enable_prefix_caching": False}


def compare_drafts(bench: Bench, *, requests: int, schedule: str, methods: bool) -> None:
    """Measure plain decoding against drafts with some requests at once; `methods` adds those beside EAGLE-3.

    A head or a draft model that the user has is the only thing measured, and on text that it may be right about.
    """
    if bench.draft is not None:
        drafting, built = _drafts(bench.draft, requests), False
    else:
        pair = make_pair(bench.ir, bench.scratch, head=bench.head)
        drafting, built = _heads(pair, requests), pair.built
    variants = [_plain(requests), *drafting]
    skipped: list[Skipped] = []
    others = _others(bench.ir, requests) if methods and built else ()
    if _bytes(bench.ir) > SMALL_TARGET_BYTES:
        reason = f"the target's weights are over {SMALL_TARGET_BYTES} bytes, and these arms load them again"
        skipped += [Skipped(arm=variant.arm, reason=reason) for variant in others]
    else:
        variants += others
    variants, left_out = bench.chosen(variants, core=2)
    skipped += left_out
    wanted = bench.rounds(usual=REPETITIONS)
    bench.compare(
        variants,
        [Repetition(measured=prompts) for prompts in _prompts(bench, wanted, requests, questions=not built)],
        scheduler=SHARED,
        warmup=Repetition(measured=tuple(token_ids(f"warm-up, request {n}", PROMPT_TOKENS) for n in range(requests))),
        max_tokens=ANSWER_TOKENS if built else 3 * ANSWER_TOKENS,
        schedule=f"{schedule}; arms alternate",
        budget_s=bench.budget_s or BUDGET_S,
        skipped=skipped,
    )


def _plain(requests: int) -> Variant:
    return Variant(arm=Arm(name="plain", role="baseline", settings={"concurrency": requests}), concurrency=requests)


def _heads(pair: Pair, requests: int) -> list[Variant]:
    head: dict[str, Scalar] = {
        "concurrency": requests,
        "head": "random weights" if pair.built else "given",
        "draft_vocab": pair.draft_vocab,
    }
    chains: list[dict[str, Scalar]] = [{"num_assistant_tokens": length} for length in LENGTHS]
    named = "EAGLE-3 random head" if pair.built else "EAGLE-3"
    return [
        Variant(
            arm=Arm(name=name, role="candidate", settings={**asked, **head}),
            ir=pair.target,
            draft=pair.head,
            generation=asked,
            concurrency=requests,
        )
        for name, asked in [
            *((f"{named}, k={asked['num_assistant_tokens']}", asked) for asked in chains),
            (f"{named}, tree", TREE),
        ]
    ]


def _drafts(draft: Path, requests: int) -> list[Variant]:
    chains: list[dict[str, Scalar]] = [{"num_assistant_tokens": length} for length in LENGTHS]
    given: dict[str, Scalar] = {"concurrency": requests, "draft": "given"}
    return [
        Variant(
            arm=Arm(
                name=f"{Method.DRAFT_MODEL}, k={asked['num_assistant_tokens']}", role="candidate", settings={**asked, **given}
            ),
            draft=draft,
            generation=asked,
            concurrency=requests,
        )
        for asked in chains
    ]


def _others(ir: Path, requests: int) -> tuple[Variant, ...]:
    """Draft with the target itself, which is always right, and from the prompt."""
    three: dict[str, Scalar] = {"num_assistant_tokens": 3}
    lookup: dict[str, Scalar] = {**three, "max_ngram_size": 3}
    return (
        Variant(
            arm=Arm(name="prompt lookup, k=3", role="candidate", settings={**lookup, "concurrency": requests}),
            properties={"prompt_lookup": True},
            generation=lookup,
            concurrency=requests,
        ),
        Variant(
            arm=Arm(name="target as its own draft, k=3", role="candidate", settings={**three, "concurrency": requests}),
            draft=ir,
            generation=three,
            concurrency=requests,
        ),
    )


def _prompts(bench: Bench, wanted: int, requests: int, *, questions: bool) -> list[tuple[tuple[int, ...], ...]]:
    """Give each repetition its prompts: random ids where only the cost counts, questions for drafts that may be right."""
    if not questions:
        names = [[f"draft {repetition}, request {n}" for n in range(requests)] for repetition in range(wanted)]
        return [tuple(token_ids(name, PROMPT_TOKENS) for name in row) for row in names]
    asked = question_ids(bench.ir)
    return [_turn(asked, repetition, requests) for repetition in range(wanted)]


def _turn(asked: Sequence[tuple[int, ...]], start: int, length: int) -> tuple[tuple[int, ...], ...]:
    return tuple(asked[(start + n) % len(asked)] for n in range(length))


def _bytes(ir: Path) -> int:
    return (ir / "openvino_model.bin").stat().st_size
