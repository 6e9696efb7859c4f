"""A server that answers is measured within its limits, and its settings are read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from probes.archive import read_run, seal, write_run
from probes.context import Context
from probes.evidence import EndpointState, Missing, MissingReason, ProvenanceKind, Run, RunKind
from probes.fleet import ProbeLimits, RuntimeName
from tests.captures import reply
from tests.probing import (
    OVMS_STREAM,
    delta,
    missing,
    ovms,
    probe,
    recorded,
    samples,
    settings,
    state,
    stream,
)


def test_llamacpp_generates_and_tells_what_it_can(context: Context) -> None:
    run = probe(context, recorded("llamacpp", "get_models", "get_props", "get_slots", "get_health", "get_metrics"))
    assert state(run) == (EndpointState.GENERATING, "")
    assert run.kind is RunKind.ENDPOINT
    assert not isinstance(run.runtime, Missing)
    assert run.runtime.name == RuntimeName.LLAMACPP
    assert settings(run) == {
        "weight_precision": "Q4_1",
        "parallel": 2,
        "n_ctx_per_slot": 2048,
        "spec_type": "none",
        "cache_prompt": True,
    }
    assert {setting.provenance.kind for setting in run.settings} == {ProvenanceKind.OBSERVED}
    assert {setting.provenance.source for setting in run.settings} == {run.id}
    assert (len(samples(run, "ttft_s")), len(samples(run, "ttft_repeat_s"))) == (1, 1)
    assert samples(run, "completion_tokens") == (16, 16)
    assert samples(run, "cached_prompt_tokens") == (37, 37)
    assert samples(run, "error_rate") == (0,)
    assert not isinstance(run.load, Missing)
    assert (run.load.requests, run.load.max_tokens, run.load.prompt_tokens) == (2, 16, (38, 38))
    assert not isinstance(run.model, Missing)
    assert (run.model.id, run.model.quantization) == ("smollm2-135m", "Q4_1")


def test_run_survives_its_file(context: Context, tmp_path: Path) -> None:
    run = probe(context, recorded("vllm", "get_models", "get_version", "get_metrics"))
    assert read_run(write_run(run, tmp_path)) == seal(run)


def test_prompt_speed_is_not_read_from_a_warm_prefix(context: Context) -> None:
    warm = probe(context, recorded("llamacpp", "get_models"))
    assert missing(warm, "prefill_tok_s").detail == "a warm prefix: 37 prompt tokens came from the cache"

    def timed(**timings: float) -> Run:
        return probe(context, ovms(chat=lambda: stream({**delta("stop", content="Hi"), "timings": timings}, "[DONE]")))

    assert samples(timed(cache_n=0, prompt_n=38, prompt_ms=2000), "prefill_tok_s")[0] == pytest.approx(19)
    cold = timed(cache_n=236, prompt_n=1, prompt_ms=30.9, prompt_per_second=32.3)
    assert missing(cold, "prefill_tok_s").detail == "a warm prefix: 236 prompt tokens came from the cache"


@pytest.mark.parametrize("duration", [0, -1, 1e400, "30.9", True, None])
def test_duration_that_is_none_gives_no_rate(context: Context, duration: object) -> None:
    """Servers time a warm or empty phase with 0, and 1e400 is valid JSON: no rate, and none that is infinite or 0."""
    timings = {"cache_n": 0, "prompt_n": 298, "prompt_ms": duration, "predicted_n": 298, "predicted_ms": duration}
    native = {"eval_count": 298, "eval_duration": duration, "prompt_eval_count": 20, "prompt_eval_duration": duration}
    run = probe(context, ovms(chat=lambda: stream({**delta("stop", content="Hi"), "timings": timings, **native}, "[DONE]")))
    assert state(run)[0] is EndpointState.GENERATING
    for name in ("prefill_tok_s", "decode_tok_s"):
        assert missing(run, name).missing is MissingReason.NOT_MEASURED
    assert all(math.isfinite(value) for one in run.metrics for value in one.samples)
    assert "Infinity" not in run.model_dump_json()


def test_prompt_that_was_processed_in_part_only_is_a_warm_prefix(context: Context) -> None:
    """llama.cpp before it told cache_n: 237 tokens were asked and one was processed."""
    timings = {"prompt_n": 1, "prompt_ms": 30.9, "prompt_per_second": 32.3}
    counts = {"choices": [], "usage": {"prompt_tokens": 237, "completion_tokens": 1}}
    chat = ({**delta("stop", content="Hi"), "timings": timings}, counts, "[DONE]")
    run = probe(context, ovms(chat=lambda: stream(*chat)))
    assert missing(run, "prefill_tok_s").detail == "a warm prefix: 236 prompt tokens came from the cache"


def test_vllm_without_cached_tokens_in_its_usage_proves_nothing_by_them(context: Context) -> None:
    run = probe(context, recorded("vllm", "get_models", "get_version", "get_metrics"))
    assert state(run)[0] is EndpointState.GENERATING
    assert settings(run)["enable_prefix_caching"] is True
    assert missing(run, "cached_prompt_tokens").detail == "the server does not report it"


def test_server_without_usage_has_no_token_speed_but_one_of_chunks(context: Context) -> None:
    run = probe(context, recorded("kernelloom", "get_models"))
    assert state(run)[0] is EndpointState.GENERATING
    assert missing(run, "decode_tok_s").missing is MissingReason.NOT_MEASURED
    assert missing(run, "decode_tok_s").detail == "the server reports no usage; 15 chunks came, and chunks are not tokens"
    assert len(samples(run, "chunks_per_s")) == 2
    assert missing(run, "completion_tokens").detail == "the server reports no usage"
    assert run.settings == ()


def test_server_without_a_list_is_asked_for_the_model_of_the_inventory_only(context: Context) -> None:
    handler = recorded("openvino-openai-api", "get_models", "err_method")
    assert state(probe(context, handler)) == (EndpointState.LISTED, "the server has no list of models")
    assert state(probe(context, handler, model="smollm2"))[0] is EndpointState.GENERATING


def test_event_stream_called_plain_text_is_read(context: Context) -> None:
    handler = recorded("ollama-openai-proxy", "get_models", chats=("chat_stream_usage_repeat",))
    assert state(probe(context, handler))[0] is EndpointState.GENERATING


def test_event_stream_called_json_is_read(context: Context) -> None:
    body = b"".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n".encode() for one in OVMS_STREAM)
    run = probe(context, ovms(chat=lambda: reply(200, [body], "application/json")))
    assert state(run)[0] is EndpointState.GENERATING
    assert samples(run, "completion_tokens") == (4, 4)


def test_ovms_first_token_is_its_empty_first_chunk(context: Context) -> None:
    run = probe(context, ovms(chat=lambda: stream(*OVMS_STREAM)))
    assert state(run)[0] is EndpointState.GENERATING
    assert samples(run, "ttft_s")[0] == samples(run, "t_first_event_s")[0] < samples(run, "t_first_text_s")[0]
    assert len(samples(run, "decode_tok_s")) == 2
    assert missing(run, "requests_running").missing is MissingReason.NOT_CONFIGURED
    assert missing(run, "requests_running").detail.endswith("start ovms with --metrics_enable")
    assert missing(run, "kv_cache_usage").missing is MissingReason.NOT_CONFIGURED


def test_two_requests_are_the_same_small_one_and_no_other_run_has_it(context: Context) -> None:
    bodies: list[Any] = []
    inner = recorded("llamacpp", "get_models")

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            bodies.append(json.loads(request.content))
        return inner(request)

    probe(context, route, limits=ProbeLimits(max_tokens=5))
    probe(context, route, limits=ProbeLimits(max_tokens=8192))
    first, again, other, _ = bodies
    assert first == again
    assert (first["max_tokens"], other["max_tokens"]) == (5, 32)
    assert first["messages"] != other["messages"]


@pytest.mark.parametrize(("allowed", "sent"), [(0, 0), (1, 1), (2, 2), (10000, 2)])
def test_no_more_requests_than_allowed_and_never_more_than_two(context: Context, allowed: int, sent: int) -> None:
    posts: list[httpx.Request] = []
    inner = recorded("llamacpp", "get_models")

    def route(request: httpx.Request) -> httpx.Response:
        posts.extend([request] if request.method == "POST" else [])
        return inner(request)

    run = probe(context, route, limits=ProbeLimits(requests=allowed))
    assert len(posts) == sent
    if not allowed:
        assert state(run) == (EndpointState.LISTED, "its limits allow no request for text")
        assert missing(run, "ttft_s").missing is MissingReason.SKIPPED


def test_nothing_is_asked_that_changes_a_server(context: Context) -> None:
    asked: set[str] = set()
    inner = ovms(chat=lambda: stream(*OVMS_STREAM))

    def route(request: httpx.Request) -> httpx.Response:
        asked.add(f"{request.method} {request.url.path}" if request.url.path.count("/") > 1 else request.method)
        return inner(request)

    probe(context, route, expected=RuntimeName.OVMS)
    assert asked == {"GET", "GET /v1/config", "GET /v3/models", "GET /v2/models/llm", "POST /v3/chat/completions"}


def test_usage_option_is_dropped_once_for_a_server_that_refuses_it(context: Context) -> None:
    answers = [
        reply(400, b'{"error":{"message":"Unknown field: stream_options"}}'),
        stream(delta("stop", content="Hi"), "[DONE]"),
    ]
    inner = recorded("kernelloom", "get_models")

    def route(request: httpx.Request) -> httpx.Response:
        if request.method != "POST":
            return inner(request)
        assert ("stream_options" in json.loads(request.content)) == (len(answers) == 2)
        return answers.pop(0)

    run = probe(context, route, limits=ProbeLimits(requests=1))
    assert state(run)[0] is EndpointState.GENERATING


@pytest.mark.parametrize("status", [400, 422])
def test_server_that_does_not_say_what_it_refuses_is_asked_without_the_option_too(context: Context, status: int) -> None:
    usage: list[bool] = []
    inner = recorded("kernelloom", "get_models")

    def route(request: httpx.Request) -> httpx.Response:
        if request.method != "POST":
            return inner(request)
        usage.append("stream_options" in json.loads(request.content))
        return reply(status, b'{"error":"Bad Request"}') if usage[-1] else stream(delta("stop", content="Hi"), "[DONE]")

    assert state(probe(context, route, limits=ProbeLimits(requests=1)))[0] is EndpointState.GENERATING
    assert usage == [True, False]


def test_refusal_of_something_else_keeps_its_words(context: Context) -> None:
    answers = [reply(400, b'{"error":"prompt too long"}'), reply(400, b'{"error":"still too long"}')]
    run = probe(context, ovms(chat=lambda: answers.pop(0)), limits=ProbeLimits(requests=1))
    assert state(run) == (EndpointState.FAILED, "llm: HTTP 400: prompt too long")


def test_answer_in_one_piece_has_a_latency_and_no_first_token(context: Context) -> None:
    body = (
        b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1,"prompt_tokens":9}}'
    )
    run = probe(context, ovms(chat=lambda: reply(200, body)))
    assert state(run)[0] is EndpointState.GENERATING
    assert missing(run, "ttft_s").detail == "the server answered in one piece"
    assert len(samples(run, "latency_s")) == 2


def test_compressed_or_held_back_stream_gives_no_first_token_time(context: Context) -> None:
    together = "".join(f"data: {json.dumps(delta(content=word))}\n\n" for word in "abcdef") + "data: [DONE]\n\n"
    run = probe(context, ovms(chat=lambda: reply(200, together.encode(), "text/event-stream")))
    assert missing(run, "ttft_s").detail == "the path holds the stream back: 100% of the chunks came together"
