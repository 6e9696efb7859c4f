"""Every kind of picture: the same bytes twice, colours by role, hostile labels as text, any size of samples, and words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from gen.charts import (
    Chart,
    Decided,
    Draft,
    Moment,
    Row,
    bars,
    capacity,
    drafts,
    ecdf,
    figure,
    forest,
    roofline,
    sweep,
    timeline,
)
from gen.charts.drawing import rendered
from gen.charts.timeline import within
from gen.markdown import text
from gen.planners.plan import Span, exactly
from gen.spread import spread
from gen.verdict import compare
from probes.evidence import Direction, Metric, Per
from probes.fleet import Gates
from tests.gen.reading import read
from tests.gen.specimens import HOSTILE

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
STEADY = (0.41, 0.4, 0.43, 0.42, 0.4, 0.44)
Kind = Callable[[str, Sequence[float]], Chart]


def row(samples: Sequence[float] = STEADY, factor: float = 0.5, *, title: str = "Time to first token") -> Row:
    def metric(values: Sequence[float]) -> Metric:
        return Metric(name="ttft_s", unit="s", direction=Direction.LOWER, per=Per.REPETITION, samples=tuple(values))

    outcome = compare(metric(samples), metric([factor * value for value in samples]), Gates())
    return Row(title=title, direction=Direction.LOWER, outcome=outcome)


def moments(values: Sequence[float], *, releases: Sequence[str] = ("2026.3", "2026.4")) -> list[Moment]:
    days = (MORNING + timedelta(days=30 * number) for number in range(len(values)))
    return [
        Moment(at=at, spread=spread([value]), release=releases[number * len(releases) // len(values)])
        for number, (at, value) in enumerate(zip(days, values, strict=True))
    ]


def _forest(label: str, samples: Sequence[float]) -> Chart:
    chart = forest([row([abs(value) + 1e-9 for value in samples] * 6, title=label)])
    assert chart is not None
    return chart


def _timeline(label: str, samples: Sequence[float]) -> Chart:
    lines = {label: moments(samples, releases=(label, "2")), "b": moments(samples)}
    return timeline(label, "s", lines, [Decided(day=MORNING.date(), label=label)])


def _capacity(label: str, samples: Sequence[float]) -> Chart:
    size = abs(samples[0]) or 1.0
    return capacity(
        label, exactly(size, "B"), exactly(size * 1e4, "B"), exactly(1e4, "tokens"), counts=[1, 4, 16], longest=8192
    )


def _roofline(label: str, samples: Sequence[float]) -> Chart:
    found = spread([abs(value) or 1.0 for value in samples])
    limit = Span(low=found.high, value=found.high * 2, high=found.high * 3, unit="tok/s")
    return roofline(label, {label: {1: limit, 4: limit}}, {"reached": {1: found}})


def _drafts(label: str, samples: Sequence[float]) -> Chart:
    return drafts(
        [
            Draft(label=label, needed=spread(samples), brought=spread([1.0])),
            Draft(label="b", needed=spread(samples), brought=None),
        ]
    )


KINDS: dict[str, Kind] = {
    "ecdf": lambda label, samples: ecdf(label, "s", {label: samples, "b": samples}),
    "sweep": lambda label, samples: sweep(label, "s", label, {label: {1: spread(samples)}, "b": {4: spread(samples)}}, "run"),
    "forest": _forest,
    "timeline": _timeline,
    "capacity": _capacity,
    "roofline": _roofline,
    "drafts": _drafts,
    "bars": lambda label, samples: bars(label, [(label, exactly(samples[0], "s"))]),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@every_kind
def test_the_same_data_give_the_same_bytes(kind: Kind) -> None:
    first = kind("cold", STEADY)
    rendered.cache_clear()
    assert kind("cold", STEADY) == first


@every_kind
def test_colours_come_by_role_and_fonts_from_the_page(kind: Kind) -> None:
    svg = kind("cold", STEADY).svg
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) - {"none", "transparent"}
    assert colours
    assert all(colour == "currentColor" or colour.startswith("var(--chart-") for colour in colours), colours
    assert not re.search(r"font-family|style=|<style|<script|href|url\((?!#)", svg)


@every_kind
@pytest.mark.parametrize("label", [*HOSTILE, "", " ", "x" * 3000])
def test_a_hostile_label_stays_text_and_leaves_the_size_alone(kind: Kind, label: str) -> None:
    chart = kind(label, STEADY)
    tags = {element.tag.split("}")[1] for element in ET.fromstring(chart.svg).iter()}  # noqa: S314 (our own output)
    assert tags <= {"svg", "title", "g", "path", "line", "text", "defs", "clipPath", "rect"}
    assert not re.search(r"\son\w+=", re.sub(r">[^<]*<", "><", chart.svg))
    size = re.compile(r'viewBox="([^"]+)"')
    assert size.findall(chart.svg) == size.findall(kind("a", STEADY).svg)
    shown = read(figure(chart, text("caption")))
    assert shown.tags.count("svg") == 1


@every_kind
@pytest.mark.parametrize(
    "samples", [(0.0,), (7.0,), (0.0, 0.0, 0.0), (1e300, 1e300), (1e-300, 2e-300), (1e-9, 1e9), (-5.0, 5.0)], ids=str
)
def test_samples_of_any_size_are_drawn(kind: Kind, samples: tuple[float, ...]) -> None:
    svg = kind("t", samples).svg
    assert svg.count("<path") + svg.count("<line") > 1
    assert "NaN" not in svg
    assert "Infinity" not in svg


@every_kind
def test_no_text_is_drawn_outside_of_the_picture(kind: Kind) -> None:
    """A picture has no room of its own for a label; what would not fit is cut or left out."""
    root = ET.fromstring(kind("label " * 30, STEADY).svg)  # noqa: S314 (our own output)
    words = [element.text or "" for element in root.iter() if element.tag.endswith("}text")]
    assert max(map(len, words)) <= 56


def test_a_distribution_tells_its_percentiles_and_leaves_out_a_p95_of_few() -> None:
    many = [0.1 * number for number in range(1, 21)]
    said = ecdf("ttft_s", "s", {"off": many, "on": STEADY}).alternative
    assert said == (
        "ttft_s of each request. off: p50 1 s, p95 1.9 s, range 100 ms to 2 s, n = 20 requests; "
        "on: p50 410 ms, range 400 ms to 440 ms, n = 6 requests."
    )


def test_thousands_of_requests_take_no_more_room_than_pixels() -> None:
    few, many = (len(ecdf("t", "s", {"a": [1 + number / n for number in range(n)]}).svg) for n in (300, 30_000))
    assert many < 1.5 * few


def test_a_logarithmic_axis_says_so() -> None:
    assert "logarithmic" in ecdf("t", "s", {"a": (0.01, 10.0)}).svg
    assert "logarithmic" not in ecdf("t", "s", {"a": (1.0, 10.0)}).svg


def test_a_sweep_tells_each_step_with_spread_or_says_that_there_is_none() -> None:
    lines = {"2026.4": {1: spread([40.0] * 3 + [42.0] * 4), 4: spread([90.0])}}
    assert sweep("aggregate_tok_s", "tok/s", "requests at once", lines, "load").alternative == (
        "aggregate_tok_s by requests at once: medians and the 95 % interval, a sample is a load. "
        "42 tok/s (40 tok/s to 42 tok/s, n = 7) at 1, 90 tok/s (n = 1, no spread) at 4."
    )


def test_a_ratio_is_told_with_interval_gate_verdict_and_size() -> None:
    chart = forest([row()])
    assert chart is not None
    assert chart.alternative == (
        "Candidate to baseline, as a ratio. Time to first token (less is better): better, 0.5 times (0.455 to 0.55), "
        "gate 5 %, n = 6 a side."
    )
    assert ">better</text>" in chart.svg
    assert ">↓ Time to first token</text>" in chart.svg


def test_without_a_ratio_there_is_no_picture() -> None:
    assert forest([row((0.0,) * 6)]) is None
    assert forest([]) is None


def test_a_line_over_time_breaks_where_the_release_changed() -> None:
    def lines(*releases: str) -> int:
        svg = timeline("t", "s", {"t": moments((1.0, 2.0, 3.0, 4.0), releases=releases)}, []).svg
        return len(re.findall(r'class="mark-line', svg))

    assert lines("2026.3", "2026.4") == lines("2026.4") + 1


def test_records_are_numbered_by_their_days_and_those_outside_are_left_out() -> None:
    days = [date(2026, 2, 1), date(2026, 4, 1), date(2026, 3, 15), date(2027, 1, 1)]
    decided = [Decided(day=day, label=day.isoformat()) for day in days]
    shown = moments((1.0, 2.0, 3.0))
    assert [one.day for one in within(decided, [moment.at for moment in shown])] == [date(2026, 3, 15), date(2026, 4, 1)]
    words = re.findall(r'<text[^>]* font-weight="bold"[^>]*>([^<]*)</text>', timeline("t", "s", {"t": shown}, decided).svg)
    assert words == ["1", "2"]


def test_records_of_neighbouring_days_do_not_write_over_each_other() -> None:
    decided = [Decided(day=MORNING.date() + timedelta(days=number), label=str(number)) for number in range(60)]
    svg = timeline("t", "s", {"t": moments((1.0, 2.0, 3.0))}, decided).svg
    found = re.findall(r'<text[^>]* transform="translate\(([0-9.]+),[0-9.]+\)"[^>]* font-weight="bold"[^>]*>([^<]+)<', svg)
    places = sorted((float(x), words) for x, words in found)
    assert len(places) > 2
    for (here, words), (there, _) in itertools.pairwise(places):
        assert there - here > 5 * len(words)
    assert places[0][1].startswith("1–")


def test_a_pool_says_how_long_sequences_may_grow() -> None:
    said = capacity(
        "KV pool", exactly(1024, "B"), exactly(1024 * 4096, "B"), exactly(4096, "tokens"), counts=[1, 16], longest=2048
    ).alternative
    assert "1 sequence: all 2,048 tokens fit" in said
    assert "16 sequences at once: 256 tokens each fit" in said


@pytest.mark.parametrize(
    ("brought", "word"),
    [((3.0,) * 6, "pays"), ((1.0,) * 6, "does not pay"), ((1.0, 3.0), "open"), (None, "not counted")],
)
def test_a_draft_is_told_by_both_bounds(brought: tuple[float, ...] | None, word: str) -> None:
    one = Draft(label="k=3", needed=spread((1.6, 1.7, 1.8)), brought=None if brought is None else spread(brought))
    chart = drafts([one])
    assert f"k=3: {word}, has to bring 1.7 (1.6 to 1.8, n = 3)" in chart.alternative
    assert f">{word}</text>" in chart.svg


def test_a_head_that_is_never_right_gets_a_price_and_no_verdict() -> None:
    chart = drafts([Draft(label="random head, k=3", needed=spread((2.0, 2.1, 2.2)), most=4)])
    assert chart.alternative.endswith(
        "random head, k=3: needs 2.1 of 4, has to bring 2.1 (2 to 2.2, n = 3), an ideal one would bring 4."
    )
    assert "pay" not in chart.svg


def test_what_a_picture_says_stands_in_it_for_those_who_do_not_see_it() -> None:
    chart = ecdf("ttft_s", "s", {"a <b>": STEADY})
    told = figure(chart, text("caption"))
    assert f"<desc>{chart.alternative.replace('<', '&lt;').replace('>', '&gt;')}</desc>" in told
