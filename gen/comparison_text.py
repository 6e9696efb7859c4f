"""A comparison in words: intervals, ratios, reasons and noise, for the terminal and for pages alike."""

from __future__ import annotations

from gen.contract import Compared
from gen.judgement import Judgement
from gen.noise import Noise
from gen.spread import Spread, multiple, quantity
from gen.techniques.wording import amount
from gen.verdict import Comparison, Scale
from gen.words import Verdict
from probes.fleet import Gates


def bounds(spread: Spread, unit: str) -> str:
    """Write the interval of the median in the multiple of the unit in which the median is written; '' when it is a point."""
    factor, _ = multiple(spread.median, unit)
    return "" if spread.low == spread.high else f"{spread.low / factor:.4g} to {spread.high / factor:.4g}"


def ratio(row: Comparison) -> str:
    """Write the range that the intervals leave open, '' where there is none."""
    return reach(row.low, row.high, row.gate.scale, row.unit)


def reach(low: float | None, high: float | None, scale: Scale, unit: str) -> str:
    """Write how far apart two sides may be, as a ratio or in the metric's unit; '' where that is not known."""
    if low is None or high is None:
        return ""
    if scale is Scale.RELATIVE:
        return f"{low:.3g} to {high:.3g} times"
    return f"{quantity(low, unit)} to {quantity(high, unit)} apart"


def gate(row: Comparison) -> str:
    """Write the gate that a comparison was held to."""
    return quantity(row.gate.width, "share" if row.gate.scale is Scale.RELATIVE else row.unit)


def why(row: Comparison | Compared) -> str:
    """Say why a verdict is no plainer, and what would settle it; '' for one that needs no word."""
    more = f"about {row.more_runs} more repetitions a side would settle it" if row.more_runs else ""
    return "; ".join(part for part in (row.reason, more) if part)


def noise_words(noise: Noise, unit: str) -> tuple[str, str]:
    """Write how far a quantity moves by itself, and which change a verdict takes."""
    if noise.scale is Scale.RELATIVE:
        return f"±{noise.share * 100:.1f} % of the median", f"a change by a factor of {1 + noise.detectable:.3g}"
    return f"±{quantity(noise.share, unit)}", f"a change by more than {quantity(noise.detectable, unit)}"


def counts(one: Judgement) -> str:
    """Count the verdicts over the eight quantities."""
    rows = [row.verdict for row in one.rows.values()]
    return ", ".join(f"{rows.count(verdict)} {verdict.value}" for verdict in Verdict if verdict in rows)


def gate_words(gates: Gates) -> str:
    """Write the gates in force."""
    return (
        f"{gates.latency_percent:g} % for times, memory and power, {gates.throughput_percent:g} % for rates, "
        f"{quantity(gates.error_rate, 'ratio')} for errors, {amount(gates.quality_points, 'point')} for quality"
    )
