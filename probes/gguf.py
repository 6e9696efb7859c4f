"""The header of a GGUF file: its key-value pairs and the list of its tensors."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, Final

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
_MAGIC: Final = b"GGUF"
_SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_DIMENSIONS = 8

Value = bool | int | float | str | tuple["Value", ...]


class BrokenGgufError(ValueError):
    """The file is not a whole GGUF file; the message says what is wrong with it."""


class TensorType(IntEnum):
    """How a tensor stores its numbers (the `ggml_type` of the format)."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    BF16 = 30


# (numbers per block, bytes per block)
_BLOCKS: Final = {
    TensorType.F32: (1, 4),
    TensorType.F16: (1, 2),
    TensorType.BF16: (1, 2),
    TensorType.Q4_0: (32, 18),
    TensorType.Q4_1: (32, 20),
    TensorType.Q5_0: (32, 22),
    TensorType.Q5_1: (32, 24),
    TensorType.Q8_0: (32, 34),
    TensorType.Q2_K: (256, 84),
    TensorType.Q3_K: (256, 110),
    TensorType.Q4_K: (256, 144),
    TensorType.Q5_K: (256, 176),
    TensorType.Q6_K: (256, 210),
}


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor; `offset` counts from the start of the data section, `kind` is None for a type not known here."""

    name: str
    shape: tuple[int, ...]
    kind: TensorType | None
    offset: int

    @property
    def size_bytes(self) -> int:
        """Bytes in the file; 0 for an unknown type."""
        if self.kind is None:
            return 0
        per_block, block_bytes = _BLOCKS[self.kind]
        count = 1
        for length in self.shape:
            count *= length
        return count // per_block * block_bytes


@dataclass(frozen=True, kw_only=True)
class Header:
    """Everything a GGUF file says before its weights."""

    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]

    def text(self, key: str) -> str:
        """Look up a string.

        Raises:
            BrokenGgufError: the key is missing or holds something else.
        """
        value = self.metadata.get(key)
        if not isinstance(value, str):
            raise BrokenGgufError(f"key {key} is {_shown(value)}; expected text")
        return value

    def number(self, key: str) -> int:
        """Look up an integer.

        Raises:
            BrokenGgufError: the key is missing or holds something else.
        """
        value = self.metadata.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BrokenGgufError(f"key {key} is {_shown(value)}; expected a whole number")
        return value

    @property
    def main_type(self) -> TensorType | None:
        """The type that most of the weights are stored in, by number of weights."""
        counts: dict[TensorType | None, int] = {}
        for tensor in self.tensors:
            count = 1
            for length in tensor.shape:
                count *= length
            # A vocabulary table is often kept at a higher precision and must not outvote the layers.
            if len(tensor.shape) > 1 and tensor.name.startswith("blk."):
                counts[tensor.kind] = counts.get(tensor.kind, 0) + count
        return max(counts, key=lambda kind: counts[kind]) if counts else None


def read_header(path: Path) -> Header:
    """Read a GGUF header and check that the file holds every tensor that it announces.

    Raises:
        BrokenGgufError: another format, an unknown version, or a file that ends too early.
        OSError: the file cannot be read.
    """
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        source = _Source(stream, size)
        if source.take(4) != _MAGIC:
            raise BrokenGgufError("it does not begin with 'GGUF'")
        version = source.number("I")
        if version not in {2, 3}:
            raise BrokenGgufError(f"its format version is {version}; expected 2 or 3")
        tensor_count, pair_count = source.number("Q"), source.number("Q")
        pairs = [(source.text(), source.value(source.number("I"))) for _ in range(source.bounded(pair_count))]
        tensors = tuple(source.tensor() for _ in range(source.bounded(tensor_count)))
        header = Header(metadata=dict(pairs), tensors=tensors)
        alignment = header.number("general.alignment") if "general.alignment" in header.metadata else 32
        data = -(-stream.tell() // max(alignment, 1)) * max(alignment, 1)
    needed = data + max((tensor.offset + tensor.size_bytes for tensor in tensors), default=0)
    if needed > size:
        raise BrokenGgufError(f"it has {size} bytes and its header announces {needed}")
    return header


class _Source:
    """Reads the primitives of the format; no length in a damaged file makes it read past the end."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size

    def bounded(self, count: int) -> int:
        """Refuse a count that the file is too short for."""
        if count > self._size:
            raise BrokenGgufError(f"it announces {count} entries in {self._size} bytes")
        return count

    def take(self, count: int) -> bytes:
        data = self._stream.read(self.bounded(count))
        if len(data) < count:
            raise BrokenGgufError("it ends inside the header")
        return data

    def number(self, code: str) -> int:
        return int(self._scalar(code))

    def text(self) -> str:
        try:
            return self.take(self.number("Q")).decode()
        except UnicodeDecodeError as exc:
            raise BrokenGgufError("its header holds text that is not UTF-8") from exc

    def value(self, kind: int, depth: int = 0) -> Value:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY and depth < 4:
            inner, count = self.number("I"), self.bounded(self.number("Q"))
            return tuple(self.value(inner, depth + 1) for _ in range(count))
        if kind not in _SCALARS:
            raise BrokenGgufError(f"its header holds a value of type {kind}")
        return self._scalar(_SCALARS[kind])

    def tensor(self) -> Tensor:
        name, dimensions = self.text(), self.number("I")
        if dimensions > _MAX_DIMENSIONS:
            raise BrokenGgufError(f"tensor {name!r} has {dimensions} dimensions")
        shape = tuple(self.number("Q") for _ in range(dimensions))
        kind, offset = self.number("I"), self.number("Q")
        known = kind in TensorType.__members__.values()
        return Tensor(name=name, shape=shape, kind=TensorType(kind) if known else None, offset=offset)

    def _scalar(self, code: str) -> bool | int | float:
        value: bool | int | float = struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]
        return value


def _shown(value: Value | None) -> str:
    return "missing" if value is None else repr(value)[:60]
