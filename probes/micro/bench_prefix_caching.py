"""Automatic prefix caching off and on: a question after a long beginning that was sent once before.

Both arms get the same requests. The beginning differs from repetition to repetition, so the only
cached prefix is the one that the untimed request before left behind.
"""

from __future__ import annotations

from probes.devices.prompts import token_ids
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant

# The 95 % interval of a median of nine leaves out one disturbed repetition at either end; of six, none.
REPETITIONS = 9
QUESTION_TOKENS = 32
ANSWER_TOKENS = 8
BUDGET_S = 30.0
SHARED: dict[str, Scalar] = {"num_kv_blocks": 256, "max_num_batched_tokens": 256}
OFF: dict[str, Scalar] = {"enable_prefix_caching": False}
ON: dict[str, Scalar] = {"enable_prefix_caching": True}
VARIANTS = (
    Variant(arm=Arm(name="prefix caching off", role="baseline", settings=OFF), scheduler=OFF),
    Variant(arm=Arm(name="prefix caching on", role="candidate", settings=ON), scheduler=ON),
)


def test_prefix_caching(bench: Bench) -> None:
    prefix_tokens = 128 if bench.quick else 320
    bench.compare(
        VARIANTS,
        [_repetition(f"prefix {number}", prefix_tokens) for number in range(bench.rounds(usual=REPETITIONS))],
        scheduler=SHARED,
        warmup=_repetition("warm-up", prefix_tokens),
        max_tokens=ANSWER_TOKENS,
        schedule="one request at a time; arms alternate; an untimed request sends the prefix before each timed one",
        budget_s=bench.budget_s or BUDGET_S,
    )


def _repetition(name: str, prefix_tokens: int) -> Repetition:
    prefix = token_ids(name, prefix_tokens)
    first, second = (token_ids(f"{name}, question {number}", QUESTION_TOKENS) for number in (1, 2))
    return Repetition(before=(prefix + first,), measured=(prefix + second,))
