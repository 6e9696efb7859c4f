"""KV-cache precision: the same requests with keys and values in fewer and in more bits than f16."""

from __future__ import annotations

from probes.devices.prompts import token_ids
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant

REPETITIONS = 9
REQUESTS = 2
PROMPT_TOKENS = 256
ANSWER_TOKENS = 12
BUDGET_S = 35.0
PRECISION = "KV_CACHE_PRECISION"
# What fleets use first: the arms at the end go when the budget is short.
PRECISIONS = ("f16", "u8", "u4", "f32")
SHARED: dict[str, Scalar] = {"num_kv_blocks": 64, "max_num_batched_tokens": 256, "enable_prefix_caching": False}
VARIANTS = tuple(
    Variant(
        arm=Arm(name=f"KV cache in {kept}", role="candidate" if number else "baseline", settings={PRECISION: kept}),
        properties={PRECISION: kept},
        concurrency=REQUESTS,
    )
    for number, kept in enumerate(PRECISIONS)
)


def test_kv_precision(bench: Bench) -> None:
    variants, skipped = bench.chosen(VARIANTS, core=2)
    bench.compare(
        variants,
        [_repetition(f"cache {number}") for number in range(bench.rounds(usual=REPETITIONS))],
        scheduler=SHARED,
        warmup=_repetition("warm-up"),
        max_tokens=ANSWER_TOKENS,
        schedule=f"closed loop of {REQUESTS} requests, all at once; arms alternate",
        budget_s=bench.budget_s or BUDGET_S,
        skipped=skipped,
    )


def _repetition(name: str) -> Repetition:
    return Repetition(measured=tuple(token_ids(f"{name}, request {number}", PROMPT_TOKENS) for number in range(REQUESTS)))
