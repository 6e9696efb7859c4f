"""A table shows each cell as it was given, in every row as many cells as there are columns, and none blank."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.markdown import Markdown, code, sifted, text
from gen.tables import FEW, Layout, Summed, columns, summed, table
from tests.gen.reading import read
from tests.gen.specimens import HOSTILE

CELL = st.one_of(st.text(max_size=30), st.text(alphabet="\\|\n-:` <>&", max_size=20), st.sampled_from(HOSTILE))


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=4))
def test_every_row_has_every_cell(rows: list[tuple[str, str, str]]) -> None:
    shown = read(table(columns("A", "B", "C"), [[text(cell) for cell in row] for row in rows], Layout.GRID))
    assert [len(row) for row in shown.rows] == [3] * (len(rows) + 1)
    for row, cells in zip(rows, shown.rows[1:], strict=True):
        assert [cell.split() for cell in cells] == [read(text(cell)).text.split() for cell in row]


@pytest.mark.parametrize(
    "value",
    ["2026.20", "5e10", "12884901888", "007", "1_000", "nan", "None", "inf", "True", "1.10", "-0", "3.", ".5", "+1", "0x1F"],
)
def test_text_that_looks_like_a_number_stays_text(value: str) -> None:
    shown = read(table(columns("A", "B", numeric=["B"]), [[text(value), code(value)]], Layout.GRID))
    assert [cell.strip() for cell in shown.rows[1]] == [value, value]


def test_a_numeric_column_is_aligned_without_a_style() -> None:
    shown = read(table(columns("A", "B", numeric=["B"]), [[text("x"), text("1")]], Layout.GRID))
    assert ("td", "align", "right") in shown.attributes
    assert not [name for _, name, _ in shown.attributes if name == "style"]


def test_a_card_repeats_its_column_titles() -> None:
    shown = read(table(columns("State", "Why"), [[text("on"), text("because")]], Layout.CARDS))
    assert [cell.split() for cell in shown.rows[1]] == [["State", "on"], ["Why", "because"]]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ([text("a")], "2 cells in each row, not 1"),
        ([text("a"), Markdown(" ")], "a value or the reason"),
        ([text("a"), Markdown("b|c")], "without a bare pipe"),
        ([text("a"), Markdown("b\nc")], "on one line"),
    ],
)
def test_a_broken_row_is_a_bug_of_the_page(row: list[Markdown], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        table(columns("A", "B"), [row])


def test_two_columns_may_share_a_title() -> None:
    shown = read(table(columns("cold", "cold"), [[text("1"), text("2")]], Layout.GRID))
    assert [cell.strip() for cell in shown.rows[1]] == ["1", "2"]


@pytest.mark.parametrize(
    ("rows", "facets", "shown"), [(FEW + 1, ("B",), ["1"]), (FEW + 1, (), [""]), (FEW + 1, None, []), (FEW, ("B",), [])]
)
def test_only_a_long_table_that_says_so_can_be_sifted(rows: int, facets: tuple[str, ...] | None, shown: list[str]) -> None:
    body = [[text(str(number)), text("x")] for number in range(rows)]
    reader = read(table(columns("A", "B"), body, Layout.CARDS, facets=facets))
    assert [value for _, name, value in reader.attributes if name == "data-facets"] == shown


def test_bare_numbers_stay_out_of_the_search() -> None:
    reader = read(table(columns("A"), [[text("1")]], searched=False))
    assert ("div", "data-search-exclude", "") in reader.attributes


def test_a_facet_is_the_title_of_a_column() -> None:
    with pytest.raises(ValueError, match=r"titles of columns, not \['C'\]"):
        table(columns("A", "B"), [], facets=("A", "C"))


@given(CELL.filter(bool), CELL.filter(bool))
def test_what_a_cell_counts_as_is_no_markup(sort: str, facet: str) -> None:
    reader = read(table(columns("A"), [[sifted(text("seen"), sort=sort, facet=facet)]], Layout.GRID))
    assert [cell.strip() for cell in reader.rows[1]] == ["seen"]
    assert {name for _, name, _ in reader.attributes if name.startswith("data-")} == {"data-sort", "data-facet"}


def test_rows_are_summed_up_by_group_in_the_order_of_the_groups() -> None:
    groups = [("b", "x"), ("a", "y"), ("b", "x")]
    days = [date(2026, 3, 1), date(2026, 2, 1), date(2026, 1, 1)]
    assert list(summed(groups, days, [True, False, True])) == [
        Summed(group=("a", "y"), rows=1, first=days[1], last=days[1], valid=0),
        Summed(group=("b", "x"), rows=2, first=days[2], last=days[0], valid=2),
    ]
