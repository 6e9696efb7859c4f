"""An ONNX file as far as it tells what kind of network it holds; its weights are skipped, not read.

Field numbers are those of onnx/onnx.proto (ModelProto, GraphProto, NodeProto, ValueInfoProto, AttributeProto).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from probes.declared.complaint import refuse
from probes.declared.network import Network, attention_layers, matters

MAX_NODES: Final = 500_000
MAX_DEPTH: Final = 16
_GRAPH: Final = 7
_NODE, _INITIALIZER, _INPUT = 1, 5, 11
_NODE_INPUT, _NODE_OUTPUT, _OPERATION, _ATTRIBUTE = 1, 2, 4, 5
_BODY: Final = 6
_NAME: Final = {_INITIALIZER: 8, _INPUT: 1}


class _BrokenError(ValueError):
    """The bytes are no protobuf message."""


@dataclass(kw_only=True)
class _Found:
    """Collects while the graph is walked. `made` names the node that makes a tensor."""

    inputs: list[str] = field(default_factory=list)
    weights: set[str] = field(default_factory=set)
    operations: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)
    nodes: int = 0


def read_onnx(path: Path, name: str) -> Network:
    """Read inputs and operations.

    Raises:
        InputError: it is no ONNX model, or is damaged.
    """
    found = _Found()
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for number, begin, end in _fields(content, 0, len(content)):
                if number == _GRAPH:
                    _graph(content, begin, end, found, depth=0)
    except ValueError as exc:
        # Broken bytes, or a file without any, which cannot be mapped.
        raise refuse(name, f"is no ONNX model ({exc})", "a file that an exporter wrote") from exc
    except OSError as exc:
        raise refuse(name, f"cannot be read ({exc.strerror})", "a readable file") from exc
    if not found.nodes:
        raise refuse(name, "holds no ONNX graph with a node", "a file that an exporter wrote")
    edges = [(found.made[tensor], node) for tensor, node in found.used if tensor in found.made]
    return Network(
        inputs=frozenset(found.inputs) - found.weights,
        states=(),
        operations=found.operations,
        attention=attention_layers(found.operations, edges, found.types),
    )


def _graph(content: mmap.mmap, begin: int, end: int, found: _Found, *, depth: int) -> None:
    """Walk a graph; that of a branch or a loop adds its operations and nothing else."""
    if depth > MAX_DEPTH:
        raise _BrokenError(f"graphs nest deeper than {MAX_DEPTH} levels")
    for number, first, last in _fields(content, begin, end):
        if number == _NODE:
            _node(content, first, last, found, depth=depth)
        elif number in _NAME and depth == 0:
            name = next((_text(content, a, b) for n, a, b in _fields(content, first, last) if n == _NAME[number]), "")
            if number == _INPUT:
                found.inputs.append(name)
            else:
                found.weights.add(name)


def _node(content: mmap.mmap, begin: int, end: int, found: _Found, *, depth: int) -> None:
    found.nodes += 1
    if found.nodes > MAX_NODES:
        raise _BrokenError(f"it has more than {MAX_NODES} nodes")
    node, operation, used, made = str(found.nodes), "", [], []
    for number, first, last in _fields(content, begin, end):
        if number == _OPERATION:
            operation = _text(content, first, last)
        elif number == _NODE_INPUT:
            used.append(_text(content, first, last))
        elif number == _NODE_OUTPUT:
            made.append(_text(content, first, last))
        elif number == _ATTRIBUTE:
            for inner, a, b in _fields(content, first, last):
                if inner == _BODY:
                    _graph(content, a, b, found, depth=depth + 1)
    found.operations[operation] = found.operations.get(operation, 0) + 1
    if depth == 0 and matters(operation):
        found.types[node] = operation
        found.made |= dict.fromkeys(made, node)
        found.used += [(tensor, node) for tensor in used]


def _fields(content: mmap.mmap, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, begin and end of each field that has a length; numbers are skipped."""
    at = begin
    while at < end:
        key, at = _varint(content, at, end)
        number, wire = key >> 3, key & 7
        if wire == 0:
            _, at = _varint(content, at, end)
        elif wire in {1, 5}:
            at += 8 if wire == 1 else 4
        elif wire == 2:
            length, at = _varint(content, at, end)
            if at + length > end:
                raise _BrokenError("a field reaches beyond its message")
            yield number, at, at + length
            at += length
        else:
            raise _BrokenError(f"a field has the wire type {wire}")
    if at != end:
        raise _BrokenError("the last field is cut off")


def _varint(content: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise _BrokenError("a number is cut off")


def _text(content: mmap.mmap, begin: int, end: int) -> str:
    return content[begin : min(end, begin + 400)].decode("utf-8", "replace")
