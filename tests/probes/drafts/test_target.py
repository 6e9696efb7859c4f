"""New names for the ends of layers, and everything else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.drafts.shape import IR_NAME, read_shape
from probes.drafts.target import prepare_target, renamed
from probes.errors import InputError
from probes.model import ModelFiles
from tests.probes.drafts.tiny import TINY, read

TEXT = """<layer id="1" name="add1.layer1" type="Add" version="opset1">
<layer id="2" name="add1.layer1" type="Const" version="opset1">
<layer id="3" name="add1.layer11" type="Add" version="opset1">
<edge from-layer="1" to-layer="3"/>"""


def test_only_the_named_additions_change() -> None:
    assert renamed(TEXT, {"add1.layer1": "layers.1/<x>"}, "a.xml") == TEXT.replace(
        'name="add1.layer1" type="Add"', 'name="layers.1/&lt;x&gt;" type="Add"'
    )


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"add1.layer7": "x"}, "names 0 of 1 layer ends, 0 times"),
        ({"add1.layer1": "x", "add1.layer7": "y"}, "names 1 of 2 layer ends, 1 times"),
    ],
)
def test_a_name_that_is_not_there_is_an_error(names: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=f"a.xml: {words}"):
        renamed(TEXT, names, "a.xml")


def test_a_name_that_is_there_twice_is_an_error() -> None:
    with pytest.raises(InputError, match="names 1 of 1 layer ends, 2 times"):
        renamed(TEXT + TEXT, {"add1.layer11": "x"}, "a.xml")


def test_a_target_whose_layers_are_found_is_used_as_it_is(tmp_path: Path) -> None:
    assert prepare_target(tmp_path / "ir", tmp_path / "new", TINY) == tmp_path / "ir"
    assert not (tmp_path / "new").exists()


@pytest.mark.engine
def test_the_real_target_gets_names_and_shares_its_weights(model_files: ModelFiles, tmp_path: Path) -> None:
    before = read_shape(read(model_files.ir), {}, "ir")
    folder = prepare_target(model_files.ir, tmp_path / "new", before)
    after = read_shape(read(folder), {}, "new")
    assert after.residuals == tuple(f"model.layers.{layer}/mlp_residual" for layer in range(30))
    assert after.model_copy(update={"residuals": before.residuals}) == before
    assert (folder / "openvino_model.bin").is_symlink()
    assert (folder / "openvino_tokenizer.xml").is_symlink()
    assert not (folder / IR_NAME).is_symlink()
