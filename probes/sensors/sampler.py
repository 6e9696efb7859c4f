"""Reads sensors while something else runs: once before, once after, and every second between."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from probes.sensors.track import Source, Track

INTERVAL_S: Final = 1.0
_NICE: Final = 10


class Sampler:
    """A thread that reads sources between `with` and its end. Times are those of `time.perf_counter_ns`.

    It takes part in no measurement: the processes that stamp bytes are others.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        interval_s: float = INTERVAL_S,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.tracks = tuple(Track(source=source) for source in sources)
        self._interval_s = interval_s
        self._now_ns = now_ns
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sensors", daemon=True)

    def __enter__(self) -> Self:
        self._read()
        if self.tracks:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._read()

    def _run(self) -> None:
        _yield_cores()
        while not self._over.wait(self._interval_s):
            self._read()

    def _read(self) -> None:
        for track in self.tracks:
            track.take(self._now_ns)


def _yield_cores() -> None:
    """Let every other process go first, where a thread has a priority of its own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
