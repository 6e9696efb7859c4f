"""Whatever an address does becomes one state, with the words for it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable

import httpx
import pytest

from probes.context import Context
from probes.endpoints.probe import Pacing
from probes.evidence import EndpointState, Missing, MissingReason
from probes.fleet import ProbeLimits, RuntimeName, ServiceKind
from tests.captures import capture, reply
from tests.probing import (
    OVMS_STREAM,
    delta,
    missing,
    ovms,
    probe,
    recorded,
    samples,
    state,
    stream,
)
from tests.servers import free_port, greeting, hear, http, silent, talking


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
    assert state(run)[1].startswith("no model is loaded, and LM Studio loads one when it is asked")


ANY = [None, RuntimeName.OVMS, RuntimeName.VLLM, RuntimeName.LLAMACPP, RuntimeName.OLLAMA, RuntimeName.COMFYUI]


@pytest.mark.parametrize("expected", ANY)
def test_words_of_lm_studio_on_any_path_are_those_of_no_other_server(context: Context, expected: RuntimeName | None) -> None:
    words = b'{"error":"Unexpected endpoint or method. (GET /v1/config)"}'
    run = probe(context, lambda _request: reply(200, words), expected=expected)
    assert not isinstance(run.runtime, Missing)
    assert run.runtime.name == RuntimeName.LMSTUDIO
    assert state(run)[0] is not EndpointState.GENERATING


@pytest.mark.parametrize("words", ["no such endpoint", "no route {method} {path}", "no route {path}, request {number}"])
@pytest.mark.parametrize("expected", ANY)
def test_status_200_on_any_path_identifies_nothing(context: Context, words: str, expected: RuntimeName | None) -> None:
    """A server may repeat the path or count its answers, so that no two are the same bytes."""
    number = iter(range(10**6))

    def route(request: httpx.Request) -> httpx.Response:
        said = words.format(method=request.method, path=request.url.path, number=next(number))
        return reply(200, json.dumps({"error": said}).encode())

    run = probe(context, route, expected=expected)
    assert state(run)[0] is EndpointState.NOT_AN_INFERENCE_SERVER
    assert isinstance(run.runtime, Missing)
    assert run.settings == ()


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
        ("https://sso.example/auth?state=s3cret", EndpointState.NEEDS_LOGIN),
        ("/login", EndpointState.NEEDS_LOGIN),
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
    assert state(probe(context, route, key="not-the-right-key"))[1] == f"HTTP {status}: Unauthorized; the key was not accepted"


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

    def route(request: httpx.Request) -> httpx.Response:
        now = routes.pop() if routes else ready
        return now(request)

    run = probe(context, route, pacing=Pacing(poll_s=0.01))
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


@pytest.mark.parametrize(
    "answer",
    [
        lambda: reply(200, b'{"error":{"message":"CL_OUT_OF_RESOURCES"}}'),
        lambda: reply(200, b'{"error":"CL_OUT_OF_RESOURCES"}'),
        lambda: stream({"error": "CL_OUT_OF_RESOURCES"}),
        lambda: stream(delta(content="a"), {"error": {"message": "CL_OUT_OF_RESOURCES"}}),
    ],
)
def test_error_with_status_200_is_told_apart(context: Context, answer: Callable[[], httpx.Response]) -> None:
    run = probe(context, ovms(chat=answer))
    assert state(run) == (EndpointState.ANSWERS_ERROR, "llm: CL_OUT_OF_RESOURCES")
    assert samples(run, "error_rate") == (1,)
    assert missing(run, "latency_s").missing is MissingReason.FAILED


def test_list_that_is_an_error_with_status_200_is_told_apart(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        answers = request.url.path == "/v1/models"
        return reply(200, b'{"error":"backend is gone"}') if answers else reply(404, b'{"error":"unknown path"}')

    assert state(probe(context, route)) == (EndpointState.ANSWERS_ERROR, "GET /v1/models: backend is gone")


@pytest.mark.parametrize("body", [b'{"object":"list","data":[]}', b'{"object":"list","data":null}'])
def test_server_that_lists_no_model_is_told_apart(context: Context, body: bytes) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        return reply(200, body) if request.url.path == "/v1/models" else reply(404, b"{}")

    run = probe(context, route, model="some-model")
    assert state(run) == (EndpointState.EMPTY, "the server lists no model")
    assert missing(run, "ttft_s").missing is MissingReason.SKIPPED


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported URI: /v3/chat/completions",
        "query field is missing in request",
        "input field is required",
    ],
)
def test_graph_for_something_else_than_text_is_listed_and_has_not_failed(context: Context, words: str) -> None:
    body = json.dumps({"error": f"Mediapipe execution failed. MP status - INVALID_ARGUMENT: {words}"}).encode()
    run = probe(context, ovms(chat=lambda: reply(400, body)))
    assert state(run)[0] is EndpointState.LISTED
    assert state(run)[1].startswith("llm is for something else than text: HTTP 400: Mediapipe execution failed")


def test_login_page_in_the_way_of_text_is_told_apart(context: Context) -> None:
    run = probe(context, ovms(chat=lambda: reply(302, location="https://sso.example/login?next=s3cret")))
    assert state(run) == (EndpointState.NEEDS_LOGIN, "llm: redirects to the login page sso.example/login")


def test_stream_that_only_comments_hangs(context: Context) -> None:
    """A proxy's comments keep a connection open for ever; they bring no token nearer."""

    def script(connection: socket.socket) -> None:
        request = hear(connection)
        if not request.startswith(b"POST"):
            body = json.dumps(listed).encode() if b" /v1/models " in request else b"{}"
            connection.sendall(http("200 OK" if body != b"{}" else "404 Not Found", body, "Content-Type: application/json"))
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while True:
            connection.sendall(b": ping\n\n")
            time.sleep(0.05)

    listed = {"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}
    with talking(script) as port:
        run = probe(context, url=f"http://127.0.0.1:{port}", limits=ProbeLimits(timeout_s=60, silence_s=0.4))
    hangs, detail = state(run)
    assert hangs is EndpointState.HANGS
    assert detail.startswith("m: nothing new for 0.4 s; ")


def test_second_request_that_fails_is_told_beside_the_first(context: Context) -> None:
    answers = [stream(*OVMS_STREAM), reply(500, b'{"error":"boom"}')]
    run = probe(context, ovms(chat=lambda: answers.pop(0)))
    assert state(run) == (EndpointState.GENERATING, "the second request failed: HTTP 500: boom")
    assert samples(run, "error_rate") == (0.5,)
    assert len(samples(run, "latency_s")) == 1


def test_model_that_hangs_is_told_apart(context: Context) -> None:
    inner = ovms()

    async def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            await asyncio.sleep(600)
        return inner(request)

    run = probe(context, route, limits=ProbeLimits(timeout_s=1.5))
    assert state(run)[0] is EndpointState.HANGS
    assert "1.5 s" in state(run)[1]
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
    assert state(run) == (EndpointState.LISTED, "the named model 'other' is not among those that can be asked")


def test_other_runtime_than_the_inventory_says_is_told(context: Context) -> None:
    run = probe(context, recorded("llamacpp", "get_models"), expected=RuntimeName.OVMS)
    assert state(run) == (EndpointState.GENERATING, "llama.cpp answers where the inventory says ovms")


def test_unverified_tls_is_told(context: Context) -> None:
    run = probe(context, recorded("llamacpp", "get_models"), url="https://h", insecure=True)
    assert state(run) == (EndpointState.GENERATING, "TLS not verified")


def test_server_that_answers_each_question_late_is_not_asked_for_ever(context: Context) -> None:
    async def route(_request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.3)
        return reply(404, b"{}")

    run = probe(context, route, pacing=Pacing(question_s=1, questions_s=1.5))
    assert state(run)[0] is EndpointState.NOT_REACHABLE
    assert re.fullmatch(r"it answered [12] questions and was given 1\.5 s for all", state(run)[1])
