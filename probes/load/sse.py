"""Server-sent events on the byte level: reads with their arrival times in, whole events out.

Framing follows the WHATWG rules for `text/event-stream`; the text layer is touched only after an
event is whole, so neither a read boundary inside a character nor U+2028 inside a string matters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from probes.errors import ProbeError

MAX_LINE_BYTES = 2**20
MAX_EVENT_BYTES = 4 * 2**20

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class TooLargeError(ProbeError):
    """A line or an event outgrew its bound, so the stream is given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One event. `at_s` is when the read that completed it arrived; `whole` is False at a cut end."""

    data: str
    name: str
    at_s: float
    whole: bool = True


class Framer:
    """Collects reads into events; holds at most one line and one event."""

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()
        self._scanned = 0
        self._skip_line_feed = False
        self._at_start = True
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = ""
        self.comments = 0

    def feed(self, read: bytes, at_s: float) -> list[Event]:
        """Take one read and give the events that it completed.

        A CR ends its line at once: waiting for a possible LF would move the arrival time of the
        event to the next read.

        Raises:
            TooLargeError: no line end or no event end within the bounds.
        """
        if self._skip_line_feed and read:
            self._skip_line_feed = False
            read = read.removeprefix(b"\n")
        if not read:
            return []
        self._line += read
        events: list[Event] = []
        start = 0
        for end in _LINE_END.finditer(self._line, self._scanned):
            event = self._end_line(bytes(self._line[start : end.start()]), at_s)
            if event is not None:
                events.append(event)
            start = end.end()
        self._skip_line_feed = read.endswith(b"\r")
        del self._line[:start]
        self._scanned = len(self._line)
        self._bound(len(self._line))
        return events

    def close(self, at_s: float) -> Event | None:
        """Give what the end of the stream left without its blank line, if it holds any data.

        The rules would drop it. It is kept and marked because servers do close right after
        `data: [DONE]`, and the reader of the event can tell that from half a JSON document.
        """
        if self._line:
            self._end_line(bytes(self._line), at_s)
            self._line.clear()
        event = self._end_event(at_s, whole=False)
        self._scanned = 0
        return event

    def _end_line(self, line: bytes, at_s: float) -> Event | None:
        self._bound(len(line))
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._end_event(at_s, whole=True)
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
            if self._data_bytes > self._max_event_bytes:
                raise TooLargeError(f"an event is over {self._max_event_bytes} bytes")
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif not field:
            self.comments += 1
        return None

    def _end_event(self, at_s: float, *, whole: bool) -> Event | None:
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, ""
        if not data:
            return None
        return Event(data=b"\n".join(data).decode("utf-8", "replace"), name=name or "message", at_s=at_s, whole=whole)

    def _bound(self, line_bytes: int) -> None:
        if line_bytes > self._max_line_bytes:
            raise TooLargeError(f"a line is over {self._max_line_bytes} bytes without its end")
