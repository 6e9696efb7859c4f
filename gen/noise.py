"""How much a quantity moves by itself, and how large a difference would have to be to be told."""

from __future__ import annotations

from dataclasses import dataclass

from gen.spread import Spread
from gen.verdict import Comparison, Scale


@dataclass(frozen=True, kw_only=True)
class Noise:
    """`share` is the half width of the wider interval, `detectable` the change from which on a verdict is certain.

    Both are shares of the median on a relative scale and amounts in the metric's unit on an absolute one. The second
    supposes that a candidate scatters as these sides do.
    """

    scale: Scale
    share: float
    detectable: float


def noise_of(one: Comparison) -> Noise | None:
    """Read the noise of a comparison whose intervals are known; None for any other."""
    sides = [side for side in (one.baseline, one.candidate) if side is not None and side.bounds_median]
    if len(sides) < 2:
        return None
    if one.gate.scale is Scale.ABSOLUTE:
        widest = max(side.high - side.low for side in sides)
        return Noise(scale=one.gate.scale, share=widest / 2, detectable=widest + one.gate.width)
    if any(side.low <= 0 for side in sides):
        return None
    above = max(side.high / side.median for side in sides)
    below = max(side.median / side.low for side in sides)
    return Noise(scale=one.gate.scale, share=max(map(_half_width, sides)), detectable=above * below * (1 + one.gate.width) - 1)


def _half_width(side: Spread) -> float:
    return (side.high - side.low) / 2 / side.median
