"""What a worker leaves behind: every request as it came off the wire, in a file, so that no memory fills during a run."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, Final

_HEADER: Final = struct.Struct("<qqqqqqiBBHII")
UNCONNECTED: Final = -1


class End(IntEnum):
    """How an exchange ended on the wire; what the bytes mean is decided later."""

    WHOLE = 0
    CLOSED = 1
    LOST = 2
    TIMED_OUT = 3
    TOO_LARGE = 4
    NOT_HTTP = 5
    UNREACHABLE = 6
    TLS = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One request and the bytes that came back. Times are nanoseconds of `time.perf_counter_ns`.

    `due_ns` is when it should have been sent, `sent_ns` when its first attempt was, `last_sent_ns` when its last
    attempt was. `connect_ns` is how long connecting took, UNCONNECTED when an open connection was used again.
    `stamps` has one time per read and `sizes` the bytes it brought; together they cut up `raw`.
    """

    index: int
    due_ns: int
    sent_ns: int
    last_sent_ns: int
    end_ns: int
    connect_ns: int
    attempts: int
    end: End
    stalled: bool
    words: str
    stamps: array[int]
    sizes: array[int]
    raw: bytes | bytearray

    def reads(self) -> Iterator[tuple[bytes, int]]:
        """Give each read with its time."""
        at = 0
        for stamp, size in zip(self.stamps, self.sizes, strict=True):
            yield bytes(self.raw[at : at + size]), stamp
            at += size


def write(file: BinaryIO, exchange: Exchange) -> None:
    """Append one exchange."""
    words = exchange.words.encode("utf-8", "replace")[:2000]
    header = _HEADER.pack(
        exchange.index,
        exchange.due_ns,
        exchange.sent_ns,
        exchange.last_sent_ns,
        exchange.end_ns,
        exchange.connect_ns,
        exchange.attempts,
        exchange.end,
        exchange.stalled,
        len(words),
        len(exchange.stamps),
        len(exchange.raw),
    )
    file.write(b"".join((header, words, exchange.stamps.tobytes(), exchange.sizes.tobytes(), exchange.raw)))


def read(path: Path) -> Iterator[Exchange]:
    """Give the exchanges of a file one by one; what a killed worker wrote half of is left out."""
    with path.open("rb") as file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            index, due, sent, last_sent, ended, connect, attempts, end, stalled, n_words, n_reads, n_raw = _HEADER.unpack(
                header
            )
            stamps, sizes = array("q"), array("I")
            words = file.read(n_words)
            stamp_bytes, size_bytes = file.read(n_reads * stamps.itemsize), file.read(n_reads * sizes.itemsize)
            raw = file.read(n_raw)
            if len(words) < n_words or len(raw) < n_raw or len(size_bytes) < n_reads * sizes.itemsize:
                return
            stamps.frombytes(stamp_bytes)
            sizes.frombytes(size_bytes)
            yield Exchange(
                index=index,
                due_ns=due,
                sent_ns=sent,
                last_sent_ns=last_sent,
                end_ns=ended,
                connect_ns=connect,
                attempts=attempts,
                end=End(end),
                stalled=bool(stalled),
                words=words.decode("utf-8", "replace"),
                stamps=stamps,
                sizes=sizes,
                raw=raw,
            )
