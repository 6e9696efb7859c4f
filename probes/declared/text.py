"""A configuration file as text: bounded, whole and readable, or a message that says what is wrong with it."""

from __future__ import annotations

import stat
from pathlib import Path

from probes.declared.complaint import refuse

MAX_BYTES = 2**20


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
    try:
        # Asked before it is opened: a pipe would wait for its writer.
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise refuse(name, "is no regular file", "a file")
        if state.st_size > max_bytes:
            raise refuse(name, f"has {state.st_size} bytes", f"at most {max_bytes}: a file that people wrote")
        with path.open("rb") as stream:
            raw = stream.read(max_bytes + 1)
    except OSError as exc:
        raise refuse(name, f"cannot be read ({exc.strerror})", "a readable file") from exc
    if len(raw) > max_bytes:
        raise refuse(name, f"has more than {max_bytes} bytes", "a file that people wrote")
    return raw


def decoded(raw: bytes, name: str) -> str:
    """Turn bytes into text.

    Raises:
        InputError: they are no text in UTF-8.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw[: exc.start].count(b"\n") + 1
        raise refuse(f"{name}:{line}", "is not UTF-8", "text in UTF-8") from exc
    if "\x00" in text:
        raise refuse(f"{name}:{text[: text.index(chr(0))].count(chr(10)) + 1}", "holds a zero byte", "text, not a binary file")
    return text.replace("\r\n", "\n").replace("\r", "\n")
