"""A GGUF header is read as it is, and a damaged one is never more than a BrokenGgufError."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.gguf import BrokenGgufError, Header, Tensor, TensorType, read_header
from probes.model import find_source


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _small_file() -> bytes:
    pairs = [
        _text("general.architecture") + struct.pack("<I", 8) + _text("llama"),
        _text("llama.block_count") + struct.pack("<II", 4, 2),
        _text("some.flag") + struct.pack("<I?", 7, True),
        _text("some.words") + struct.pack("<IIQ", 9, 8, 2) + _text("a") + _text("日本"),
    ]
    tensors = [
        _text("token_embd.weight") + struct.pack("<IQQIQ", 2, 64, 10, TensorType.Q8_0, 0),
        _text("blk.0.ffn.weight") + struct.pack("<IQQIQ", 2, 32, 2, TensorType.Q4_1, 704),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + bytes(704 + 40)


def _read(folder: Path, content: bytes) -> Header:
    path = folder / "x.gguf"
    path.write_bytes(content)
    return read_header(path)


def test_reads_every_kind_of_value(tmp_path: Path) -> None:
    header = _read(tmp_path, _small_file())
    assert header.metadata == {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "some.flag": True,
        "some.words": ("a", "日本"),
    }
    assert header.tensors[1] == Tensor(name="blk.0.ffn.weight", shape=(32, 2), kind=TensorType.Q4_1, offset=704)
    assert header.tensors[1].size_bytes == 40


def test_main_type_is_that_of_the_layers_not_of_the_vocabulary(tmp_path: Path) -> None:
    """The embedding table has ten times the numbers here and another type."""
    assert _read(tmp_path, _small_file()).main_type is TensorType.Q4_1


def test_asking_for_the_wrong_kind_names_the_key(tmp_path: Path) -> None:
    header = _read(tmp_path, _small_file())
    with pytest.raises(BrokenGgufError, match=r"key llama\.block_count is 2; expected text"):
        header.text("llama.block_count")
    with pytest.raises(BrokenGgufError, match=r"key some\.flag is True; expected a whole number"):
        header.number("some.flag")
    with pytest.raises(BrokenGgufError, match=r"key nothing is missing"):
        header.number("nothing")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "ends inside the header|entries in 0 bytes"),
        (b"PK\x03\x04" + bytes(64), "does not begin with 'GGUF'"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "format version is 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "announces 1152921504606846976 entries"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(BrokenGgufError, match=words):
        _read(tmp_path, content)


def test_no_cut_goes_unnoticed(tmp_path: Path) -> None:
    """Wherever a download stopped, the file is refused: no tensor may lie beyond its end."""
    whole = _small_file()
    for end in range(len(whole)):
        with pytest.raises(BrokenGgufError):
            _read(tmp_path, whole[:end])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(_small_file()) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_damage_never_escapes_as_another_exception(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    content = bytearray(_small_file())
    for place, value in changes:
        content[place] = value
    with contextlib.suppress(BrokenGgufError):
        assert isinstance(_read(tmp_path, bytes(content)), Header)


def test_the_real_model() -> None:
    header = read_header(find_source().gguf)
    assert (header.text("general.architecture"), header.number("llama.block_count")) == ("llama", 30)
    assert header.main_type is TensorType.Q4_1
    assert len(header.tensors) == 272
