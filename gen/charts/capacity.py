"""What a KV pool holds: the bytes that sequences take as they grow, against the size of the pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from gen.charts.axes import linear
from gen.charts.drawing import INK, QUIET, Chart, Mark, rendered, shortened
from gen.charts.plane import across, colour, dash, filled, filling, plane, role, shape, upward
from gen.charts.rendering import layout_once
from gen.planners.plan import Span
from gen.spread import multiple, quantity

_TITLE = "Cache of all sequences"
# Lines are drawn a little past the pool, so that it is seen where they leave it.
_PAST = 1.3


def capacity(
    title: str, per_token: Span, pool: Span, held: Span, *, counts: Sequence[int], longest: int | None = None
) -> Chart:
    """Draw the cache of so many sequences at once, at most four counts, by the length of each, up to the longest one.

    `held` is how many tokens the pool holds in whole blocks.
    """
    title = shortened(title)
    factor, shown = multiple(pool.value, "B")
    fits = {count: held.value / count for count in counts}
    end = max(fits.values()) * 1.08
    end = min(end, float(longest)) if longest else end
    x = linear([0, end])
    ceiling = pool.value * _PAST
    # A model shorter than the pool is deep never fills it alone.
    lines: list[Mark] = []
    for number, count in enumerate(counts):
        length = min(end, ceiling / (per_token.value * count))
        for at in (0.0, length):
            taken = [at * count * bound / factor for bound in (per_token.low, per_token.value, per_token.high)]
            lines.append(
                {"x": at, "y": taken[1], "low": taken[0], "high": min(taken[2], ceiling / factor), "role": role(number)}
            )
    meets: list[Mark] = [
        {"x": fits[count], "y": pool.value / factor, "role": role(number)}
        for number, count in enumerate(counts)
        if fits[count] <= end
    ]
    y = linear([0, ceiling / factor])
    names = [_name(count, fits[count], longest) for count in counts]
    data: dict[str, list[Mark]] = {"lines": lines, "meets": meets, "pool": [{"y": pool.value / factor}]}
    svg = rendered(
        filled(
            _layout(len(counts)),
            x.named("tokens in each sequence"),
            y.named(f"{_TITLE}, {shown}; bold: pool of {quantity(pool.value, 'B')}"),
            names,
            data,
        ),
        title,
    )
    said = "; ".join(_sentences(held, counts, longest))
    return Chart(svg=svg, alternative=f"{title}. The pool is {pool.said()}, a token takes {per_token.said()}. {said}.")


@layout_once
def _layout(keys: int) -> str:
    lines, pool, meets = (alt.Chart(alt.NamedData(name=name)) for name in ("lines", "pool", "meets"))
    x, y = across(), upward()
    layers = [
        lines.mark_area(opacity=0.18).encode(
            x=x, y=upward("low"), y2="high:Q", fill=filling()
        ),
        lines.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(), strokeDash=dash()),
        pool.mark_rule(strokeWidth=2, color=INK).encode(y=y),
        meets.mark_rule(strokeWidth=1, color=QUIET, strokeDash=[2, 3]).encode(x=x, y=y),
        meets.mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=colour(), shape=shape()),
    ]  # fmt: skip
    return plane(layers, keys)


def _name(count: int, fits: float, longest: int | None) -> str:
    many = "1 sequence" if count == 1 else f"{count} sequences at once"
    if longest is not None and fits >= longest:
        return f"{many}: all {longest:,} tokens fit"
    return f"{many}: {int(fits):,} tokens{' each' if count > 1 else ''} fit"


def _sentences(held: Span, counts: Sequence[int], longest: int | None) -> Iterator[str]:
    for count in counts:
        low, high = int(held.low / count), int(held.high / count)
        between = f" (between {low:,} and {high:,})" if low != high else ""
        yield f"{_name(count, held.value / count, longest)}{between}"
