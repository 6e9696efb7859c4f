"""`python -m probes endpoint` asks a model that is not loaded with leave only, and says how to give it."""

from __future__ import annotations

import json
import socket

import pytest

from probes.commands import run
from tests.captures import documented
from tests.servers import hear, http, talking

NAMES = ("get_models", "get_version", "get_ps_empty", "get_tags")
EVENTS = (
    {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    "[DONE]",
)


class Ollama:
    """A server that lists models and has loaded none; it remembers which it was made to load."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self._answers = {one.path: one for one in (documented("ollama", name) for name in NAMES)}

    def __call__(self, connection: socket.socket) -> None:
        head, _, body = hear(connection).partition(b"\r\n\r\n")
        method, path = head.split()[:2]
        known = self._answers.get(path.decode())
        if method == b"POST":
            self.loaded.append(json.loads(body)["model"])
            data = "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in EVENTS)
            connection.sendall(http("200 OK", data.encode(), "Content-Type: text/event-stream"))
        elif known:
            connection.sendall(http("200 OK", known.body, "Content-Type: application/json"))
        else:
            connection.sendall(http("404 Not Found", b"404 page not found", "Content-Type: text/plain"))
        connection.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize(
    ("words", "loads", "state"),
    [
        ((), None, "listed, not generating"),
        (("--model", "hf.co/x/y:Q4_K_M"), None, "listed, not generating"),
        (("--may-load", "--model", "hf.co/x/y:Q4_K_M"), "hf.co/x/y:Q4_K_M", "generating"),
        (("--may-load", "--model", "nomic-embed-text:latest"), None, "listed, not generating"),
        (("--may-load", "--max-tokens", "0"), None, "listed, not generating"),
    ],
)
def test_a_model_is_loaded_only_where_that_is_allowed(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], loads: str | None, state: str
) -> None:
    server = Ollama()
    with talking(server) as port:
        assert run(["endpoint", "--url", f"http://127.0.0.1:{port}", *words]) == 0
    said = capsys.readouterr().out
    assert set(server.loaded) == ({loads} if loads else set())
    assert f": {state}" in said.splitlines()[0]
    assert ("--may-load allows it" in said) == ("--may-load" not in words)
