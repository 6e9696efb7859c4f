"""A chat that answers as a test says, and answers of servers as bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from probes.quality.chat import Reply, Trouble
from probes.quality.corpus import grouped, parse_tasks
from probes.quality.task import Suite
from tests.servers import http


class Scripted:
    """Answers by the last message of a request, and keeps the requests."""

    def __init__(self, answer: Callable[[str, int], Reply]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.bodies: list[Mapping[str, JsonValue]] = []

    def complete(self, body: Mapping[str, JsonValue]) -> Reply:
        with self._lock:
            self.bodies.append(body)
            number = len(self.bodies) - 1
        messages: Any = body["messages"]
        return self._answer(messages[-1]["content"], number)


def echo(prompt: str, _number: int) -> Reply:
    return Reply(text=prompt, finish_reason="stop", prompt_tokens=10)


def failing(words: str = "HTTP 500: broken", status: int | None = 500, trouble: Trouble = Trouble.SERVER) -> Reply:
    return Reply(status=status, trouble=trouble, error=words)


def suite(name: str, *prompts: str, check: Mapping[str, Any] | None = None, **fields: Any) -> Suite:
    """Make a suite of tasks that are right when they are answered with 'yes'."""
    how = check or {"kind": "text", "answers": ["yes"]}
    lines = [
        json.dumps({"suite": name, "id": f"t{n}", "prompt": prompt, "max_tokens": 8, "check": how, **fields})
        for n, prompt in enumerate(prompts)
    ]
    return grouped(parse_tasks("\n".join(lines), name))[0]


def completion(text: str | None = "yes", finish: str = "stop", **message: Any) -> bytes:
    """Write a whole answer of a server."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    body = {"object": "chat.completion", "choices": [choice], "usage": usage}
    return http("200 OK", json.dumps(body).encode(), "Content-Type: application/json")


def models(*ids: str, **more: Any) -> bytes:
    """Write a list of models."""
    body = {"object": "list", "data": [{"id": id, "object": "model", **more} for id in ids]}
    return http("200 OK", json.dumps(body).encode(), "Content-Type: application/json")
