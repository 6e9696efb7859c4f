"""Worked-out values as bars from zero, with the bounds that their inputs allow."""

from __future__ import annotations

import json
from collections.abc import Sequence

import altair as alt

from gen.charts.drawing import INK, SECOND, Chart, Mark, laid_out, rendered, row_frame, shortened
from gen.charts.rendering import layout_once
from gen.markdown import visible
from gen.planners.plan import Span
from gen.spread import multiple, quantity


def bars(title: str, rows: Sequence[tuple[str, Span]]) -> Chart:
    """Draw worked-out values from zero, with the bounds that their inputs allow; all rows have one unit."""
    title = shortened(title)
    largest = max(abs(span.high) for _, span in rows)
    factor, shown = multiple(largest, rows[0][1].unit)
    marks: list[Mark] = [
        {
            "row": row,
            "value": span.value / factor,
            "low": span.low / factor,
            "high": span.high / factor,
            "zero": 0,
            "label": f"{shortened(label)}: {quantity(span.value, span.unit)}",
        }
        for row, (label, span) in enumerate(rows)
    ]
    spec = json.loads(_bars_layout(len(rows)))
    spec["datasets"] = {"bars": marks}
    for layer in spec["layer"]:
        if layer["encoding"]["x"].get("axis"):
            layer["encoding"]["x"]["axis"]["title"] = f"{title}, {shown}" if shown else title
    alternative = "; ".join(f"{visible(label)}: {span.said()}" for label, span in rows)
    return Chart(svg=rendered(json.dumps(spec, sort_keys=True), title), alternative=f"{title}. {alternative}.")


@layout_once
def _bars_layout(rows: int) -> str:
    """Lay out so many bars without data, each with its label above it and a line from its lowest to its highest value."""
    axis, y, x_scale = row_frame(rows)
    bar = alt.Chart(alt.NamedData(name="bars"))
    layers = [
        bar.mark_rule(strokeWidth=10, color=SECOND, opacity=0.55).encode(
            x=alt.X("zero:Q", axis=axis, scale=x_scale), x2="value:Q", y=y
        ),
        bar.mark_rule(strokeWidth=2, color=INK).encode(x=alt.X("low:Q", axis=axis, scale=x_scale), x2="high:Q", y=y),
        bar.mark_tick(thickness=2, size=14, color=INK, opacity=1, orient="vertical").encode(
            x=alt.X("value:Q", axis=axis, scale=x_scale), y=y
        ),
        bar.mark_text(align="left", baseline="bottom", dy=-10, fontSize=12, color=INK).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
    ]
    return laid_out(layers, rows)
