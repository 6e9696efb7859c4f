"""Drafting from the prompt and with a draft model, on text that repeats itself, on chat, and on random text.

The target as its own draft is always right, so it bounds what any draft model could bring; its own cost is
that of the largest draft there is.
"""

from __future__ import annotations

from probes.evidence import Arm, Scalar
from probes.micro.bench import Bench, Repetition, Variant
from probes.micro.drafting import SMALL_TARGET_BYTES
from probes.micro.rounds import Skipped
from probes.micro.texts import prompts_of

REPETITIONS = 7
ANSWER_TOKENS = 24
BUDGET_S = 25.0
SHARED: dict[str, Scalar] = {"num_kv_blocks": 64, "max_num_batched_tokens": 256, "enable_prefix_caching": False}
THREE: dict[str, Scalar] = {"num_assistant_tokens": 3}
LOOKUP: dict[str, Scalar] = {**THREE, "max_ngram_size": 3}


def test_drafts_on_repetitive_text(bench: Bench) -> None:
    _compare(bench, "repetitive")


def test_drafts_on_chat_text(bench: Bench) -> None:
    _compare(bench, "chat")


def test_drafts_on_random_text(bench: Bench) -> None:
    _compare(bench, "random")


def _compare(bench: Bench, text: str) -> None:
    plain = Variant(arm=Arm(name="plain", role="baseline", settings={"text": text}))
    lookup = Variant(
        arm=Arm(name="prompt lookup, k=3", role="candidate", settings={**LOOKUP, "text": text}),
        properties={"prompt_lookup": True},
        generation=LOOKUP,
    )
    itself = Variant(
        arm=Arm(name="target as its own draft, k=3", role="candidate", settings={**THREE, "text": text}),
        draft=bench.ir,
        generation=THREE,
    )
    variants, skipped = [plain, lookup], []
    if (bench.ir / "openvino_model.bin").stat().st_size > SMALL_TARGET_BYTES:
        reason = f"the target's weights are over {SMALL_TARGET_BYTES} bytes, and this arm loads them again"
        skipped.append(Skipped(arm=itself.arm, reason=reason))
    else:
        variants.append(itself)
    asked = prompts_of(text, bench.ir, bench.rounds(usual=REPETITIONS) + 1)
    bench.compare(
        variants,
        [Repetition(measured=(prompt,)) for prompt in asked[1:]],
        scheduler=SHARED,
        warmup=Repetition(measured=asked[:1]),
        max_tokens=ANSWER_TOKENS,
        schedule=f"one request of {text} text at a time; arms alternate",
        budget_s=bench.budget_s or BUDGET_S,
        skipped=skipped,
    )
