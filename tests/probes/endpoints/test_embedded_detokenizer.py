"""The pieces of an answer add up to the answer, wherever tokens cut its characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.endpoints.embedded.detokenizer import Detokenizer

BYTES = list(range(256))
WORDS = [b" the", b"\xf0\x9f", b" \xe6\x97", b"\xa5\xe6", b"<end>"]


def _decode(tokens: list[int]) -> str:
    """Decode as OpenVINO GenAI does: bytes that form no character are left out. 260 prints nothing."""
    pieces = [bytes([token]) if token < 256 else WORDS[token - 256] for token in tokens if token != 260]
    return b"".join(pieces).decode(errors="ignore")


@given(st.text(min_size=1, max_size=120))
def test_text_cut_into_single_bytes_comes_back_whole(text: str) -> None:
    tokens = list(text.encode())
    detokenizer = Detokenizer(_decode)
    pieces = [detokenizer.add([token]) for token in tokens]
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces if "\ufffd" not in text)


@given(st.lists(st.lists(st.integers(0, 260), max_size=5), max_size=60))
def test_any_tokens_in_any_portions_add_up(portions: list[list[int]]) -> None:
    """Also for bytes that are no text at all."""
    detokenizer = Detokenizer(_decode)
    assert "".join(map(detokenizer.add, portions)) == _decode([token for portion in portions for token in portion])
