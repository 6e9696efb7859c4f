"""Text inside a record reads the same before and after Markdown, whatever it holds."""

from __future__ import annotations

import html
import re

import markdown  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.markdown import visible
from gen.prose import bullets, prose, sentence, table
from tests.gen.specimens import HOSTILE

EXTENSIONS = ["tables", "attr_list", "md_in_html", "fenced_code", "sane_lists", "def_list", "admonition"]


def shown(source: str) -> str:
    """What a reader sees of a line of Markdown, and an error if it holds any element but its own."""
    page = markdown.markdown(source, extensions=EXTENSIONS)
    inside = re.fullmatch(r"<ul>\n<li>(.*)</li>\n</ul>", page, re.DOTALL)
    assert inside is not None, page
    assert "<" not in inside[1], page
    return html.unescape(inside[1])


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(lambda text: bool(text.split())))
def test_any_text_is_shown_as_it_is(value: str) -> None:
    assert shown(bullets([prose(value)])).split() == visible(" ".join(value.split())).split()


@pytest.mark.parametrize("value", HOSTILE)
def test_what_a_server_says_to_mislead_stays_text(value: str) -> None:
    assert shown(bullets([prose(value)])).split() == visible(" ".join(value.split())).split()


@pytest.mark.parametrize("value", ["max_num_seqs 16", "60.8 tok/s", "8B (INT4), 5 %", "a - b", "ratio 0.9: better", "C#"])
def test_everyday_sentences_need_no_escaping(value: str) -> None:
    assert prose(value) == value


def test_a_sentence_ends_once() -> None:
    assert [sentence(value) for value in ("Yes", "Yes.", "Why?", "")] == ["Yes.", "Yes.", "Why?", ""]


def test_every_row_of_a_table_has_its_cells() -> None:
    written = table(("A", "B"), [(prose("a|b"), prose("c\\|d"))])
    page = markdown.markdown(written, extensions=["tables"])
    assert [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", page)] == ["a|b", "c\\|d"]
    with pytest.raises(ValueError, match="2 cells in every row"):
        table(("A", "B"), [("a",)])
