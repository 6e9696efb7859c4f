"""The whole inventory at once: every service is told, in order, whatever the others do."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from dataclasses import replace
from typing import Any

import httpx
import pytest

from probes.context import Context
from probes.endpoints.probe import INTERRUPTED, Means, Pacing, survey
from probes.errors import InputError, UsageError
from probes.evidence import EndpointState, RunKind
from tests.probing import (
    OVMS_STREAM,
    Handler,
    fleet,
    ovms,
    service,
    stream,
)
from tests.servers import http, saying, talking


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
    means = Means(transport=transport, pacing=Pacing(question_s=1))
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
    assert second.startswith("environment variable B_KEY: holds a space")
    assert "s3cret" not in str(raised.value)


async def interrupting(request: httpx.Request) -> httpx.Response:
    os.kill(os.getpid(), signal.SIGINT)
    return await hang(request)


def test_ctrl_c_keeps_what_was_asked_until_then_and_marks_it(context: Context) -> None:
    inventory = fleet("".join(service(name, url=f"http://{name}") for name in ("last", "good", "hangs")) + service("nowhere"))
    heard: list[str] = []

    async def until_the_good_one_is_done(_request: httpx.Request) -> httpx.Response:
        while not heard:
            await asyncio.sleep(0.01)
        return await interrupting(_request)

    good = ovms(chat=lambda: stream(*OVMS_STREAM))
    transport = by_host(last=until_the_good_one_is_done, good=good, hangs=hang)
    runs, seen = survey(replace(context, say=heard.append), inventory, {}, means=Means(transport=transport))
    assert [run.subject for run in runs] == ["good"]
    assert list(seen.survey) == ["good", "nowhere"]
    assert (seen.validity.valid, seen.validity.reasons) == (False, (INTERRUPTED,))


def test_ctrl_c_before_any_answer_keeps_nothing(context: Context) -> None:
    with pytest.raises(KeyboardInterrupt):
        survey(context, fleet(service("a", url="http://a")), {}, means=Means(transport=by_host(a=interrupting)))


def test_two_hundred_services_half_of_them_hanging_keep_their_order(context: Context) -> None:
    names = [f"s{number}" for number in range(200)]
    inventory = fleet("".join(service(name, url=f"http://{name}") for name in names))
    good = ovms(chat=lambda: stream(*OVMS_STREAM))
    routes: dict[str, Handler] = {name: hang if number % 2 else good for number, name in enumerate(names)}
    runs, seen = survey(
        context, inventory, {}, means=Means(transport=by_host(**routes), pacing=Pacing(question_s=3, at_once=200))
    )
    assert list(seen.survey) == names
    assert [run.subject for run in runs] == names[::2]
    assert {seen.survey[name].state for name in names[1::2]} == {EndpointState.NOT_REACHABLE}


def test_names_that_nobody_resolves_delay_no_other_service(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dozen name servers that keep silent hold two dozen threads; the event loop alone has a handful."""
    given_up = threading.Event()
    resolve = socket.getaddrinfo

    def patient(host: Any, *arguments: Any, **options: Any) -> Any:
        if str(host).startswith("dark"):
            given_up.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", patient)
    dark = "".join(service(f"dark{n}", url=f"http://dark{n}.example") for n in range(24))
    with talking(saying(http("404 Not Found", b"{}"))) as port:
        inventory = fleet(dark + service("good", url=f"http://localhost:{port}"))
        try:
            _, seen = survey(context, inventory, {}, means=Means(pacing=Pacing(question_s=1)))
        finally:
            given_up.set()
    assert {seen.survey[name].detail for name in seen.survey if name != "good"} == {"no connection within 1 s"}
    assert seen.survey["good"].state is EndpointState.NOT_AN_INFERENCE_SERVER
