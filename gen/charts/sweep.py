"""One quantity against a count that was varied, such as requests at once: medians with their bounds, one line per series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from gen.charts.axes import linear, steps
from gen.charts.drawing import INK, Chart, Mark, rendered, shortened
from gen.charts.plane import across, colour, dash, filled, plane, role, shape, upward
from gen.charts.rendering import layout_once
from gen.markdown import visible
from gen.spread import Spread, multiple, quantity

# Series at the same step stand beside each other, this many steps of a hundred apart.
_BESIDE = 0.012


def sweep(title: str, unit: str, by: str, lines: Mapping[str, Mapping[int, Spread]], per: str) -> Chart:
    """Draw what each series, at most four, came to at each step; `by` says what the steps count, `per` what a sample is."""
    title, unit, by = shortened(title), shortened(unit), shortened(by)
    every = [one for line in lines.values() for one in line.values()]
    factor, shown = multiple(max(max(abs(one.low), abs(one.high)) for one in every), unit)
    x = steps(at for line in lines.values() for at in line)
    points: list[Mark] = []
    for number, line in enumerate(lines.values()):
        offset = _BESIDE * (number - (len(lines) - 1) / 2)
        for at, one in sorted(line.items()):
            beside = at * (x.high / x.low) ** offset if x.log else at + (x.high - x.low) * offset
            points.append(
                {
                    "x": beside,
                    "y": one.median / factor,
                    "low": one.low / factor,
                    "high": one.high / factor,
                    "role": role(number),
                }
            )
    y = linear([bound / factor for one in every for bound in (one.low, one.high)], zero=True)
    spec = filled(
        _layout(len(lines) if len(lines) > 1 else 0),
        x.named(by),
        y.named(f"{title}, {shown}" if shown else title),
        list(lines) if len(lines) > 1 else [],
        {"points": points},
    )
    said = "; ".join(
        (f"{visible(name)}: " if len(lines) > 1 else "")
        + ", ".join(f"{_said(one, unit)} at {at}" for at, one in sorted(line.items()))
        for name, line in lines.items()
    )
    return Chart(
        svg=rendered(spec, title), alternative=f"{title} by {by}: medians{_bounds(every)}, a sample is a {per}. {said}."
    )


@layout_once
def _layout(keys: int) -> str:
    points = alt.Chart(alt.NamedData(name="points"))
    x, y = across(), upward()
    layers = [
        points.mark_rule(strokeWidth=7, opacity=0.28).encode(
            x=x, y=upward("low"), y2="high:Q", color=colour()
        ),
        points.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(), strokeDash=dash()),
        points.mark_point(filled=True, size=60, opacity=1, stroke=INK, strokeWidth=0).encode(
            x=x, y=y, color=colour(), shape=shape()
        ),
    ]  # fmt: skip
    return plane(layers, keys)


def _bounds(every: Sequence[Spread]) -> str:
    kinds = {"the 95 % interval" if one.bounds_median else "the range" for one in every if one.n > 1}
    return f" and {' or '.join(sorted(kinds))}" if kinds else ""


def _said(one: Spread, unit: str) -> str:
    if one.n == 1:
        return f"{quantity(one.median, unit)} (n = 1, no spread)"
    return f"{quantity(one.median, unit)} ({quantity(one.low, unit)} to {quantity(one.high, unit)}, n = {one.n})"
