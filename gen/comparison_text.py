"""A comparison in words: intervals, ratios, reasons and noise, for the terminal and for pages alike."""

from __future__ import annotations

from gen.noise import Noise
from gen.spread import Spread, multiple, quantity
from gen.verdict import Comparison, Scale


def bounds(spread: Spread, unit: str) -> str:
    """Write the interval of the median in the multiple of the unit in which the median is written; '' when it is a point."""
    factor, _ = multiple(spread.median, unit)
    return "" if spread.low == spread.high else f"{spread.low / factor:.4g} to {spread.high / factor:.4g}"


def ratio(row: Comparison) -> str:
    """Write the range that the intervals leave open, '' where there is none."""
    if row.low is None or row.high is None:
        return ""
    if row.gate.scale is Scale.RELATIVE:
        return f"{row.low:.3g} to {row.high:.3g} times"
    return f"{quantity(row.low, row.unit)} to {quantity(row.high, row.unit)} apart"


def gate(row: Comparison) -> str:
    """Write the gate that a comparison was held to."""
    return f"{row.gate.width:.0%}" if row.gate.scale is Scale.RELATIVE else quantity(row.gate.width, row.unit)


def why(row: Comparison) -> str:
    """Say why a verdict is no plainer, and what would settle it; '' for one that needs no word."""
    more = f"about {row.more_runs} more repetitions a side would settle it" if row.more_runs else ""
    return "; ".join(part for part in (row.reason, more) if part)


def noise_words(noise: Noise, unit: str) -> tuple[str, str]:
    """Write how far a quantity moves by itself, and which change a verdict takes."""
    if noise.scale is Scale.RELATIVE:
        return f"±{noise.share:.1%} of the median", f"a change by a factor of {1 + noise.detectable:.3g}"
    return f"±{quantity(noise.share, unit)}", f"a change by more than {quantity(noise.detectable, unit)}"
