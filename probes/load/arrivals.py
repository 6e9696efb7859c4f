"""When requests are due and which of them share a prefix: a closed loop has no schedule, an open one a list of times."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


class Arrivals(StrEnum):
    """The three ways to put load on a server."""

    CLOSED = "closed"
    CONSTANT = "constant"
    POISSON = "poisson"


def due_times(arrivals: Arrivals, *, rate: float, seed: int) -> Iterator[float]:
    """Give the seconds after the start at which requests are due, without end; `rate` is requests per second."""
    if arrivals is Arrivals.CLOSED:
        raise ValueError("a closed loop has no schedule")
    if arrivals is Arrivals.CONSTANT:
        yield from (n / rate for n in count())
    draw = _random(seed)
    at = 0.0
    while True:
        yield at
        at += draw.expovariate(rate)


def ramp(streams: int, *, spacing_s: float, seed: int) -> list[float]:
    """Give each stream of a closed loop its start, drawn from `streams * spacing_s` seconds.

    Streams that start together stay in step for ever where answers have one length, and every burst of
    theirs then queues in the client. Real callers are not in step.
    """
    draw = _random(seed)
    return sorted(draw.uniform(0, streams * spacing_s) if streams > 1 else 0.0 for _ in range(streams))


def shares(index: int, share: float) -> bool:
    """Tell whether the request of this number shares its beginning; the sharing ones are spread evenly."""
    return int((index + 1) * share + 1e-9) != int(index * share + 1e-9)


def _random(seed: int) -> random.Random:
    """Make the source of chance where it is needed: its module loads a cryptographic library of several megabytes."""
    import random

    return random.Random(seed)  # noqa: S311 - arrivals, not secrets
