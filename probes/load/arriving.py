"""An answer while its bytes arrive: stamped and kept, and understood only as far as to know when it is over."""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

from probes.load.http1 import Dechunker, Head, NotHttpError, may_end, read_head
from probes.load.request import Heard
from probes.load.spool import End

MAX_ANSWER_BYTES: Final = 16 * 2**20


class Over(NamedTuple):
    """How an answer ended. `reuse` says that its connection may carry another."""

    end: End
    words: str = ""
    reuse: bool = True


class Arriving:
    """The bytes of one answer so far. `over_ns` is when its terminator came; a connection may stay open after it."""

    __slots__ = ("head", "left", "over_ns", "raw", "sizes", "stamps")

    def __init__(self) -> None:
        self.raw = bytearray()
        self.stamps = array("q")
        self.sizes = array("I")
        self.head: Head | None = None
        self.left = 0
        self.over_ns = 0

    @property
    def heard(self) -> Heard:
        """The answer so far: times, sizes and bytes of its reads."""
        return self.stamps, self.sizes, self.raw

    @property
    def begun(self) -> bool:
        """Tell whether anything of the body is there."""
        return self.head is not None and len(self.raw) > self.head.size

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
        if raw.find(b"[DONE]", len(raw) - size) >= 0:
            self.over_ns = now_ns
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
