"""HTTP/1.1 answers on the byte level: where a head ends, how a body is framed, when it is whole."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

MAX_HEAD_BYTES: Final = 2**16
GREETING: Final = b"HTTP/"
_SHORTEST_BACKOFF_S: Final = 0.1
_LONGEST_BACKOFF_S: Final = 30.0
_SIZE_BYTES: Final = 20
_LAST_CHUNK: Final = b"0\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r|\n|$)")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")


class NotHttpError(ValueError):
    """The bytes are not those of an HTTP/1.x answer; the message quotes nothing of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """Status line and headers of an answer; names are lower case. `size` counts its bytes, blank line included."""

    status: int
    headers: dict[str, str]
    size: int

    @property
    def chunked(self) -> bool:
        """Tell whether the body comes in chunks; RFC 9112 lets that overrule a length."""
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        """Give the length of the body, None when only the end of the connection tells it."""
        if self.status in {204, 304} or self.status < 200:
            return 0
        text = self.headers.get("content-length", "")
        return int(text) if text.isdecimal() and text.isascii() and not self.chunked else None

    @property
    def encoding(self) -> str:
        """Name the compression of the body; '' where there is none."""
        encoding = self.headers.get("content-encoding", "").strip().lower()
        return "" if encoding == "identity" else encoding

    @property
    def keeps_open(self) -> bool:
        """Tell whether another request may follow on the connection."""
        connection = self.headers.get("connection", "").lower()
        return "close" not in connection and (self.chunked or self.length is not None)


def could_be_http(heard: bytes | bytearray) -> bool:
    """Tell whether the first bytes of a connection can begin an HTTP answer."""
    return GREETING.startswith(heard[: len(GREETING)])


def read_head(raw: bytes | bytearray) -> Head | None:
    """Read the head of an answer, None while it is not whole; interim answers (1xx) are passed over.

    Raises:
        NotHttpError: the first line is no status line, or the head outgrew its bound.
    """
    start = 0
    while True:
        end = raw.find(b"\r\n\r\n", start)
        if end < 0:
            if not could_be_http(raw[start : start + len(GREETING)]) or len(raw) - start > MAX_HEAD_BYTES:
                raise NotHttpError("no HTTP/1.x answer")
            return None
        lines = bytes(raw[start:end]).split(b"\r\n")
        status = _STATUS.match(lines[0])
        if status is None:
            raise NotHttpError("no HTTP/1.x status line")
        start = end + 4
        if not 100 <= int(status[1]) < 200:
            return Head(status=int(status[1]), headers=_headers(lines[1:]), size=start)


class Dechunker:
    """Undoes the chunked transfer coding piece by piece, whatever the boundaries of the reads."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._left = 0
        self._in_data = False
        self._in_trailer = False
        self.whole = False

    def feed(self, piece: bytes) -> bytes:
        """Take raw bytes and give the bytes of the body in them.

        Raises:
            NotHttpError: a chunk has no readable size.
        """
        body = bytearray()
        at = 0
        while at < len(piece) and not self.whole:
            if not (self._line or self._in_data or self._in_trailer):
                # A read mostly brings whole chunks, and a run has hundreds of thousands.
                after = self._whole_chunk(piece, at, body)
                if after > at:
                    at = after
                    continue
            if self._in_data and self._left:
                taken = piece[at : at + self._left]
                body += taken
                at += len(taken)
                self._left -= len(taken)
                continue
            newline = piece.find(b"\n", at)
            self._line += piece[at:] if newline < 0 else piece[at : newline + 1]
            if len(self._line) > MAX_HEAD_BYTES:
                raise NotHttpError("a chunk without its size")
            if newline < 0:
                break
            at = newline + 1
            self._end_line(bytes(self._line).rstrip(b"\r\n"))
            self._line.clear()
        return bytes(body)

    def _whole_chunk(self, piece: bytes, at: int, body: bytearray) -> int:
        """Take a chunk that lies wholly in the piece and give the place after it, else the place before it."""
        newline = piece.find(b"\r\n", at, at + _SIZE_BYTES)
        size = _CHUNK_SIZE.fullmatch(piece, at, newline) if newline > 0 else None
        if size is None:
            return at
        start = newline + 2
        end = start + int(size[1], 16)
        if end == start or piece[end : end + 2] != b"\r\n":
            return at
        body += piece[start:end]
        return end + 2

    def _end_line(self, line: bytes) -> None:
        if self._in_trailer:
            self.whole = not line
        elif self._in_data:
            # The line end that belongs to the chunk before.
            if line:
                raise NotHttpError("a chunk longer than its size")
            self._in_data = False
        else:
            size = _CHUNK_SIZE.fullmatch(line)
            if size is None:
                raise NotHttpError("a chunk without its size")
            self._left = int(size[1], 16)
            self._in_trailer = self._left == 0
            self._in_data = self._left > 0


def may_end(raw: bytearray) -> bool:
    """Tell cheaply whether a chunked body can be whole; run on every read, so it looks at its last bytes only.

    Events may end in the same bytes, so `Dechunker` has the last word. A server that sends trailers is
    caught by the deadline instead; no inference server is known to send any.
    """
    return raw.endswith(_LAST_CHUNK)


def backoff_s(head: Head, attempts: int) -> float:
    """Give how long to wait before asking again: what the server asks for, else twice as long each time, within bounds."""
    try:
        asked = float(head.headers.get("retry-after", ""))
    except ValueError:
        asked = 0.5 * 2.0 ** (attempts - 1)
    return min(max(asked, _SHORTEST_BACKOFF_S), _LONGEST_BACKOFF_S) if math.isfinite(asked) else _LONGEST_BACKOFF_S


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode("latin-1").partition(":")
        key, text = name.strip().lower(), value.strip()
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
