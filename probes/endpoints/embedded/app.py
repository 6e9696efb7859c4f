"""The paths of OVMS over the engine: what is asked, what is answered, with which status."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from probes.endpoints.embedded.engine import Engine, Generation, Rejection
from probes.endpoints.embedded.frames import Progress
from probes.endpoints.embedded.metrics import Metrics
from probes.endpoints.embedded.reply import Reply, Usage, dumps, event
from probes.endpoints.embedded.request import Completion, Refusal, invalid, read_completion
from probes.errors import ProbeError

NAME: Final = "openvino-genai (embedded)"
OWNER: Final = "inference-adr embedded"
_MAX_BODY_BYTES: Final = 8 * 2**20

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Service:
    """What the paths share. `clock` gives Unix seconds, for the field `created` only."""

    engine: Engine
    metrics: Metrics
    model: str
    genai_version: str
    api_key: str | None = None
    clock: Callable[[], float] = time.time


def build_app(service: Service) -> Starlette:
    """Lay out the paths. A trailing slash is another path, as it is for OVMS."""
    paths = _Paths(service)
    routes = [
        Route("/v1/config", paths.config, methods=["GET"]),
        Route("/v2", paths.server, methods=["GET"]),
        Route("/v2/health/live", paths.live, methods=["GET"]),
        Route("/v2/health/ready", paths.ready, methods=["GET"]),
        Route("/v2/models/{name}/ready", paths.model_ready, methods=["GET"]),
        Route("/metrics", paths.metrics, methods=["GET"]),
        *(Route(f"{prefix}/models", paths.models, methods=["GET"]) for prefix in ("/v3", "/v1", "/v3/v1")),
        *(Route(f"{prefix}/models/{{id:path}}", paths.model, methods=["GET"]) for prefix in ("/v3", "/v1", "/v3/v1")),
        # OVMS sends every POST below /v3 and /v1 to the graph that the body names, whatever the rest of the path.
        Route("/v3/{rest:path}", paths.generate, methods=["POST"]),
        Route("/v1/{rest:path}", paths.generate, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _no_path, 405: _no_method})
    app.router.redirect_slashes = False
    return app


async def _no_path(request: Request, _exc: Exception) -> Response:
    known = request.method in {"GET", "POST"}
    return _error(400, "Invalid request URL") if known else _error(406, "Unsupported method")


async def _no_method(request: Request, exc: Exception) -> Response:
    # A GET to a generative path is an unknown URL to OVMS, not a wrong method.
    only_post = isinstance(exc, HTTPException) and (exc.headers or {}).get("Allow") == "POST"
    return _error(400, "Invalid request URL") if only_post and request.method == "GET" else _error(406, "Unsupported method")


def _error(status: int, words: str) -> Response:
    return _json({"error": words}, status)


def _json(document: dict[str, Any], status: int = 200) -> Response:
    return Response(dumps(document), status, media_type="application/json")


class _Paths:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def config(self, _request: Request) -> Response:
        status = {"error_code": "OK", "error_message": "OK"}
        state = "END" if self._service.engine.died.is_set() else "AVAILABLE"
        return _json({self._service.model: {"model_version_status": [{"version": "1", "state": state, "status": status}]}})

    async def server(self, _request: Request) -> Response:
        return _json({"name": NAME, "version": self._service.genai_version})

    async def live(self, _request: Request) -> Response:
        return Response()

    async def ready(self, _request: Request) -> Response:
        return _error(503, "Server is not ready") if self._service.engine.died.is_set() else Response()

    async def model_ready(self, request: Request) -> Response:
        if request.path_params["name"] != self._service.model:
            return _error(404, "Model with requested name is not found")
        return await self.ready(request)

    async def models(self, _request: Request) -> Response:
        return _json({"data": [self._listed()], "object": "list"})

    async def model(self, request: Request) -> Response:
        id = request.path_params["id"]
        if not id:
            return _error(400, "Invalid request URL")
        return _json(self._listed()) if id == self._service.model else _error(500, "Model not found")

    async def metrics(self, _request: Request) -> Response:
        content = self._service.metrics.scrape(self._service.engine.stats)
        return Response(content, headers={"content-type": CONTENT_TYPE_LATEST})

    async def generate(self, request: Request) -> Response:
        service = self._service
        if not self._authorized(request):
            # Not 401: OVMS's table of statuses has no entry for this error (src/http_server.cpp, 2026-08-21).
            return _error(500, "Unauthorized request due to invalid or missing api-key")
        completion = None
        try:
            body = await _body(request)
            completion = read_completion(request.url.path, request.headers.get("content-type", ""), body, service.model)
            return await self._run(request, completion)
        except Refusal as exc:
            service.metrics.rejected(stream=completion is not None and completion.stream)
            return _error(exc.status, exc.words)
        except ProbeError as exc:
            return _error(500, str(exc))
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it

    async def _run(self, request: Request, completion: Completion) -> Response:
        service = self._service
        reply = Reply(request=completion, created=int(service.clock()))
        try:
            generation = await _unless_gone(request.receive, service.engine.submit(completion.prompt, completion.decoding))
        except Rejection as exc:
            raise invalid(str(exc)) from exc
        answer = _Answer(service, reply, generation)
        return _Stream(answer) if completion.stream else await answer.whole(request.receive)

    def _listed(self) -> dict[str, Any]:
        # OVMS puts the second of the request here, not that of loading.
        return {"id": self._service.model, "object": "model", "created": int(self._service.clock()), "owned_by": OWNER}

    def _authorized(self, request: Request) -> bool:
        key = self._service.api_key
        return key is None or hmac.compare_digest(request.headers.get("authorization", "").encode(), f"Bearer {key}".encode())


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_BODY_BYTES:
            raise Refusal(413, f"Request body is over {_MAX_BODY_BYTES} bytes")
    return body


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Wait for `work` as long as the client is there.

    Raises:
        ClientDisconnect: it left; `work` is cancelled.
    """
    gone = asyncio.ensure_future(_gone(receive))
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({gone, task}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        gone.cancel()
        task.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Answer:
    """One generation on its way to its client; it leaves the batch when the client leaves."""

    def __init__(self, service: Service, reply: Reply, generation: Generation) -> None:
        self._metrics = service.metrics
        self._reply = reply
        self._generation = generation
        self._stream = reply.request.stream
        self._tokens = 0
        self._began = time.perf_counter()
        self._metrics.began(stream=self._stream, prompt_tokens=generation.prompt_tokens)

    async def whole(self, receive: Receive) -> Response:
        """Collect the answer and send it in one piece."""
        return await self._accounted(_unless_gone(receive, self._collected()))

    async def stream(self, receive: Receive, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the answer as it comes."""
        await self._accounted(_unless_gone(receive, self._sent(send)))

    async def next(self) -> Progress:
        progress = await self._generation.next()
        self._tokens += progress.tokens
        self._metrics.generated(progress.tokens)
        return progress

    async def _collected(self) -> Response:
        text, finish = "", None
        while finish is None:
            progress = await self.next()
            text, finish = text + progress.text, progress.finish
        self._metrics.responded(stream=False)
        return Response(self._reply.whole(text, finish, self._usage()), media_type="application/json")

    async def _sent(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        progress = await self.next()
        await self._send(send, self._reply.first_chunk())
        while progress.finish is None:
            if progress.text:
                await self._send(send, self._reply.chunk(progress.text, None))
            progress = await self.next()
        await self._send(send, self._reply.chunk(progress.text, progress.finish))
        await send(self._reply.end(self._usage()))

    async def _send(self, send: Callable[[bytes], Awaitable[None]], chunk: bytes) -> None:
        await send(chunk)
        self._metrics.responded(stream=True)

    def _usage(self) -> Usage:
        return Usage(prompt_tokens=self._generation.prompt_tokens, completion_tokens=self._tokens)

    async def _accounted(self, work: Coroutine[Any, Any, T]) -> T:
        failed = cancelled = False
        try:
            return await work
        except ProbeError:
            failed = True
            raise
        except (ClientDisconnect, asyncio.CancelledError):
            cancelled = True
            raise
        finally:
            self._generation.cancel()
            seconds = time.perf_counter() - self._began
            self._metrics.ended(stream=self._stream, seconds=seconds, failed=failed, cancelled=cancelled)


class _Stream(Response):
    """A stream whose status waits for the first token, as OVMS's does: an error before that still gets its own status."""

    def __init__(self, answer: _Answer) -> None:
        super().__init__(media_type="text/event-stream", headers={"cache-control": "no-cache"})
        del self.headers["content-length"]
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def piece(data: bytes) -> None:
            nonlocal begun
            if not begun:
                begun = True
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": data, "more_body": True})

        try:
            await self._answer.stream(receive, piece)
        except ClientDisconnect:
            return
        except ProbeError as exc:
            if not begun:
                await _error(500, str(exc))(scope, receive, send)
                return
            await piece(event({"error": str(exc)}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})
