"""What a model is: told by the structure that its files describe, never by its name."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.context import Context
from probes.declared import kind
from probes.declared.network import Network, attention_layers
from probes.declared.onnx import read_onnx
from probes.declared.probe import probe_declared
from probes.declared.shape import read_shape
from probes.errors import InputError
from probes.evidence import ModelKind, ProvenanceKind, leaves_open, same_kind
from probes.fleet import load_fleet
from probes.gguf import Header
from probes.model import ModelFiles
from tests.declaring import declare, graph

K = ModelKind
FLEET = load_fleet(Path(__file__).parents[3] / "fleet.yml")


def kinds(path: Path) -> dict[str, ModelKind]:
    return {told.where: told.value for told in read_shape(path, "m").kinds}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"architectures": ["Qwen3ForCausalLM"], "num_attention_heads": 32}, K.DECODER),
        ({"architectures": ["GPT2LMHeadModel"], "n_head": 12}, K.DECODER),
        # A name that promises something else changes nothing.
        ({"architectures": ["LlamaForCausalLM"], "num_attention_heads": 8, "_name_or_path": "whisper-embedding"}, K.DECODER),
        ({"architectures": ["MambaForCausalLM"], "state_size": 16}, K.STATE_SPACE_DECODER),
        ({"architectures": ["JambaForCausalLM"], "num_attention_heads": 32, "mamba_d_state": 16}, K.DECODER),
        ({"architectures": ["RwkvForCausalLM"], "attention_hidden_size": 768}, K.GENERATOR),
        (
            {
                "architectures": ["Qwen3VLForConditionalGeneration"],
                "vision_config": {"depth": 2},
                "text_config": {"num_attention_heads": 8},
            },
            K.MULTIMODAL_DECODER,
        ),
        ({"architectures": ["Phi3VForCausalLM"], "img_processor": {"n": "c"}, "num_attention_heads": 8}, K.MULTIMODAL_DECODER),
        ({"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True, "num_heads": 8}, K.ENCODER_DECODER),
        ({"architectures": ["VisionEncoderDecoderModel"], "is_encoder_decoder": True}, K.ENCODER_DECODER),
        ({"architectures": ["WhisperForConditionalGeneration"], "num_mel_bins": 80}, K.SPEECH_ENCODER_DECODER),
        ({"architectures": ["XLMRobertaModel"], "num_attention_heads": 12}, K.ENCODER),
        ({"architectures": ["T5EncoderModel"], "num_heads": 8}, K.ENCODER),
        ({"architectures": ["BertForSequenceClassification"], "num_attention_heads": 12}, K.ENCODER),
        ({"architectures": ["Qwen3ForSequenceClassification"], "num_attention_heads": 16}, K.ENCODER),
        ({"architectures": ["Wav2Vec2ForCTC"], "num_attention_heads": 12}, K.ENCODER),
        ({"architectures": ["ViTForImageClassification"], "num_attention_heads": 12}, K.ENCODER),
        ({"architectures": ["ResNetForImageClassification"], "depths": [3, 4]}, K.FORWARD_ONLY),
        ({"architectures": ["SomethingNobodyKnows"], "num_attention_heads": 1}, None),
        ({"architectures": [7], "model_type": "llama"}, None),
        ({"model_type": "llama", "num_attention_heads": 4}, None),
    ],
)  # fmt: skip
def test_the_class_in_a_config(tmp_path: Path, config: dict[str, Any], expected: ModelKind | None) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 64, **config}))
    found = kinds(tmp_path)
    assert list(found.values()) == ([] if expected is None else [expected])
    assert all(where.startswith("m/config.json: architectures ") for where in found)


def header(**keys: Any) -> Header:
    return Header(metadata={name.replace("__", "."): value for name, value in keys.items()}, tensors=())


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"llama__attention__head_count": 32, "tokenizer__ggml__model": "gpt2"}, K.DECODER),
        ({"bert__attention__head_count": 12, "bert__attention__causal": False, "tokenizer__ggml__model": "bert"}, K.ENCODER),
        ({"qwen3__attention__head_count": 16, "qwen3__pooling_type": 3, "tokenizer__ggml__model": "gpt2"}, K.ENCODER),
        ({"t5__attention__head_count": 8, "t5__decoder_start_token_id": 0, "tokenizer__ggml__model": "t5"}, K.ENCODER_DECODER),
        ({"mamba__ssm__state_size": 16, "mamba__attention__head_count": 0, "tokenizer__ggml": 1}, K.STATE_SPACE_DECODER),
        ({"rwkv7__wkv__head_size": 64, "tokenizer__ggml__model": "rwkv"}, K.STATE_SPACE_DECODER),
        ({"flux__x": 1}, K.DIFFUSION),
        # A projector of images beside a language model is no model that answers.
        ({"clip__vision__attention__head_count": 16}, None),
    ],
)  # fmt: skip
def test_the_keys_of_a_gguf_header(metadata: dict[str, Any], expected: ModelKind | None) -> None:
    architecture = next(iter(metadata)).partition("__")[0]
    told = list(kind.of_gguf(header(**metadata, general__architecture=architecture, general__name="my-embedding"), "m.gguf"))
    assert [one.value for one in told] == ([] if expected is None else [expected])


def test_the_real_model_is_an_autoregressive_decoder_in_each_of_its_forms(model_files: ModelFiles) -> None:
    ir = read_shape(model_files.ir, "m").kinds
    assert (ir[0].value, ir[0].where) == (
        K.DECODER,
        "m/openvino_model.xml: 60 tensors of a KV cache, 60 state variables, 30 attention layers",
    )
    (gguf,) = read_shape(model_files.gguf, "m.gguf").kinds
    assert (gguf.value, gguf.where.split(",")[0]) == (K.DECODER, "m.gguf: llama.attention.head_count is there")


def layers(*types: str) -> str:
    return "".join(f'<layer id="{n}" name="n{n}" type="{one}" version="opset1"/>' for n, one in enumerate(types))


def network(tmp_path: Path, body: str, edges: str = "", name: str = "openvino_model.xml") -> Path:
    (tmp_path / name).write_text(f'<net name="m" version="11"><layers>{body}</layers><edges>{edges}</edges></net>')
    return tmp_path


def edge(source: int, sink: int) -> str:
    return f'<edge from-layer="{source}" from-port="1" to-layer="{sink}" to-port="0"/>'


def test_attention_is_a_softmax_that_is_multiplied_and_that_of_a_classifier_is_not(tmp_path: Path) -> None:
    attending = network(tmp_path, layers("MatMul", "SoftMax", "Reshape", "MatMul"), edge(0, 1) + edge(1, 2) + edge(2, 3))
    assert kinds(attending) == {
        "m/openvino_model.xml: no tensors of a KV cache, no state variables, 1 attention layer": K.ENCODER
    }
    classifying = network(tmp_path, layers("Convolution", "MatMul", "SoftMax", "Result"), edge(0, 1) + edge(1, 2) + edge(2, 3))
    assert list(kinds(classifying).values()) == [K.FEED_FORWARD]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<layer id="0" name="input_ids" type="Parameter"/><layer id="1" name="s" type="ReadValue">'
         '<data variable_id="past_key_values.0.keypresent.0.key" variable_shape="?,2,?,64"/></layer>', K.DECODER),
        ('<layer id="0" name="input_ids" type="Parameter"/><layer id="1" name="s" type="ReadValue">'
         '<data variable_id="cache_params.past.ssm.0" variable_shape="?,64,16"/></layer>', K.STATE_SPACE_DECODER),
        ('<layer id="0" name="encoder_hidden_states" type="Parameter"/>'
         '<layer id="1" name="past_key_values.0.decoder.key" type="Parameter"/>', K.ENCODER_DECODER),
        ('<layer id="0" name="sample" type="Parameter"/><layer id="1" name="timestep" type="Parameter"/>', K.DIFFUSION),
        ('<layer id="0" name="input" type="Parameter"/><layer id="1" name="l" type="LSTMSequence"/>', K.RECURRENT),
        ('<layer id="0" name="input" type="Parameter"/><layer id="1" name="state" type="Parameter"/>', K.RECURRENT),
        ('<layer id="0" name="input" type="Parameter"/><layer id="1" name="c" type="ScaledDotProductAttention"/>', K.ENCODER),
        ('<layer id="0" name="x" type="Parameter"/><layer id="1" name="c" type="Convolution"/>', K.FEED_FORWARD),
    ],
)  # fmt: skip
def test_states_and_operations_of_an_ir(tmp_path: Path, body: str, expected: ModelKind) -> None:
    assert list(kinds(network(tmp_path, body)).values()) == [expected]


def test_parts_that_see_or_hear_beside_a_decoder(tmp_path: Path) -> None:
    cached = '<layer id="0" name="past_key_values.0.key" type="Parameter"/>'
    sees, hears = tmp_path / "vlm", tmp_path / "speech"
    sees.mkdir()
    hears.mkdir()
    assert list(kinds(network(sees, cached, name="openvino_language_model.xml")).values()) == [K.MULTIMODAL_DECODER]
    network(hears, '<layer id="0" name="input_features" type="Parameter"/>', name="openvino_encoder_model.xml")
    network(hears, cached, name="openvino_decoder_model.xml")
    assert list(kinds(hears).values()) == [K.SPEECH_ENCODER_DECODER]


def test_a_pipeline_of_diffusers_a_pooled_model_and_a_card(tmp_path: Path) -> None:
    pipe, pooled = tmp_path / "pipe", tmp_path / "pooled"
    pipe.mkdir()
    pooled.mkdir()
    index = {"_class_name": "FluxPipeline", "transformer": ["diffusers", "F"], "scheduler": ["diffusers", "S"]}
    (pipe / "model_index.json").write_text(json.dumps(index))
    assert kinds(pipe) == {"m/model_index.json: transformer and scheduler": K.DIFFUSION}
    # The class says that it could generate; what is pooled never does.
    (pooled / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"], "num_attention_heads": 8}))
    (pooled / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Pooling"}]))
    (pooled / "README.md").write_text(
        "---\nlanguage: en\npipeline_tag: feature-extraction\n---\n# A model for text-generation\n"
    )
    assert kinds(pooled) == {
        "m/modules.json: a Pooling module ends it": K.ENCODER,
        "m/README.md: pipeline_tag feature-extraction": K.FORWARD_ONLY,
    }


def test_a_class_that_could_generate_does_not_contradict_an_export_that_embeds(tmp_path: Path) -> None:
    attending = layers("ScaledDotProductAttention")
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"], "num_attention_heads": 8}))
    assert list(kinds(network(tmp_path, attending)).values()) == [K.ENCODER]
    # One that was exported with its cache agrees, and a class of speech beside it would not.
    cached = '<layer id="0" name="past_key_values.0.key" type="Parameter"/>'
    assert list(kinds(network(tmp_path, cached)).values()) == [K.DECODER, K.DECODER]
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["W2ForSpeechSeq2Seq"], "num_mel_bins": 80}))
    assert list(kinds(network(tmp_path, attending)).values()) == [K.ENCODER, K.SPEECH_ENCODER_DECODER]


def test_a_classic_model_of_ovms_is_read_in_its_highest_version(tmp_path: Path) -> None:
    for version, body in (("2", "Convolution"), ("10", "LSTMSequence")):
        (tmp_path / version).mkdir()
        network(tmp_path / version, layers(body), name="model.xml")
    (tmp_path / "11").write_text("no folder")
    assert kinds(tmp_path) == {
        "m/10/model.xml: no tensors of a KV cache, no state variables, no attention layers, 1 recurrent layer": K.RECURRENT
    }


def test_a_card_alone_describes_no_model(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\npipeline_tag: text-generation\n---\n")
    with pytest.raises(InputError, match="describes no model"):
        read_shape(tmp_path, "m")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\x06\0\0\0\x0c\0WhisperSpec\0", K.SPEECH_ENCODER_DECODER),
        (b"\x06\0\0\0\x17\0TransformerEncoderSpec\0", K.ENCODER),
        (b"\x06\0\0\0\xff\xffgarbage", None),
        (b"", None),
    ],
)
def test_the_head_of_a_model_of_ctranslate2(head: bytes, expected: ModelKind | None) -> None:
    assert [one.value for one in kind.of_ctranslate2(head, "model.bin")] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", K.GENERATOR),
        ("pipeline_type: VLM_CB", K.MULTIMODAL_DECODER),
    ],
)
def test_the_calculators_of_a_graph(tmp_path: Path, options: str, expected: ModelKind) -> None:
    assert [told.value for told in declare(tmp_path, "graph.pbtxt", graph(options)).kinds] == [expected]


def message(number: int, content: bytes) -> bytes:
    length, packed = len(content), b""
    while True:
        packed += bytes([length & 0x7F | (0x80 if length > 0x7F else 0)])
        length >>= 7
        if not length:
            return bytes([number << 3 | 2]) + packed + content


def node(operation: str, used: list[str], made: list[str], body: bytes = b"") -> bytes:
    parts = [*(message(1, name.encode()) for name in used), *(message(2, name.encode()) for name in made)]
    inner = message(5, message(6, body)) if body else b""
    return message(1, b"".join(parts) + message(4, operation.encode()) + inner)


def onnx(tmp_path: Path, *nodes: bytes, inputs: tuple[str, ...] = ("x",)) -> Path:
    heads = b"".join(message(11, message(1, name.encode())) for name in inputs)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08" + message(7, b"".join(nodes) + heads))
    return path


def test_an_onnx_file(tmp_path: Path) -> None:
    path = onnx(tmp_path, node("Softmax", ["s"], ["p"]), node("MatMul", ["p", "v"], ["o"]), inputs=("input_ids",))
    assert (read_onnx(path, "m").kind, read_onnx(path, "m").attention) == (K.ENCODER, 1)
    path = onnx(tmp_path, node("If", ["c"], ["o"], node("LSTM", ["x"], ["y"])), inputs=("x", "past_key_values_length"))
    assert (read_onnx(path, "m").kind, read_onnx(path, "m").recurrent) == (K.RECURRENT, 1)
    path = onnx(tmp_path, node("GroupQueryAttention", ["x"], ["y"]), inputs=("input_ids", "past_key_values.0.key"))
    assert read_onnx(path, "m").kind is K.DECODER
    assert kinds(path.parent) == {
        "m/model.onnx: 1 tensor of a KV cache, no state variables, 1 attention layer": K.DECODER
    }  # fmt: skip


@pytest.mark.parametrize(
    "content", [b"", b"\x3a\xff\xff\xff\x7f", b"<html></html>", b"\x08\x08", b"\x3a\x04\x0a\x7fab", struct.pack("<Q", 0)]
)
def test_what_is_no_onnx_file_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(InputError, match=r"m\.onnx: "):
        read_onnx(tmp_path / "m.onnx", "m.onnx")


@given(content=st.binary(max_size=200))
def test_no_bytes_break_the_reader_of_onnx(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.onnx"
    path.write_bytes(b"\x3a" + bytes([len(content) & 0x7F]) + content)
    with contextlib.suppress(InputError):
        assert isinstance(read_onnx(path, "m"), Network)


def test_a_loop_of_reshapes_ends() -> None:
    types = {"a": "Softmax", "b": "Reshape", "c": "Reshape"}
    assert attention_layers({}, [("a", "b"), ("b", "c"), ("c", "b")], types) == 0


def test_a_kind_that_leaves_open_agrees_with_those_it_may_be() -> None:
    assert same_kind(K.GENERATOR, K.DECODER)
    assert same_kind(K.FORWARD_ONLY, K.RECURRENT)
    assert not same_kind(K.GENERATOR, K.ENCODER)
    assert not same_kind(K.DECODER, K.MULTIMODAL_DECODER)
    assert [one for one in K if leaves_open(one)] == [K.GENERATOR, K.FORWARD_ONLY]


def test_what_files_say_is_written_down_with_place_and_day(context: Context, tmp_path: Path) -> None:
    (tmp_path / "bge").mkdir()
    (tmp_path / "bge" / "config.json").write_text(json.dumps({"architectures": ["BertModel"], "num_attention_heads": 12}))
    service = FLEET.services["embedding"].model_copy(update={"config": ("bge",)})
    (run,) = probe_declared(context, FLEET.model_copy(update={"services": {"embedding": service}}), tmp_path, {})
    (claim,) = run.kinds
    assert (claim.kind, claim.where) == (K.ENCODER, "bge/config.json: architectures BertModel, a head that makes no tokens")
    assert (claim.provenance.kind, claim.provenance.date) == (ProvenanceKind.DECLARED, FLEET.as_of)
