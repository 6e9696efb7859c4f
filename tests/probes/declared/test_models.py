"""config.json of OVMS, Modelfiles, and what the files of a model tell of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probes.declared.reader import Source, read
from probes.declared.shape import read_shape
from probes.errors import InputError
from probes.evidence import Scalar
from probes.fleet import ConfigFile, ConfigKind, RuntimeName
from probes.model import ModelFiles, find_source
from tests.declaring import declare, entry, graph, refusal, told

OLLAMA = RuntimeName.OLLAMA
MODEL: dict[str, Any] = {"config": {"name": "llm", "base_path": "llm"}}


def config(**fields: Any) -> str:
    return json.dumps({"model_config_list": [MODEL], **fields})


def test_unloading_of_idle_servables_is_read_and_changes_nothing_of_a_permanent_group(tmp_path: Path) -> None:
    """Since 2026.4: docs/idle_servable_management.md."""
    groups = {"llm": "chat", "asr": "permanent"}
    models = [{"config": {"name": name, "base_path": "/m", "group_name": group}} for name, group in groups.items()]
    text = json.dumps({"model_config_list": models, "idle_unload_timeout_seconds": 300})
    told = {
        name: entry(declare(tmp_path, "config.json", text, version="2026.4.1", entry=name), "idle_unload_timeout_seconds")
        for name in groups
    }
    assert {name: (one.value, one.without_effect) for name, one in told.items()} == {
        "llm": (300, ""),
        "asr": (300, "its group is permanent"),
    }
    assert told["llm"].where == "config.json: idle_unload_timeout_seconds"


@pytest.mark.parametrize("value", [-1, True, 1.5, "300", None])
def test_a_time_to_unload_that_is_none_is_refused(tmp_path: Path, value: object) -> None:
    expected = (
        "config.json: idle_unload_timeout_seconds: is no whole number of seconds; expected 0, which never unloads, or more"
    )
    assert refusal(tmp_path, "config.json", config(idle_unload_timeout_seconds=value)) == expected


def test_a_field_of_a_release_that_nobody_has_looked_at_is_named_and_ends_nothing(tmp_path: Path) -> None:
    text = config(brand_new=1, mediapipe_config_list=[])
    assert declare(tmp_path, "config.json", text, version="2026.5").unread == ("brand_new",)
    for version in ("2026.4.1", "2026.2", None):
        assert "brand_new: is not a known field" in refusal(tmp_path, "config.json", text, version=version)


def test_a_config_leads_to_the_graph_beside_it(tmp_path: Path) -> None:
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / "graph.pbtxt").write_text(graph("cache_size: 2"))
    reading = declare(tmp_path, "config.json", config())
    assert told(reading) == {"cache_size": 2}
    assert entry(reading, "cache_size").where.startswith("llm/graph.pbtxt:")


def test_a_config_of_the_older_form(tmp_path: Path) -> None:
    (tmp_path / "g.pbtxt").write_text(graph("cache_size: 3"))
    text = json.dumps({"model_config_list": [], "mediapipe_config_list": [{"name": "m", "graph_path": "g.pbtxt"}]})
    assert told(declare(tmp_path, "config.json", text)) == {"cache_size": 3}


def test_a_graph_in_a_container_is_not_looked_for_here(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "model_config_list": [
                {"config": {"name": "m", "base_path": "/models/m", "plugin_config": {"KV_CACHE_PRECISION": "u8"}}}
            ]
        }
    )
    reading = declare(tmp_path, "config.json", text)
    assert told(reading) == {"KV_CACHE_PRECISION": "u8"}
    assert entry(reading, "KV_CACHE_PRECISION").where == "config.json: model_config_list.0.config.plugin_config"


def test_several_models_need_a_choice(tmp_path: Path) -> None:
    text = json.dumps({"model_config_list": [MODEL, {"config": {"name": "b", "base_path": "/b"}}]})
    assert refusal(tmp_path, "config.json", text) == (
        "config.json: serves 2 models; expected `entry` in the inventory, one of: llm, b"
    )
    assert declare(tmp_path, "config.json", text, entry="b").facts["servable"] == "b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"model_config_list": [], "model_config_list": []}', "key 'model_config_list' stands there twice"),
        ('{\n// models\n"model_config_list": []}', "config.json:2: is not JSON"),
        ('{"model_config_list": [{"config": {"name": "a", "basepath": "b"}}]}', "basepath: is not a known field"),
        ('{"model_config_list": [{"name": "a"}]}', "config.json: model_config_list.0: is no {config: {...}}"),
        ('{"model_config_list": {}}', "is no list"),
        ('{"model_config_list": []}', "serves nothing"),
        ('{"model_config_list": [{"config": {}}]}', "config.name: is missing"),
        ('{"model_config_list": [{"config": {"name": "a", "plugin_config": "{}"}}]}', "plugin_config: is no object"),
        ('{"hidden_size": 5}', "has no model_config_list"),
        ("[]", "is a JSON list; expected a JSON object"),
        ("[" * 100_000, "is not usable JSON"),
        ('{"model_config_list": [], "monitor": {}}', "monitor: is not a known field"),
    ],
)
def test_a_config_that_ovms_refuses(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, "config.json", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM llama3\nPARAMETER num_ctx 8192\n", {"num_ctx": 8192}),
        ("from ./m.gguf\nparameter num_ctx 1\nPARAMETER num_ctx 2", {"num_ctx": 2}),
        (
            "# c\nFROM m\nDRAFT ./draft.gguf\nPARAMETER draft_num_predict 6\n",
            {"draft_model": "./draft.gguf", "draft_num_predict": 6},
        ),
        ('FROM m\nSYSTEM """\nPARAMETER num_ctx 9\n"""\nPARAMETER stop "<end>"\n', {}),
        ('FROM m\nMESSAGE user "hello\nPARAMETER num_ctx 9"\nLICENSE x\nPARAMETER temperature 0.5', {}),
    ],
)
def test_a_modelfile(tmp_path: Path, text: str, expected: dict[str, Scalar]) -> None:
    assert told(declare(tmp_path, "Modelfile", text, OLLAMA)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PARAMETER num_ctx 1", "Modelfile: has no FROM line"),
        ("FROM m\nPARAMETER num_ctx many", "Modelfile:2: num_ctx: is 'many'; expected a whole number"),
        ("FROM m\nPARAMETER num_ctx", "Modelfile:2: PARAMETER: has no value"),
        ("FROM m\nRUN ls", "Modelfile:2: begins with 'RUN'; expected an instruction such as FROM"),
        ('FROM m\nSYSTEM """never\nclosed', "Modelfile:2: opens a quote that is never closed"),
    ],
)
def test_a_modelfile_that_ollama_refuses(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, "Modelfile", text, OLLAMA)


def test_a_modelfile_of_another_runtime(tmp_path: Path) -> None:
    assert "the service runs vllm" in refusal(tmp_path, "Modelfile", "FROM m", RuntimeName.VLLM)


def test_the_real_model_as_gguf() -> None:
    shape = read_shape(find_source().gguf, "m.gguf")
    assert shape.weight_precision is not None
    assert shape.layers is not None
    assert (shape.weight_precision.value, shape.layers.value, shape.layers.where) == ("Q4_1", 30, "m.gguf: llama.block_count")
    # 2 x 30 layers x 3 KV heads x 64, one byte each.
    assert shape.kv_bytes_per_token(1) == 11520
    assert shape.stateful is None


def test_the_real_model_as_ir_tells_the_same_and_that_it_keeps_state(model_files: ModelFiles) -> None:
    shape, gguf = read_shape(model_files.ir, "m"), read_shape(model_files.gguf, "g")
    assert shape.stateful is not None
    assert shape.stateful.value
    assert shape.weight_precision is not None
    assert (shape.weight_precision.value, shape.weight_precision.where.partition(":")[0]) == ("INT4", "m/openvino_model.xml")
    for name in ("layers", "kv_heads", "head_size", "heads", "hidden_size", "context_tokens", "vocab"):
        assert getattr(shape, name).value == getattr(gguf, name).value == getattr(model_files.architecture, name)


def folder(tmp_path: Path, **files: Any) -> Path:
    for name, content in files.items():
        path = tmp_path / name.replace("__", ".")
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return tmp_path


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
          "torch_dtype": "bfloat16"}, [36, 8, 128, "BF16"]),
        ({"n_layer": 12, "n_embd": 768, "n_head": 12}, [12, 12, 64, None]),
        ({"text_config": {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2},
          "quantization_config": {"quant_method": "awq", "bits": 4}}, [4, 2, 16, "awq"]),
        ({"num_hidden_layers": True, "hidden_size": "big"}, [None, None, None, None]),
    ],
)  # fmt: skip
def test_a_transformers_config(tmp_path: Path, fields: dict[str, Any], expected: list[Scalar | None]) -> None:
    place = folder(tmp_path, config__json={"model_type": "some", **fields})
    shape = read_shape(place, "m")
    found = [told and told.value for told in (shape.layers, shape.kv_heads, shape.head_size, shape.weight_precision)]
    assert found == expected
    assert (shape.kv_bytes_per_token(2) is None) == (expected[0] is None)


IR = """<?xml version="1.0"?>
<net name="m" version="11"><layers>
<layer id="0" name="a" type="Const" version="opset1"><data element_type="u4" shape="100" offset="0" size="500"/></layer>
<layer id="1" name="b" type="Const" version="opset1"><data element_type="f16" shape="10" offset="500" size="20"/></layer>
</layers><rt_info>RT</rt_info></net>
"""


@pytest.mark.parametrize(
    ("rt_info", "optimum", "expected"),
    [
        ("", None, ("INT4", "u4 holds 99% of the weights")),
        ('<nncf><weight_compression><mode value="int8_asym"/></weight_compression></nncf>', None,
         ("INT8", "rt_info nncf weight_compression mode int8_asym")),
        ("", {"quantization_config": {"bits": 8}}, ("INT4", "u4 holds 99% of the weights")),
    ],
)  # fmt: skip
def test_weight_precision_of_an_ir(
    tmp_path: Path, rt_info: str, optimum: dict[str, Any] | None, expected: tuple[str, str]
) -> None:
    files = {"openvino_model__xml": IR.replace("RT", rt_info)}
    shape = read_shape(folder(tmp_path, **files, **({"openvino_config__json": optimum} if optimum else {})), "m")
    assert shape.weight_precision is not None
    assert (shape.weight_precision.value, shape.weight_precision.where) == (
        expected[0],
        f"m/openvino_model.xml: {expected[1]}",
    )
    assert shape.stateful is not None
    assert not shape.stateful.value


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<net>", "is not XML"),
        ("<html></html>", "begins with <html>"),
        ('<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><net>&b;</net>', "declares XML entities"),
        ("", "is not XML"),
    ],
)
def test_a_damaged_ir_is_told(tmp_path: Path, xml: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        read_shape(folder(tmp_path, openvino_model__xml=xml), "m")


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="describes no model"):
        read_shape(tmp_path, "m")


def test_a_folder_has_its_graph_and_its_weights(tmp_path: Path) -> None:
    place = folder(tmp_path, graph__pbtxt=graph("cache_size: 2"), openvino_model__xml=IR.replace("RT", ""))
    file = ConfigFile(path="m")
    source = Source(path=place, name="m", file=file, runtime=RuntimeName.OVMS, version=None)
    reading = read(source)
    assert reading.kind is ConfigKind.MODEL_FOLDER
    assert told(reading) == {"cache_size": 2, "weight_precision": "INT4"}


def test_a_graph_stands_alone_beside_files_that_describe_no_single_model(tmp_path: Path) -> None:
    place = folder(tmp_path, graph__pbtxt=graph("cache_size: 2"), encoder__onnx="", decoder__onnx="")
    reading = read(Source(path=place, name="m", file=ConfigFile(path="m"), runtime=RuntimeName.OVMS, version=None))
    assert (told(reading), reading.shape) == ({"cache_size": 2}, None)


@pytest.mark.parametrize("file", ["1/model.xml", "model.xml"])
def test_a_model_beside_a_graph_is_described_whatever_its_file_is_called(tmp_path: Path, file: str) -> None:
    place = folder(tmp_path, graph__pbtxt=graph("cache_size: 2"))
    (place / file).parent.mkdir(exist_ok=True)
    (place / file).write_text(IR.replace("RT", ""))
    reading = read(Source(path=place, name="m", file=ConfigFile(path="m"), runtime=RuntimeName.OVMS, version=None))
    assert told(reading) == {"cache_size": 2, "weight_precision": "INT4"}


def test_defaults_of_requests_that_draft_tokens(tmp_path: Path) -> None:
    generation = {"max_ngram_size": 3, "num_assistant_tokens": 5, "temperature": 0.7, "assistant_confidence_threshold": None}
    place = folder(tmp_path, config__json={"model_type": "some"}, generation_config__json=generation)
    reading = read(Source(path=place, name="m", file=ConfigFile(path="m"), runtime=RuntimeName.OVMS, version=None))
    assert told(reading) == {"num_assistant_tokens": 5, "max_ngram_size": 3}
    assert entry(reading, "max_ngram_size").where == "m/generation_config.json: max_ngram_size"


def test_a_cut_off_gguf_is_told(tmp_path: Path) -> None:
    with find_source().gguf.open("rb") as stream:
        head = stream.read(4096)
    assert "m.gguf: is no usable GGUF file: it announces" in refusal(tmp_path, "m.gguf", head)


@pytest.mark.parametrize("name", ["graph.pbtxt", "config.json", "start.sh", "compose.yml", "m.gguf", "Modelfile"])
def test_an_absent_file_is_told(tmp_path: Path, name: str) -> None:
    file = ConfigFile(path=name)
    with pytest.raises(InputError, match="does not exist"):
        read(Source(path=tmp_path / name, name=name, file=file, runtime=RuntimeName.OVMS, version=None))


def test_a_device_is_no_file() -> None:
    file = ConfigFile(path="zero", kind=ConfigKind.GRAPH)
    with pytest.raises(InputError, match="is no regular file"):
        read(Source(path=Path("/dev/zero"), name="zero", file=file, runtime=RuntimeName.OVMS, version=None))
