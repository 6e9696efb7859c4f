"""Tables of hand-written pages carry what cards on a phone need, and generated ones are left as they are."""

from __future__ import annotations

import markdown  # type: ignore[import-untyped]

from gen.labels import LabelledTables
from gen.tables import Layout, columns, table
from tests.gen.reading import EXTENSIONS, SETTINGS

WRITTEN = """| Metric | Unit | Better |
|---|---|---|
| `ttft_s` | **s** | lower |
| other | [a link](x.md) and more | none |
"""


def html(source: str) -> str:
    return str(markdown.markdown(source, extensions=[*EXTENSIONS, LabelledTables()], extension_configs=SETTINGS))


def test_each_cell_of_a_written_table_repeats_its_title() -> None:
    shown = html(f"Before.\n\n{WRITTEN}\nAfter.")
    assert shown.count('<div class="table cards">') == 1
    assert '<td><span class="label">Metric</span> <code>ttft_s</code></td>' in shown
    assert '<td><span class="label">Unit</span> <strong>s</strong></td>' in shown
    assert '<span class="label">Unit</span> <a href="x.md">a link</a> and more' in shown
    assert shown.endswith("<p>After.</p>")


def test_a_column_without_a_title_gives_no_label() -> None:
    shown = html("| | A | B |\n|---|---|---|\n| b | c | d |\n")
    assert "<td>b</td>" in shown
    assert shown.count("label") == 2


def test_a_name_and_what_it_means_stand_together_without_labels() -> None:
    shown = html("| Word | It means |\n|---|---|\n| on | it runs |\n")
    assert '<div class="table cards pair-of-columns">' in shown
    assert "label" not in shown


def test_a_generated_table_is_left_alone() -> None:
    written = table(columns("Metric"), [("ttft_s",)], Layout.CARDS)  # type: ignore[list-item]
    plain = str(markdown.markdown(written, extensions=EXTENSIONS, extension_configs=SETTINGS))
    assert html(written) == plain
    assert plain.count("label") == 1
