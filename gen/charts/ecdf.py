"""How a quantity is spread over requests: which share of them lies at or below each value, one step curve per series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import altair as alt

from gen.charts.axes import Axis, either
from gen.charts.drawing import INK, Chart, Mark, rendered, shortened
from gen.charts.plane import across, colour, dash, filled, plane, role, shape, upward
from gen.charts.rendering import layout_once
from gen.markdown import visible
from gen.spread import FEWEST_FOR_P95, multiple, percentile, quantity

# With fewer requests the steps say no more than the samples on a line do.
FEWEST_CURVE = 10
# More steps than the picture has pixels are not seen.
_MOST_STEPS = 256
_SHARES = Axis(low=0, high=100, ticks=(0, 25, 50, 75, 95), title="")


def ecdf(title: str, unit: str, series: Mapping[str, Sequence[float]]) -> Chart:
    """Draw the empirical distribution of each series, at most four; the first is the baseline.

    The median is marked on each curve, and the 95th percentile from 20 requests on.
    """
    title, unit = shortened(title), shortened(unit)
    values = [value for samples in series.values() for value in samples]
    factor, shown = multiple(max(abs(value) for value in values), unit)
    steps: list[Mark] = []
    marks: list[Mark] = []
    for number, samples in enumerate(series.values()):
        steps += [{"x": value / factor, "y": share, "role": role(number)} for value, share in _steps(samples)]
        marks += [
            {"x": percentile(samples, share) / factor, "y": share * 100, "role": role(number)}
            for share in ((0.5, 0.95) if len(samples) >= FEWEST_FOR_P95 else (0.5,))
        ]
    x = either([value / factor for value in values]).named(f"{title}, {shown}" if shown else title)
    y = _SHARES.named("% of requests at or below")
    svg = rendered(filled(_layout(len(series)), x, y, list(series), {"steps": steps, "marks": marks}), title)
    said = "; ".join(_sentence(name, samples, unit) for name, samples in series.items())
    return Chart(svg=svg, alternative=f"{title} of each request. {said}.")


@layout_once
def _layout(keys: int) -> str:
    curve, marks = alt.Chart(alt.NamedData(name="steps")), alt.Chart(alt.NamedData(name="marks"))
    x, y = across(), upward()
    layers = [
        curve.mark_line(interpolate="step-after", strokeWidth=2).encode(x=x, y=y, color=colour(), strokeDash=dash()),
        marks.mark_point(filled=True, size=64, opacity=1, stroke=INK, strokeWidth=0).encode(
            x=x, y=y, color=colour(), shape=shape()
        ),
    ]
    return plane(layers, keys)


def _steps(samples: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Give the corners of the curve: a value, and the share in percent of the samples that do not exceed it."""
    ordered, n = sorted(samples), len(samples)
    yield ordered[0], 0.0
    stride = -(-n // _MOST_STEPS)
    for index in [*range(stride - 1, n - 1, stride), n - 1]:
        # Of equal values only the last stands on the curve.
        if index == n - 1 or ordered[index + 1] > ordered[index]:
            yield ordered[index], 100 * (index + 1) / n


def _sentence(name: str, samples: Sequence[float], unit: str) -> str:
    low, middle, high = min(samples), percentile(samples, 0.5), max(samples)
    tail = f", p95 {quantity(percentile(samples, 0.95), unit)}" if len(samples) >= FEWEST_FOR_P95 else ""
    return (
        f"{visible(name)}: p50 {quantity(middle, unit)}{tail}, range {quantity(low, unit)} to {quantity(high, unit)}, "
        f"n = {len(samples)} requests"
    )
