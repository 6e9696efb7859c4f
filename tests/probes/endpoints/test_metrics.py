"""Metrics text from servers that may send anything; and what load and cache figures it gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.endpoints import live
from probes.endpoints.fault import Fault, FaultKind
from probes.endpoints.metrics import MAX_LINE_CHARACTERS, Sample, Scrape, ScrapeState, mean, parse, ratio, scrape
from probes.endpoints.wire import Reply
from probes.evidence import Metric, MissingReason
from tests.captures import capture
from tests.probing import metrics_reply


def recorded(engine: str, name: str) -> Scrape:
    return scrape(metrics_reply(capture(engine, name).body))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            'x_bucket{le="+Inf"} 5\nx_sum NaN\ny -Inf\nz_bucket{le="Inf"} 5',
            {"x_bucket": 5, "x_sum": None, "y": None, "z_bucket": 5},
        ),
        ('good 1\nbad{name="14" x"} -794\ngood2 2', {"good": 1, "good2": 2}),
        ('x_bucket{le="1"} 1 # {trace_id="abc"} 0.5', {"x_bucket": 1}),
        ("x_total 3 # {} 1 1700000000.5", {"x_total": 3}),
        ('vllm:num_requests_running{model_name="meta-llama/Llama-3"} 2.0', {"vllm:num_requests_running": 2.0}),
        ("ovms_bytes 9007199254740993", {"ovms_bytes": 9007199254740993}),
        ('x{a="b",} 1', {"x": 1}),
        ("x 1 1700000000000", {"x": 1}),
        ("\ufeffx 1\r\ny 2\r\n", {"x": 1, "y": 2}),
        ("x 1e3\ny +7\nz -0.5", {"x": 1000.0, "y": 7, "z": -0.5}),
    ],
)
def test_text_gives_its_good_samples(text: str, values: dict[str, float | None]) -> None:
    assert {sample.name: sample.value for sample in parse(text).samples} == values


def test_whole_numbers_stay_whole() -> None:
    (sample,) = parse("ovms_bytes 9007199254740993").samples
    assert isinstance(sample.value, int)


def test_bad_line_is_counted_and_named() -> None:
    read = parse('good 1\nbad{name="14" x"} -794\ngood2 2\n')
    assert (read.state, read.detail) == (ScrapeState.READ, "1 of 4 lines could not be read")
    assert [(line.number, line.text) for line in read.bad] == [(2, 'bad{name="14" x"} -794')]


@pytest.mark.parametrize(
    ("label", "value"),
    [('a"b', r"a\"b"), ("a\\b", r"a\\b"), ("a\nb", r"a\nb"), ("a # b", "a # b"), ("}{,=", "}{,="), ("<script>", "<script>")],
)
def test_label_values_are_unescaped(label: str, value: str) -> None:
    (sample,) = parse(f'x{{name="{value}"}} 1').samples
    assert sample.labels == {"name": label}


def test_openmetrics_counter_has_its_kind_and_no_created() -> None:
    text = "# TYPE a counter\na_total 1\na_created 1.7e9\n# EOF\n"
    for read in (parse(text, openmetrics=True), parse(text)):
        assert (read.total("a_total"), read.kinds["a_total"]) == (1, "counter")
        assert not read.named("a_created")
        assert not read.bad


def test_openmetrics_without_its_end_is_read_and_doubted() -> None:
    read = scrape(metrics_reply("# TYPE a counter\na_total 1\n", content_type="application/openmetrics-text"))
    assert read.total("a_total") == 1
    assert read.bad[0].why == "no # EOF at the end: the body may be cut"


def test_gauge_that_ends_like_a_creation_time_is_kept() -> None:
    assert parse("files_created 3").total("files_created") == 3


def test_counters_keep_the_name_the_server_gave_them() -> None:
    read = parse("# TYPE ovms_requests_success counter\novms_requests_success 4\n")
    assert (read.total("ovms_requests_success"), read.kinds["ovms_requests_success"]) == (4, "counter")


def test_last_line_of_an_unframed_body_counts_only_with_its_end() -> None:
    assert parse("a 1\nb 12", whole=False).total("b") is None
    assert parse("a 1\nb 12\n", whole=False).total("b") == 12
    assert parse("a 1\nb 12").total("b") == 12


@pytest.mark.parametrize(
    ("reply", "state", "words"),
    [
        (metrics_reply('{"error":"Invalid request URL"}', 400), ScrapeState.NOT_ENABLED, "Invalid request URL"),
        (metrics_reply('{"detail":"Not Found"}', 404), ScrapeState.NOT_ENABLED, "Not Found"),
        (metrics_reply('{"error":{"message":"Start it with `--metrics`"}}', 501), ScrapeState.NOT_ENABLED, "Start it with"),
        (metrics_reply(""), ScrapeState.NOT_ENABLED, "an empty body"),
        (metrics_reply(" \n"), ScrapeState.NOT_ENABLED, "an empty body"),
        (metrics_reply("<html><body>x 1</body></html>"), ScrapeState.NOT_METRICS, "<html>"),
        (metrics_reply('{"error":"no"}'), ScrapeState.NOT_METRICS, "no"),
        (metrics_reply('[{"gpuMemUsage": 1}]'), ScrapeState.NOT_METRICS, "gpuMemUsage"),
        (metrics_reply("hello there"), ScrapeState.NOT_METRICS, "no sample in 1 lines"),
        (metrics_reply(b"\xff\xfe\x00"), ScrapeState.NOT_METRICS, "no sample"),
        (metrics_reply("no", 401), ScrapeState.NOT_ALLOWED, "HTTP 401: no"),
        (metrics_reply("oops", 500), ScrapeState.FAILED, "HTTP 500: oops"),
        (Fault(kind=FaultKind.REFUSED, words="ConnectionRefusedError: …"), ScrapeState.NOT_REACHABLE, "ConnectionRefused"),
    ],
)
def test_what_is_no_exposition_says_what_it_is(reply: Reply | Fault, state: ScrapeState, words: str) -> None:
    read = scrape(reply)
    assert (read.state, read.samples) == (state, ())
    assert words in read.detail


def test_huge_line_is_one_bad_line() -> None:
    labels = ",".join(f'l{n}="{n}"' for n in range(MAX_LINE_CHARACTERS // 8))
    read = parse(f"x{{{labels}}} 1\ny 2\n")
    assert (read.total("y"), read.total("x"), len(read.bad)) == (2, None, 1)


def test_real_servers_are_read_without_a_bad_line() -> None:
    llamacpp, vllm = recorded("llamacpp", "get_metrics_after"), recorded("vllm", "get_metrics_after")
    assert (llamacpp.bad, vllm.bad) == ((), ())
    assert llamacpp.total("llamacpp:prompt_tokens_cached_total") == 358
    assert vllm.total("vllm:prefix_cache_queries_total") == 302
    assert vllm.named("vllm:cache_config_info")[0].labels["enable_prefix_caching"] == "True"


def test_total_adds_label_sets_and_selects_by_label() -> None:
    read = parse('x{m="a"} 1\nx{m="b"} 2\nx{m="c"} NaN\n')
    assert (read.total("x"), read.total("x", m="b"), read.total("x", m="c"), read.total("y")) == (3, 2, None, None)


@pytest.mark.parametrize(
    ("part", "whole", "expected"), [(30, 120, 0.25), (0, 5, 0.0), (5, 5, 1.0), (120, 30, None), (0, 0, None), (None, 1, None)]
)
def test_ratio_is_a_share_or_nothing(part: float | None, whole: float | None, expected: float | None) -> None:
    assert ratio(part, whole) == expected


@pytest.mark.parametrize(
    ("total", "count", "expected"), [(2900000, 20, 145000), (0, 0, None), (5, None, None), (None, 3, None)]
)
def test_mean_of_nothing_is_nothing(total: float | None, count: float | None, expected: float | None) -> None:
    assert mean(total, count) == expected


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    read = parse(text)
    assert read.state in {ScrapeState.READ, ScrapeState.NOT_METRICS}


names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True).filter(lambda name: not name.endswith("_created"))
labels = st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9]{0,5}", fullmatch=True), st.text(max_size=6), max_size=3)
samples = st.builds(Sample, name=names, labels=labels, value=st.integers(min_value=0))


def written(sample: Sample) -> str:
    def quoted(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    inside = ",".join(f'{name}="{quoted(value)}"' for name, value in sample.labels.items())
    return f"{sample.name}{{{inside}}} {sample.value}" if inside else f"{sample.name} {sample.value}"


@given(st.lists(samples, min_size=1, max_size=5))
def test_what_was_written_is_read(wanted: list[Sample]) -> None:
    read = parse("\n".join(map(written, wanted)) + "\n")
    assert list(read.samples) == wanted


def figure(reader: live.Reader, before: str, after: str | None) -> Metric:
    scraped = None if after is None else parse(after)
    (metric,) = live.live_metrics([live.running(reader)], parse(before), scraped, "hint")
    return metric


def test_gauge_is_read_before_the_probes_own_requests() -> None:
    assert figure(live.gauge("g"), "g 5", "g 9").samples == (5.0,)
    assert figure(live.fraction("g", scale=0.01), "g 50", "g 90").samples == (0.5,)


def test_counts_of_engines_are_added_and_their_shares_are_averaged() -> None:
    text = 'g{engine="0"} 3\ng{engine="1"} 4\nu{engine="0"} 0.9\nu{engine="1"} 0.7'
    assert figure(live.gauge("g"), text, None).samples == (7.0,)
    assert figure(live.fraction("u"), text, None).samples[0] == pytest.approx(0.8)


def test_what_a_server_counts_twice_is_counted_once() -> None:
    text = 'g{tp_rank="0"} 3\ng{tp_rank="1"} 3\ng{tp_rank="0",priority="1"} 2\nother 9'
    assert figure(live.gauge("g", once={"tp_rank": "0", "priority": ""}), text, None).samples == (3.0,)


def test_metrics_are_found_under_the_names_of_older_releases() -> None:
    assert figure(live.gauge("new", "old"), "old 4", None).samples == (4.0,)
    assert figure(live.fraction("new", "old"), "old 0.5", None).samples == (0.5,)
    both = live.first(live.growth("old"), live.growth("new"))
    assert figure(both, "new 1", "new 3").samples == (2.0,)
    assert figure(both, "old 1", "old 4").samples == (3.0,)
    missed = figure(both, "x 1", "x 1").missing
    assert missed is not None
    assert missed.detail == "no new in its metrics"


def test_counts_of_graphs_and_of_models_stand_beside_each_other() -> None:
    reader = live.gauges("graphs", "models")
    assert figure(reader, "graphs 1\nmodels 2", None).samples == (3.0,)
    assert figure(reader, "models 2", None).samples == (2.0,)
    assert figure(reader, "x 1", None).missing is not None


@pytest.mark.parametrize(
    ("reader", "text", "words"),
    [
        (live.gauge("g"), "g -1", "g says -1, which is no count"),
        (live.gauge("g"), "g 9223372036854775807", "g says 9.22337e+18, which is no count"),
        (live.fraction("g"), "g 1.7", "g says 1.7, which is no share of 1"),
        (live.fraction("g"), "g 43", "g says 43, which is no share of 1"),
        (live.fraction("g"), "g -0.1", "g says -0.1, which is no share of 1"),
    ],
)
def test_figure_that_makes_no_sense_is_none(reader: live.Reader, text: str, words: str) -> None:
    missed = figure(reader, text, None).missing
    assert missed is not None
    assert (missed.missing, missed.detail) == (MissingReason.FAILED, words)


def test_growth_share_and_mean_speak_of_the_window() -> None:
    before = "hits 10\nqueries 100\nmisses 90\nt_sum 1000000\nt_count 1"
    after = "hits 40\nqueries 220\nmisses 180\nt_sum 3900000\nt_count 21"
    assert figure(live.growth("hits"), before, after).samples == (30.0,)
    assert figure(live.share_of("hits", "queries"), before, after).samples == (0.25,)
    assert figure(live.share("hits", "misses"), before, after).samples == (0.25,)
    assert figure(live.mean_growth("t", scale=1e-6), before, after).samples[0] == pytest.approx(0.145)


@pytest.mark.parametrize(
    ("reader", "before", "after", "reason", "words"),
    [
        (live.growth("c"), "c 10", "c 2", MissingReason.FAILED, "the server was restarted"),
        (
            live.growth("c"),
            "c 10\nprocess_start_time_seconds 100",
            "c 12\nprocess_start_time_seconds 200",
            MissingReason.FAILED,
            "the server was restarted",
        ),
        (live.growth("c"), "c 10", None, MissingReason.NOT_MEASURED, "no request was sent"),
        (live.growth("c"), "c 10", "<html>", MissingReason.FAILED, "after the requests"),
        (live.gauge("g"), "x 1", "x 1", MissingReason.UNSUPPORTED, "no g in its metrics"),
        (live.mean_growth("t"), "t_sum 5\nt_count 3", "t_sum 5\nt_count 3", MissingReason.NOT_MEASURED, "counted nothing"),
        (live.share_of("h", "q"), "h 0\nq 0", "h 0\nq 0", MissingReason.NOT_MEASURED, "counted nothing"),
        (live.never("not in this engine"), "x 1", "x 1", MissingReason.UNSUPPORTED, "not in this engine"),
    ],
)
def test_figure_that_is_not_there_says_why(
    reader: live.Reader, before: str, after: str | None, reason: MissingReason, words: str
) -> None:
    metric = figure(reader, before, after)
    assert metric.missing is not None
    assert metric.missing.missing is reason
    assert words in metric.missing.detail


def test_metrics_that_are_off_say_how_to_switch_them_on() -> None:
    off = scrape(metrics_reply('{"error":"Invalid request URL"}', 400))
    (metric,) = live.live_metrics([live.running(live.gauge("g"))], off, None, "start it with --metrics_enable")
    assert metric.missing is not None
    assert metric.missing.missing is MissingReason.NOT_CONFIGURED
    assert metric.missing.detail == "metrics not enabled: HTTP 400: Invalid request URL; start it with --metrics_enable"
