"""Weight precision: the weights as they came, and the same in int8, against the same in f16.

All three are made from one file: its packed weights unpacked to f16, and those rounded to int8 by channel.
They differ in the bytes that a token reads. What an answer loses by packing cannot be seen here, because
the f16 weights come from the packed ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.devices.prompts import token_ids
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant
from probes.micro.weights import F16, INT8, is_full, make_f16, make_int8, shipped_precision, weight_bytes

REPETITIONS = 9
PROMPT_TOKENS = 32
ANSWER_TOKENS = 24
BUDGET_S = 30.0
# Unpacking holds every weight as a 32-bit float for a moment.
LARGEST_BYTES = 2**29
SHARED: dict[str, Scalar] = {"num_kv_blocks": 64, "max_num_batched_tokens": 256, "enable_prefix_caching": False}


def test_weight_precision(bench: Bench) -> None:
    size = (bench.ir / "openvino_model.bin").stat().st_size
    if size > LARGEST_BYTES:
        pytest.skip(f"weights of {size} bytes; other precisions are made of at most {LARGEST_BYTES}")
    variants, skipped = bench.chosen(_variants(bench), core=2)
    repetitions = bench.rounds(usual=REPETITIONS)
    bench.compare(
        variants,
        [_repetition(f"weights {number}") for number in range(repetitions)],
        scheduler=SHARED,
        warmup=_repetition("warm-up"),
        max_tokens=ANSWER_TOKENS,
        schedule="one request at a time; arms alternate",
        budget_s=bench.budget_s or BUDGET_S,
        skipped=skipped,
    )


def _variants(bench: Bench) -> list[Variant]:
    """Put f16 first; a model that came in full precision is its own baseline."""
    shipped = shipped_precision(bench.ir)
    bench.progress("making the weights in f16 and int8")
    arms: list[tuple[str, str, Path]] = []
    if is_full(shipped):
        arms.append((f"{shipped} weights, as shipped", shipped, bench.ir))
    else:
        arms.append((f"{F16} weights, unpacked from {shipped}", F16, make_f16(bench.ir, bench.scratch / F16)))
        arms.append((f"{shipped} weights, as shipped", shipped, bench.ir))
    if not (bench.quick or bench.core) or is_full(shipped):
        arms.append((f"{INT8} weights, rounded by channel", INT8, make_int8(bench.ir, bench.scratch / INT8)))
    return [
        Variant(
            arm=Arm(
                name=name,
                role="candidate" if number else "baseline",
                settings={"weights": precision, "as_shipped": folder == bench.ir, "weight_bytes": weight_bytes(folder)},
            ),
            ir=folder,
        )
        for number, (name, precision, folder) in enumerate(arms)
    ]


def _repetition(name: str) -> Repetition:
    return Repetition(measured=(token_ids(name, PROMPT_TOKENS),))
