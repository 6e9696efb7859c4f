"""A candidate against its baseline, quantity by quantity: the ratio with its interval against the gate."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from gen.charts.axes import logarithmic, marked
from gen.charts.drawing import (
    INK,
    LINE,
    PLOT_WIDTH,
    QUIET,
    SECOND,
    Chart,
    Mark,
    beside,
    laid_out,
    rendered,
    row_frame,
    shortened,
)
from gen.charts.rendering import layout_once
from gen.markdown import visible
from gen.spread import quantity
from gen.verdict import Comparison, Scale
from gen.words import Verdict
from probes.evidence import Direction

_SHAPES = {
    Verdict.BETTER: "triangle-up",
    Verdict.WORSE: "triangle-down",
    Verdict.SAME: "circle",
    Verdict.INCONCLUSIVE: "diamond",
    Verdict.NOT_COMPARABLE: "cross",
    Verdict.NOT_MEASURED: "cross",
}
_ARROWS = {Direction.LOWER: "↓ ", Direction.HIGHER: "↑ ", Direction.NEUTRAL: ""}
_WAYS = {Direction.LOWER: " (less is better)", Direction.HIGHER: " (more is better)", Direction.NEUTRAL: ""}
_TITLE = "Candidate to baseline"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One quantity of a comparison, under its title."""

    title: str
    direction: Direction
    outcome: Comparison

    @property
    def drawn(self) -> bool:
        """Tell whether it is a ratio above zero; a difference in points has another axis."""
        one = self.outcome
        return one.gate.scale is Scale.RELATIVE and one.low is not None and one.high is not None and one.low > 0


def forest(rows: Sequence[Row]) -> Chart | None:
    """Draw every ratio, each with the way in which it improves; None where no row has one."""
    shown = [row for row in rows if row.drawn]
    if not shown:
        return None
    marks: list[Mark] = []
    said = []
    for number, row in enumerate(shown):
        one = row.outcome
        low, high, grow = one.low or 0.0, one.high or 0.0, 1 + one.gate.width
        ratio = _ratio(one, low, high)
        marks.append(
            {
                "row": number,
                "low": low,
                "high": high,
                "ratio": ratio,
                "inner": 1 / grow,
                "outer": grow,
                "one": 1.0,
                "verdict": one.verdict.value,
                "label": shortened(f"{_ARROWS[row.direction]}{row.title}", beside(one.verdict.value)),
            }
        )
        said.append(
            f"{visible(row.title)}{_WAYS[row.direction]}: {one.verdict.value}, {ratio:.3g} times ({low:.3g} to {high:.3g}), "
            f"gate {quantity(one.gate.width, 'share')}, {_sizes(one)}"
        )
    bounds = [float(mark[name]) for mark in marks for name in ("low", "high", "inner", "outer")]
    axis = logarithmic([*bounds, 1.0]).named(_TITLE)
    spec = json.loads(_layout(len(shown)))
    spec["datasets"] = {"rows": marks}
    for layer in spec["layer"]:
        marked(layer["encoding"]["x"], axis, axis.title)
    return Chart(
        svg=rendered(json.dumps(spec, sort_keys=True), _TITLE), alternative=f"{_TITLE}, as a ratio. {'; '.join(said)}."
    )


@layout_once
def _layout(rows: int) -> str:
    axis, y, scale = row_frame(rows)
    row = alt.Chart(alt.NamedData(name="rows"))
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=[one.value for one in _SHAPES], range=list(_SHAPES.values())), legend=None
    )
    layers = [
        # Gate and line leave the upper part of a row to its words.
        row.mark_rule(strokeWidth=20, color=LINE, opacity=0.6).encode(
            x=alt.X("inner:Q", axis=axis, scale=scale), x2="outer:Q", y=y
        ),
        row.mark_tick(thickness=1.5, size=20, color=QUIET, opacity=1, orient="vertical").encode(
            x=alt.X("one:Q", axis=axis, scale=scale), y=y
        ),
        row.mark_rule(strokeWidth=3, color=SECOND).encode(x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q", y=y),
        row.mark_point(filled=True, size=90, color=SECOND, opacity=1).encode(
            x=alt.X("ratio:Q", axis=axis, scale=scale), y=y, shape=shape
        ),
        row.mark_text(align="left", baseline="bottom", dy=-10, fontSize=12, color=INK).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
        row.mark_text(align="right", baseline="bottom", dy=-10, fontSize=12, fontWeight="bold", color=INK).encode(
            x=alt.value(PLOT_WIDTH), y=y, text="verdict:N"
        ),
    ]
    return laid_out(layers, rows)


def _ratio(one: Comparison, low: float, high: float) -> float:
    """Divide the medians; rounding must not carry the mark out of its own interval."""
    if one.baseline is None or one.candidate is None or one.baseline.median <= 0:
        return math.sqrt(low * high)
    return min(max(one.candidate.median / one.baseline.median, low), high)


def _sizes(one: Comparison) -> str:
    if one.baseline is None or one.candidate is None:
        return "n unknown"
    same = one.baseline.n == one.candidate.n
    return f"n = {one.baseline.n} a side" if same else f"n = {one.baseline.n} and {one.candidate.n}"
