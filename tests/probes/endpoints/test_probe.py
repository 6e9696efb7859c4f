"""Whatever an address does becomes one state, its numbers or the reasons for them, and no secret."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from probes import strictyaml
from probes.context import Context
from probes.endpoints.embedded.server import EmbeddedAddress
from probes.endpoints.probe import Means, Pacing, Target, probe_endpoint, survey
from probes.endpoints.report import lines
from probes.errors import InputError, UsageError
from probes.evidence import EndpointState, FleetScope, Missing, MissingReason, ProvenanceKind, Run, RunKind
from probes.fleet import Fleet, ProbeLimits, RuntimeName, ServiceKind
from tests.captures import Route, capture, reply, server
from tests.engines.llamacpp import llamacpp
from tests.servers import greeting, hear, http, silent, talking

KEY = "canary+key/ABC-0123456789abcdefghij"
PACING = Pacing(question_s=5, loading_s=0.3, poll_s=0.1)
Handler = Route | Callable[[httpx.Request], Any]


def target(url: str = "http://h:8000", **changes: Any) -> Target:
    plain = Target(
        subject="text-8b",
        url=url,
        scope=FleetScope(service="text-8b"),
        limits=ProbeLimits(timeout_s=5),
        shown_url=url,
        expected=None,
    )
    return replace(plain, **changes)


def probe(
    context: Context, handler: Handler | None = None, url: str = "http://h:8000", pacing: Pacing = PACING, **changes: Any
) -> Run:
    transport = None if handler is None else httpx.MockTransport(handler)
    return probe_endpoint(context, target(url, **changes), means=Means(transport=transport, pacing=pacing))


def state(run: Run) -> tuple[EndpointState, str]:
    assert run.endpoint is not None
    return run.endpoint.state, run.endpoint.detail


def samples(run: Run, name: str) -> tuple[float, ...]:
    metric = run.metric(name)
    assert metric is not None, name
    return metric.samples


def missing(run: Run, name: str) -> Missing:
    metric = run.metric(name)
    assert metric is not None, name
    assert metric.missing is not None, name
    return metric.missing


def settings(run: Run) -> dict[str, object]:
    return {setting.control: setting.value for setting in run.settings}


CHATS = ("chat_stream_usage", "chat_stream_usage_repeat")


def recorded(engine: str, *gets: str, chats: tuple[str, ...] = CHATS) -> Route:
    nowhere = capture(engine, "err_notfound")
    return server(*(capture(engine, name) for name in gets), nowhere=nowhere, chat=[capture(engine, name) for name in chats])


def ovms(state: str = "AVAILABLE", code: str = "OK", chat: Callable[[], httpx.Response] | None = None) -> Route:
    status = {"version": "1", "state": state, "status": {"error_code": code, "error_message": code}}
    bodies: dict[str, Any] = {
        "/v2": {"name": "OpenVINO Model Server", "version": "2026.2"},
        "/v1/config": {"llm": {"model_version_status": [status]}},
        "/v3/models": {"object": "list", "data": [{"id": "llm", "owned_by": "OVMS"}] if state == "AVAILABLE" else []},
    }

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and chat is not None:
            return chat()
        body = bodies.get(request.url.path)
        return reply(200, json.dumps(body).encode()) if body is not None else reply(400, b'{"error":"Invalid request URL"}')

    return route


def stream(*events: object) -> httpx.Response:
    data = [e if isinstance(e, str) else json.dumps(e) for e in events]
    return reply(200, [f"data: {one}\n\n".encode() for one in data], "text/event-stream")


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


OVMS_STREAM = (
    delta(role="assistant", content=None),
    delta(content="The "),
    delta(content="sea."),
    delta("stop"),
    {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}},
    "[DONE]",
)


# A server that answers


def test_llamacpp_generates_and_tells_what_it_can(context: Context) -> None:
    run = probe(context, recorded("llamacpp", "get_models", "get_props", "get_health", "get_metrics"))
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


def test_vllm_without_cached_tokens_in_its_usage_proves_nothing_by_them(context: Context) -> None:
    run = probe(context, recorded("vllm", "get_models", "get_version", "get_metrics"))
    assert state(run)[0] is EndpointState.GENERATING
    assert settings(run)["enable_prefix_caching"] is True
    assert missing(run, "cached_prompt_tokens").detail == "the server does not report it"


def test_server_without_usage_has_no_token_speed_but_one_of_chunks(context: Context) -> None:
    run = probe(context, recorded("kernelloom", "get_models"))
    assert state(run)[0] is EndpointState.GENERATING
    assert missing(run, "decode_tok_s").missing is MissingReason.NOT_MEASURED
    assert missing(run, "decode_tok_s").detail == "the server reports no usage; 14 chunks came, and chunks are not tokens"
    assert len(samples(run, "chunks_per_s")) == 2
    assert missing(run, "completion_tokens").detail == "the server reports no usage"
    assert run.settings == ()


def test_server_that_lists_no_model_is_asked_for_the_one_in_the_inventory_only(context: Context) -> None:
    handler = recorded("openvino-openai-api", "get_models", "err_method")
    assert state(probe(context, handler)) == (EndpointState.LISTED, "the server lists no model")
    assert state(probe(context, handler, model="smollm2"))[0] is EndpointState.GENERATING


def test_event_stream_called_plain_text_is_read(context: Context) -> None:
    handler = recorded("ollama-openai-proxy", "get_models", chats=("chat_stream_usage_repeat",))
    assert state(probe(context, handler))[0] is EndpointState.GENERATING


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
    assert asked == {"GET", "GET /v1/config", "GET /v3/models", "POST /v3/chat/completions"}


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


# States


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def test_refused_connection_is_not_reachable(context: Context) -> None:
    run = probe(context, url=f"http://127.0.0.1:{free_port()}")
    assert state(run) == (EndpointState.NOT_REACHABLE, "ConnectionRefusedError: Connection refused")
    assert missing(run, "ttft_s").missing is MissingReason.NOT_REACHABLE
    assert isinstance(run.runtime, Missing)


def test_name_that_does_not_resolve_is_not_reachable(context: Context) -> None:
    reached, detail = state(probe(context, url="http://no-such-host.invalid"))
    assert reached is EndpointState.NOT_REACHABLE
    assert detail.startswith("gaierror: ")


def test_silence_is_not_reachable(context: Context) -> None:
    with talking(silent) as port:
        run = probe(context, url=f"http://127.0.0.1:{port}", pacing=Pacing(question_s=0.3))
    assert state(run) == (EndpointState.NOT_REACHABLE, "accepted the connection and sent nothing for 0.3 s")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_gateway_without_a_server_behind_it_is_not_reachable(context: Context, status: int) -> None:
    page = b"<html><title>Bad Gateway</title></html>"
    run = probe(context, lambda _request: reply(status, page, "text/html"))
    assert state(run) == (EndpointState.NOT_REACHABLE, f"HTTP {status}: HTML")


def test_another_protocol_is_no_inference_server(context: Context) -> None:
    with talking(greeting(b"SSH-2.0-OpenSSH_9.2p1\r\n")) as port:
        run = probe(context, url=f"http://127.0.0.1:{port}")
    words = "the port speaks another protocol; it says 'SSH-2.0-OpenSSH_9.2p1'"
    assert state(run) == (EndpointState.NOT_AN_INFERENCE_SERVER, words)


@pytest.mark.parametrize("status", [200, 404])
def test_html_is_no_inference_server(context: Context, status: int) -> None:
    page = capture("kernelloom", "get_root").body
    run = probe(context, lambda _request: reply(status, page, "text/html"))
    assert state(run) == (EndpointState.NOT_AN_INFERENCE_SERVER, "it answers HTML, titled 'KernelLoom local control'")


@pytest.mark.parametrize("body", [b'{"ok":true}', b'{"object":"list","data":[]}', b'{"name":"OpenVINO Model Server"}', b""])
def test_same_answer_to_every_path_is_no_inference_server(context: Context, body: bytes) -> None:
    run = probe(context, lambda _request: reply(200, body))
    assert state(run) == (EndpointState.NOT_AN_INFERENCE_SERVER, "it answers HTTP 200 and none of the APIs known here")


def test_server_that_answers_200_to_unknown_paths_is_told_by_its_bodies(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return reply(200, b'{"object":"list","data":[{"id":"gemma","owned_by":"organization_owner"}]}')
        return reply(200, b'{"error":"Unexpected endpoint or method."}')

    run = probe(context, route)
    assert state(run)[0] is EndpointState.LISTED
    assert state(run)[1].startswith("LM Studio loads a model when it is asked")


def test_triton_is_not_taken_for_ovms(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        return (
            reply(200, b'{"name":"triton","version":"2.50","extensions":[]}')
            if request.url.path == "/v2"
            else reply(404, b"{}")
        )

    assert state(probe(context, route))[0] is EndpointState.NOT_AN_INFERENCE_SERVER


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("http://other.example/", EndpointState.NOT_AN_INFERENCE_SERVER),
        ("https://sso.example/auth?state=s3cret", EndpointState.NEEDS_KEY),
        ("/login", EndpointState.NEEDS_KEY),
    ],
)
def test_redirect_is_told_and_not_followed(context: Context, location: str, expected: EndpointState) -> None:
    run = probe(context, lambda _request: reply(302, location=location))
    assert state(run)[0] is expected
    assert "s3cret" not in run.model_dump_json()


@pytest.mark.parametrize("status", [401, 403])
def test_list_behind_a_key_needs_a_key(context: Context, status: int) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        return reply(status, b'{"error":"Unauthorized"}') if request.url.path.startswith("/v1") else reply(404, b"{}")

    without = probe(context, route)
    assert state(without) == (EndpointState.NEEDS_KEY, f"HTTP {status}: Unauthorized; no key is configured")
    assert missing(without, "ttft_s").missing is MissingReason.REFUSED
    assert state(probe(context, route, key=KEY))[1] == f"HTTP {status}: Unauthorized; the key was not accepted"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b'{"error":{"message":"Invalid API Key","type":"authentication_error"}}'),
        (500, b'{"error":"Unauthorized request due to invalid or missing api-key"}'),
    ],
)
def test_text_behind_a_key_needs_a_key(context: Context, status: int, body: bytes) -> None:
    assert state(probe(context, ovms(chat=lambda: reply(status, body))))[0] is EndpointState.NEEDS_KEY


def test_llamacpp_that_loads_for_ever_is_loading(context: Context) -> None:
    loading = b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'
    run = probe(context, lambda _request: reply(503, loading, server="llama.cpp"))
    assert state(run) == (EndpointState.LOADING, "the model is loading; still so after 0.3 s")
    assert not isinstance(run.runtime, Missing)


def test_model_that_becomes_ready_meanwhile_is_asked(context: Context) -> None:
    routes = [ovms("LOADING")] * 12
    ready = ovms(chat=lambda: stream(*OVMS_STREAM))
    run = probe(context, lambda request: (routes.pop() if routes else ready)(request), pacing=Pacing(poll_s=0.01))
    assert state(run)[0] is EndpointState.GENERATING


def test_ovms_that_loads_for_ever_is_loading_and_one_that_failed_is_failed(context: Context) -> None:
    assert state(probe(context, ovms("LOADING"))) == (EndpointState.LOADING, "llm is LOADING; still so after 0.3 s")
    failed, detail = state(probe(context, ovms("LOADING", "FAILED_PRECONDITION")))
    assert failed is EndpointState.FAILED
    assert detail.startswith("llm is LOADING: the LLM graph failed to load")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda: reply(404, b'{"error":"Mediapipe graph definition with requested name is not found"}'),
            "HTTP 404: Mediapipe graph",
        ),
        (lambda: reply(500, b"<html>oops</html>", "text/html"), "HTTP 500: <html>oops"),
        (lambda: reply(200, b"<html>hello</html>", "text/html"), "HTTP 200 with HTML in place of an answer"),
        (lambda: stream(delta(content="a"), {"error": "CL_OUT_OF_RESOURCES"}), "CL_OUT_OF_RESOURCES"),
        (lambda: stream(delta(content="a")), "the stream ended after 1 events"),
        (lambda: reply(200, b"", "text/plain"), "the stream ended without a single event"),
        (lambda: reply(302, location="http://other.example/"), "redirects to other.example/"),
    ],
)
def test_request_that_fails_makes_the_server_failed(context: Context, answer: Callable[[], httpx.Response], words: str) -> None:
    run = probe(context, ovms(chat=answer))
    failed, detail = state(run)
    assert failed is EndpointState.FAILED
    assert detail.startswith(f"llm: {words}")
    assert samples(run, "error_rate") == (1,)
    assert missing(run, "latency_s").missing is MissingReason.FAILED
    requests = run.native["requests"]
    assert isinstance(requests, list)
    assert len(requests) == 1


def test_second_request_that_fails_is_told_beside_the_first(context: Context) -> None:
    answers = [stream(*OVMS_STREAM), reply(500, b'{"error":"boom"}')]
    run = probe(context, ovms(chat=lambda: answers.pop(0)))
    assert state(run) == (EndpointState.GENERATING, "the second request failed: HTTP 500: boom")
    assert samples(run, "error_rate") == (0.5,)
    assert len(samples(run, "latency_s")) == 1


def test_model_that_hangs_is_listed_and_not_generating(context: Context) -> None:
    inner = ovms()

    async def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            await asyncio.sleep(600)
        return inner(request)

    run = probe(context, route, limits=ProbeLimits(timeout_s=0.3))
    assert state(run)[0] is EndpointState.LISTED
    assert "0.3 s" in state(run)[1]
    assert samples(run, "error_rate") == (1,)
    assert missing(run, "ttft_s").missing is MissingReason.FAILED


def test_answer_without_a_token_is_no_generation(context: Context) -> None:
    run = probe(context, ovms(chat=lambda: stream(delta("stop"), "[DONE]")))
    assert state(run) == (EndpointState.LISTED, "llm answered without a single token")


def test_service_of_another_kind_is_not_asked_for_text(context: Context) -> None:
    run = probe(context, ovms(), kind=ServiceKind.EMBEDDING, expected=RuntimeName.OPENVINO)
    assert state(run) == (EndpointState.LISTED, "no text is asked of a service for embedding")


def test_model_of_the_inventory_that_is_not_served_is_not_replaced_by_another(context: Context) -> None:
    run = probe(context, ovms(), model="other")
    assert state(run) == (EndpointState.LISTED, "the inventory's model 'other' is not among those that can be asked")


def test_other_runtime_than_the_inventory_says_is_told(context: Context) -> None:
    run = probe(context, recorded("llamacpp", "get_models"), expected=RuntimeName.OVMS)
    assert state(run) == (EndpointState.GENERATING, "llama.cpp answers where the inventory says ovms")


def test_unverified_tls_is_told(context: Context) -> None:
    run = probe(context, recorded("llamacpp", "get_models"), url="https://h", insecure=True)
    assert state(run) == (EndpointState.GENERATING, "TLS not verified")


# Secrets and hostile text


def test_key_that_the_server_repeats_everywhere_is_nowhere_in_the_run(context: Context) -> None:
    escaped = KEY.replace("/", "\\/").replace("+", "\\u002b")
    models = f'{{"object":"list","data":[{{"id":"m","owned_by":"llamacpp","meta":{{"ftype":"{escaped}"}}}},{{"id":"{KEY}"}}]}}'
    props = f'{{"build_info":"{KEY}","note":"{"x" * 280}{KEY}","default_generation_settings":{{"params":{{"{KEY}":1}}}}}}'
    letters = [f"data: {json.dumps(delta(content=letter))}\n\n" for letter in KEY]
    chat = "".join(letters) + f": {KEY}\n\n" + f"data: {json.dumps(delta(KEY))}\n\n" + f"event: {KEY}\ndata: [DONE]\n\n"
    bodies = {"/v1/models": models, "/props": props, "/metrics": f'x{{key="{KEY}"}} 1\n{KEY} bad line\n', "/health": f'"{KEY}"'}

    def echo(connection: socket.socket) -> None:
        request = hear(connection).decode()
        assert f"authorization: bearer {KEY}" in request.lower().replace(KEY.lower(), KEY)
        path = request.split()[1]
        body = chat if request.startswith("POST") else bodies.get(path, f'{{"error":"{request.splitlines()[1]} {KEY}"}}')
        status = "200 OK" if path in bodies or request.startswith("POST") else f"404 {KEY}"
        connection.sendall(http(status, body.encode(), f"X-Echo: Bearer {KEY}", f"Server: {KEY}", f"Content-Type: text/{KEY}"))

    with talking(echo) as port:
        run = probe(context, url=f"http://127.0.0.1:{port}", key=KEY)
    assert state(run)[0] is EndpointState.GENERATING
    written = run.model_dump_json()
    assert "[redacted]" in written
    for start in range(len(KEY) - 9):
        assert KEY[start : start + 10] not in written
    assert KEY not in "\n".join(lines(run))
    assert KEY not in repr(target(key=KEY))


def test_address_behind_a_reference_stays_out_of_the_run(context: Context) -> None:
    def echo(connection: socket.socket) -> None:
        request = hear(connection).decode()
        host = request.split("Host: ")[1].split("\r\n")[0]
        connection.sendall(http("200 OK", f'{{"object":"list","data":[{{"id":"m","root":"http://{host}/m"}}]}}'.encode()))

    with talking(echo) as port:
        run = probe(context, url=f"http://127.0.0.1:{port}", shown_url="${OVMS_8B_URL}", limits=ProbeLimits(requests=0))
        assert f"127.0.0.1:{port}" not in run.model_dump_json()
    assert run.endpoint is not None
    assert run.endpoint.url == "${OVMS_8B_URL}"
    assert "${OVMS_8B_URL}/m" in run.model_dump_json()


def test_model_id_that_is_a_path_is_asked_for_as_it_is_and_kept_without_its_folders(context: Context) -> None:
    asked: list[str] = []
    listing = b'{"object":"list","data":[{"id":"/srv/models/alice/Qwen3","owned_by":"vllm","root":"/srv/models/alice/Qwen3"}]}'

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            asked.append(json.loads(request.content)["model"])
            return stream(*OVMS_STREAM)
        return reply(200, listing) if request.url.path == "/v1/models" else reply(404, b"{}")

    run = probe(context, route)
    assert asked == ["/srv/models/alice/Qwen3"] * 2
    assert not isinstance(run.model, Missing)
    assert run.model.id.startswith("…/Qwen3 (path ")
    assert "alice" not in run.model_dump_json()


@pytest.mark.parametrize("id", ["OpenVINO/Qwen3-8B-int4-ov", "a?b#c", "/x", "../../etc", "<script>alert(1)</script>"])
def test_model_id_changes_no_url_and_is_kept_as_text(context: Context, id: str) -> None:
    paths: set[str] = set()

    def route(request: httpx.Request) -> httpx.Response:
        paths.add(request.url.path)
        if request.method == "POST":
            assert json.loads(request.content)["model"] == id
            return stream(*OVMS_STREAM)
        listing = json.dumps({"object": "list", "data": [{"id": id}]}).encode()
        return reply(200, listing) if request.url.path == "/v1/models" else reply(404, b"{}")

    run = probe(context, route)
    assert state(run)[0] is EndpointState.GENERATING
    assert run.endpoint is not None
    assert run.endpoint.models[0].id == id
    assert len(paths) == 5  # a random one, the list, the name of OVMS, and the two that follow


def test_numbers_and_text_that_no_file_could_hold_are_mended(context: Context) -> None:
    listing = (
        b'{"object":"list","data":[{"id":"m","big":1e400,"huge":' + b"9" * 400 + b',"half":"\\ud83d","esc":"\\u001b[31m"}]}'
    )

    def route(request: httpx.Request) -> httpx.Response:
        return reply(200, listing) if request.url.path == "/v1/models" else reply(404, b"{}")

    written = probe(context, route, limits=ProbeLimits(requests=0)).model_dump_json()
    assert written.encode()
    assert "\\u001b" not in written
    assert '"big":null' in written


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"url": "http://user:s3cret@h"}, "url: holds a user or a password"),
        ({"key": "s3cret with space"}, "key of text-8b: holds a space"),
        ({"url": "https://h", "ca_file": "absent.pem"}, "text-8b: ca_file absent.pem: cannot be used"),
    ],
)
def test_target_that_cannot_be_used_is_an_input_error(context: Context, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        probe(context, **changes)
    assert str(raised.value).startswith(message)
    assert "s3cret" not in str(raised.value)


# The whole inventory


def fleet(services: str) -> Fleet:
    text = f"""
schema: inference-adr/fleet/1
name: Test
as_of: 2026-07-10
source: a test
hosts: {{}}
devices: {{}}
services:
{services}
embedded: {{title: Embedded, settings: {{}}}}
"""
    return strictyaml.loads(text, Fleet, "fleet.yml")


def service(name: str, **fields: str) -> str:
    given = {"title": name, "kind": "text generation", "runtime": "ovms", "runtime_version": "2026.2"} | fields
    unknown = ', host: {unknown: "?"}, device: {unknown: "?"}'
    return f"  {name}: {{{', '.join(f'{key}: {json.dumps(value)}' for key, value in given.items())}{unknown}}}\n"


def by_host(**routes: Handler) -> httpx.MockTransport:
    async def route(request: httpx.Request) -> httpx.Response:
        answer = routes[request.url.host](request)
        if isinstance(answer, httpx.Response):
            return answer
        response: httpx.Response = await answer
        return response

    return httpx.MockTransport(route)


async def hang(_request: httpx.Request) -> httpx.Response:
    await asyncio.sleep(600)
    raise AssertionError


def refuse(_request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("All connection attempts failed") from ConnectionRefusedError(111, "Connection refused")


def test_survey_tells_every_service_in_the_order_of_the_inventory(context: Context) -> None:
    said: list[str] = []
    inventory = fleet(
        service("hangs", url="${HANGS_URL}")
        + service("unset", url="${UNSET_URL}")
        + service("good", url="${GOOD_URL}")
        + service("nowhere")
        + service("down", url="http://down")
        + service("lane", url="http://lane", kind="embedding")
    )
    transport = by_host(hangs=hang, good=ovms(chat=lambda: stream(*OVMS_STREAM)), down=refuse, lane=ovms())
    environ = {"HANGS_URL": "http://hangs", "GOOD_URL": "http://good/v3", "HTTP_PROXY": "http://proxy"}
    means = Means(transport=transport, pacing=Pacing(question_s=0.3))
    runs, seen = survey(replace(context, say=said.append), inventory, environ, means=means)
    assert [(name, endpoint.state) for name, endpoint in seen.survey.items()] == [
        ("hangs", EndpointState.NOT_REACHABLE),
        ("unset", EndpointState.NOT_CONFIGURED),
        ("good", EndpointState.GENERATING),
        ("nowhere", EndpointState.NOT_CONFIGURED),
        ("down", EndpointState.NOT_REACHABLE),
        ("lane", EndpointState.LISTED),
    ]
    assert [run.subject for run in runs] == ["good", "lane"]
    assert (seen.kind, seen.subject) == (RunKind.SURVEY, "fleet")
    assert seen.survey["good"].url == "${GOOD_URL}"
    assert seen.survey["unset"].detail == "UNSET_URL is not set"
    assert "http://good" not in seen.model_dump_json() + "".join(run.model_dump_json() for run in runs)
    assert said[0] == "proxy in environment ignored: HTTP_PROXY"
    assert len(said) == 5


def test_survey_of_named_services_asks_no_other(context: Context) -> None:
    inventory = fleet(service("a", url="http://a") + service("b", url="http://b"))
    runs, seen = survey(
        context, inventory, {}, ["b"], means=Means(transport=by_host(b=ovms(chat=lambda: stream(*OVMS_STREAM))))
    )
    assert ([run.subject for run in runs], list(seen.survey)) == (["b"], ["b"])
    with pytest.raises(UsageError, match="--service c: is not in the inventory; expected one of a, b"):
        survey(context, inventory, {}, ["c"])


def test_survey_names_every_address_and_key_that_cannot_be_used_before_it_asks(context: Context) -> None:
    inventory = fleet(service("a", url="${A_URL}") + service("b", url="${B_URL}", api_key="${B_KEY}"))
    environ = {"A_URL": "http://me:s3cret@a", "B_URL": "http://b", "B_KEY": "s3cret s3cret"}
    with pytest.raises(InputError) as raised:
        survey(context, inventory, environ, means=Means(transport=by_host()))
    first, second = str(raised.value).splitlines()
    assert first.startswith("environment variable A_URL: holds a user or a password")
    assert second.startswith("key of b: holds a space")
    assert "s3cret" not in str(raised.value)


def test_two_hundred_services_half_of_them_hanging_keep_their_order(context: Context) -> None:
    names = [f"s{number}" for number in range(200)]
    inventory = fleet("".join(service(name, url=f"http://{name}") for name in names))
    good = ovms(chat=lambda: stream(*OVMS_STREAM))
    routes: dict[str, Handler] = {name: hang if number % 2 else good for number, name in enumerate(names)}
    runs, seen = survey(context, inventory, {}, means=Means(transport=by_host(**routes), pacing=Pacing(question_s=0.5)))
    assert list(seen.survey) == names
    assert [run.subject for run in runs] == names[::2]
    assert {seen.survey[name].state for name in names[1::2]} == {EndpointState.NOT_REACHABLE}


# Real servers


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llamacpp("n_parallel=2") as url:
        yield url


@pytest.mark.engine
def test_real_llamacpp(context: Context, llama: str) -> None:
    run = probe(context, url=llama, limits=ProbeLimits(timeout_s=60), expected=RuntimeName.LLAMACPP)
    assert state(run) == (EndpointState.GENERATING, "")
    assert settings(run) == {
        "weight_precision": "Q4_1",
        "parallel": 2,
        "n_ctx_per_slot": 1024,
        "spec_type": "none",
        "cache_prompt": True,
    }
    assert samples(run, "completion_tokens") == (16, 16)
    fresh, repeated = samples(run, "cached_prompt_tokens")
    assert fresh < repeated
    prompt_tokens = samples(run, "prompt_tokens")
    assert samples(run, "prefix_cache_hit_ratio")[0] == pytest.approx((fresh + repeated) / sum(prompt_tokens), abs=0.05)
    requests = run.native["requests"]
    assert isinstance(requests, list)
    for one, ttft_s in zip(requests, (*samples(run, "ttft_s"), *samples(run, "ttft_repeat_s")), strict=True):
        assert isinstance(one, dict)
        timings = one["timings"]
        assert isinstance(timings, dict)
        # The server's own clock: a client cannot have seen the first token before the prompt was processed.
        assert ttft_s > float(str(timings["prompt_ms"])) / 1000
        assert one["coalesced_share"] is not None
    assert any(line.startswith("  setting   parallel = 2 (observed") for line in lines(run))


@pytest.mark.engine
def test_real_llamacpp_without_prompt_cache_is_not_said_to_have_one(context: Context) -> None:
    with llamacpp("n_parallel=1", "cache_prompt=False", "cache_ram_mib=0", "endpoint_metrics=False") as url:
        run = probe(context, url=f"{url}/v1", limits=ProbeLimits(timeout_s=60))
    assert state(run)[0] is EndpointState.GENERATING
    assert "cache_prompt" not in settings(run)
    assert missing(run, "requests_running").missing is MissingReason.NOT_CONFIGURED
    assert "start llama-server with --metrics" in missing(run, "requests_running").detail


@pytest.mark.engine
def test_real_embedded_service(context: Context, embedded: EmbeddedAddress) -> None:
    expected = RuntimeName.OPENVINO_GENAI_EMBEDDED
    run = probe(context, url=embedded.url, scope=context.local, limits=ProbeLimits(timeout_s=60), expected=expected)
    assert state(run) == (EndpointState.GENERATING, "")
    assert not isinstance(run.runtime, Missing)
    assert (run.runtime.name, run.runtime.version) == (expected, embedded.genai_version)
    assert settings(run)["enable_prefix_caching"] is True
    assert (settings(run)["KV_CACHE_PRECISION"], settings(run)["cache_size"]) == ("f32", 1)
    assert run.server == context.client
    assert samples(run, "completion_tokens") == (16, 16)
    assert len(samples(run, "kv_cache_usage")) == len(samples(run, "server_latency_s")) == 1
    assert samples(run, "ttft_s")[0] <= samples(run, "t_first_text_s")[0]


@pytest.mark.engine
def test_real_llamacpp_beside_a_server_that_holds_its_connection_open(context: Context, llama: str) -> None:
    """The clock stops at the terminator, not when the connection closes."""
    events = b"".join(f"data: {json.dumps(event) if isinstance(event, dict) else event}\n\n".encode() for event in OVMS_STREAM)
    listing = http("200 OK", b'{"object":"list","data":[{"id":"m"}]}')

    def script(connection: socket.socket) -> None:
        request = hear(connection)
        path = request.split()[1]
        if request.startswith(b"POST"):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events)
        else:
            connection.sendall(listing if path == b"/v1/models" else http("404 Not Found"))

    inventory = fleet(service("real", url="${REAL_URL}", runtime="llama.cpp") + service("open", url="${OPEN_URL}"))
    with talking(script) as port:
        environ = {"REAL_URL": llama, "OPEN_URL": f"http://127.0.0.1:{port}"}
        runs, _ = survey(context, inventory, environ)
    real, held = runs
    assert [state(run)[0] for run in runs] == [EndpointState.GENERATING] * 2
    assert max(samples(held, "latency_s")) < 3 <= 60  # the grace time that follows is not counted
    assert samples(real, "error_rate") == (0,)
