"""Continuous batching: eight requests one after the other, and the same eight two, four and eight at a time.

The arms differ in how many requests are in flight, not in max_num_seqs: with dynamic_split_fuse on,
its default, OpenVINO GenAI 2026.4.1 batches all of them whatever max_num_seqs says.
"""

from __future__ import annotations

from probes.devices.prompts import token_ids
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant

REPETITIONS = 9
REQUESTS = 8
# The size that decides first, then the others: those at the end go when the budget is short.
SIZES = (1, 4, 2, 8)
BUDGET_S = 45.0
SHARED: dict[str, Scalar] = {"num_kv_blocks": 64, "max_num_batched_tokens": 256, "enable_prefix_caching": False}
VARIANTS = tuple(
    Variant(
        arm=Arm(
            name="1 request at a time" if size == 1 else f"{size} requests at once",
            role="baseline" if size == 1 else "candidate",
            settings={"concurrency": size},
        ),
        concurrency=size,
    )
    for size in SIZES
)


def test_continuous_batching(bench: Bench) -> None:
    prompt_tokens, answer_tokens = (32, 8) if bench.quick else (32, 12)
    variants, skipped = bench.chosen(VARIANTS, core=2)
    bench.compare(
        variants,
        [_repetition(f"batch {number}", prompt_tokens) for number in range(bench.rounds(usual=REPETITIONS))],
        scheduler=SHARED,
        warmup=_repetition("warm-up", prompt_tokens),
        max_tokens=answer_tokens,
        schedule=f"closed loop of {REQUESTS} requests, so many at a time as the arm says; arms alternate",
        budget_s=bench.budget_s or BUDGET_S,
        skipped=skipped,
    )


def _repetition(name: str, prompt_tokens: int) -> Repetition:
    return Repetition(measured=tuple(token_ids(f"{name}, request {number}", prompt_tokens) for number in range(REQUESTS)))
