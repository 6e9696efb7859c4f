"""Axes: the range that values take up, and the round values at which it is marked."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

# From here on a linear axis would press most values into a corner.
FAR = 20.0
_FEWEST_TICKS, _MOST_TICKS = 3, 6
_MANTISSAS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0))
# Labels of so few letters stand apart by at least this share of an axis.
_APART = 0.085
_LARGEST = sys.float_info.max / 16


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis: its ends, its marks, and what it counts."""

    low: float
    high: float
    ticks: tuple[float, ...]
    title: str
    log: bool = False

    def named(self, title: str) -> Axis:
        """Say what it counts, and that it is logarithmic where it is."""
        return replace(self, title=f"{title} (logarithmic)" if self.log else title)


def linear(values: Iterable[float], *, zero: bool = False) -> Axis:
    """Span values, from zero where asked, out to round numbers."""
    found = [max(-_LARGEST, min(_LARGEST, value)) for value in values]
    low, high = min(found), max(found)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)) or high - low < 1e-290:
        around = max(abs(low), abs(high)) / 2 or 1.0
        low, high = (low - around, high + around) if low else (0.0, 1.0)
    step = _step(high - low)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(_clean(number * step, step) for number in range(first, last + 1))
    return Axis(low=ticks[0], high=ticks[-1], ticks=ticks, title="")


def logarithmic(values: Iterable[float], *, room: float = 0.04) -> Axis:
    """Span values above zero by their ratios, with a share of the axis left free at either end."""
    found = [max(1e-290, min(_LARGEST, value)) for value in values]
    low, high = min(found), max(found)
    pad = (high / low) ** room if high > low * (1 + 1e-9) else 1.5
    low, high = low / pad, high * pad
    return Axis(low=low, high=high, ticks=_log_ticks(low, high), title="", log=True)


def either(values: Sequence[float]) -> Axis:
    """Choose by the data: logarithmic only where a linear axis would hide most of it, from zero unless that wastes half."""
    low, high = min(values), max(values)
    if low > 0 and high / low > FAR:
        return logarithmic(values)
    return linear(values, zero=0 <= low < high / 2)


def steps(values: Iterable[int]) -> Axis:
    """Mark each of the steps that were taken: in a row up to six, else by doubling. Marks that would collide are dropped."""
    found = sorted(set(values))
    low, high = float(found[0]), float(found[-1])
    if low > 0 and high > _MOST_TICKS:
        pad = (high / low) ** 0.06 if high > low else 1.5
        one = Axis(low=low / pad, high=high * pad, ticks=(), title="", log=True)
    else:
        pad = max((high - low) * 0.06, 0.4 if high == low else 0.0)
        one = Axis(low=low - pad, high=high + pad, ticks=(), title="")
    return replace(one, ticks=tuple(_spaced(one, [float(value) for value in found])))


def place(axis: Axis, value: float) -> float:
    """Say where on an axis a value lies, from 0 at its low end to 1."""
    if axis.log:
        return math.log(value / axis.low) / math.log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


def marked(encoding: dict[str, Any], axis: Axis, title: str | None) -> None:
    """Give a channel of a specification the ends and marks of its axis; one in pixels has no scale and is left as it is.

    All layers of a picture share an axis, and the renderer takes it from whichever comes first.
    """
    if not encoding.get("scale"):
        return
    encoding["scale"] = {"domain": [axis.low, axis.high], "zero": False, "nice": False} | ({"type": "log"} if axis.log else {})
    # Without a count of its own the renderer leaves out every other value that it is given.
    values = {"values": list(axis.ticks), "tickCount": len(axis.ticks)}
    encoding["axis"] |= values | {"title": title, "format": _format(axis.ticks)}


def _format(ticks: Sequence[float]) -> str:
    """Write marks out as people do, and those of no everyday size with an exponent."""
    sizes = [abs(tick) for tick in ticks if tick]
    if sizes and (max(sizes) >= 1e8 or min(sizes) < 1e-5):
        return "~e"
    # The renderer would round to the step that it would have taken itself: 2.5 to 3.
    places = next((n for n in range(6) if all(abs(round(tick, n) - tick) < 1e-9 * max(sizes, default=1) for tick in ticks)), 6)
    return f",.{places}~f"


def _spaced(axis: Axis, values: Sequence[float]) -> Iterable[float]:
    """Keep the last value, and before it those that leave room for their labels."""
    kept: list[float] = []
    for value in reversed(values):
        if not kept or place(axis, kept[-1]) - place(axis, value) >= _APART:
            kept.append(value)
    return reversed(kept)


def _step(span: float) -> float:
    """Choose a round step that divides a span into four or so."""
    rough = span / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999) * power


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    if high / low < 4:
        step = _step(high - low)
        return tuple(_clean(n * step, step) for n in range(math.ceil(low / step), math.floor(high / step) + 1))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in _MANTISSAS:
        every = [m * 10.0**power for power in range(first, last + 1) for m in mantissas]
        found = [value for value in every if low <= value <= high]
        if len(found) >= _FEWEST_TICKS:
            break
    return tuple(found[:: math.ceil(len(found) / _MOST_TICKS)])


def _clean(value: float, step: float) -> float:
    """Take away what binary fractions add: 0.30000000000000004 is 0.3."""
    return round(value, max(0, 2 - math.floor(math.log10(step)))) if 1e-12 < step < 1e12 else value
