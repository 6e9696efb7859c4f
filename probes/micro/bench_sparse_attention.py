"""Sparse attention over prompt length: XATTENTION against dense attention, each prompt in one step.

Split over many steps, each step attends to a cache that it may not thin out, and little is gained.
"""

from __future__ import annotations

from probes.devices.prompts import token_ids
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant

REPETITIONS = 6
ANSWER_TOKENS = 4
BUDGETS_S = {700: 25.0, 2640: 75.0}
SPARSE, MODE = "use_sparse_attention", "XATTENTION"


def test_sparse_attention_700(bench: Bench) -> None:
    _compare(bench, 700)


def test_sparse_attention_2640(bench: Bench) -> None:
    _compare(bench, 2640)


def _compare(bench: Bench, prompt_tokens: int) -> None:
    shared: dict[str, Scalar] = {
        "num_kv_blocks": prompt_tokens // 16 + 8,
        "max_num_batched_tokens": 4096,
        "enable_prefix_caching": False,
    }
    bench.compare(
        _variants(),
        [_repetition(f"long {number}", prompt_tokens) for number in range(bench.rounds(usual=REPETITIONS))],
        scheduler=shared,
        warmup=_repetition("warm-up", prompt_tokens),
        max_tokens=ANSWER_TOKENS,
        schedule=f"one request of {prompt_tokens} tokens at a time, its prompt in one step; arms alternate",
        budget_s=bench.budget_s or BUDGETS_S[prompt_tokens],
    )


def _variants() -> tuple[Variant, Variant]:
    off: dict[str, Scalar] = {SPARSE: False}
    on: dict[str, Scalar] = {SPARSE: True, "sparse_attention_config.mode": MODE}
    return (
        Variant(arm=Arm(name="dense attention", role="baseline", settings=off), scheduler=off),
        Variant(arm=Arm(name=MODE, role="candidate", settings=on), scheduler=on),
    )


def _repetition(name: str, prompt_tokens: int) -> Repetition:
    return Repetition(measured=(token_ids(name, prompt_tokens),))
