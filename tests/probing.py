"""Examining doubles of servers, and looking at what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx

from probes import strictyaml
from probes.context import Context
from probes.endpoints.probe import Means, Pacing, Target, probe_endpoint
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, FleetScope, Missing, Run
from probes.fleet import Fleet, ProbeLimits
from tests.captures import Route, capture, reply, server

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


def metrics_reply(body: str | bytes, status: int = 200, content_type: str = "text/plain", *, whole: bool = True) -> Reply:
    """What a server answers to a request for its metrics."""
    return Reply(
        path="/metrics",
        status=status,
        content_type=content_type,
        server="",
        encoding="",
        location="",
        body=body if isinstance(body, bytes) else body.encode(),
        whole=whole,
        connect_s=None,
        end_s=0.0,
    )
