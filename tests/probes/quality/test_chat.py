"""Answers of servers over HTTP: what is read of them, and what is an error."""

from __future__ import annotations

import json
import socket

import pytest
from pydantic import JsonValue

from probes.endpoints.address import parse_address
from probes.errors import ProbeError
from probes.quality.chat import HttpChat, Reply, Trouble
from probes.quality.listing import Listed, list_models
from tests.loading import ANSWER
from tests.probes.quality.scripted import completion, models
from tests.servers import Script, greeting, hear, http, saying, silent, talking

BODY: dict[str, JsonValue] = {
    "messages": [{"role": "user", "content": "Hi"}],
    "max_tokens": 4,
    "temperature": 0,
    "stream": False,
}


def ask(script: Script, *, key: str | None = None, timeout_s: float = 20.0) -> Reply:
    with talking(script) as port:
        address = parse_address(f"http://127.0.0.1:{port}/v1", "test")
        return HttpChat(address, model="m", key=key, timeout_s=timeout_s).complete(BODY)


def test_answer_is_read_with_finish_reason_and_counts() -> None:
    reply = ask(saying(completion("Hi.", "length")))
    assert (reply.text, reply.finish_reason, reply.prompt_tokens, reply.completion_tokens) == ("Hi.", "length", 9, 2)
    assert (reply.trouble, reply.error, reply.status) == (None, "", 200)


def test_model_and_key_are_sent_and_nothing_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    heard: list[bytes] = []

    def script(connection: socket.socket) -> None:
        heard.append(hear(connection))
        connection.sendall(completion())

    assert ask(script, key="secret-key-1").text == "yes"
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1")
    assert b"authorization: bearer secret-key-1" in head.lower()
    assert json.loads(body) == {"model": "m", **BODY}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(field: str) -> None:
    reply = ask(saying(completion("4", **{field: "2+2"})))
    assert (reply.text, reply.reasoning) == ("4", "2+2")


@pytest.mark.parametrize(
    ("sent", "read"),
    [('{"a": 1}', '{"a": 1}'), ({"a": 1}, '{"a": 1}'), ("", ""), ({}, ""), ('{"a": ', '{"a": ')],
)
def test_arguments_come_as_text_or_as_an_object(sent: object, read: str) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": sent}}]
    reply = ask(saying(completion(None, "tool_calls", tool_calls=calls)))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("f", read)]


def test_parallel_calls_without_index_stay_apart() -> None:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": f'{{"a": {n}}}'}} for n in range(2)]
    reply = ask(saying(completion(None, "tool_calls", tool_calls=calls)))
    assert [call.arguments for call in reply.tool_calls] == ['{"a": 0}', '{"a": 1}']


def test_tokens_are_read_where_the_server_names_them() -> None:
    choice = {
        "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."},
        "logprobs": {"content": [{"token": "Hi", "logprob": 0.0}, {"token": "."}]},
    }  # fmt: skip
    reply = ask(saying(http("200 OK", json.dumps({"choices": [choice]}).encode(), "Content-Type: application/json")))
    assert reply.tokens == ("Hi", ".")


def test_stream_that_nobody_asked_for_is_read_all_the_same() -> None:
    reply = ask(saying(http("200 OK", ANSWER, "Content-Type: text/event-stream")))
    assert (reply.text, reply.finish_reason, reply.trouble) == ("seagull", "stop", None)


@pytest.mark.parametrize(
    ("script", "trouble", "words"),
    [
        (
            saying(http("400 Bad Request", b'{"error": {"message": "no such field"}}')),
            Trouble.REFUSED,
            "HTTP 400: no such field",
        ),
        (saying(http("401 Unauthorized", b'{"error": "key"}')), Trouble.REFUSED, "HTTP 401: key"),
        (saying(http("503 Busy", b"later")), Trouble.SERVER, "HTTP 503: later"),
        (saying(http("200 OK", b'{"error": {"message": "out of memory"}}')), Trouble.SERVER, "out of memory"),
        (saying(http("200 OK", b"{}")), Trouble.SERVER, "the answer is not an OpenAI completion"),
        (saying(http("200 OK", b"<html>")), Trouble.BROKEN, "the stream ended without a single event"),
        (saying(completion(None, refusal="I cannot.")), Trouble.WITHHELD, "I cannot."),
        (saying(completion("", "content_filter")), Trouble.WITHHELD, "content_filter"),
        (saying(completion()[:-20]), Trouble.BROKEN, "in the middle of the answer"),
        (saying(), Trouble.NOT_REACHABLE, "closed without an answer"),
        (greeting(b"SSH-2.0-OpenSSH\r\n"), Trouble.NOT_REACHABLE, "another protocol"),
        (
            saying(http("307 Elsewhere", b"", "Location: http://elsewhere.example/v1")),
            Trouble.NOT_REACHABLE,
            "elsewhere.example",
        ),
    ],
)
def test_what_is_no_answer_is_an_error_in_its_own_words(script: Script, trouble: Trouble, words: str) -> None:
    reply = ask(script)
    assert (reply.trouble, reply.text) == (trouble, "")
    assert words in reply.error


def test_silence_is_a_timeout() -> None:
    assert ask(silent, timeout_s=0.3).trouble is Trouble.TIMED_OUT


def test_nothing_at_the_address_is_not_reachable() -> None:
    with talking(silent) as port:
        pass
    reply = HttpChat(parse_address(f"http://127.0.0.1:{port}/v1", "test"), model="m").complete(BODY)
    assert (reply.trouble, reply.error) == (Trouble.NOT_REACHABLE, "ConnectionRefusedError: Connection refused")


@pytest.mark.parametrize(
    ("more", "context"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"meta": {"n_ctx": 2048, "n_ctx_train": 8192}}, 2048),
        ({}, None),
        ({"meta": None}, None),
    ],
)
def test_list_says_what_a_prompt_may_have(more: dict[str, object], context: int | None) -> None:
    with talking(saying(models("a", "b", **more))) as port:
        address = parse_address(f"http://127.0.0.1:{port}", "test")
        listing = list_models(address, key=None, tls=None, within_s=20)
    assert listing.models == (Listed(id="a", context_tokens=context), Listed(id="b", context_tokens=context))
    assert listing.api == "/v1"


def test_server_without_a_list_says_so_and_one_that_is_down_is_an_error() -> None:
    with talking(saying(http("404 Not Found", b'{"error": "no such path"}'))) as port:
        address = parse_address(f"http://127.0.0.1:{port}", "test")
        listing = list_models(address, key=None, tls=None, within_s=20)
    assert (listing.models, listing.why_none) == ((), "HTTP 404: no such path")
    with pytest.raises(ProbeError, match="Connection refused"):
        list_models(address, key=None, tls=None, within_s=20)
