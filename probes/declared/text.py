"""A configuration file as text: bounded, whole and readable, or a message that says what is wrong with it."""

from __future__ import annotations

from pathlib import Path

from probes import files
from probes.declared.complaint import refuse

MAX_BYTES = 2**20
_EXPECTED = "a file that people wrote"


def read_text(path: Path, name: str, max_bytes: int = MAX_BYTES) -> str:
    """Read a regular file as UTF-8 with one newline between lines; a byte-order mark is no part of it.

    Raises:
        InputError: it is absent, no regular file, too large or no text.
    """
    return decoded(read_bytes(path, name, max_bytes), name)


def read_bytes(path: Path, name: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a regular file of bounded size.

    Raises:
        InputError: it is absent, no regular file or too large.
    """
    return files.read_bounded(path, name, most=max_bytes, expected=_EXPECTED)


def decoded(raw: bytes, name: str) -> str:
    """Turn bytes into text.

    Raises:
        InputError: they are no text in UTF-8.
    """
    text = files.text_of(raw, name)
    if "\x00" in text:
        raise refuse(f"{name}:{text[: text.index(chr(0))].count(chr(10)) + 1}", "holds a zero byte", "text, not a binary file")
    return text.replace("\r\n", "\n").replace("\r", "\n")
