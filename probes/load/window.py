"""Which requests count: those that began after the warm-up had ended and ended before the load went down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where in a run a request lies."""

    WARM_UP = "warm-up"
    MEASURED = "measured"
    COOL_DOWN = "cool-down"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is left out. Times are absolute; None means no bound.

    The first `warmup` requests are warm-up, and so is every request that began before the last of them
    ended or before `warm_until_ns`. Of those after it the first `requests` are measured. One that ends
    after `cool_from_ns` is cool-down.
    """

    warmup: int
    requests: int | None
    warm_until_ns: int | None = None
    cool_from_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class Window:
    """The measured part of a run. Without any measured request it is empty."""

    phases: tuple[Phase, ...]
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length, from the first measured request to the end of the last one."""
        return max(0, self.end_ns - self.start_ns) / 1e9


def choose(spans: Sequence[tuple[int, int]], rule: Rule) -> Window:
    """Sort the requests of a finished run, given as (start, end), into phases."""
    order = sorted(range(len(spans)), key=lambda n: spans[n])
    warm_ns = max([spans[n][1] for n in order[: rule.warmup]] + [rule.warm_until_ns or 0])
    phases = [Phase.WARM_UP] * len(spans)
    left = len(spans) if rule.requests is None else rule.requests
    for place, n in enumerate(order):
        start, end = spans[n]
        if place < rule.warmup or start < warm_ns:
            continue
        if left and (rule.cool_from_ns is None or end <= rule.cool_from_ns):
            phases[n] = Phase.MEASURED
            left -= 1
        else:
            phases[n] = Phase.COOL_DOWN
    measured = [spans[n] for n in order if phases[n] is Phase.MEASURED]
    start_ns = min((start for start, _ in measured), default=0)
    return Window(phases=tuple(phases), start_ns=start_ns, end_ns=max((end for _, end in measured), default=start_ns))


class Progress:
    """Follows a run and says when all its measured requests have ended; until then the load has to be kept up."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._starts: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def start(self, index: int, at_ns: int) -> None:
        """Take the start of a request."""
        self._starts[index] = at_ns

    def end(self, index: int, at_ns: int) -> bool:
        """Take the end of a request and tell whether it was the last that had to be waited for."""
        self._ends[index] = at_ns
        rule = self._rule
        if rule.requests is None or len(self._ends) < rule.warmup + rule.requests:
            return False
        order = sorted(self._starts, key=lambda n: self._starts[n])
        warmup = order[: rule.warmup]
        if any(n not in self._ends for n in warmup):
            return False
        warm_ns = max([self._ends[n] for n in warmup] + [rule.warm_until_ns or 0])
        counted = [n for n in order[rule.warmup :] if self._starts[n] >= warm_ns][: rule.requests]
        return len(counted) == rule.requests and all(n in self._ends for n in counted)
