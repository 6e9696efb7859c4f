"""Pictures of samples as SVG: one file for light and dark, the same bytes for the same samples."""

from __future__ import annotations

import functools
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import vl_convert

from gen.markdown import Markdown, visible
from gen.planners.plan import Span
from gen.spread import multiple, quantity, spread
from probes.evidence import Per

# Narrow enough to be read on a phone at its own size; wide screens set charts side by side.
WIDTH, ROW_HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 340, 46, 6, 40, 12, 14
MAX_LABEL = 48

# Colours that nothing else uses stand for roles; the style sheet gives each role its colour per theme.
_ROLES = {
    "#010101": "currentColor",
    "#020202": "var(--chart-quiet,#6b7280)",
    "#030303": "var(--chart-first,#4b5a75)",
    "#040404": "var(--chart-second,#0b7285)",
    "#050505": "var(--chart-line,#c9ced6)",
}
_INK, _QUIET, _FIRST, _SECOND, _LINE = _ROLES

Mark = dict[str, float | str]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture and the sentence that says the same."""

    svg: str
    alternative: str


def strips(title: str, unit: str, series: Mapping[str, Sequence[float]], per: Per) -> Chart:
    """Draw every sample of each series on its own line, with the median and its bounds.

    The first series is the baseline; the others carry another colour and another shape.
    """
    # The renderer is native code: a control character in its input ends the whole process.
    title, unit = _shortened(title), _shortened(unit)
    labels = [_shortened(label) for label in series]
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
    return Chart(svg=_svg(json.dumps(spec, sort_keys=True), title), alternative=f"{title}. {alternative}.")


def bars(title: str, rows: Sequence[tuple[str, Span]]) -> Chart:
    """Draw worked-out values from zero, with the bounds that their inputs allow; all rows have one unit."""
    title = _shortened(title)
    largest = max(abs(span.high) for _, span in rows)
    factor, shown = multiple(largest, rows[0][1].unit)
    marks: list[Mark] = [
        {
            "row": row,
            "value": span.value / factor,
            "low": span.low / factor,
            "high": span.high / factor,
            "zero": 0,
            "label": f"{_shortened(label)}: {quantity(span.value, span.unit)}",
        }
        for row, (label, span) in enumerate(rows)
    ]
    spec = json.loads(_bars_layout(len(rows)))
    spec["datasets"] = {"bars": marks}
    for layer in spec["layer"]:
        if layer["encoding"]["x"].get("axis"):
            layer["encoding"]["x"]["axis"]["title"] = f"{title}, {shown}" if shown else title
    alternative = "; ".join(f"{visible(label)}: {span.said()}" for label, span in rows)
    return Chart(svg=_svg(json.dumps(spec, sort_keys=True), title), alternative=f"{title}. {alternative}.")


def figure(chart: Chart, caption: Markdown) -> Markdown:
    """Place a chart in a page. Its labels stay out of the search index: the table beside it holds them."""
    return Markdown(f'<figure class="chart" data-search-exclude>{chart.svg}<figcaption>{caption}</figcaption></figure>\n')


@functools.cache
def _bars_layout(rows: int) -> str:
    """Lay out so many bars without data, each with its label above it and a line from its lowest to its highest value."""
    axis, y, x_scale = _frame(rows)
    bar = alt.Chart(alt.NamedData(name="bars"))
    layers = [
        bar.mark_rule(strokeWidth=10, color=_SECOND, opacity=0.55).encode(
            x=alt.X("zero:Q", axis=axis, scale=x_scale), x2="value:Q", y=y
        ),
        bar.mark_rule(strokeWidth=2, color=_INK).encode(x=alt.X("low:Q", axis=axis, scale=x_scale), x2="high:Q", y=y),
        bar.mark_tick(thickness=2, size=14, color=_INK, opacity=1, orient="vertical").encode(
            x=alt.X("value:Q", axis=axis, scale=x_scale), y=y
        ),
        bar.mark_text(align="left", baseline="bottom", dy=-10, fontSize=12, color=_INK).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
    ]
    return _laid_out(layers, rows)


def _frame(rows: int) -> tuple[alt.Axis, alt.Y, alt.Scale]:
    """Give what all charts of rows have in common: the axis below, the place of each row, a scale from zero."""
    y_scale = alt.Scale(domain=[-0.62, rows - 0.38], reverse=True, zero=False, nice=False)
    axis = alt.Axis(
        tickCount=4, grid=True, gridColor=_LINE, gridDash=[2, 3], domainColor=_LINE, tickColor=_LINE,
        labelColor=_QUIET, titleColor=_QUIET, labelFontSize=11, titleFontSize=11, titleFontWeight="normal", labelFlush=False,
    )  # fmt: skip
    return axis, alt.Y("row:Q", scale=y_scale, axis=None), alt.Scale(zero=True, nice=True)


@functools.cache
def _strips_layout(rows: int) -> str:
    """Lay out a chart of so many series without data: building and checking a specification is slow."""
    axis, y, x_scale = _frame(rows)
    shape = alt.Shape("role:N", scale=alt.Scale(domain=["first", "second"], range=["circle", "diamond"]), legend=None)
    colour = alt.Color("role:N", scale=alt.Scale(domain=["first", "second"], range=[_FIRST, _SECOND]), legend=None)
    samples = alt.Chart(alt.NamedData(name="points")).mark_point(filled=True, size=58, opacity=0.5, strokeWidth=0)
    middle = alt.Chart(alt.NamedData(name="middles"))
    layers = [
        middle.mark_rule(strokeWidth=10, color=_INK, opacity=0.16).encode(
            x=alt.X("low:Q", axis=axis, scale=x_scale), x2="high:Q", y=y
        ),
        samples.encode(x=alt.X("value:Q", axis=axis, scale=x_scale), y=y, shape=shape, color=colour),
        middle.mark_tick(thickness=2, size=20, color=_INK, opacity=1, orient="vertical").encode(
            x=alt.X("median:Q", axis=axis, scale=x_scale), y=y
        ),
        middle.mark_text(align="left", baseline="bottom", dy=-12, fontSize=12, color=_INK).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
    ]
    return _laid_out(layers, rows)


def _laid_out(layers: list[alt.Chart], rows: int) -> str:
    # No automatic size and no measured text: fonts differ from machine to machine, bytes must not.
    chart = alt.layer(*layers).properties(
        width=WIDTH - LEFT - RIGHT,
        height=rows * ROW_HEIGHT,
        padding={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        autosize=alt.AutoSizeParams(type="none"),
        background="transparent",
    )
    return str(chart.configure(font="sans-serif", aria=False).configure_view(stroke=None).to_json())


@functools.lru_cache(maxsize=4096)
def _svg(spec: str, title: str) -> str:
    """Render a specification and give colours, fonts and ids to the page it will stand in."""
    drawn = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    for colour, role in _ROLES.items():
        drawn = drawn.replace(f'"{colour}"', f'"{role}"')
    drawn = re.sub(r' (aria-[a-z]+|role|font-family|xmlns:xlink|pointer-events)="[^"]*"', "", drawn)
    drawn = re.sub(r'<path class="(?:back|fore)ground"[^>]*/>', "", drawn)
    name = f"chart-{hashlib.sha256(spec.encode()).hexdigest()[:10]}"
    drawn = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', drawn)
    drawn = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", drawn)
    opening = re.sub(r' (class|width|height)="[^"]*"', "", drawn[: drawn.index(">") + 1])
    opening = opening.replace("<svg", f'<svg class="strips" role="img" aria-labelledby="{name}-title"', 1)
    heading = f'<title id="{name}-title">{html.escape(title)}</title>'
    return opening + heading + drawn[drawn.index(">") + 1 :]


def _sentence(label: str, values: Sequence[float], unit: str, per: Per) -> str:
    one = spread(values, per)
    kind = "95 % interval" if one.bounds_median else "range"
    return (
        f"{visible(label)}: median {quantity(one.median, unit)}, {kind} {quantity(one.low, unit)} to "
        f"{quantity(one.high, unit)}, n = {one.n}"
    )


def _shortened(label: str) -> str:
    shown = visible(label)
    return shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "…"
