"""How every picture is rendered: one file for light and dark, the same bytes for the same specification."""

from __future__ import annotations

import functools
import hashlib
import html
import re
from dataclasses import dataclass

import altair as alt

from gen.charts.rendering import svg_of
from gen.markdown import Markdown, visible

# Narrow enough to be read on a phone at its own size; wide screens set charts side by side.
WIDTH, ROW_HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 340, 46, 6, 40, 12, 14
PLOT_WIDTH = WIDTH - LEFT - RIGHT
MAX_LABEL = 48

# Colours that nothing else uses stand for roles; the style sheet gives each role its colour per theme.
_ROLES = {
    "#010101": "currentColor",
    "#020202": "var(--chart-quiet,#6b7280)",
    "#030303": "var(--chart-first,#4b5a75)",
    "#040404": "var(--chart-second,#0b7285)",
    "#050505": "var(--chart-line,#c9ced6)",
    "#060606": "var(--chart-third,#8a5a00)",
    "#070707": "var(--chart-fourth,#7b3f8c)",
}
INK, QUIET, FIRST, SECOND, LINE, THIRD, FOURTH = _ROLES

Mark = dict[str, float | str]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture and the sentence that says the same."""

    svg: str
    alternative: str


def figure(chart: Chart, caption: Markdown) -> Markdown:
    """Place a chart in a page, with what it says in words for those who do not see it.

    Its labels stay out of the search index: the table beside it holds them.
    """
    told = html.escape(" ".join(chart.alternative.split()))
    svg = chart.svg.replace("</title>", f"</title><desc>{told}</desc>", 1)
    return Markdown(f'<figure class="chart" data-search-exclude>{svg}<figcaption>{caption}</figcaption></figure>\n')


def row_frame(rows: int) -> tuple[alt.Axis, alt.Y, alt.Scale]:
    """Give what all charts of rows have in common: the axis below, the place of each row, a scale from zero."""
    y_scale = alt.Scale(domain=[-0.62, rows - 0.38], reverse=True, zero=False, nice=False)
    return axis(), alt.Y("row:Q", scale=y_scale, axis=None), alt.Scale(zero=True, nice=True)


def axis() -> alt.Axis:
    """Draw an axis as all charts do: quiet, with a grid, and labels that nobody has to measure."""
    return alt.Axis(
        tickCount=4, grid=True, gridColor=LINE, gridDash=[2, 3], domainColor=LINE, tickColor=LINE, labelOverlap=False,
        labelColor=QUIET, titleColor=QUIET, labelFontSize=11, titleFontSize=11, titleFontWeight="normal", labelFlush=False,
    )  # fmt: skip


def laid_out(layers: list[alt.Chart], rows: int) -> str:
    """Lay charts of rows out."""
    return sized(layers, rows * ROW_HEIGHT)


def sized(layers: list[alt.Chart], height: int, *, left: int = LEFT, top: int = TOP, bottom: int = BOTTOM) -> str:
    """Put layers on a ground of one width.

    No automatic size and no measured text: fonts differ from machine to machine, bytes must not.
    """
    chart = alt.layer(*layers).properties(
        width=WIDTH - left - RIGHT,
        height=height,
        padding={"left": left, "right": RIGHT, "top": top, "bottom": bottom},
        autosize=alt.AutoSizeParams(type="none"),
        background="transparent",
    )
    return str(chart.configure(font="sans-serif", aria=False).configure_view(stroke=None).to_json(validate=False))


@functools.lru_cache(maxsize=4096)
def rendered(spec: str, title: str) -> str:
    """Render a specification and give colours, fonts and ids to the page it will stand in."""
    drawn = svg_of(spec)
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


def beside(word: str) -> int:
    """Count the letters that a row has left for its label beside a bold word at its end."""
    return int((PLOT_WIDTH - 7.6 * len(word) - 8) / 6.4)


def shortened(label: str, most: int = MAX_LABEL) -> str:
    """Cut a label to what fits on its line; the renderer is native code that a control character would end."""
    shown = " ".join(visible(label).split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"
