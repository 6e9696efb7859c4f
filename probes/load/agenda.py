"""A selector and timers in one: what may be read, and what is due, to the microsecond."""

from __future__ import annotations

import heapq
import select
import selectors
import time
from collections.abc import Callable
from typing import Final

_NS: Final = 10**9
_COARSE_NS: Final = 1_500_000
_AT_REST_S: Final = 1.0
_now_ns = time.perf_counter_ns


class Agenda:
    """Waits for sockets and for times. Acts are called with the time they were due and the time it is."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self._due: list[tuple[int, int, Callable[[int, int], None]]] = []
        self._count = 0

    def at(self, due_ns: int, act: Callable[[int, int], None]) -> None:
        """Call `act` at a time of `time.perf_counter_ns`."""
        self._count += 1
        heapq.heappush(self._due, (due_ns, self._count, act))

    def wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for bytes or the next time. epoll counts in milliseconds, so the last of them is waited with select."""
        selector = self.selector
        if not self._due:
            return selector.select(_AT_REST_S)
        left = self._due[0][0] - _now_ns()
        if left <= 0:
            return selector.select(0)
        if left > _COARSE_NS or not hasattr(selector, "fileno"):
            return selector.select((left // 1_000_000 - 0.5) / 1e3)
        select.select([selector.fileno()], [], [], left / _NS)
        return selector.select(0)

    def act(self, now_ns: int) -> None:
        """Do what is due."""
        while self._due and self._due[0][0] <= now_ns:
            due, _, act = heapq.heappop(self._due)
            act(due, now_ns)
