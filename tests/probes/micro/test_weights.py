"""Weights in other precisions, made from the real model: the right bytes, and text that still follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.devices.engine import Engine
from probes.devices.prompts import token_ids
from probes.micro.texts import prompts_of
from probes.micro.weights import is_full, make_f16, make_int8, shipped_precision, weight_bytes
from probes.model import ModelFiles

pytestmark = pytest.mark.engine

TOKENS = 6


def answer(ir: Path) -> tuple[int, ...]:
    engine = Engine.open(ir, device="CPU", properties={}, scheduler={"num_kv_blocks": 16})
    (found,) = engine.answer([token_ids("weights", 24)], max_tokens=TOKENS)
    return found.tokens


def test_the_same_weights_in_f16_and_in_int8_have_the_bytes_of_their_precision(model_files: ModelFiles, tmp_path: Path) -> None:
    numbers = 134_479_872  # of SmolLM2-135M's matrices; its embedding is the matrix that its answers come from
    f16, int8 = make_f16(model_files.ir, tmp_path / "f16"), make_int8(model_files.ir, tmp_path / "int8")
    assert [shipped_precision(folder) for folder in (model_files.ir, f16, int8)] == ["u4", "f16", "i8"]
    assert weight_bytes(f16) == 2 * numbers
    # One byte for each, and a scale of two bytes for each of the rows.
    assert numbers < weight_bytes(int8) < 1.01 * numbers
    assert weight_bytes(model_files.ir) < 0.7 * numbers
    assert is_full("f16")
    assert not is_full("u4")
    shipped = answer(model_files.ir)
    assert len(shipped) == TOKENS
    for folder in (f16, int8):
        # Rounding parts the answers in the end; weights that are no longer these part them at once.
        assert answer(folder)[:3] == shipped[:3]
        assert (folder / "openvino_tokenizer.xml").exists()


def test_repetitive_text_says_the_same_again_and_no_two_prompts_are_alike(model_files: ModelFiles) -> None:
    first, second = prompts_of("repetitive", model_files.ir, 2)
    assert first != second
    grams = [first[n : n + 4] for n in range(len(first) - 3)]
    assert len(set(grams)) < len(grams) / 2


def test_random_text_repeats_nothing() -> None:
    (prompt,) = prompts_of("random", Path(), 1)
    grams = [prompt[n : n + 3] for n in range(len(prompt) - 2)]
    assert len(set(grams)) == len(grams)
