"""What a model's own files say about it: what sizes its weights and its KV cache, each with the place it was read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from probes.declared import kind
from probes.declared.complaint import refuse, usable
from probes.declared.ir import Ir, read_ir
from probes.declared.jsontext import loads, mapping
from probes.declared.onnx import read_onnx
from probes.declared.text import read_text
from probes.evidence import ModelKind
from probes.gguf import BrokenGgufError, Header, read_header
from probes.told import Told

CONFIG, GENERATION, IR = "config.json", "generation_config.json", "openvino_model.xml"
_LANGUAGE, _ENCODER, _DECODER = "openvino_language_model.xml", "openvino_encoder_model.xml", "openvino_decoder_model.xml"
_OPTIMUM: Final = "openvino_config.json"
_GENERATING: Final = frozenset({ModelKind.DECODER, ModelKind.GENERATOR})
_CTRANSLATE2: Final = "model.bin"
_PIPELINE, _MODULES, _CARD = "model_index.json", "modules.json", "README.md"
_MAX_JSON: Final = 8 * 2**20
_PRECISIONS: Final = {"bfloat16": "BF16", "float16": "FP16", "float32": "FP32", "float64": "FP64"}
# llama_ftype of llama.h: how a file mixes types, which the type of most weights does not tell.
_FILE_TYPES: Final = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 32: "BF16",
}  # fmt: skip
_CONTEXT: Final = ("max_position_embeddings", "n_positions", "seq_len", "seq_length", "n_ctx", "max_sequence_length")


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A model as its files describe it; None is what they do not tell.

    `head_size` counts numbers per head, `context_tokens` is what it was trained for. `stateful` says that a graph
    keeps its KV cache itself, as the IR of a text generator does. `kinds` is what each file says that it is.
    """

    architecture: Told[str] | None = None
    weight_precision: Told[str] | None = None
    layers: Told[int] | None = None
    hidden_size: Told[int] | None = None
    heads: Told[int] | None = None
    kv_heads: Told[int] | None = None
    head_size: Told[int] | None = None
    context_tokens: Told[int] | None = None
    sliding_window: Told[int] | None = None
    vocab: Told[int] | None = None
    stateful: Told[bool] | None = None
    kinds: tuple[Told[ModelKind], ...] = ()

    def kv_bytes_per_token(self, bytes_per_number: float) -> float | None:
        """Size the KV cache of one token: 2 x layers x KV heads x head size; None where a factor is not told."""
        if self.layers is None or self.kv_heads is None or self.head_size is None:
            return None
        return 2 * self.layers.value * self.kv_heads.value * self.head_size.value * bytes_per_number

    def filled(self, other: ModelShape) -> ModelShape:
        """Fill what is not told here from another description; what it is, each says for itself."""
        filled = {one.name: getattr(self, one.name) or getattr(other, one.name) for one in fields(self)}
        return ModelShape(**{**filled, "kinds": self.kinds + other.kinds})

    def document(self) -> dict[str, JsonValue]:
        """Write it for evidence."""
        told = ((one.name, getattr(self, one.name)) for one in fields(self) if one.name != "kinds")
        return {name: {"value": value.value, "where": value.where} for name, value in told if value is not None}


def read_shape(path: Path, name: str) -> ModelShape:
    """Describe a model from its folder, or from a GGUF file.

    Raises:
        InputError: a file is damaged, or nothing there describes a model.
    """
    if not path.is_dir():
        return of_gguf(_gguf(path, name), name)
    shape = find_shape(path, name)
    if shape is None:
        raise refuse(name, "describes no model", f"a folder with {CONFIG}, {IR}, {_PIPELINE}, an .onnx or a .gguf file")
    return shape


def find_shape(path: Path, name: str) -> ModelShape | None:
    """Describe a model from its folder; None where nothing there describes one.

    Raises:
        InputError: a file is damaged.
    """
    name, shape = name.rstrip("/"), ModelShape()
    for part in _parts(path, name):
        shape = shape.filled(part)
    if shape != ModelShape():
        return shape.filled(_card(path, name))
    # OVMS keeps each version of a classic model in a folder of that number, and serves the highest.
    versions = [one for one in path.iterdir() if one.name.isascii() and one.name.isdigit() and one.is_dir()]
    last = max(versions, key=lambda one: int(one.name), default=None)
    return None if last is None else find_shape(last, f"{name}/{last.name}")


def of_gguf(header: Header, where: str) -> ModelShape:
    """Describe the model of a GGUF header; a key that is absent is not told."""
    architecture = header.metadata.get("general.architecture")
    if not isinstance(architecture, str) or not usable(architecture):
        return ModelShape()

    def number(key: str) -> Told[int] | None:
        full = f"{architecture}.{key}"
        value = header.metadata.get(full)
        if isinstance(value, tuple):
            # One entry a layer in models that mix kinds of attention: only an even one has a single answer.
            value = value[0] if value and len(set(value)) == 1 else None
        return Told(value=value, where=f"{where}: {full}") if isinstance(value, int) and not isinstance(value, bool) else None

    hidden, heads = number("embedding_length"), number("attention.head_count")
    size = number("attention.key_length")
    if size is None and hidden and heads and heads.value:
        size = Told(value=hidden.value // heads.value, where=f"{hidden.where} / head_count")
    stored = header.main_type
    precision = None if stored is None else Told(value=stored.name, where=f"{where}: most of the weights")
    mixed = header.metadata.get("general.file_type")
    if isinstance(mixed, int) and mixed in _FILE_TYPES:
        precision = Told(value=_FILE_TYPES[mixed], where=f"{where}: general.file_type")
    return ModelShape(
        architecture=Told(value=architecture, where=f"{where}: general.architecture"),
        weight_precision=precision,
        layers=number("block_count"),
        hidden_size=hidden,
        heads=heads,
        kv_heads=number("attention.head_count_kv") or heads,
        head_size=size,
        context_tokens=number("context_length"),
        sliding_window=number("attention.sliding_window"),
        vocab=number("vocab_size"),
        kinds=tuple(kind.of_gguf(header, where)),
    )


def _parts(path: Path, name: str) -> Iterator[ModelShape]:
    """Describe by the files that a runtime loads, the nearest to the weights first."""
    networks = tuple(_networks(path, name))
    yield from networks
    ggufs = sorted(path.glob("*.gguf"))
    if len(ggufs) == 1:
        yield of_gguf(_gguf(ggufs[0], f"{name}/{ggufs[0].name}"), f"{name}/{ggufs[0].name}")
    if (path / _CTRANSLATE2).is_file():
        with (path / _CTRANSLATE2).open("rb") as stream:
            yield ModelShape(kinds=tuple(kind.of_ctranslate2(stream.read(80), f"{name}/{_CTRANSLATE2}")))
    pooled = _pooled(path, name)
    yield ModelShape(kinds=pooled)
    # A class that could generate says nothing of a model that is pooled, or was exported to read all in one pass.
    headless = bool(pooled) or any(told.value is ModelKind.ENCODER for one in networks for told in one.kinds)
    for file, read in ((_OPTIMUM, _of_optimum), (CONFIG, _of_config), (_PIPELINE, _of_pipeline)):
        if (path / file).is_file():
            place = f"{name}/{file}"
            part = read(mapping(read_text(path / file, place, _MAX_JSON), place, 1), place)
            yield replace(part, kinds=tuple(told for told in part.kinds if not (headless and told.value in _GENERATING)))


def _networks(path: Path, name: str) -> Iterator[ModelShape]:
    """Describe the IR, or else the ONNX file, that a runtime would load."""
    known = next((file for file in (IR, _LANGUAGE, _DECODER) if (path / file).is_file()), None)
    single = [file for ending in ("*.xml", "*.onnx") for file in sorted(path.glob(ending))]
    file = path / known if known else single[0] if len(single) == 1 else None
    if file is None:
        return
    place = f"{name}/{file.name}"
    if file.suffix == ".onnx":
        yield ModelShape(kinds=(kind.of_network(read_onnx(file, place), place),))
        return
    ir = read_ir(file, place)
    told = [kind.of_network(ir.network, place)]
    if known == _LANGUAGE:
        told = [Told(value=ModelKind.MULTIMODAL_DECODER, where=f"{place}: {ir.network.why}, for parts that see beside it")]
    elif known == _DECODER and (path / _ENCODER).is_file():
        place = f"{name}/{_ENCODER}"
        told = [*kind.of_speech(read_ir(path / _ENCODER, place).network, place)]
    yield replace(_of_ir(ir, f"{name}/{file.name}"), kinds=tuple(told))


def _pooled(path: Path, name: str) -> tuple[Told[ModelKind], ...]:
    file, place = path / _MODULES, f"{name}/{_MODULES}"
    if not file.is_file():
        return ()
    return tuple(kind.of_modules(loads(read_text(file, place, _MAX_JSON), place, 1), place))


def _card(path: Path, name: str) -> ModelShape:
    """Read the task that a model card names; a folder with nothing but a card describes no model."""
    place = f"{name}/{_CARD}"
    if not (path / _CARD).is_file():
        return ModelShape()
    return ModelShape(kinds=tuple(kind.of_card(read_text(path / _CARD, place, _MAX_JSON), place)))


def _of_ir(ir: Ir, place: str) -> ModelShape:
    precision, cache = ir.precision, ir.cache()
    states = Told(value=ir.stateful, where=f"{place}: {len(ir.states)} ReadValue layers")
    shape = ModelShape(stateful=states)
    if precision is not None:
        shape = shape.filled(ModelShape(weight_precision=Told(value=precision[0], where=f"{place}: {precision[1]}")))
    if cache is not None:
        layers, heads, size = (Told(value=value, where=f"{place}: ReadValue shapes") for value in cache)
        shape = shape.filled(ModelShape(layers=layers, kv_heads=heads, head_size=size))
    return shape


def _of_optimum(document: Mapping[str, JsonValue], place: str) -> ModelShape:
    """Read what optimum-intel exported with; `dtype` is its older word for it."""
    quantized = document.get("quantization_config")
    quantized = quantized if isinstance(quantized, dict) else {}
    inner = quantized.get("weight_quantization_config")
    bits = (inner if isinstance(inner, dict) else quantized).get("bits")
    dtype = document.get("dtype")
    if isinstance(bits, int) and not isinstance(bits, bool) and 0 < bits <= 32:
        return ModelShape(weight_precision=Told(value=f"INT{bits}", where=f"{place}: quantization_config.bits"))
    if isinstance(dtype, str) and usable(dtype) and dtype:
        return ModelShape(weight_precision=Told(value=dtype.upper(), where=f"{place}: dtype"))
    return ModelShape()


def _of_config(document: Mapping[str, JsonValue], place: str) -> ModelShape:
    """Read the `config.json` of a transformers model; a model with images has its decoder in `text_config`."""
    inner = document.get("text_config")
    decoder: Mapping[str, JsonValue] = {**document, **inner} if isinstance(inner, dict) else document

    def number(*keys: str) -> Told[int] | None:
        for key in keys:
            value = decoder.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40:
                return Told(value=value, where=f"{place}: {key}")
        return None

    hidden, heads = (
        number("hidden_size", "n_embd", "d_model"),
        number("num_attention_heads", "n_head", "decoder_attention_heads"),
    )
    size = number("head_dim")
    if size is None and hidden and heads:
        size = Told(value=hidden.value // heads.value, where=f"{place}: {hidden.where.rpartition(' ')[2]} / heads")
    return ModelShape(
        architecture=_text(decoder, "model_type", place),
        weight_precision=_precision(document, place),
        layers=number("num_hidden_layers", "n_layer", "num_layers", "decoder_layers"),
        hidden_size=hidden,
        heads=heads,
        kv_heads=number("num_key_value_heads", "n_head_kv", "num_kv_heads") or heads,
        head_size=size,
        context_tokens=number(*_CONTEXT),
        sliding_window=number("sliding_window"),
        vocab=number("vocab_size"),
        kinds=tuple(kind.of_config(document, place)),
    )


def _of_pipeline(document: Mapping[str, JsonValue], place: str) -> ModelShape:
    return ModelShape(kinds=tuple(kind.of_pipeline(document, place)))


def _precision(document: Mapping[str, JsonValue], place: str) -> Told[str] | None:
    quantized = document.get("quantization_config")
    if isinstance(quantized, dict):
        return _text(quantized, "quant_method", f"{place}: quantization_config")
    told = _text(document, "torch_dtype", place) or _text(document, "dtype", place)
    return told and Told(value=_PRECISIONS.get(told.value, told.value), where=told.where)


def _text(document: Mapping[str, JsonValue], key: str, place: str) -> Told[str] | None:
    value = document.get(key)
    return Told(value=value, where=f"{place}: {key}") if isinstance(value, str) and value and usable(value) else None


def _gguf(path: Path, name: str) -> Header:
    try:
        return read_header(path)
    except BrokenGgufError as exc:
        raise refuse(name, f"is no usable GGUF file: {exc}", "a whole GGUF file") from exc
    except (OSError, ValueError) as exc:
        raise refuse(name, f"cannot be read ({exc})", "a readable GGUF file") from exc
