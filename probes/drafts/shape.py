"""The dimensions of a llama-like decoder and where its layers end, read from its OpenVINO IR."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from probes.errors import InputError, Problem
from probes.schema import Model

IR_NAME = "openvino_model.xml"
# What a layer's end may be called: exporters write the first, the GGUF reader of OpenVINO GenAI the second.
EXPORTED_NAME = "layers.{layer}/"
GGUF_NAME = "model.layers.self_attn.add1.layer{layer}"
FEWEST_LAYERS = 3
_ROPE_THETA, _EPS = 10_000.0, 1e-5


class Shape(Model):
    """What a head has to fit; `residuals` names the addition that ends each layer, first layer first."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocab: int
    rope_theta: float
    eps: float
    residuals: tuple[str, ...]

    @property
    def tapped(self) -> tuple[int, int, int]:
        """The three layers whose output EAGLE-3 takes: the runtime's own choice, else an even spread of few."""
        if self.layers >= 10:
            return 2, self.layers // 2, self.layers - 3
        return 0, self.layers // 2, self.layers - 1


def read_config(folder: Path) -> dict[str, JsonValue]:
    """Read a model folder's config.json; a folder without one has nothing to add to its IR.

    Raises:
        InputError: the file is there and is no JSON object.
    """
    path = folder / "config.json"
    try:
        document = json.loads(path.read_bytes()) if path.exists() else {}
    except (OSError, ValueError, RecursionError) as exc:
        raise InputError([Problem(place=str(path), found=f"cannot be read ({exc})", expected="a JSON object")]) from exc
    if not isinstance(document, dict):
        raise InputError([Problem(place=str(path), found=f"is {type(document).__name__}", expected="a JSON object")])
    return document


def read_shape(model: Any, config: dict[str, JsonValue], place: str) -> Shape:
    """Read the shape from an `openvino.Model`; the config only says what the graph leaves open.

    Raises:
        InputError: no attention, no cache, or no layers of the form that the runtime's EAGLE-3 transform looks for.
    """
    operations = list(model.get_ordered_ops())
    attention = [one for one in operations if one.get_type_name() == "ScaledDotProductAttention"]
    caches = [one.input(0).get_partial_shape() for one in operations if one.get_type_name() == "ReadValue"]
    if not attention or not caches:
        raise _unlike(place, f"has {len(attention)} attention operations and {len(caches)} cache variables")
    residuals = [one for one in operations if _ends_layer(one)]
    layers = len(attention)
    if len(residuals) != layers or layers < FEWEST_LAYERS:
        raise _unlike(place, _found_layers(layers, [one.get_friendly_name() for one in residuals]))
    down = next(_products(residuals[0]))
    sizes: dict[str, int | None] = {
        "hidden": _last(residuals[0].output(0)),
        "intermediate": _last(down.input(0)),
        "vocab": _last(model.output("logits")) if _has_logits(model) else None,
        "kv_heads": _length(caches[0], 1),
        "head_size": _length(caches[0], 3),
        "heads": _length(attention[0].input(0).get_partial_shape(), 1) or _whole(config.get("num_attention_heads")),
    }
    read = {name: size for name, size in sizes.items() if size}
    if len(read) < len(sizes):
        open_ones = ", ".join(name for name in sizes if name not in read)
        raise _unlike(place, f"does not say its {open_ones}")
    return Shape(
        layers=layers,
        residuals=tuple(one.get_friendly_name() for one in residuals),
        rope_theta=_number(config.get("rope_theta")) or _rope_theta(operations, read["head_size"]) or _ROPE_THETA,
        eps=_number(config.get("rms_norm_eps")) or _eps(operations) or _EPS,
        **read,
    )


def exported_name(layer: int, name: str) -> str:
    """Give the name under which the runtime finds a layer's end; a name that it finds already stays."""
    return name if EXPORTED_NAME.format(layer=layer) in name else f"model.{EXPORTED_NAME.format(layer=layer)}mlp_residual"


def _ends_layer(operation: Any) -> bool:
    return operation.get_type_name() == "Add" and any(True for _ in _products(operation))


def _products(addition: Any) -> Iterator[Any]:
    """Find the down projection among the terms of a sum: a matrix product whose left side is itself a product."""
    for term in addition.inputs():
        node = term.get_source_output().get_node()
        if node.get_type_name() == "MatMul" and node.input(0).get_source_output().get_node().get_type_name() == "Multiply":
            yield node


def _found_layers(layers: int, names: list[str]) -> str:
    shown = f" ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" if names else ""
    return f"has {layers} attention layers and {len(names)} additions x + MatMul(a * b, W){shown}"


def _unlike(place: str, found: str) -> InputError:
    looked_for = (EXPORTED_NAME.format(layer="N"), GGUF_NAME.format(layer="N"))
    expected = (
        f"a llama-like decoder of at least {FEWEST_LAYERS} layers with a key-value cache, each ending in an addition "
        f"x + MatMul(a * b, W) under a name such as '...{looked_for[0]}...' or '{looked_for[1]}'"
    )
    return InputError([Problem(place=place, found=found, expected=expected)])


def _has_logits(model: Any) -> bool:
    return any("logits" in output.get_names() for output in model.outputs)


def _last(port: Any) -> int | None:
    shape = port.get_partial_shape()
    return _length(shape, len(shape) - 1) if shape.rank.is_static else None


def _length(shape: Any, axis: int) -> int | None:
    if shape.rank.is_dynamic or not 0 <= axis < len(shape):
        return None
    return int(shape[axis].get_length()) if shape[axis].is_static else None


def _rope_theta(operations: list[Any], head_size: int) -> float | None:
    """Work the base out of the rotary frequencies theta^(-2i/d), the only constant of that form."""
    for one in operations:
        if one.get_type_name() != "Constant" or not one.get_element_type().is_real():
            continue
        shape = list(one.output(0).get_shape())
        if head_size < 8 or max(shape, default=0) != head_size // 2 or sum(length > 1 for length in shape) != 1:
            continue
        values = one.get_data().astype("float64").ravel()
        if values[0] == 1.0 and all(late < early for early, late in pairwise(values)) and values[-1] > 0:
            return float(values[1] ** (-head_size / 2))
    return None


def _eps(operations: list[Any]) -> float | None:
    """Find what a norm adds to the mean square before it takes the root."""
    for one in operations:
        if one.get_type_name() != "Add":
            continue
        terms = [term.get_source_output().get_node() for term in one.inputs()]
        while any(term.get_type_name() == "Convert" for term in terms):
            terms = [t.input(0).get_source_output().get_node() if t.get_type_name() == "Convert" else t for t in terms]
        kinds = {term.get_type_name(): term for term in terms}
        if set(kinds) == {"ReduceMean", "Constant"}:
            return float(kinds["Constant"].get_data().ravel()[0])
    return None


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
