"""A head in the form that the runtime's EAGLE-3 strategy looks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.drafts.head import usual_draft_vocab
from tests.probes.drafts.tiny import TINY, head


def test_a_head_has_the_inputs_the_names_and_the_notes_that_the_runtime_reads(tmp_path: Path) -> None:
    model = head(tmp_path)
    assert {name for port in model.inputs for name in port.get_names()} == {
        "input_ids",
        "attention_mask",
        "position_ids",
        "hidden_states",
        "beam_idx",
    }
    assert {name for port in model.outputs for name in port.get_names()} == {"logits", "d2t"}
    assert model.get_rt_info(["eagle3_mode"]).astype(str) == "True"
    assert model.get_rt_info(["hidden_layers_list"]).astype(str) == "2, 6, 9"
    names = {one.get_friendly_name(): one.get_type_name() for one in model.get_ops()}
    assert [name for name, kind in names.items() if kind == "Add" and "midlayer" in name] == ["model.midlayer/mlp_residual"]
    assert sum(one.get_type_name() == "ReadValue" for one in model.get_ops()) == 2
    assert json.loads((tmp_path / "generation_config.json").read_bytes()) == {"eos_token_id": 2}


def targets(model: object) -> list[int]:
    (offsets,) = [one for one in model.get_ops() if one.get_friendly_name() == "model.d2t"]  # type: ignore[attr-defined]
    return [number + int(offset) for number, offset in enumerate(offsets.get_data())]


def test_drafts_stand_for_different_tokens_of_the_target(tmp_path: Path) -> None:
    found = targets(head(tmp_path, draft_vocab=50))
    assert len(set(found)) == 50
    assert 0 <= min(found) <= max(found) < TINY.vocab


def test_an_aimed_head_drafts_nothing_else(tmp_path: Path) -> None:
    assert targets(head(tmp_path, draft_vocab=5, aim=(7, 9))) == [7, 9, 7, 9, 7]


def test_the_same_seed_gives_the_same_head(tmp_path: Path) -> None:
    first, second, other = (tmp_path / name for name in "abc")
    for folder, seed in ((first, 1), (second, 1), (other, 2)):
        head(folder, seed=seed)
    weights = [(folder / "openvino_model.bin").read_bytes() for folder in (first, second, other)]
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize(("vocab", "draft"), [(151_936, 32_000), (128_256, 32_000), (49_152, 12_288), (3, 1)])
def test_the_draft_vocabulary_is_that_of_published_heads(vocab: int, draft: int) -> None:
    assert usual_draft_vocab(vocab) == draft
