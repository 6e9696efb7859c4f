"""What a set of samples amounts to: middle, spread and size, in units that people read."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from probes.evidence import Metric, Per

CONFIDENCE = 0.95
FEWEST_FOR_P95 = 20
# Units that are things: of one there is no more than one.
_COUNTED = frozenset({"attempts", "bytes", "preemptions", "requests", "resets", "sequences", "tokens"})


@dataclass(frozen=True, kw_only=True)
class Spread:
    """`low` and `high` bound the median at 95 % where the samples allow it, else they are the range."""

    median: float
    low: float
    high: float
    n: int
    bounds_median: bool


def spread(samples: Sequence[float], per: Per = Per.REPETITION) -> Spread:
    """Summarise at least one sample; bounds are order statistics, so they never leave the data.

    Requests of one run share the machine's mood and are no independent samples: they get their range.
    """
    ordered = sorted(samples)
    n = len(ordered)
    rank = None if per is Per.REQUEST else _rank(n)
    low, high = (ordered[rank], ordered[n - 1 - rank]) if rank is not None else (ordered[0], ordered[-1])
    return Spread(median=statistics.median(ordered), low=low, high=high, n=n, bounds_median=rank is not None)


def percentile(samples: Sequence[float], share: float) -> float:
    """Give the smallest sample that at least `share` of all samples do not exceed (nearest rank)."""
    ordered = sorted(samples)
    # 0.07 * 100 is a hair above 7 in binary; the rank is meant in decimal.
    return ordered[max(0, math.ceil(round(share * len(ordered), 9)) - 1)]


def quantity(value: float, unit: str) -> str:
    """Write a number with its unit, in the multiple of the unit that reads best."""
    factor, shown = multiple(value, unit)
    digits = _digits(value / factor)
    return f"{digits} {shown.removesuffix('s') if digits == '1' and shown in _COUNTED else shown}".strip()


def multiple(value: float, unit: str) -> tuple[float, str]:
    """Choose the multiple of a unit in which a value reads best: what to divide by, and what to call it."""
    size = abs(value)
    if unit == "s" and 0 < size < 1:
        return (1e-3, "ms") if size >= 1e-3 else (1e-6, "µs")
    if unit in {"bytes", "B"}:
        for factor, shown in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
            if size >= factor:
                return factor, shown
        return 1, "bytes"
    if unit == "B/s":
        # Memory is sold in powers of ten.
        return (1e9, "GB/s") if size >= 1e9 else (1e6, "MB/s")
    if unit in {"share", "ratio"}:
        return 0.01, "%"
    return 1, "" if unit == "1" else unit


def summary(metric: Metric) -> str:
    """Write median, spread, sample size and what one sample is, or the reason why there is none."""
    if metric.missing is not None:
        detail = f": {metric.missing.detail}" if metric.missing.detail else ""
        return f"{metric.missing.missing}{detail}"
    one = spread(metric.samples, metric.per)
    if one.n == 1:
        return f"{quantity(one.median, metric.unit)} (one {metric.per}, no spread)"
    factor, unit = multiple(one.median, metric.unit)
    bounds = f"{_digits(one.low / factor)} to {_digits(one.high / factor)}"
    kind = "95 % interval" if one.bounds_median else "range"
    return f"median {_digits(one.median / factor)} {unit}".rstrip() + f" ({kind} {bounds}; n = {one.n} {metric.per}s)"


def _rank(n: int) -> int | None:
    """Find the largest k so that the (k+1)-th and (n-k)-th value bound the median at 95 %.

    The count below the median is binomial(n, 1/2); fewer than six samples bound nothing.
    """
    below, rank = 0.0, None
    for k in range((n + 1) // 2):
        below += math.comb(n, k) / 2**n
        if 1 - 2 * below < CONFIDENCE:
            break
        rank = k
    return rank


def _digits(value: float) -> str:
    """Keep three significant digits, and every digit before the point."""
    if value == 0 or abs(value) < 1e-6:
        return f"{value:.3g}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    written = f"{value:.{places}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
