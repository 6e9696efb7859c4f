"""What goes wrong with a server has a state of its own, in the file and on the terminal; asked of real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping

import pytest

from probes.context import Context
from probes.endpoints.probe import Pacing
from probes.endpoints.report import lines
from probes.evidence import EndpointState, Run
from probes.fleet import ProbeLimits
from tests.probing import probe
from tests.servers import Script, hear, http, talking

JSON = "Content-Type: application/json"
LISTED = b'{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}'
EMPTY = b'{"object":"list","data":[]}'
LOADING = b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'
CONFIG = b'{"m":{"model_version_status":[{"version":"1","state":"LOADING","status":{"error_code":"OK","error_message":"OK"}}]}}'
NAMED = b'{"name":"OpenVINO Model Server","version":"2026.4.1"}'
NOT_FOUND = http("404 Not Found", b'{"detail":"Not Found"}', JSON)


def ok(body: bytes) -> bytes:
    return http("200 OK", body, JSON)


def serving(gets: Mapping[str, bytes], chat: Callable[[socket.socket], None], otherwise: bytes = NOT_FOUND) -> Script:
    """Answer paths, and a request for text in some way of its own."""

    def script(connection: socket.socket) -> None:
        request = hear(connection)
        method, path = request.split()[:2]
        if method == b"POST":
            chat(connection)
        else:
            connection.sendall(gets.get(path.decode(), otherwise))
        connection.shutdown(socket.SHUT_WR)

    return script


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(answer)


def never(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    connection.recv(1)  # until the client has had enough


def redirecting(connection: socket.socket) -> None:
    connection.sendall(http("302 Found", b"", "Location: https://sso.example/login?state=s3cret"))


TO_LOGIN = http("302 Found", b"", "Location: https://sso.example/login?state=s3cret")
MODELS = {"/v1/models": ok(LISTED)}
CASES: dict[EndpointState, tuple[Script, ...]] = {
    EndpointState.HANGS: (serving(MODELS, never),),
    EndpointState.EMPTY: (serving({"/v1/models": ok(EMPTY)}, saying(NOT_FOUND)),),
    EndpointState.ANSWERS_ERROR: (
        serving(MODELS, saying(ok(b'{"error":{"message":"CL_OUT_OF_RESOURCES"}}'))),
        serving({"/v1/models": ok(b'{"error":"backend is gone"}')}, saying(NOT_FOUND)),
    ),
    EndpointState.NEEDS_KEY: (
        serving(MODELS, saying(http("401 Unauthorized", b'{"error":{"message":"Invalid API Key"}}', JSON))),
        serving({}, saying(NOT_FOUND), http("401 Unauthorized", b'{"error":"Unauthorized"}', JSON)),
        # OVMS says it with status 500.
        serving(MODELS, saying(http("500 Error", b'{"error":"Unauthorized request due to invalid or missing api-key"}', JSON))),
    ),
    EndpointState.NEEDS_LOGIN: (serving({}, redirecting, TO_LOGIN), serving(MODELS, redirecting)),
    EndpointState.LOADING: (
        serving({"/v2": ok(NAMED), "/v1/config": ok(CONFIG), "/v3/models": ok(EMPTY)}, saying(NOT_FOUND)),
        serving({}, saying(NOT_FOUND), http("503 Unavailable", LOADING, JSON, "Server: llama.cpp")),
    ),
}


def asked(context: Context, script: Script) -> Run:
    with talking(script) as port:
        return probe(
            context,
            url=f"http://127.0.0.1:{port}",
            pacing=Pacing(question_s=5, loading_s=0.3, poll_s=0.1),
            limits=ProbeLimits(timeout_s=5, silence_s=0.5),
        )


@pytest.mark.parametrize(
    ("state", "script"),
    [(state, script) for state, scripts in CASES.items() for script in scripts],
    ids=lambda one: str(one)[:20],
)
def test_each_fault_has_a_state_and_words_of_its_own(context: Context, state: EndpointState, script: Script) -> None:
    run = asked(context, script)
    document = json.loads(run.model_dump_json())
    assert document["endpoint"]["state"] == state.value
    assert document["endpoint"]["detail"]
    first = lines(run)[0]
    assert first.partition(": ")[2].startswith(f"{state.value} ("), first
    assert "s3cret" not in run.model_dump_json()
    assert all(not metric.samples for metric in run.metrics if metric.name in {"ttft_s", "decode_tok_s", "latency_s"})


def test_no_two_faults_share_a_word_in_the_file_or_on_the_terminal() -> None:
    assert len({state.value for state in CASES}) == len(CASES) == 6
