"""What a graph says about its decoder, and what is said of a graph that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.drafts.shape import exported_name, read_config, read_shape
from probes.errors import InputError
from probes.model import ModelFiles
from tests.probes.drafts.tiny import TINY, head, read


@pytest.mark.engine
def test_the_shape_of_the_real_model_is_that_of_its_file(model_files: ModelFiles) -> None:
    shape = read_shape(read(model_files.ir), {}, "ir")
    expected = model_files.architecture
    assert (shape.layers, shape.hidden, shape.vocab) == (expected.layers, expected.hidden_size, expected.vocab)
    assert (shape.heads, shape.kv_heads, shape.head_size) == (expected.heads, expected.kv_heads, expected.head_size)
    # What the package's GGUF file declares and its IR only holds as constants.
    assert shape.intermediate == 1536
    assert shape.rope_theta == pytest.approx(1e5, rel=1e-4)
    assert shape.eps == pytest.approx(1e-5)
    assert shape.residuals[0] == "model.layers.self_attn.add1.layer0"
    assert shape.residuals[29] == "model.layers.self_attn.add1.layer29"
    assert shape.tapped == (2, 15, 27)
    told = read_shape(read(model_files.ir), {"rope_theta": 500_000, "rms_norm_eps": 1e-6}, "ir")
    assert (told.rope_theta, told.eps) == (500_000, 1e-6)


def test_a_graph_with_too_few_layers_says_which_names_were_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_shape(head(tmp_path), {}, "a.xml")
    words = str(caught.value)
    assert words.startswith("a.xml: has 1 attention layers and 1 additions x + MatMul(a * b, W) (model.midlayer/mlp_residual)")
    assert "'...layers.N/...'" in words
    assert "'model.layers.self_attn.add1.layerN'" in words


@pytest.mark.engine
def test_a_graph_that_is_no_decoder_is_told_apart(model_files: ModelFiles) -> None:
    from openvino import Model, opset13

    parameter = opset13.parameter([1], name="x")
    nothing = Model([opset13.result(opset13.relu(parameter))], [parameter], "nothing")
    with pytest.raises(InputError, match="has 0 attention operations and 0 cache variables"):
        read_shape(nothing, {}, "a.xml")


@pytest.mark.parametrize(("layers", "tapped"), [(30, (2, 15, 27)), (10, (2, 5, 7)), (9, (0, 4, 8)), (3, (0, 1, 2))])
def test_three_different_layers_are_tapped(layers: int, tapped: tuple[int, int, int]) -> None:
    assert TINY.model_copy(update={"layers": layers}).tapped == tapped


def test_names_that_the_runtime_finds_stay() -> None:
    assert exported_name(3, "__module.model.layers.3/aten::add/Add_1") == "__module.model.layers.3/aten::add/Add_1"
    assert exported_name(3, "model.layers.self_attn.add1.layer3") == "model.layers.3/mlp_residual"
    assert exported_name(3, "model.layers.13/add") == "model.layers.3/mlp_residual"


def test_a_folder_without_a_config_adds_nothing(tmp_path: Path) -> None:
    assert read_config(tmp_path) == {}


@pytest.mark.parametrize(("text", "words"), [("{", "cannot be read"), ("[1]", "is list"), ("\xff", "cannot be read")])
def test_a_broken_config_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=rf"config\.json: {words}"):
        read_config(tmp_path)
