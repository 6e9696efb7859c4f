"""The embedded service, asked over HTTP: a real engine, real tokens."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from probes import telemetry
from probes.endpoints.embedded.server import EmbeddedAddress
from probes.model import ModelFiles

pytestmark = pytest.mark.engine
MODEL = "SmolLM2-135M-Instruct"
CHAT, TEXT = "/v3/chat/completions", "/v3/completions"
JAPANESE = "日本の首都は東京です。日本の"


def _chat(content: str, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], "temperature": 0, **fields}


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """A stream, taken apart: its JSON events, and the count of events seen anywhere when each piece of text came."""

    events: list[dict[str, Any]]
    text: str
    finish: str | None
    arrivals: list[int]


def _stream(client: httpx.Client, path: str, body: dict[str, Any], tick: Callable[[], int] = lambda: 0) -> Streamed:
    events: list[dict[str, Any]] = []
    arrivals: list[int] = []
    raw = b""
    with client.stream("POST", path, json=body | {"stream": True}) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        for piece in response.iter_raw():
            raw += piece
            while b"\n\n" in raw:
                event, raw = raw.split(b"\n\n", 1)
                assert event.startswith(b"data: ")
                if event != b"data: [DONE]":
                    events.append(json.loads(event[6:]))
                    arrivals.append(tick())
    assert raw == b""
    choices = [choice for event in events for choice in event["choices"]]
    texts = [choice["text"] if "text" in choice else choice["delta"].get("content") or "" for choice in choices]
    return Streamed(events=events, text="".join(texts), finish=choices[-1]["finish_reason"], arrivals=arrivals)


def _metric(client: httpx.Client, wanted: str, **labels: str) -> float:
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            if sample.name == wanted and labels.items() <= sample.labels.items():
                return sample.value
    raise AssertionError(f"no sample {wanted} {labels}")


def _eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "did not come true within 30 s"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def tokenizer(model_files: ModelFiles) -> Any:
    telemetry.silence()
    import openvino_genai

    return openvino_genai.Tokenizer(str(model_files.ir))


def test_says_what_it_is_and_not_that_it_is_ovms(client: httpx.Client, embedded: EmbeddedAddress) -> None:
    assert client.get("/v2").json() == {"name": "openvino-genai (embedded)", "version": embedded.genai_version}
    listed = client.get("/v3/models").json()
    assert listed["object"] == "list"
    assert [(model["id"], model["object"], model["owned_by"]) for model in listed["data"]] == [
        (MODEL, "model", "inference-adr embedded")
    ]
    assert [client.get(path).json()["data"][0]["id"] for path in ("/v1/models", "/v3/v1/models")] == [MODEL, MODEL]
    assert client.get(f"/v3/models/{MODEL}").json()["id"] == MODEL


def test_the_state_of_the_model_as_ovms_tells_it(client: httpx.Client) -> None:
    status = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": "OK"}}
    assert client.get("/v1/config").json() == {MODEL: {"model_version_status": [status]}}
    for path in ("/v2/health/ready", "/v2/health/live", f"/v2/models/{MODEL}/ready"):
        response = client.get(path)
        assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/v3/models/another", 500, "Model not found"),
        ("GET", "/v2/models/another/ready", 404, "Model with requested name is not found"),
        ("GET", "/nowhere", 400, "Invalid request URL"),
        ("GET", "/v3/models/", 400, "Invalid request URL"),
        ("GET", CHAT, 400, "Invalid request URL"),
        ("POST", "/v2/health/ready", 406, "Unsupported method"),
        ("POST", "/nowhere", 400, "Invalid request URL"),
        ("PUT", CHAT, 406, "Unsupported method"),
        ("DELETE", "/v3/models", 406, "Unsupported method"),
    ],
)
def test_wrong_addresses_and_methods(client: httpx.Client, method: str, path: str, status: int, words: str) -> None:
    response = client.request(method, path)
    assert (response.status_code, response.json()) == (status, {"error": words})


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"{", 412, "Cannot parse JSON body"),
        (b"{}", 412, "model field is missing in JSON body"),
        (b'{"model": "another"}', 404, "Mediapipe graph definition with requested name is not found"),
        (b'{"model": "SmolLM2-135M-Instruct"}', 400, "Messages missing in request"),
        (b" " * (8 * 2**20 + 1), 413, "Request body is over 8388608 bytes"),
    ],
)
def test_bad_bodies(client: httpx.Client, content: bytes, status: int, words: str) -> None:
    response = client.post(CHAT, content=content, headers={"content-type": "application/json"})
    assert response.status_code == status
    assert response.json()["error"].endswith(words)


def test_usage_is_the_count_of_the_tokenizer(client: httpx.Client, tokenizer: Any) -> None:
    answer = client.post(CHAT, json=_chat("Name one colour.", max_tokens=12)).json()
    choice = answer["choices"][0]
    history = [{"role": "user", "content": "Name one colour."}]
    prompt = tokenizer.apply_chat_template(history, add_generation_prompt=True)
    prompt_tokens = tokenizer.encode(prompt, add_special_tokens=False).input_ids.shape[1]
    text_tokens = tokenizer.encode(choice["message"]["content"], add_special_tokens=False).input_ids.shape[1]
    end_of_text = 1 if choice["finish_reason"] == "stop" else 0
    assert answer["usage"] == {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": text_tokens + end_of_text,
        "total_tokens": prompt_tokens + text_tokens + end_of_text,
    }
    assert answer["object"] == "chat.completion"
    assert choice["message"] | {"content": ""} == {"content": "", "role": "assistant", "tool_calls": []}


def test_finish_reasons(client: httpx.Client) -> None:
    long = client.post(CHAT, json=_chat("Count to fifty.", max_tokens=4)).json()
    assert (long["choices"][0]["finish_reason"], long["usage"]["completion_tokens"]) == ("length", 4)
    ended = client.post(CHAT, json=_chat("What is the capital of France? Answer in one word.", max_tokens=64)).json()
    assert ended["choices"][0]["finish_reason"] == "stop"
    assert ended["usage"]["completion_tokens"] < 64
    past_the_end = client.post(
        CHAT, json=_chat("What is the capital of France? Answer in one word.", max_tokens=64, ignore_eos=True)
    ).json()
    assert past_the_end["usage"]["completion_tokens"] == 64


def test_a_stop_string_ends_the_answer(client: httpx.Client) -> None:
    body = {"model": MODEL, "prompt": "The capital of France is", "max_tokens": 20, "temperature": 0, "stop": "."}
    whole = client.post(TEXT, json=body).json()["choices"][0]
    assert (whole["text"], whole["finish_reason"]) == (" Paris", "stop")
    streamed = _stream(client, TEXT, body)
    assert (streamed.text, streamed.finish) == (" Paris.", "stop")  # OVMS includes it in streams


@pytest.mark.parametrize("include_usage", [True, False])
def test_a_stream_adds_up_to_the_whole_answer(client: httpx.Client, include_usage: bool) -> None:
    body = _chat("Tell me about the sea.", max_tokens=20)
    whole = client.post(CHAT, json=body).json()
    options = {"stream_options": {"include_usage": True}} if include_usage else {}
    streamed = _stream(client, CHAT, body | options)
    assert streamed.text == whole["choices"][0]["message"]["content"]
    first, *rest = streamed.events
    assert first["choices"] == [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]
    assert {event["object"] for event in streamed.events} == {"chat.completion.chunk"}
    if include_usage:
        assert rest[-1]["choices"] == []
        assert rest[-1]["usage"] == whole["usage"]
        assert all(event["usage"] is None for event in rest[:-1])
        rest = rest[:-1]
    else:
        assert all("usage" not in event for event in rest)
    assert [event["choices"][0]["finish_reason"] for event in rest] == [None] * (len(rest) - 1) + ["length"]


def test_the_other_generative_path(client: httpx.Client) -> None:
    body = {"model": MODEL, "prompt": "The capital of France is", "max_tokens": 5, "temperature": 0}
    whole = client.post(TEXT, json=body).json()
    assert (whole["object"], whole["choices"][0]["text"].split()[0]) == ("text_completion", "Paris.")
    streamed = _stream(client, "/v1/completions", body)
    assert streamed.text == whole["choices"][0]["text"]
    assert streamed.events[0]["choices"] == [{"index": 0, "text": "", "finish_reason": None}]


def test_characters_cut_by_tokens_arrive_whole(client: httpx.Client, tokenizer: Any) -> None:
    """A Japanese character is two or three tokens of this model."""
    body = {"model": MODEL, "prompt": JAPANESE, "max_tokens": 32, "temperature": 0, "ignore_eos": True}
    streamed = _stream(client, TEXT, body | {"stream_options": {"include_usage": True}})
    assert "\ufffd" not in streamed.text
    assert not streamed.text.isascii()
    pieces = len(streamed.events) - 2  # the first chunk and the usage
    assert pieces < streamed.events[-1]["usage"]["completion_tokens"]
    assert client.post(TEXT, json=body).json()["choices"][0]["text"] == streamed.text


def test_sampling_follows_the_seed(client: httpx.Client) -> None:
    body = {"model": MODEL, "prompt": "Once upon a time", "max_tokens": 16, "temperature": 1.0, "seed": 7}
    first, again, other = (client.post(TEXT, json=body | seed).json() for seed in ({}, {}, {"seed": 8}))
    assert first["choices"] == again["choices"]
    assert first["choices"] != other["choices"]


def test_requests_share_one_batch_and_do_not_change_each_other(client: httpx.Client) -> None:
    bodies = [_chat(f"Write a story about {topic}.", max_tokens=24) for topic in ("a fox", "rain", "bread", "the moon")]
    alone = [client.post(CHAT, json=body).json()["choices"][0]["message"]["content"] for body in bodies]
    seen = iter(range(10**6))
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda body: _stream(client, CHAT, body, lambda: next(seen)), bodies))
    assert [streamed.text for streamed in together] == alone
    # Every answer had begun before the first one ended, so the tokens came in turns.
    assert max(streamed.arrivals[0] for streamed in together) < min(streamed.arrivals[-1] for streamed in together)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("words", "max_tokens", "complaint"), [
    (10, 8190, r"Number of prompt tokens: \d+ \+ max tokens value: 8190 exceeds model max length: 8192"),
    (9000, 1, r"Number of prompt tokens: \d+ exceeds model max length: 8192"),
])  # fmt: skip
def test_what_does_not_fit_the_context_is_refused(
    client: httpx.Client, stream: bool, words: int, max_tokens: int, complaint: str
) -> None:
    """A stream gets its status when the first token exists, so this is a 400 there as well."""
    response = client.post(CHAT, json=_chat("word " * words, max_tokens=max_tokens, stream=stream))
    assert response.status_code == 400
    assert re.fullmatch(rf"Mediapipe execution failed\. MP status - INVALID_ARGUMENT: {complaint}", response.json()["error"])


def _leave_stream(address: EmbeddedAddress, client: httpx.Client) -> None:
    body = _chat("Write a very long story.", max_tokens=4000, ignore_eos=True, stream=True)
    with client.stream("POST", CHAT, json=body) as response:
        next(response.iter_raw())


def _leave_whole(address: EmbeddedAddress, client: httpx.Client) -> None:
    body = json.dumps(_chat("Write a very long story.", max_tokens=4000, ignore_eos=True)).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    url = httpx.URL(address.url)
    with socket.create_connection((url.host, url.port or 80), timeout=30) as connection:
        connection.sendall(head.encode() + body)
        _eventually(lambda: _metric(client, "inference_adr_embedded_requests") == 1)


@pytest.mark.parametrize("leave", [_leave_stream, _leave_whole])
def test_a_client_that_leaves_frees_its_place(
    client: httpx.Client, embedded: EmbeddedAddress, leave: Callable[[EmbeddedAddress, httpx.Client], None]
) -> None:
    before = _metric(client, "inference_adr_embedded_cancelled_requests_total")
    leave(embedded, client)
    _eventually(lambda: _metric(client, "inference_adr_embedded_requests") == 0)
    _eventually(lambda: _metric(client, "inference_adr_embedded_cancelled_requests_total") == before + 1)
    assert _metric(client, "ovms_current_graphs", name=MODEL) == 0
    tokens = _metric(client, "inference_adr_embedded_generated_tokens_total")
    assert client.post(CHAT, json=_chat("Hi", max_tokens=3)).json()["usage"]["completion_tokens"] == 3
    assert _metric(client, "inference_adr_embedded_generated_tokens_total") == tokens + 3


def test_metrics_count_what_happened(client: httpx.Client) -> None:
    """OVMS's counters have no '_total' on the wire; the parser of the Python client adds it."""
    assert (
        f'\novms_requests_accepted{{api="V3",interface="REST",method="Unary",name="{MODEL}"}} ' in client.get("/metrics").text
    )

    def counts() -> dict[str, float]:
        stream, unary = {"method": "Stream"}, {"method": "Unary"}
        return {
            "accepted": _metric(client, "ovms_requests_accepted_total", api="V3", interface="REST", name=MODEL, **unary),
            "rejected": _metric(client, "ovms_requests_rejected_total", **unary),
            "chunks": _metric(client, "ovms_responses_total", **stream),
            "errors": _metric(client, "ovms_graph_error_total", **unary),
            "prompt": _metric(client, "inference_adr_embedded_prompt_tokens_total"),
            "generated": _metric(client, "inference_adr_embedded_generated_tokens_total"),
        }

    before = counts()
    answer = client.post(CHAT, json=_chat("Hi", max_tokens=3)).json()
    streamed = _stream(client, CHAT, _chat("Hi", max_tokens=3))
    client.post(CHAT, json=_chat("Hi", n=2))
    after = counts()
    assert {name: after[name] - before[name] for name in after} == {
        "accepted": 1,
        "rejected": 1,
        "chunks": len(streamed.events),
        "errors": 0,
        "prompt": 2 * answer["usage"]["prompt_tokens"],
        "generated": 6,
    }
    assert _metric(client, "ovms_graph_processing_time_us_sum", method="Unary") > 0
    assert _metric(client, "inference_adr_embedded_cache_size_bytes") == pytest.approx(2**30, rel=0.01)
    assert 0 < _metric(client, "inference_adr_embedded_max_cache_usage_percent") <= 100


def test_metrics_name_the_settings_in_force(client: httpx.Client) -> None:
    families = text_string_to_metric_families(client.get("/metrics").text)
    info = next(family for family in families if family.name == "inference_adr_embedded_setting_info")
    assert {sample.labels["setting"]: sample.labels["value"] for sample in info.samples} == {
        "KV_CACHE_PRECISION": "f32",
        "cache_size": "1",
        "device": "CPU",
        "dynamic_split_fuse": "true",  # not asked for: the runtime's default
        "enable_prefix_caching": "true",
        "max_num_batched_tokens": "256",
        "max_num_seqs": "8",
    }
