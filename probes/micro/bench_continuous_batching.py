"""Continuous batching: four requests one after the other, and the same four in one running batch.

The arms differ in how many requests are in flight, not in max_num_seqs: with dynamic_split_fuse on,
its default, OpenVINO GenAI 2026.4.1 batches all four whatever max_num_seqs says.
"""

from __future__ import annotations

from probes.devices.prompts import token_ids
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant

REPETITIONS = 9
QUICK_REPETITIONS = 6
REQUESTS = 4
SHARED: dict[str, Scalar] = {"num_kv_blocks": 64, "max_num_batched_tokens": 256, "enable_prefix_caching": False}
VARIANTS = (
    Variant(arm=Arm(name="1 request at a time", role="baseline", settings={"concurrency": 1})),
    Variant(
        arm=Arm(name=f"{REQUESTS} requests at once", role="candidate", settings={"concurrency": REQUESTS}),
        concurrency=REQUESTS,
    ),
)


def test_continuous_batching(bench: Bench) -> None:
    prompt_tokens, answer_tokens = (32, 12) if bench.quick else (48, 24)
    repetitions = bench.repetitions or (QUICK_REPETITIONS if bench.quick else REPETITIONS)
    bench.compare(
        VARIANTS,
        [_repetition(f"batch {number}", prompt_tokens) for number in range(repetitions)],
        scheduler=SHARED,
        warmup=_repetition("warm-up", prompt_tokens),
        max_tokens=answer_tokens,
        schedule=f"closed loop of {REQUESTS} requests, one at a time or all at once; arms alternate",
    )


def _repetition(name: str, prompt_tokens: int) -> Repetition:
    return Repetition(measured=tuple(token_ids(f"{name}, request {number}", prompt_tokens) for number in range(REQUESTS)))
