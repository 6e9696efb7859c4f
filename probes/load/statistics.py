"""Percentiles that are observed values: nearest rank, none from too few samples, the bad tail on the right side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

MIDDLE: Final = 0.5
HIGH: Final = (0.9, 0.95, 0.99)
LOW: Final = (0.01, 0.05, 0.1)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Give the smallest sample that at least `share` of all samples do not exceed (nearest rank).

    `ordered` is sorted and not empty. The result is a sample, so it never leaves their range; interpolation
    would invent values that nobody saw.
    """
    # 0.07 * 100 is a hair above 7 in binary; the rank is meant in decimal.
    return ordered[max(0, math.ceil(round(share * len(ordered), 9)) - 1)]


def fewest(share: float) -> int:
    """Tell how many samples a percentile needs: at least one beyond it, so 20 for p95 and p5."""
    return max(1, round(1 / (1 - share if share >= MIDDLE else share))) if share != MIDDLE else 1


def percentiles(samples: Sequence[float]) -> dict[str, float | None]:
    """Give p1 to p99 by name, None where the samples are too few.

    The bad tail of a time is high and that of a rate is low, so both are given.
    """
    ordered = sorted(samples)
    return {
        f"p{round(share * 100)}": percentile(ordered, share) if len(ordered) >= fewest(share) else None
        for share in (*LOW, MIDDLE, *HIGH)
    }


def tpot_s(span_s: float, tokens: int, in_first_chunk: int = 1) -> float | None:
    """Give the mean time per token after the first chunk; None when nothing came after it.

    Every token counted has to fall into the span: those of the first chunk do not.
    """
    after = tokens - in_first_chunk
    return span_s / after if after > 0 and span_s > 0 else None
