"""A chart is the same bytes for the same samples, speaks in words too, and carries no foreign markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from gen.charts import figure, strips
from gen.charts.drawing import rendered
from gen.markdown import paragraphs, text
from probes.evidence import Per
from tests.gen.reading import read
from tests.gen.specimens import HOSTILE

SERIES = {"cold": (0.41, 0.4, 0.43, 0.42, 0.4, 0.44), "warm": (0.08, 0.079, 0.09, 0.08, 0.081, 0.082)}


def drawn(label: str = "cold") -> str:
    return strips("ttft_s", "s", {label: SERIES["cold"], "warm": SERIES["warm"]}, Per.REPETITION).svg


def test_the_same_samples_give_the_same_bytes() -> None:
    first = drawn()
    rendered.cache_clear()
    assert drawn() == first


def test_every_sample_is_a_mark() -> None:
    marks = re.search(r"mark-symbol.*?</g>", drawn(), re.DOTALL)
    assert marks is not None
    assert marks[0].count("<path") == 12


def test_a_chart_has_no_colour_font_or_script_of_its_own() -> None:
    svg = drawn()
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) - {"none"}
    assert colours <= {"currentColor"} | {c for c in colours if c.startswith("var(--chart-")}
    assert not re.search(r"font-family|style=|<style|<script|href|url\((?!#)", svg)


def test_ids_are_unique_between_charts_on_one_page() -> None:
    both = drawn("cold") + drawn("colder")
    ids = re.findall(r'\bid="([^"]+)"', both)
    assert len(ids) == len(set(ids)) > 0
    assert set(re.findall(r'aria-labelledby="([^"]+)"', both)) <= set(ids)


@pytest.mark.parametrize("label", HOSTILE)
def test_a_hostile_label_stays_text(label: str) -> None:
    chart = strips(label, "s", {label: (1.0, 2.0)}, Per.REPETITION)
    tags = {element.tag.split("}")[1] for element in ET.fromstring(chart.svg).iter()}  # noqa: S314 (our own output)
    assert tags <= {"svg", "title", "g", "path", "line", "text", "defs", "clipPath", "rect"}
    assert not re.search(r"\son\w+=", re.sub(r">[^<]*<", "><", chart.svg))


def test_the_alternative_says_what_the_picture_shows() -> None:
    said = strips("ttft_s", "s", SERIES, Per.REPETITION).alternative
    assert said == (
        "ttft_s. cold: median 415 ms, 95 % interval 400 ms to 440 ms, n = 6; "
        "warm: median 80.5 ms, 95 % interval 79 ms to 90 ms, n = 6."
    )


def test_the_width_does_not_depend_on_the_length_of_a_label() -> None:
    """Measured text would differ with the fonts of the machine."""
    sizes = {re.search(r'viewBox="([^"]+)"', drawn(label))[1] for label in ("a", "a" * 300)}  # type: ignore[index]
    assert len(sizes) == 1


def test_a_figure_survives_the_page_around_it() -> None:
    chart = strips("ttft_s", "s", SERIES, Per.REPETITION)
    shown = read(paragraphs(text("before"), figure(chart, text("a|b *c*")), text("after")))
    assert shown.tags.count("svg") == shown.tags.count("figcaption") == 1
    assert shown.text.startswith("before")
    assert shown.text.split()[-2:] == ["*c*", "after"]


@pytest.mark.parametrize("samples", [(0.0, 0.0), (1e300, 1e300), (-5.0, 5.0), (1e-300, 2e-300), (7.0,)])
def test_samples_of_any_size_are_drawn(samples: tuple[float, ...]) -> None:
    svg = strips("t", "s", {"only": samples}, Per.REPETITION).svg
    assert svg.count("<path") == 1 + len(samples)
    assert "NaN" not in svg
    assert "Infinity" not in svg
