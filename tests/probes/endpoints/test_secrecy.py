"""No key, no address behind a reference and no hostile text gets out of an endpoint into a run."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

from probes.context import Context
from probes.endpoints.report import lines
from probes.errors import InputError
from probes.evidence import EndpointState, Missing
from probes.fleet import ProbeLimits
from tests.captures import reply
from tests.probing import (
    OVMS_STREAM,
    delta,
    ovms,
    probe,
    state,
    stream,
    target,
)
from tests.servers import hear, http, talking

KEY = "canary+key/ABC-0123456789abcdefghij"


def test_key_that_the_server_repeats_everywhere_is_nowhere_in_the_run(context: Context) -> None:
    escaped = KEY.replace("/", "\\/").replace("+", "\\u002b")
    models = f'{{"object":"list","data":[{{"id":"m","owned_by":"llamacpp","meta":{{"ftype":"{escaped}"}}}},{{"id":"{KEY}"}}]}}'
    props = f'{{"build_info":"{KEY}","note":"{"x" * 280}{KEY}","default_generation_settings":{{"params":{{"{KEY}":1}}}}}}'
    letters = [f"data: {json.dumps(delta(content=letter))}\n\n" for letter in KEY]
    chat = "".join(letters) + f": {KEY}\n\n" + f"data: {json.dumps(delta(KEY))}\n\n" + f"event: {KEY}\ndata: [DONE]\n\n"
    bodies = {"/v1/models": models, "/props": props, "/metrics": f'x{{key="{KEY}"}} 1\n{KEY} bad line\n', "/health": f'"{KEY}"'}

    def echo(connection: socket.socket) -> None:
        request = hear(connection).decode()
        assert f"\r\nAuthorization: Bearer {KEY}\r\n" in request
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


@pytest.mark.parametrize("distance", range(20, 340, 16))
def test_key_is_not_cut_in_two_where_words_are_cut(context: Context, distance: int) -> None:
    words = ("x" * distance + KEY).encode()
    in_error = b'{"error":"' + words + b'"}'

    def route(request: httpx.Request) -> httpx.Response:
        inner = ovms(chat=lambda: reply(500, in_error))
        return reply(200, words) if request.url.path == "/metrics" else inner(request)

    for handler in (route, lambda _request: reply(403, words, "text/plain"), lambda _request: reply(200, b"<title>" + words)):
        written = probe(context, handler, key=KEY).model_dump_json()
        assert not any(KEY[start : start + 8] in written for start in range(len(KEY) - 7))


def test_huge_hostile_bodies_are_kept_small(context: Context) -> None:
    flood = b"a." * 2**20
    nested = b'{"object":"list","data":[' + b",".join([b'{"id":"m","x":' + b"[" * 50 + b"1" + b"]" * 50 + b"}"] * 20000) + b"]}"

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return reply(500, flood, "text/plain")
        return reply(200, nested) if request.url.path == "/v1/models" else reply(404, flood)

    run = probe(context, route)
    assert state(run)[0] is EndpointState.FAILED
    assert len(run.model_dump_json()) < 60_000


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


@pytest.mark.parametrize(
    ("id", "shown"),
    [
        ("/srv/models/alice/Qwen3-8B-int4-ov", "…/Qwen3-8B-int4-ov (path "),
        ("C:\\Users\\alice\\models\\Qwen3-8B-Q4_K_M.gguf", "…/Qwen3-8B-Q4_K_M.gguf (path "),
        ("./models/alice/Qwen3-8B-FP8", "…/Qwen3-8B-FP8 (path "),
        ("~alice/Qwen3-8B-u8", "…/Qwen3-8B-u8 (path "),
        ("file:///srv/alice/Qwen3-8B-int8", "…/Qwen3-8B-int8 (path "),
        ("OpenVINO/Qwen3-8B-int4-ov", "OpenVINO/Qwen3-8B-int4-ov"),
        ("my-alias", "my-alias"),
    ],
)
def test_no_quantization_is_read_from_a_name_and_no_folder_is_shown(context: Context, id: str, shown: str) -> None:
    asked: set[str] = set()

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            asked.add(json.loads(request.content)["model"])
            return stream(*OVMS_STREAM)
        listing = json.dumps({"object": "list", "data": [{"id": id}]}).encode()
        return reply(200, listing) if request.url.path == "/v1/models" else reply(404, b"{}")

    run = probe(context, route)
    assert asked == {id}
    assert not isinstance(run.model, Missing)
    assert run.model.id.startswith(shown)
    assert isinstance(run.model.quantization, Missing)
    assert "alice" not in run.model_dump_json()


def test_models_of_one_name_in_two_folders_are_two_models(context: Context) -> None:
    ids = ["/srv/a/Qwen3", "/srv/b/Qwen3", "Qwen3"]
    listing = json.dumps({"object": "list", "data": [{"id": id} for id in ids]}).encode()

    def route(request: httpx.Request) -> httpx.Response:
        return reply(200, listing) if request.url.path == "/v1/models" else reply(404, b"{}")

    run = probe(context, route, limits=ProbeLimits(requests=0))
    assert run.endpoint is not None
    assert len({one.id for one in run.endpoint.models}) == 3


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
    assert len(paths) == 5  # a random one, the list, the names of OVMS and Ollama, and the one for text


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
