"""An answer while its bytes arrive: stamped and kept, and understood only as far as to know when it is over."""

from __future__ import annotations

import json
import re
from array import array
from typing import Final, NamedTuple

from probes.load.http1 import Dechunker, Head, NotHttpError, may_end, read_head
from probes.load.request import Heard
from probes.load.spool import End

MAX_ANSWER_BYTES: Final = 16 * 2**20
_TERMINATOR: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
_TERMINATOR_BYTES: Final = 16
_ENDED: Final = re.compile(rb'[\r\n]data: ?\[DONE\]|"finish_reason"\s*:\s*"')
_GIVEN_UP: Final = re.compile(rb'"finish_reason"\s*:\s*"(?:error|abort)"|(?:^|[\r\n])event: ?error[\r\n]')
_CONTENT: Final = re.compile(rb"[\r\n](?:data|event|\{|<)")
_ERROR: Final = b'"error"'
_OMINOUS: Final = (_ERROR, b'"abort"', b"event: error", b"event:error")
_TAIL_BYTES: Final = 2048
_LINE_END: Final = re.compile(rb"[\r\n]")


class Over(NamedTuple):
    """How an answer ended. `reuse` says that its connection may carry another."""

    end: End
    words: str = ""
    reuse: bool = True


class Arriving:
    """The bytes of one answer so far. `over_ns` is when its terminator came; a connection may stay open after it."""

    __slots__ = ("first", "head", "left", "over_ns", "raw", "sizes", "stamps")

    def __init__(self) -> None:
        self.raw = bytearray()
        self.stamps = array("q")
        self.sizes = array("I")
        self.first = -1
        self.head: Head | None = None
        self.left = 0
        self.over_ns = 0

    @property
    def heard(self) -> Heard:
        """The answer so far: times, sizes and bytes of its reads."""
        return self.stamps, self.sizes, self.raw

    @property
    def begun(self) -> bool:
        """Tell whether anything of the body is there but comments, with which a proxy keeps a connection open."""
        if self.first < 0 and self.head is not None and self._has_content(self.head):
            self.first = len(self.stamps) - 1
        return self.first >= 0

    def _has_content(self, head: Head) -> bool:
        """Look for the first line of the body that is no comment."""
        # From the blank line of the head on, so that the first line of the body has one before it too.
        return len(self.raw) > head.size and bool(head.encoding or _CONTENT.search(self.raw, head.size - 1))

    @property
    def answered(self) -> bool:
        """Tell whether it seems to have come to a good end; what is compressed is looked into later."""
        return self.head is not None and bool(self.head.encoding or looks_answered(self.raw))

    def recent_gap_ns(self, gaps: int) -> float | None:
        """Give the mean time between the last reads; None while fewer came after the one that began the answer."""
        if len(self.stamps) - 1 - max(self.first, 0) <= gaps:
            return None
        return (self.stamps[-1] - self.stamps[-1 - gaps]) / gaps

    def take(self, data: memoryview | bytes, now_ns: int) -> Over | None:
        """Keep what one read brought, and say how the answer is over, if it is."""
        size = len(data)
        raw = self.raw
        raw += data
        self.stamps.append(now_ns)
        self.sizes.append(size)
        over = None
        if self.head is None:
            over = self._take_head()
        elif self.left:
            self.left -= size
            if self.left <= 0:
                over = Over(End.WHOLE)
        elif may_end(raw):
            over = self._dechunked()
        if over is not None:
            return over
        # Two looks, because this runs on every read and a text may hold the word.
        since = max(0, len(raw) - size - _TERMINATOR_BYTES)
        if raw.find(b"[DONE]", since) >= 0 and _TERMINATOR.search(raw, max(0, since - _TERMINATOR_BYTES)):
            self.over_ns = self.over_ns or now_ns
        if len(raw) > MAX_ANSWER_BYTES:
            return Over(End.TOO_LARGE, f"the answer is over {MAX_ANSWER_BYTES} bytes", reuse=False)
        return None

    def _take_head(self) -> Over | None:
        try:
            head = read_head(self.raw)
        except NotHttpError as exc:
            return Over(End.NOT_HTTP, str(exc), reuse=False)
        if head is None:
            return None
        self.head = head
        if head.chunked:
            return self._dechunked() if may_end(self.raw) else None
        if head.length is not None:
            self.left = head.length - (len(self.raw) - head.size)
            if self.left <= 0:
                return Over(End.WHOLE)
        return None

    def _dechunked(self) -> Over | None:
        """Look whether the last chunk is there, which bytes of a body may only look like."""
        if self.head is None or not self.head.chunked:
            return None
        dechunker = Dechunker()
        try:
            dechunker.feed(bytes(self.raw[self.head.size :]))
        except NotHttpError as exc:
            return Over(End.NOT_HTTP, str(exc), reuse=False)
        return Over(End.WHOLE) if dechunker.whole else None


def looks_answered(raw: bytes | bytearray) -> bool:
    """Tell whether an answer seems to have come to a good end; only what stops a run hangs on it.

    `outcome.read` decides later. Good chunks carry `"error": null` or an empty error, so a line that speaks of one is
    parsed, and one that cannot be parsed here, in the middle of a chunked body, counts as an error.
    """
    # Patterns only where a plain search has found something: this runs on every answer, between two reads.
    if not (_ENDED.search(raw, max(0, len(raw) - _TAIL_BYTES)) or _ENDED.search(raw)) or b'"choices"' not in raw:
        return False
    if any(word in raw for word in _OMINOUS) and _GIVEN_UP.search(raw):
        return False
    at = raw.find(_ERROR)
    while at >= 0:
        end = _LINE_END.search(raw, at)
        stop = end.start() if end else len(raw)
        start = max(raw.rfind(b"\n", 0, at), raw.rfind(b"\r", 0, at)) + 1
        if _is_error(bytes(raw[start:stop])):
            return False
        at = raw.find(_ERROR, stop)
    return True


def _is_error(line: bytes) -> bool:
    try:
        document = json.loads(line.removeprefix(b"data:"))
    except (ValueError, RecursionError):
        return True
    if not isinstance(document, dict):
        return False
    return bool(document.get("error")) or "error" in (document.get("object"), document.get("type"))
