"""One request on its way, and the exchange it becomes when it is over."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TypeAlias

from probes.load.spool import UNCONNECTED, End, Exchange

# A string, because array.array takes no subscript before Python 3.12.
Heard: TypeAlias = "tuple[array[int], array[int], bytearray]"


@dataclass(slots=True)
class Request:
    """What is known of a request before its answer is read. Times are nanoseconds, 0 for one that has not come."""

    index: int
    stream: int
    due_ns: int
    body: bytes
    sent_ns: int = 0
    last_sent_ns: int = 0
    attempts: int = 0
    connect_ns: int = UNCONNECTED
    stalled: bool = False

    def over(self, ended_ns: int, end: End, words: str, heard: Heard | None) -> Exchange:
        """Close the request. A whole answer ended when its last bytes arrived, any other one at `ended_ns`."""
        stamps, sizes, raw = heard or (array("q"), array("I"), bytearray())
        return Exchange(
            index=self.index,
            due_ns=self.due_ns,
            sent_ns=self.sent_ns,
            last_sent_ns=self.last_sent_ns,
            end_ns=stamps[-1] if end is End.WHOLE and stamps else ended_ns,
            connect_ns=self.connect_ns,
            attempts=self.attempts,
            end=end,
            stalled=self.stalled,
            words=words,
            stamps=stamps,
            sizes=sizes,
            raw=raw,
        )
