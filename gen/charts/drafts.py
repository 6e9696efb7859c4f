"""What each step of a draft brought against what it has to bring, in tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from gen.charts.axes import linear, marked
from gen.charts.drawing import (
    INK,
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
from gen.spread import Spread, quantity

_TITLE = "Tokens per step"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One way of drafting: what a step has to bring to break even, and what it brought.

    A head with random weights brings nothing by design: it has a price, and `most` says what an ideal head would bring.
    """

    label: str
    needed: Spread
    brought: Spread | None = None
    most: int | None = None

    @property
    def outcome(self) -> str:
        """Say on which side of the break-even it came out, or that its bounds leave that open."""
        if self.brought is None:
            return "not counted" if self.most is None else f"needs {quantity(self.needed.median, '')} of {self.most}"
        if self.brought.low > self.needed.high:
            return "pays"
        return "does not pay" if self.brought.high < self.needed.low else "open"


def drafts(rows: Sequence[Draft]) -> Chart:
    """Draw at least one draft, each on a line of its own."""
    needed: list[Mark] = []
    brought: list[Mark] = []
    for number, row in enumerate(rows):
        one = row.needed
        needed.append(
            {
                "row": number,
                "low": one.low,
                "high": one.high,
                "median": one.median,
                "plain": 1.0,
                "label": shortened(row.label, beside(row.outcome)),
                "outcome": row.outcome,
            }
        )
        if (got := row.brought) is not None:
            brought.append({"row": number, "low": got.low, "high": got.high, "median": got.median})
    most: list[Mark] = [{"row": number, "most": row.most} for number, row in enumerate(rows) if row.most is not None]
    bounds = [float(mark[bound]) for mark in (*needed, *brought) for bound in ("low", "high")]
    axis = linear([1.0, *bounds, *(float(mark["most"]) for mark in most)], zero=True)
    spec = json.loads(_layout(len(rows)))
    spec["datasets"] = {"needed": needed, "brought": brought, "most": most}
    for layer in spec["layer"]:
        marked(layer["encoding"]["x"], axis, f"{_TITLE} (plain decoding makes 1)")
    said = "; ".join(_sentence(row) for row in rows)
    return Chart(svg=rendered(json.dumps(spec, sort_keys=True), _TITLE), alternative=f"{_TITLE}. {said}.")


@layout_once
def _layout(rows: int) -> str:
    axis, y, scale = row_frame(rows)
    needed, brought = alt.Chart(alt.NamedData(name="needed")), alt.Chart(alt.NamedData(name="brought"))
    layers = [
        needed.mark_tick(thickness=1.5, size=20, color=QUIET, opacity=1, orient="vertical").encode(
            x=alt.X("plain:Q", axis=axis, scale=scale), y=y
        ),
        needed.mark_rule(strokeWidth=12, color=INK, opacity=0.18).encode(
            x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q", y=y
        ),
        needed.mark_tick(thickness=2, size=20, color=INK, opacity=1, orient="vertical").encode(
            x=alt.X("median:Q", axis=axis, scale=scale), y=y
        ),
        brought.mark_rule(strokeWidth=3, color=SECOND).encode(x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q", y=y),
        brought.mark_point(filled=True, size=90, color=SECOND, opacity=1, shape="diamond").encode(
            x=alt.X("median:Q", axis=axis, scale=scale), y=y
        ),
        alt.Chart(alt.NamedData(name="most")).mark_point(filled=False, size=70, color=QUIET, opacity=1, strokeWidth=1.5).encode(
            x=alt.X("most:Q", axis=axis, scale=scale), y=y
        ),
        needed.mark_text(align="left", baseline="bottom", dy=-10, fontSize=12, color=INK).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
        needed.mark_text(align="right", baseline="bottom", dy=-10, fontSize=12, fontWeight="bold", color=INK).encode(
            x=alt.value(PLOT_WIDTH), y=y, text="outcome:N"
        ),
    ]  # fmt: skip
    return laid_out(layers, rows)


def _sentence(row: Draft) -> str:
    if row.brought is not None:
        brought = f"brought {_said(row.brought)}"
    else:
        brought = "brought is not counted" if row.most is None else f"an ideal one would bring {row.most}"
    return f"{visible(row.label)}: {row.outcome}, has to bring {_said(row.needed)}, {brought}"


def _said(one: Spread) -> str:
    if one.low == one.high:
        return f"{quantity(one.median, '')} (n = {one.n})"
    return f"{quantity(one.median, '')} ({quantity(one.low, '')} to {quantity(one.high, '')}, n = {one.n})"
