"""Decode speed against what the memory allows: the limit by sequences at once, and what was reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import altair as alt

from gen.charts.axes import logarithmic, steps
from gen.charts.drawing import INK, Chart, Mark, rendered, shortened
from gen.charts.plane import across, colour, dash, filled, filling, plane, role, shape, upward
from gen.charts.rendering import layout_once
from gen.markdown import visible
from gen.planners.plan import Span
from gen.spread import Spread, quantity

_TITLE = "Decode speed of all sequences"


def roofline(
    title: str, limits: Mapping[str, Mapping[int, Span]], reached: Mapping[str, Mapping[int, Spread]], unit: str = "tok/s"
) -> Chart:
    """Draw limits by the number of sequences at once, and what runs reached; at most four of both together."""
    title = shortened(title)
    spans = [span for line in limits.values() for span in line.values()]
    spreads = [one for line in reached.values() for one in line.values()]
    x = steps(at for line in (*limits.values(), *reached.values()) for at in line)
    y = logarithmic([*(b for one in spans for b in (one.low, one.high)), *(b for one in spreads for b in (one.low, one.high))])
    lines: list[Mark] = [
        {"x": at, "y": span.value, "low": span.low, "high": span.high, "role": role(number)}
        for number, line in enumerate(limits.values())
        for at, span in sorted(line.items())
    ]
    points: list[Mark] = [
        {"x": at, "y": one.median, "low": one.low, "high": one.high, "role": role(number)}
        for number, line in enumerate(reached.values(), start=len(limits))
        for at, one in sorted(line.items())
    ]
    layout = _layout(len(limits) + len(reached))
    spec = filled(
        layout,
        x.named("sequences at once"),
        y.named(f"{_TITLE}, {unit}"),
        [*limits, *reached],
        {"lines": lines, "points": points},
    )
    said = "; ".join([*_limits(limits), *_reached(reached, unit)])
    return Chart(svg=rendered(spec, title), alternative=f"{title}. {said}.")


@layout_once
def _layout(keys: int) -> str:
    lines, points = alt.Chart(alt.NamedData(name="lines")), alt.Chart(alt.NamedData(name="points"))
    x, y = across(), upward()
    low = upward("low")
    layers = [
        lines.mark_area(opacity=0.18).encode(x=x, y=low, y2="high:Q", fill=filling()),
        lines.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(), strokeDash=dash()),
        points.mark_rule(strokeWidth=7, opacity=0.28).encode(x=x, y=low, y2="high:Q", color=colour()),
        points.mark_point(filled=True, size=70, opacity=1, stroke=INK, strokeWidth=0).encode(
            x=x, y=y, color=colour(), shape=shape()
        ),
    ]  # fmt: skip
    return plane(layers, keys)


def _limits(limits: Mapping[str, Mapping[int, Span]]) -> Iterator[str]:
    for name, line in limits.items():
        yield f"{visible(name)}: " + ", ".join(f"{span.said()} at {at}" for at, span in _ends(line))


def _ends(line: Mapping[int, Span]) -> Sequence[tuple[int, Span]]:
    every = sorted(line.items())
    return every if len(every) < 3 else (every[0], every[-1])


def _reached(reached: Mapping[str, Mapping[int, Spread]], unit: str) -> Iterator[str]:
    for name, line in reached.items():
        yield f"{visible(name)}: " + ", ".join(
            f"{quantity(one.median, unit)} ({quantity(one.low, unit)} to {quantity(one.high, unit)}, n = {one.n}) at {at}"
            for at, one in sorted(line.items())
        )
