"""How well a worker kept up: how late it woke, how much of a core it used, how long it waited for one."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TICK_NS: Final = 20_000_000
_SCHEDSTAT: Final = Path("/proc/self/schedstat")
_TICKS_PER_READING: Final = 10


@dataclass(slots=True)
class Pulse:
    """The record of one worker. `lag_ns` is, tick by tick, how much later than asked the worker woke.

    A tick that comes late while bytes wait is the error of their stamps, whatever the cause: a long turn of
    the worker's own, or another process on its core.
    """

    at_ns: array[int] = field(default_factory=lambda: array("q"))
    lag_ns: array[int] = field(default_factory=lambda: array("q"))
    core: list[tuple[int, int, int]] = field(default_factory=list)
    reads: int = 0

    def tick(self, now_ns: int, due_ns: int) -> None:
        """Note one tick; every tenth also reads the processor time used and the time spent waiting for a core."""
        self.at_ns.append(now_ns)
        self.lag_ns.append(now_ns - due_ns)
        if len(self.at_ns) % _TICKS_PER_READING == 1:
            self.core.append((now_ns, time.process_time_ns(), _waited_ns()))

    def document(self) -> dict[str, object]:
        """Give the record as JSON."""
        return {
            "at_ns": list(self.at_ns),
            "lag_ns": list(self.lag_ns),
            "core": self.core,
            "reads": self.reads,
        }


def _waited_ns() -> int:
    """Read how long the process was runnable without running; -1 where the kernel does not tell."""
    try:
        return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return -1
