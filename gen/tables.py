"""Tables of text, and rows summed up: the only place for pandas and tabulate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import cast

import pandas as pd
from tabulate import tabulate

from gen.markdown import Markdown, block, span

FEW = 8
"""So many rows are seen at a glance; only more are worth a filter."""
Group = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Summed:
    """The rows of one group: how many, from when to when, and how many of them may be used."""

    group: Group
    rows: int
    first: date
    last: date
    valid: int


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
    searched: bool = True,
) -> Markdown:
    """Write a table whose cells are all filled.

    Numbers come as text: pandas and tabulate would turn 2026.20 into 2026.2 and a missing value into nan.
    With `facets` a long table can be searched and sorted where scripts run (docs/assets/tables.js), and those columns,
    named by their titles, each offer their values to choose from. `gen.markdown.sifted` says what a cell sorts or counts
    as where its words do not. Rows in an order that tells something, such as a contract, go without. The search of the site
    passes over a table that is not `searched`: bare numbers find nothing and weigh much.

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
    written = tabulate(
        cells,
        headers=titles,
        tablefmt="pipe",
        disable_numparse=True,
        colglobalalign="left",
        colalign=["right" if column.numeric else "left" for column in head],
    )
    sifting = {} if searched else {"search_exclude": ""}
    if facets is not None and len(rows) > FEW:
        sifting["facets"] = " ".join(str(titles.index(Markdown(facet))) for facet in facets)
    return block(Markdown(written), "table", layout.value, *([name] if name else []), **sifting)


def summed(groups: Sequence[Group], days: Sequence[date], valid: Sequence[bool]) -> Iterator[Summed]:
    """Sum rows up by group, the groups in their order; the three are columns of one table."""
    frame = pd.DataFrame({"group": groups, "day": days, "valid": valid})
    for group, rows in frame.groupby("group", sort=True):
        yield Summed(
            group=cast("Group", group),
            rows=len(rows),
            first=rows["day"].min(),
            last=rows["day"].max(),
            valid=int(rows["valid"].sum()),
        )


def _labelled(cell: Markdown, column: Column, layout: Layout) -> Markdown:
    """Repeat the column's title in the cell of a card, where no header row stands above it."""
    return Markdown(f"{span(column.title, 'label')} {cell}") if layout is not Layout.GRID else cell
