"""What servers in the field really sent, with the value that is right: each case word for word, asked as the probe asks."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from probes.context import Context
from probes.endpoints.address import parse_address
from probes.endpoints.live import live_metrics
from probes.endpoints.metrics import parse, ratio, scrape
from probes.endpoints.ovms import OVMS
from probes.evidence import EndpointState, Missing, MissingReason, Run
from probes.fleet import ProbeLimits
from probes.plan import Part, plan
from tests.captures import Route, reply
from tests.probing import (
    OVMS_STREAM,
    delta,
    fleet,
    metrics_reply,
    missing,
    ovms,
    probe,
    recorded,
    samples,
    service,
    settings,
    state,
    stream,
)


def answering(*events: object) -> Route:
    return ovms(chat=lambda: stream(*events))


def requests(run: Run) -> list[dict[str, Any]]:
    told = run.native["requests"]
    assert isinstance(told, list)
    return [one for one in told if isinstance(one, dict)]


def usage(**counts: object) -> dict[str, Any]:
    return {"choices": [], "usage": counts}


def test_f44_connecting_is_its_own_time_and_localhost_is_advised_against_and_asked_all_the_same(context: Context) -> None:
    hosts: set[str] = set()

    def route(request: httpx.Request) -> httpx.Response:
        hosts.add(request.url.host)
        return answering(*OVMS_STREAM)(request)

    run = probe(context, route, url="http://localhost:8080")
    assert hosts == {"localhost"}
    assert "127.0.0.1 spares that" in state(run)[1]
    assert {"connect_s", "ttft_s"} <= {metric.name for metric in run.metrics}
    assert "127.0.0.1" not in state(probe(context, answering(*OVMS_STREAM), url="http://127.0.0.1:8080"))[1]


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "Unrecognized request argument supplied: stream_options"), (422, "body.stream_options: extra fields not permitted")],
)
def test_f45_usage_is_asked_for_and_its_absence_gives_no_token_speed(context: Context, status: int, words: str) -> None:
    answers = [reply(status, json.dumps({"error": {"message": words}}).encode())]
    plain = stream(delta(content="The "), delta(content="sea."), delta("stop"), "[DONE]")
    asked: list[bool] = []

    def route(request: httpx.Request) -> httpx.Response:
        if request.method != "POST":
            return recorded("kernelloom", "get_models")(request)
        asked.append("stream_options" in json.loads(request.content))
        return answers.pop(0) if answers else plain

    run = probe(context, route, limits=ProbeLimits(requests=1))
    assert asked == [True, False]
    assert requests(run)[0]["without_usage_option"] is True
    assert missing(run, "decode_tok_s").detail.endswith("2 chunks came, and chunks are not tokens")
    assert missing(run, "completion_tokens").missing is MissingReason.NOT_MEASURED


def test_f49_a_count_above_what_was_asked_for_is_implausible_and_used_for_nothing(context: Context) -> None:
    words = [delta(content="word ") for _ in range(197)]
    run = probe(context, answering(*words, delta("length"), usage(prompt_tokens=9, completion_tokens=19503), "[DONE]"))
    assert state(run)[0] is EndpointState.GENERATING
    doubt = "the server counts 19503 tokens where at most 16 were asked for"
    assert missing(run, "decode_tok_s").detail == doubt
    assert missing(run, "completion_tokens").detail == doubt
    assert samples(run, "prompt_tokens") == (9, 9)


def test_f50_zero_prompt_tokens_are_unknown_and_give_no_prefill_speed(context: Context) -> None:
    run = probe(context, answering(delta(content="Hi"), delta("stop"), usage(prompt_tokens=0, completion_tokens=2), "[DONE]"))
    assert missing(run, "prompt_tokens").missing is MissingReason.NOT_MEASURED
    assert missing(run, "prefill_tok_s").missing is MissingReason.NOT_MEASURED
    assert not isinstance(run.load, Missing)
    assert isinstance(run.load.prompt_tokens, Missing)


def test_f55_a_tool_call_is_told_by_its_deltas_and_the_finish_reason_is_kept_beside_it(context: Context) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    run = probe(context, answering(delta("stop", tool_calls=[call]), "[DONE]"))
    assert state(run)[0] is EndpointState.GENERATING
    assert requests(run)[0]["tool_calls"] == ["get_weather"]
    assert requests(run)[0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("timings", "why"),
    [
        ({"cache_n": 236, "prompt_n": 1, "prompt_ms": 30.9, "prompt_per_second": 32.3}, "a warm prefix: 236 prompt tokens"),
        ({"cache_n": 0, "prompt_n": 38, "prompt_ms": 0}, "the server gives no duration"),
        ({"cache_n": 0, "prompt_n": 38, "prompt_ms": -3}, "the server gives no duration"),
        ({"cache_n": 0, "prompt_n": 0, "prompt_ms": 12}, "the server gives no duration"),
        ({"cache_n": 0, "prompt_n": 38, "prompt_ms": True}, "the server does not time its prompts"),
        ({"prompt_n": 38, "prompt_ms": "12"}, "the server does not time its prompts"),
    ],
)
def test_f58_f59_a_prompt_speed_is_one_or_it_is_missing(context: Context, timings: dict[str, Any], why: str) -> None:
    """Tokens from the cache take no time, and a duration of zero, or of 1e400, is none."""
    run = probe(context, answering({**delta("stop", content="Hi"), "timings": timings}, "[DONE]"))
    assert missing(run, "prefill_tok_s").detail.startswith(why)


@pytest.mark.parametrize("duration", ["1e400", "-1e400", "1e-320", "NaN"])
def test_f59_no_duration_makes_a_speed_of_zero_or_infinity(context: Context, duration: str) -> None:
    event = json.dumps({**delta("stop", content="Hi"), "timings": {"cache_n": 0, "prompt_n": 298, "prompt_ms": 7}})
    run = probe(context, answering(event.replace('"prompt_ms": 7', f'"prompt_ms": {duration}'), "[DONE]"))
    assert missing(run, "prefill_tok_s").missing is MissingReason.NOT_MEASURED
    assert "Infinity" not in run.model_dump_json()
    assert "NaN" not in run.model_dump_json()


@pytest.mark.parametrize(
    ("word", "code", "expected"),
    [
        ("LOADING", "OK", EndpointState.LOADING),
        ("START", "OK", EndpointState.LOADING),
        ("LOADING", "UNKNOWN", EndpointState.FAILED),
        ("LOADING", "FAILED_PRECONDITION", EndpointState.FAILED),
        ("END", "OK", EndpointState.LISTED),
        ("UNLOADING", "OK", EndpointState.LISTED),
        ("AVAILABLE", "UNKNOWN", EndpointState.LISTED),
        ("available", "OK", EndpointState.LISTED),
        ("READY", "OK", EndpointState.LISTED),
    ],
)
def test_f62_a_state_of_ovms_is_read_with_its_error_code(
    context: Context, word: str, code: str, expected: EndpointState
) -> None:
    """A state that is not known is never available: nothing is asked, and what is said is the server's own word."""
    run = probe(context, ovms(word, code, chat=lambda: stream(*OVMS_STREAM)))
    assert state(run)[0] is expected
    assert run.endpoint is not None
    assert [model.state for model in run.endpoint.models] == [word]
    assert requests(run) == []


@pytest.mark.parametrize("path", ["/v1/config", "/v2", "/props", "/api/version", "/system_stats", "/version", "/info"])
def test_f65_a_server_that_answers_200_to_any_path_is_no_runtime_by_that(context: Context, path: str) -> None:
    words = b'{"error":"Unexpected endpoint or method. (GET /x). Returning 200 anyway"}'

    def route(request: httpx.Request) -> httpx.Response:
        other = b'{"error":"no such thing"}' if request.url.path == path else words
        return reply(200, other)

    run = probe(context, route)
    assert not isinstance(run.runtime, Missing)
    assert run.runtime.name == "lm-studio"


def test_f66_what_is_available_and_answers_nothing_hangs(context: Context) -> None:
    def silent() -> httpx.Response:
        raise httpx.ReadTimeout("no bytes")

    run = probe(context, ovms(chat=silent))
    assert state(run)[0] is EndpointState.HANGS
    assert run.endpoint is not None
    assert [model.state for model in run.endpoint.models] == ["AVAILABLE"]


def test_f67_the_probe_asks_for_little_and_reads_it_to_its_end(context: Context) -> None:
    read: list[bytes] = []
    sent: list[dict[str, Any]] = []

    class Watched(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            for event in (delta(content="a"), delta("stop"), "[DONE]"):
                data = event if isinstance(event, str) else json.dumps(event)
                read.append(data.encode())
                yield f"data: {data}\n\n".encode()

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            sent.append(json.loads(request.content))
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Watched())
        return ovms()(request)

    probe(context, route, limits=ProbeLimits(max_tokens=4096))
    assert [one["max_tokens"] for one in sent] == [32, 32]
    assert read[2] == read[5] == b"[DONE]"
    assert ProbeLimits().timeout_s >= 60


@pytest.mark.parametrize("id", ["OpenVINO/Qwen3-8B-int4-ov", "hf.co/x/y:Q4_K_M", "/my/llms/Qwen3", "a#b?c", "../v1/config"])
def test_f68_a_model_is_found_in_the_list_and_its_id_changes_no_path(context: Context, id: str) -> None:
    paths: set[str] = set()
    asked: set[str] = set()

    def route(request: httpx.Request) -> httpx.Response:
        paths.add(request.url.raw_path.decode())
        if request.method == "POST":
            asked.add(json.loads(request.content)["model"])
            return stream(*OVMS_STREAM)
        body = {"object": "list", "data": [{"id": id, "owned_by": "vllm"}]}
        return reply(200, json.dumps(body).encode()) if request.url.path == "/v1/models" else reply(404, b"{}")

    run = probe(context, route, model=id)
    assert state(run)[0] is EndpointState.GENERATING
    assert asked == {id}
    assert {path for path in paths if path.startswith("/v1")} == {"/v1/models", "/v1/chat/completions"}
    assert not any("qwen" in path.lower() or "a%23b" in path for path in paths)


def test_f70_a_path_for_an_id_is_asked_for_verbatim_and_says_nothing_of_the_weights(context: Context) -> None:
    id, asked = "/srv/models/alice/Qwen3-int4", set()

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            asked.add(json.loads(request.content)["model"])
            return stream(*OVMS_STREAM)
        body = {"object": "list", "data": [{"id": id}, {"id": "/srv/models/bob/Qwen3-int4"}]}
        return reply(200, json.dumps(body).encode()) if request.url.path == "/v1/models" else reply(404, b"{}")

    run = probe(context, route)
    assert asked == {id}
    assert "alice" not in run.model_dump_json()
    assert run.endpoint is not None
    assert len({model.id for model in run.endpoint.models}) == 2
    assert not isinstance(run.model, Missing)
    assert isinstance(run.model.quantization, Missing)
    assert "weight_precision" not in settings(run)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"Loading model","code":503}}',
        b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}',
    ],
)
def test_f71_a_server_that_loads_is_not_down(context: Context, body: bytes) -> None:
    run = probe(context, lambda _request: reply(503, body, server="llama.cpp"))
    assert state(run) == (EndpointState.LOADING, "the model is loading; still so after 0.3 s")
    down = probe(context, lambda _request: reply(503, b"Service Unavailable", "text/plain"))
    assert state(down)[0] is EndpointState.NOT_REACHABLE


@pytest.mark.parametrize(
    ("written", "models", "shown"),
    [
        ("http://h:8000", "http://h:8000/v3/models", "http://h:8000 (API looked for at http://h:8000/v1 and /v3)"),
        ("http://h:8000/", "http://h:8000/v3/models", "http://h:8000/ (API looked for at http://h:8000/v1 and /v3)"),
        ("http://h:8000/v3", "http://h:8000/v3/models", "http://h:8000/v3 (API at http://h:8000/v3)"),
        ("http://h:8000/v3/", "http://h:8000/v3/models", "http://h:8000/v3/ (API at http://h:8000/v3)"),
        ("http://h/proxy/ovms/v3", "http://h/proxy/ovms/v3/models", "http://h/proxy/ovms/v3 (API at http://h/proxy/ovms/v3)"),
    ],
)
def test_f73_a_prefix_is_neither_doubled_nor_lost_and_the_plan_shows_what_became_of_it(
    context: Context, written: str, models: str, shown: str
) -> None:
    asked: set[str] = set()
    address = parse_address(written, "url")
    inner = ovms(chat=lambda: stream(*OVMS_STREAM))

    def route(request: httpx.Request) -> httpx.Response:
        asked.add(str(request.url))
        path = request.url.path.removeprefix("/proxy/ovms")
        return inner(httpx.Request(request.method, f"http://h{path}"))

    assert state(probe(context, route, url=written))[0] is EndpointState.GENERATING
    assert models in asked
    assert f"{address.root}/v3/chat/completions" in asked
    assert not [one for one in asked if "/v3/v3" in one or "//v" in one.removeprefix("http://")]
    laid_out = plan(fleet(service("text", url=written)), {}, parts=[Part.ENDPOINTS], services=["text"], quick=True)
    assert shown in {step.target for step in laid_out.steps}


def test_f73_a_reference_stays_one_in_the_plan() -> None:
    inventory, environ = fleet(service("text", url="${TEXT_URL}")), {"TEXT_URL": "http://secret.lan:8000/v3"}
    laid_out = plan(inventory, environ, parts=[Part.ENDPOINTS], services=["text"], quick=True)
    assert {step.target for step in laid_out.steps if step.subject == "text"} == {"${TEXT_URL} (API at /v3)"}


def test_f78_what_is_no_finite_number_is_none_and_named() -> None:
    text = 'x_bucket{le="+Inf"} 5\nx_sum NaN\ny -Inf\nz_bucket{le="Inf"} 5\nw Inf\nv +Inf\nu nan\n'
    read = parse(text)
    assert read.detail == "no finite number: x_sum, y, w, v, u"
    assert {sample.name: sample.value for sample in read.samples if sample.name.endswith("bucket")} == {
        "x_bucket": 5,
        "z_bucket": 5,
    }
    assert (read.total("x_sum"), read.bad) == (None, ())


def test_f80_f81_f84_good_samples_stay_whatever_a_line_beside_them_is() -> None:
    text = 'good 1\nbad{name="14" x"} -794\nx_bucket{le="1"} 1 # {trace_id="abc"} 0.5\ny_bucket{le="1"} 2 # {a="}"} 0.5 1.7e9\n'
    read = parse(text + 'vllm:num_requests_running{model_name="meta-llama/Llama-3"} 2.0\ngood2 2')
    assert {sample.name: sample.value for sample in read.samples} == {
        "good": 1,
        "x_bucket": 1,
        "y_bucket": 2,
        "vllm:num_requests_running": 2.0,
        "good2": 2,
    }
    assert [(one.number, one.text) for one in read.bad] == [(2, 'bad{name="14" x"} -794')]
    assert read.detail == "1 of 6 lines could not be read"


@pytest.mark.parametrize(
    "line", ["x 1 2 3", "x \u0661", "x 1_000", "x 0x1F", "x 1,5", "x TRUE", "x", "9x 1", "x-y 1", 'x{a="b"', 'x{a="b"} 1 2 3']
)
def test_f80_a_line_that_is_no_sample_is_bad_and_never_a_number(line: str) -> None:
    read = parse(f"good 1\n{line}\n")
    assert [sample.name for sample in read.samples] == ["good"]
    assert [(one.number, one.text) for one in read.bad] == [(2, line)]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("x\t1", 1), ('x{a="b"}1', 1), ('x{a="b c"}\t1 1700000000000', 1), ("x +1", 1), ("x -0", 0), ("x .5", 0.5),
        ("x 1e5", 1e5), ('x{a="}"} 2', 2), ('x{a="{"} 2', 2), ('x{a="1 2 3"} 2 5', 2), ("x{} 3", 3),
        ("x -Inf", None), ("x nan 5", None),
    ],
)  # fmt: skip
def test_f80_every_way_to_write_a_sample_is_read(line: str, value: float | None) -> None:
    (sample,) = parse(line).samples
    assert (sample.name, sample.value) == ("x", value)


@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain"])
def test_f82_a_counter_is_one_in_both_formats_and_its_birthday_is_no_number(kind: str) -> None:
    read = scrape(metrics_reply("# TYPE a counter\na_total 1\na_created 1.7e9\n# EOF\n", content_type=kind))
    assert [(sample.name, read.kinds[sample.name]) for sample in read.samples] == [("a_total", "counter")]


@pytest.mark.parametrize(("hits", "queries", "expected"), [(30, 120, 0.25), (120, 30, None), (0, 0, None), (-1, 5, None)])
def test_f87_a_share_is_between_nothing_and_all(hits: float, queries: float, expected: float | None) -> None:
    assert ratio(hits, queries) == expected


def test_f88_the_time_of_a_graph_is_that_of_its_own_metric_in_microseconds() -> None:
    before = parse('ovms_request_time_us_sum{name="llm"} 0\n')
    after = parse(
        'ovms_request_time_us_sum{name="llm"} 0\novms_graph_processing_time_us_sum{method="Unary",name="llm"} 2900000\n'
        'ovms_graph_processing_time_us_count{method="Unary",name="llm"} 20\n'
    )
    zero = parse("ovms_graph_processing_time_us_sum 0\novms_graph_processing_time_us_count 0\n")
    found = {metric.name: metric for metric in live_metrics(OVMS.quantities, zero, after, "")}
    assert list(found["server_latency_s"].samples) == pytest.approx([0.145])
    none = {metric.name: metric for metric in live_metrics(OVMS.quantities, zero, zero, "")}
    assert none["server_latency_s"].samples == ()
    assert not before.named("ovms_graph_processing_time_us_sum")


@pytest.mark.parametrize(
    "off",
    [
        lambda: reply(404, b'{"error":"Invalid request URL"}'),
        lambda: reply(400, b'{"error":"Invalid request URL"}', "text/plain"),
        lambda: reply(200, b"", "text/plain"),
    ],
)
def test_f89_metrics_that_are_off_are_told_with_the_flag_and_the_server_is_up(context: Context, off: Any) -> None:
    inner = ovms(chat=lambda: stream(*OVMS_STREAM))
    run = probe(context, lambda request: off() if request.url.path == "/metrics" else inner(request))
    assert state(run)[0] is EndpointState.GENERATING
    assert missing(run, "requests_running").missing is MissingReason.NOT_CONFIGURED
    assert missing(run, "requests_running").detail.endswith("start ovms with --metrics_enable")


def test_f90_sentinels_are_no_figures_and_whole_numbers_stay_whole(context: Context) -> None:
    text = b'ovms_current_graphs{name="llm"} 9223372036854776.000\novms_bytes 9007199254740993\n'
    inner = ovms(chat=lambda: stream(*OVMS_STREAM))
    run = probe(context, lambda request: reply(200, text, "text/plain") if request.url.path == "/metrics" else inner(request))
    assert missing(run, "requests_running").missing is MissingReason.FAILED
    assert parse(text.decode()).total("ovms_bytes") == 9007199254740993
    assert isinstance(parse(text.decode()).total("ovms_bytes"), int)
