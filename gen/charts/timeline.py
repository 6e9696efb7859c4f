"""One quantity over the days it was measured: medians with bounds, where a release changed, and when records were decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import altair as alt

from gen.charts.axes import Axis, linear, place
from gen.charts.drawing import INK, LINE, QUIET, RIGHT, Chart, Mark, rendered, shortened
from gen.charts.plane import HEIGHT, across, colour, dash, filled, plane, plot_width, role, shape, upward
from gen.charts.rendering import layout_once
from gen.markdown import visible
from gen.spread import Spread, multiple, quantity

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TOLD = 6
# Series of one run stand apart by this share of the axis.
_BESIDE = 0.012
# What a letter of a small label takes, what two numbers and two dates need to stand side by side.
_LETTER_PX, _NUMBER_PX, _DATE_PX = 5.6, 14, 72


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What one run came to; `release` is what it ran on, '' where nobody knows."""

    at: datetime
    spread: Spread
    release: str


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A record that was accepted, replaced or withdrawn on a day."""

    day: date
    label: str


def timeline(title: str, unit: str, lines: Mapping[str, Sequence[Moment]], decided: Sequence[Decided]) -> Chart:
    """Draw each series, at most four, over time; a line ends where the release changes.

    Records are numbered in the order of their days; those outside the days that were measured are left out.
    """
    title, unit = shortened(title), shortened(unit)
    every = [moment for line in lines.values() for moment in line]
    factor, shown = multiple(max(max(abs(one.spread.low), abs(one.spread.high)) for one in every), unit)
    x, dates = _days([moment.at for moment in every])
    bounds = [bound / factor for one in every for bound in (one.spread.low, one.spread.high)]
    releases = _releases(every, x)
    # Room above for the names of releases.
    y = linear([*bounds, max(bounds) + 0.15 * (max(bounds) - min(bounds))] if releases else bounds)
    data = {
        "points": list(_points(lines, x, factor)),
        "dates": dates,
        "releases": releases,
        "records": _records(within(decided, [moment.at for moment in every]), x),
    }
    names = list(lines) if len(lines) > 1 else []
    svg = rendered(filled(_layout(len(names)), x, y.named(f"{title}, {shown}" if shown else title), names, data), title)
    said = "; ".join(f"{visible(name)}: {_course(line, unit)}" for name, line in lines.items())
    return Chart(svg=svg, alternative=f"{title} over time. {said}.")


def within(decided: Iterable[Decided], moments: Sequence[datetime]) -> list[Decided]:
    """Give the records decided while something was measured, in the order in which the picture numbers them."""
    first, last = min(moments).astimezone(UTC).date(), max(moments).astimezone(UTC).date()
    return sorted((one for one in decided if first <= one.day <= last), key=lambda one: (one.day, one.label))


def _points(lines: Mapping[str, Sequence[Moment]], x: Axis, factor: float) -> Iterable[Mark]:
    """Give each run of each series; those of one run stand beside each other, so that no bounds hide others."""
    for number, line in enumerate(lines.values()):
        beside = _BESIDE * (x.high - x.low) * (number - (len(lines) - 1) / 2)
        segment, before = 0, None
        for moment in sorted(line, key=lambda one: one.at):
            segment += before is not None and moment.release != before
            before = moment.release
            one = moment.spread
            yield {
                "x": _day(moment.at) + beside,
                "y": one.median / factor,
                "low": one.low / factor,
                "high": one.high / factor,
                "role": role(number),
                "segment": f"{number}/{segment}",
            }


def _days(moments: Sequence[datetime]) -> tuple[Axis, list[Mark]]:
    """Span the days; the first and the last are named, and what fits between them."""
    first, last = _day(min(moments)), _day(max(moments))
    room = (last - first) * 0.04 or 0.5
    axis = Axis(low=first - room, high=last + room, ticks=(), title="")
    fine = last - first < 2
    found = [first, *((first + last) / 2 for _ in range(last > first)), *(last for _ in range(last > first))]
    dates: list[Mark] = []
    for value in found:
        written = _EPOCH + timedelta(days=value)
        dates.append({"x": _inside(axis, value), "label": f"{written:%d %b %H:%M}" if fine else f"{written:%Y-%m-%d}"})
    return axis, dates


def _inside(axis: Axis, value: float) -> float:
    """Move a date to where its label, which stands centred, ends inside the picture."""
    most = axis.low + (axis.high - axis.low) * (1 + (RIGHT - _DATE_PX / 2) / plot_width())
    return min(value, most)


def _releases(every: Sequence[Moment], x: Axis) -> list[Mark]:
    """Name the release from where it begins, and leave out the names that would run into each other."""
    marks: list[Mark] = []
    before: str | None = None
    free = -1.0
    for moment in sorted(every, key=lambda one: one.at):
        if moment.release == before:
            continue
        at = place(x, _day(moment.at)) * plot_width()
        label = shortened(moment.release, 16)
        width = _LETTER_PX * (len(label) + 2)
        # The name of a release that began last ends at the edge, left of where it would stand.
        start = min(at, plot_width() + RIGHT - width)
        fits = free <= start
        named = x.low + (x.high - x.low) * start / plot_width()
        marks.append({"x": _day(moment.at), "named": named, "label": label if fits else ""})
        free = start + width if fits else free
        before = moment.release
    return marks if len(marks) > 1 else []


def _records(decided: Sequence[Decided], x: Axis) -> list[Mark]:
    """Number the records; those that stand too close for a number each share one."""
    marks: list[Mark] = []
    first, free = 0, float("-inf")
    for number, one in enumerate(decided, start=1):
        # At noon, because a record has no hour.
        value = _day(datetime(one.day.year, one.day.month, one.day.day, 12, tzinfo=UTC))
        value = min(max(value, x.low), x.high)
        at = place(x, value) * plot_width()
        marks.append({"x": value, "label": str(number) if at >= free else ""})
        if at >= free:
            first, free = number, at + 2 * _NUMBER_PX
        else:
            marks[first - 1]["label"] = f"{first}–{number}"
    return marks


@layout_once
def _layout(keys: int) -> str:
    def source(name: str) -> alt.Chart:
        return alt.Chart(alt.NamedData(name=name))

    points, x, y = source("points"), across(), upward()
    layers = [
        source("releases").mark_rule(strokeWidth=1, color=LINE, strokeDash=[2, 3]).encode(x=x),
        source("releases").mark_text(align="left", baseline="top", dx=3, fontSize=10, color=QUIET).encode(
            x=across("named"), y=alt.value(2), text="label:N"
        ),
        source("records").mark_rule(strokeWidth=1.5, color=INK).encode(x=x, y=alt.value(0), y2=alt.value(HEIGHT)),
        source("records").mark_text(align="left", baseline="bottom", dx=3, fontSize=11, fontWeight="bold", color=INK).encode(
            x=x, y=alt.value(HEIGHT - 3), text="label:N"
        ),
        points.mark_rule(strokeWidth=7, opacity=0.28).encode(
            x=x, y=upward("low"), y2="high:Q", color=colour()
        ),
        points.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour(), strokeDash=dash(), detail="segment:N"),
        points.mark_point(filled=True, size=46, opacity=1).encode(x=x, y=y, color=colour(), shape=shape()),
        source("dates").mark_text(align="center", baseline="top", fontSize=11, color=QUIET).encode(
            x=x, y=alt.value(HEIGHT + 8), text="label:N"
        ),
    ]  # fmt: skip
    return plane(layers, keys, bottom=26)


def _day(moment: datetime) -> float:
    return (moment.astimezone(UTC) - _EPOCH) / timedelta(days=1)


def _course(line: Sequence[Moment], unit: str) -> str:
    """Tell each run, or of many the first, the last, the lowest and the highest."""
    ordered = sorted(line, key=lambda one: one.at)
    told = ordered
    if len(ordered) > _MOST_TOLD:
        low, high = (pick(ordered, key=lambda one: one.spread.median) for pick in (min, max))
        told = sorted({one.at: one for one in (ordered[0], low, high, ordered[-1])}.values(), key=lambda one: one.at)
    lead = "" if len(told) == len(ordered) else f"{len(ordered)} runs, among them the lowest and the highest: "
    return lead + ", ".join(f"{_said(one.spread, unit)} on {one.at.astimezone(UTC):%Y-%m-%d}" for one in told)


def _said(found: Spread, unit: str) -> str:
    if found.n == 1:
        return f"{quantity(found.median, unit)} (n = 1, no spread)"
    return f"{quantity(found.median, unit)} ({quantity(found.low, unit)} to {quantity(found.high, unit)}, n = {found.n})"
