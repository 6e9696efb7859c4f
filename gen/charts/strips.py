"""Samples of several series, each on a line of its own, with the median and its bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import altair as alt

from gen.charts.drawing import FIRST, INK, SECOND, Chart, Mark, laid_out, rendered, row_frame, shortened
from gen.charts.rendering import layout_once
from gen.markdown import visible
from gen.spread import multiple, quantity, spread
from probes.evidence import Per


def strips(title: str, unit: str, series: Mapping[str, Sequence[float]], per: Per) -> Chart:
    """Draw every sample of each series on its own line, with the median and its bounds.

    The first series is the baseline; the others carry another colour and another shape.
    """
    # The renderer is native code: a control character in its input ends the whole process.
    title, unit = shortened(title), shortened(unit)
    labels = [shortened(label) for label in series]
    largest = max(abs(value) for values in series.values() for value in values)
    factor, shown = multiple(largest, unit)
    points: list[Mark] = [
        {"row": row, "value": value / factor, "role": "first" if row == 0 else "second"}
        for row, values in enumerate(series.values())
        for value in values
    ]
    middles: list[Mark] = []
    for row, values in enumerate(series.values()):
        one = spread([value / factor for value in values], per)
        middles.append({"row": row, "median": one.median, "low": one.low, "high": one.high, "label": labels[row]})
    spec = json.loads(_strips_layout(len(series)))
    spec["datasets"] = {"points": points, "middles": middles}
    for layer in spec["layer"]:
        if layer["encoding"]["x"].get("axis"):
            layer["encoding"]["x"]["axis"]["title"] = f"{title}, {shown}" if shown else title
    alternative = "; ".join(_sentence(label, values, unit, per) for label, values in series.items())
    return Chart(svg=rendered(json.dumps(spec, sort_keys=True), title), alternative=f"{title}. {alternative}.")


@layout_once
def _strips_layout(rows: int) -> str:
    """Lay out a chart of so many series without data: building and checking a specification is slow."""
    axis, y, x_scale = row_frame(rows)
    shape = alt.Shape("role:N", scale=alt.Scale(domain=["first", "second"], range=["circle", "diamond"]), legend=None)
    colour = alt.Color("role:N", scale=alt.Scale(domain=["first", "second"], range=[FIRST, SECOND]), legend=None)
    samples = alt.Chart(alt.NamedData(name="points")).mark_point(filled=True, size=58, opacity=0.5, strokeWidth=0)
    middle = alt.Chart(alt.NamedData(name="middles"))
    layers = [
        middle.mark_rule(strokeWidth=10, color=INK, opacity=0.16).encode(
            x=alt.X("low:Q", axis=axis, scale=x_scale), x2="high:Q", y=y
        ),
        samples.encode(x=alt.X("value:Q", axis=axis, scale=x_scale), y=y, shape=shape, color=colour),
        middle.mark_tick(thickness=2, size=20, color=INK, opacity=1, orient="vertical").encode(
            x=alt.X("median:Q", axis=axis, scale=x_scale), y=y
        ),
        middle.mark_text(align="left", baseline="bottom", dy=-12, fontSize=12, color=INK).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
    ]
    return laid_out(layers, rows)


def _sentence(label: str, values: Sequence[float], unit: str, per: Per) -> str:
    one = spread(values, per)
    kind = "95 % interval" if one.bounds_median else "range"
    return (
        f"{visible(label)}: median {quantity(one.median, unit)}, {kind} {quantity(one.low, unit)} to "
        f"{quantity(one.high, unit)}, n = {one.n}"
    )
