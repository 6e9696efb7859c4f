"""Tables of text: the only place for pandas and tabulate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from gen.markdown import Markdown, block, span

FEW = 8
"""So many rows are seen at a glance; only more are worth a filter."""


class Layout(StrEnum):
    """How rows are laid out: as cards on narrow screens, as cards everywhere, or never."""

    CARDS = "cards"
    STACK = "stack"
    GRID = "grid"


@dataclass(frozen=True, kw_only=True)
class Column:
    title: Markdown
    numeric: bool = False


def columns(*titles: str, numeric: Sequence[str] = ()) -> tuple[Column, ...]:
    """Name columns by the generator's own words; those in `numeric` are aligned to the right."""
    return tuple(Column(title=Markdown(title), numeric=title in numeric) for title in titles)


def table(
    head: Sequence[Column],
    rows: Sequence[Sequence[Markdown]],
    layout: Layout = Layout.CARDS,
    name: str = "",
    *,
    facets: Sequence[str] | None = None,
) -> Markdown:
    """Write a table whose cells are all filled.

    Numbers come as text: pandas and tabulate would turn 2026.20 into 2026.2 and a missing value into nan.
    With `facets` a long table can be searched and sorted where scripts run (docs/assets/tables.js), and those columns,
    named by their titles, each offer their values to choose from. `gen.markdown.sifted` says what a cell sorts or counts
    as where its words do not. Rows in an order that tells something, such as a contract, go without.

    Raises:
        ValueError: a row of another width, a blank cell or an unknown facet, all mistakes of the calling page.
    """
    titles = [column.title for column in head]
    if unknown := set(facets or ()) - set(titles):
        raise ValueError(f"facets are titles of columns, not {sorted(unknown)}")
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"{len(head)} cells in each row, not {len(row)}: {row!r}")
        if not all(cell.strip() for cell in row):
            raise ValueError(f"a value or the reason why there is none in each cell: {row!r}")
        if any("|" in cell or "\n" in cell for cell in row):
            raise ValueError(f"cells on one line and without a bare pipe: {row!r}")
    cells = [[_labelled(cell, column, layout) for cell, column in zip(row, head, strict=True)] for row in rows]
    # Named by position, for two columns may bear the same title.
    frame = pd.DataFrame(cells, columns=range(len(head)), dtype=object)
    written = frame.to_markdown(
        index=False,
        headers=titles,
        tablefmt="pipe",
        disable_numparse=True,
        colglobalalign="left",
        colalign=["right" if column.numeric else "left" for column in head],
    )
    sifting = {}
    if facets is not None and len(rows) > FEW:
        sifting["facets"] = " ".join(str(titles.index(Markdown(facet))) for facet in facets)
    return block(Markdown(written), "table", layout.value, *([name] if name else []), **sifting)


def pivot(series: Sequence[Sequence[float]]) -> list[tuple[int, tuple[float | None, ...]]]:
    """Put samples of several series side by side: one row per position, None past a series' end."""
    frame = pd.DataFrame({key: pd.Series(values, dtype="float64") for key, values in enumerate(series)})
    return [
        (int(str(index)) + 1, tuple(None if pd.isna(value) else float(value) for value in row))
        for index, row in zip(frame.index, frame.itertuples(index=False, name=None), strict=True)
    ]


def _labelled(cell: Markdown, column: Column, layout: Layout) -> Markdown:
    """Repeat the column's title in the cell of a card, where no header row stands above it."""
    return Markdown(f"{span(column.title, 'label')} {cell}") if layout is not Layout.GRID else cell
