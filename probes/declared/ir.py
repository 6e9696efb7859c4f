"""An OpenVINO IR as its XML tells it: what the weights are stored in, and the state that a KV cache is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.parsers import expat

from probes.declared.complaint import refuse
from probes.declared.network import Network, attention_layers, matters

MAX_BYTES: Final = 512 * 2**20
_CHUNK: Final = 2**20
_MAX_VALUES: Final = 4096
_BITS: Final = {
    "f64": 64, "f32": 32, "f16": 16, "bf16": 16, "f8e4m3": 8, "f8e5m2": 8, "f8e8m0": 8, "i8": 8, "u8": 8, "i4": 4, "u4": 4,
    "nf4": 4, "f4e2m1": 4, "u3": 3, "u2": 2, "u1": 1,
}  # fmt: skip
# Conversion keeps this much beside the layers: a table of the vocabulary, scales, norms.
_PRECISIONS: Final = {"i8": "INT8", "u8": "INT8", "i4": "INT4", "u4": "INT4", "bf16": "BF16", "f16": "FP16", "f32": "FP32"}


@dataclass(frozen=True, kw_only=True)
class Ir:
    """What was read. `weights` counts numbers by element type; `states` are the shapes of ReadValue layers by name."""

    weights: Mapping[str, int]
    states: Mapping[str, tuple[int | None, ...]]
    inputs: frozenset[str]
    runtime_info: Mapping[str, str]
    network: Network

    @property
    def precision(self) -> tuple[str, str] | None:
        """Name the precision of the weights and where that is said: by the compressor, else by most of the numbers."""
        mode = next((v for k, v in self.runtime_info.items() if re.fullmatch(r"nncf/weight_compression/mode", k)), "")
        if mode and mode not in {"none", "None"}:
            word = mode.split("_")[0].upper()
            return word, f"rt_info nncf weight_compression mode {mode}"
        total = sum(self.weights.values())
        if not total:
            return None
        kind, count = max(self.weights.items(), key=lambda item: item[1])
        return _PRECISIONS.get(kind, kind.upper()), f"{kind} holds {count / total:.0%} of the weights"

    @property
    def stateful(self) -> bool:
        """Whether the model keeps state from one inference to the next."""
        return bool(self.states)

    def cache(self) -> tuple[int, int, int] | None:
        """Give layers, KV heads and head size where the states are the keys and values of attention."""
        keys = [shape for name, shape in self.states.items() if re.search(r"past_key_values\.\d+\.key", name)]
        known = {(shape[1], shape[3]) for shape in keys if len(shape) == 4 and shape[1] and shape[3]}
        if len(known) != 1:
            return None
        heads, size = known.pop()
        return (len(keys), heads, size) if heads and size else None


def read_ir(path: Path, name: str) -> Ir:
    """Read `openvino_model.xml` as a stream; the weights beside it are not touched.

    Raises:
        InputError: it is no IR, is damaged, or declares entities.
    """
    reader = _Reader()
    try:
        if path.stat().st_size > MAX_BYTES:
            raise refuse(name, f"has {path.stat().st_size} bytes", f"at most {MAX_BYTES}")
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                reader.parser.Parse(chunk, False)  # noqa: FBT003 (expat's own signature)
            reader.parser.Parse(b"", True)  # noqa: FBT003
    except expat.ExpatError as exc:
        raise refuse(f"{name}:{exc.lineno}", f"is not XML ({expat.errors.messages[exc.code]})", "an OpenVINO IR") from exc
    except _EntityError as exc:
        raise refuse(name, "declares XML entities", "an IR as OpenVINO writes it") from exc
    except OSError as exc:
        raise refuse(name, f"cannot be read ({exc.strerror})", "a readable file") from exc
    if reader.root != "net":
        raise refuse(name, f"begins with <{reader.root[:40]}>", "<net>, an OpenVINO IR")
    inputs = frozenset(reader.inputs)
    network = Network(
        inputs=inputs,
        states=tuple(reader.states),
        operations=reader.operations,
        attention=attention_layers(reader.operations, reader.edges, reader.types),
    )
    return Ir(weights=reader.weights, states=reader.states, inputs=inputs, runtime_info=reader.runtime_info, network=network)


class _EntityError(Exception):
    """Entities can multiply without end, and OpenVINO writes none."""


class _Reader:
    """Collects while the parser runs."""

    def __init__(self) -> None:
        self.root = ""
        self.weights: dict[str, int] = {}
        self.states: dict[str, tuple[int | None, ...]] = {}
        self.inputs: set[str] = set()
        self.runtime_info: dict[str, str] = {}
        self.operations: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.edges: list[tuple[str, str]] = []
        self._layer: Mapping[str, str] = {}
        self._path: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity

    def _entity(self, *_: object) -> None:
        raise _EntityError

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.root = self.root or tag
        self._path.append(tag)
        if tag == "layer":
            self._layer = attributes
            self._count(attributes.get("type", ""), attributes.get("id", ""))
            outermost = self._path == ["net", "layers", "layer"]
            if attributes.get("type") == "Parameter" and outermost and len(self.inputs) < _MAX_VALUES:
                self.inputs.add(attributes.get("name", ""))
        elif tag == "data" and self._path[-2:-1] == ["layer"]:
            self._data(attributes)
        elif tag == "edge" and self._path == ["net", "edges", "edge"]:
            ends = attributes.get("from-layer", ""), attributes.get("to-layer", "")
            if ends[0] in self.types and ends[1] in self.types:
                self.edges.append(ends)
        elif "value" in attributes and self._path[:2] == ["net", "rt_info"] and len(self.runtime_info) < _MAX_VALUES:
            self.runtime_info["/".join(self._path[2:])] = attributes["value"][:200]

    def _end(self, _tag: str) -> None:
        self._path.pop()

    def _count(self, operation: str, id: str) -> None:
        """Count an operation; those in the body of another have numbers of their own, so that no edge is followed there."""
        if operation in self.operations or len(self.operations) < _MAX_VALUES:
            self.operations[operation] = self.operations.get(operation, 0) + 1
        if matters(operation) and self._path == ["net", "layers", "layer"]:
            self.types[id] = operation

    def _data(self, attributes: Mapping[str, str]) -> None:
        kind = self._layer.get("type")
        bits = _BITS.get(attributes.get("element_type", "").lower(), 0)
        size = attributes.get("size", "")
        if kind == "Const" and bits and size.isascii() and size.isdigit() and len(size) < 20:
            element = attributes["element_type"].lower()
            self.weights[element] = self.weights.get(element, 0) + int(size) * 8 // bits
        elif kind == "ReadValue" and len(self.states) < _MAX_VALUES:
            shape = attributes.get("variable_shape", "").split(",")
            self.states[attributes.get("variable_id", "")] = tuple(_length(part) for part in shape)


def _length(text: str) -> int | None:
    part = text.strip()
    return int(part) if part.isascii() and part.isdigit() and len(part) < 10 else None
