"""What a sensor said over time, and what that means for a stretch of it: the most, the mean, how far it grew."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from probes.evidence import Missing, MissingReason


@dataclass(frozen=True, kw_only=True)
class Source:
    """One thing that can be read again and again.

    `read` gives a value in `unit`, or raises OSError or ValueError with the reason. A counter `counts`: only its growth
    means anything, and `wraps_at` is the largest value it shows, where that is known.
    """

    label: str
    unit: str
    read: Callable[[], float]
    counts: bool = False
    wraps_at: float | None = None


@dataclass(kw_only=True)
class Track:
    """The readings of one source: times in nanoseconds, values, and the words of readings that failed."""

    source: Source
    at_ns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def take(self, now_ns: Callable[[], int]) -> None:
        """Read once; a sensor that does not answer is noted and raises nothing."""
        try:
            value = self.source.read()
        except (OSError, ValueError) as exc:
            self.failures.append((now_ns(), str(exc)))
            return
        # The time after the reading: a slow sensor says what was, not what will be.
        self.at_ns.append(now_ns())
        self.values.append(value)


def peak(track: Track, start_ns: int, end_ns: int) -> float | Missing:
    """Give the largest reading of a stretch; one shorter than the time between two readings has that before it."""
    failed = _failed(track, start_ns, end_ns)
    if failed is not None:
        return failed
    first, last = bisect_left(track.at_ns, start_ns), bisect_right(track.at_ns, end_ns)
    return max(track.values[first:last] or track.values[max(0, first - 1) : first + 1])


def mean(track: Track, start_ns: int, end_ns: int) -> float | Missing:
    """Give the mean of the readings of a stretch, for sensors that tell a rate."""
    failed = _failed(track, start_ns, end_ns)
    if failed is not None:
        return failed
    first, last = bisect_left(track.at_ns, start_ns), bisect_right(track.at_ns, end_ns)
    inside = track.values[first:last] or track.values[max(0, first - 1) : first + 1]
    return sum(inside) / len(inside)


def growth(track: Track, start_ns: int, end_ns: int) -> float | Missing:
    """Give how far a counter grew in a stretch, between readings in proportion to time.

    A counter that did not move says that it does not count, as in many virtual machines and on some cards; it never
    says 0. Each reading is compared with the one before, so a counter may wrap any number of times.
    """
    failed = _failed(track, start_ns, end_ns)
    if failed is not None:
        return failed
    label = track.source.label
    if end_ns <= start_ns or len(track.values) < 2 or track.at_ns[0] > start_ns or track.at_ns[-1] < end_ns:
        return no_sensor(f"{label}: there are no two readings round the measured time")
    total = [0.0]
    for before, after in pairwise(track.values):
        step = after - before
        if step < 0 and track.source.wraps_at is not None:
            step += track.source.wraps_at
        if step < 0:
            return no_sensor(f"{label}: the counter went backwards")
        total.append(total[-1] + step)
    grown = _at(track.at_ns, total, end_ns) - _at(track.at_ns, total, start_ns)
    return grown if grown > 0 else no_sensor(f"{label}: the counter stands still")


def no_sensor(detail: str) -> Missing:
    """Say that nothing here can tell."""
    return Missing(missing=MissingReason.NO_SENSOR, detail=detail)


def _failed(track: Track, start_ns: int, end_ns: int) -> Missing | None:
    """Say which reading of the stretch failed: what is left would speak of another stretch."""
    label = track.source.label
    inside = [words for at, words in track.failures if start_ns <= at <= end_ns]
    if inside:
        of = len(inside) + sum(start_ns <= at <= end_ns for at in track.at_ns)
        return no_sensor(f"{label}: {len(inside)} of {of} readings failed: {inside[0]}")
    if not track.values:
        return no_sensor(f"{label}: {track.failures[0][1] if track.failures else 'it was never read'}")
    return None


def _at(times: list[int], total: list[float], at_ns: int) -> float:
    after = min(max(1, bisect_left(times, at_ns)), len(times) - 1)
    span = times[after] - times[after - 1]
    share = (at_ns - times[after - 1]) / span if span else 1.0
    return total[after - 1] + share * (total[after] - total[after - 1])
