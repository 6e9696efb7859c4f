"""Turns tokens into text as they arrive, so that the pieces add up to what decoding all of them gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# A character of UTF-8 has at most four bytes, so at most four tokens; some room for tokens that print nothing.
_KEPT = 8
_WINDOW = 48


class Detokenizer:
    """Text of one answer.

    Decoding token by token loses each character whose bytes lie in two tokens. The decoder of OpenVINO GenAI leaves
    out bytes that form no character yet, so the text of a growing window grows by whole characters.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._shown = ""

    def add(self, tokens: Sequence[int]) -> str:
        """Give the text that these tokens add; it is empty while a character is incomplete."""
        self._window.extend(tokens)
        text = self._decode(self._window)
        new = text[len(self._shown) :]
        self._shown = text
        if len(self._window) > _WINDOW:
            # Decoding costs the same for 48 tokens as for one, and grows beyond.
            self._window = self._window[-_KEPT:]
            self._shown = self._decode(self._window)
        return new
