"""A plane: an axis below, an axis at the left, and a key above that names each series by colour, dash and shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import altair as alt

from gen.charts.axes import Axis, marked
from gen.charts.drawing import BOTTOM, FIRST, FOURTH, INK, QUIET, RIGHT, SECOND, THIRD, TOP, WIDTH, Mark, axis, shortened, sized

HEIGHT, LEFT_OF_PLANE = 150, 40
# More lines than this cannot be told apart by dash and shape alone.
MOST_LINES = 4
_KEY_HEIGHT = 17
_COLOURS = (FIRST, SECOND, THIRD, FOURTH)
_SHAPES = ("circle", "diamond", "square", "triangle-up")
_DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [2, 2], [9, 2, 2, 2])


def role(number: int) -> str:
    """Name the looks of a series by its place; the first is the baseline."""
    return f"role{number}"


def colour() -> alt.Color:
    """Colour by role."""
    return alt.Color("role:N", scale=_scale(_COLOURS), legend=None)


def filling() -> alt.Fill:
    """Fill an area by role."""
    return alt.Fill("role:N", scale=_scale(_COLOURS), legend=None)


def shape() -> alt.Shape:
    """Shape by role."""
    return alt.Shape("role:N", scale=_scale(_SHAPES), legend=None)


def dash() -> alt.StrokeDash:
    """Dash by role."""
    return alt.StrokeDash("role:N", scale=_scale(_DASHES), legend=None)


def across(field: str = "x") -> alt.X:
    """Give the axis below, to be marked with the data."""
    one = axis()
    # The last mark may stand at the edge, where a centred label would be cut.
    one.labelFlush = True
    return alt.X(f"{field}:Q", axis=one, scale=free())


def upward(field: str = "y") -> alt.Y:
    """Give the axis at the left, to be marked with the data; its name stands above it, where it is read without turning."""
    return alt.Y(f"{field}:Q", axis=axis(), scale=free())


def free() -> alt.Scale:
    """Leave the ends of an axis to the data."""
    return alt.Scale(zero=False, nice=False)


def plane(layers: Sequence[alt.Chart], keys: int, *, bottom: int = BOTTOM) -> str:
    """Lay layers out under the names of so many series."""
    key, name = alt.Chart(alt.NamedData(name="key")), alt.Chart(alt.NamedData(name="name"))
    y = alt.Y("at:Q", scale=None)
    shown = [
        key.mark_rule(strokeWidth=2).encode(x=alt.value(-28), x2=alt.value(2), y=y, color=colour(), strokeDash=dash()),
        key.mark_point(filled=True, size=46, opacity=1).encode(x=alt.value(-13), y=y, color=colour(), shape=shape()),
        key.mark_text(align="left", baseline="middle", fontSize=12, color=INK).encode(x=alt.value(8), y=y, text="label:N"),
    ] if keys else []  # fmt: skip
    shown.append(
        name.mark_text(align="left", baseline="bottom", fontSize=11, color=QUIET).encode(
            x=alt.value(-28), y=alt.value(-11), text="label:N"
        )
    )
    return sized([*layers, *shown], HEIGHT, left=LEFT_OF_PLANE, top=TOP + 28 + keys * _KEY_HEIGHT, bottom=bottom)


def filled(layout: str, x: Axis, y: Axis, names: Sequence[str], data: Mapping[str, Sequence[Mark]]) -> str:
    """Put data, axes and the names of the series into a layout."""
    spec = json.loads(layout)
    keys = len(names)
    key: list[Mark] = [
        {"role": role(number), "label": shortened(name, 46), "at": -35.0 - (keys - 1 - number) * _KEY_HEIGHT}
        for number, name in enumerate(names)
    ]
    spec["datasets"] = {**data, "key": key, "name": [{"label": shortened(y.title, 56)}]}
    for layer in spec["layer"]:
        marked(layer["encoding"].get("x", {}), x, shortened(x.title, 56))
        marked(layer["encoding"].get("y", {}), y, None)
    return json.dumps(spec, sort_keys=True)


def plot_width() -> int:
    """Give the width between the axis at the left and the right edge."""
    return WIDTH - LEFT_OF_PLANE - RIGHT


def _scale(values: Sequence[str | list[int]]) -> alt.Scale:
    return alt.Scale(domain=[role(number) for number in range(MOST_LINES)], range=list(values))
