"""Split fuse off and on: how long two running requests wait for a token while a long prompt joins them.

Off, the prompt is computed in a step of its own, so a step has to be as long as the longest prompt; on, it is
split, and each piece shares a step with the tokens of the others. The second candidate shows what fusing does
without splitting: its steps are as long as those of the baseline.
"""

from __future__ import annotations

from probes.devices.prompts import token_ids
from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant

REPETITIONS = 9
RUNNING, RUNNING_TOKENS = 2, 32
LONG_TOKENS = 384
# The prompt joins when decoding runs evenly, and the others still have tokens to come when it is done.
JOINS_AFTER, ANSWER_TOKENS = 3, 12
SHORT_STEP, LONG_STEP = 128, 1024
BUDGET_S = 30.0
SHARED: dict[str, Scalar] = {"num_kv_blocks": 64, "enable_prefix_caching": False}


def test_split_fuse(bench: Bench) -> None:
    variants, skipped = bench.chosen(
        [
            _variant(f"split fuse off, {LONG_STEP} tokens a step", on=False, step=LONG_STEP),
            _variant(f"split fuse on, {SHORT_STEP} tokens a step", on=True, step=SHORT_STEP),
            _variant(f"split fuse on, {LONG_STEP} tokens a step", on=True, step=LONG_STEP),
        ],
        core=2,
    )
    bench.compare(
        variants,
        [_repetition(f"split {number}") for number in range(bench.rounds(usual=REPETITIONS))],
        scheduler=SHARED,
        warmup=_repetition("warm-up"),
        max_tokens=ANSWER_TOKENS,
        schedule=f"{RUNNING} running requests; a prompt of {LONG_TOKENS} tokens joins after {JOINS_AFTER} of theirs; "
        "arms alternate",
        budget_s=bench.budget_s or BUDGET_S,
        skipped=skipped,
    )


def _variant(name: str, *, on: bool, step: int) -> Variant:
    settings: dict[str, Scalar] = {"dynamic_split_fuse": on, "max_num_batched_tokens": step}
    arm = Arm(name=name, role="candidate" if on else "baseline", settings=settings)
    return Variant(arm=arm, scheduler=settings, concurrency=RUNNING + 1)


def _repetition(name: str) -> Repetition:
    return Repetition(
        measured=tuple(token_ids(f"{name}, request {number}", RUNNING_TOKENS) for number in range(RUNNING)),
        late=(token_ids(f"{name}, long", LONG_TOKENS),),
        late_after=JOINS_AFTER,
    )
