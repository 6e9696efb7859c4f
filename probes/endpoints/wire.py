"""One service's HTTP client: bounded in size and time, sent through no proxy, led to no other host."""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import JsonValue

from probes.endpoints.address import Address
from probes.endpoints.fault import Fault, FaultKind, fault_of, redirect_fault
from probes.endpoints.transport import Arrival, HttpTransport
from probes.errors import InputError, Problem
from probes.load.untrusted import parse_json

MAX_BODY_BYTES: Final = 4 * 2**20
GRACE_S: Final = 3.0
_MAX_HOPS = 3
_FOREIGN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError, zlib.error)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer with its status. Times are seconds since the request was sent, after connecting.

    `whole` says that HTTP itself would have noticed a missing end; `cut` why reading stopped early.
    """

    path: str
    status: int
    content_type: str
    server: str
    encoding: str
    location: str
    body: bytes
    whole: bool
    connect_s: float | None
    end_s: float
    cut: Fault | None = None

    @cached_property
    def document(self) -> JsonValue:
        """The body as JSON, None when it is none."""
        return parse_json(self.body)

    @property
    def text(self) -> str:
        """The body as text; what is not UTF-8 is replaced."""
        return self.body.decode("utf-8", "replace")


class Wire:
    """Asks one server, one request at a time, each on its own connection so that none dies of an idle one.

    The key travels in the Authorization header and nowhere else. Nothing is read from the environment:
    a proxy there would see local calls with their keys, and a malformed NO_PROXY would stop the client.
    """

    def __init__(
        self,
        address: Address,
        *,
        key: str | None = None,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.address = address
        self._now = now
        self._arrival = Arrival(now)
        headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "inference-adr"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx.AsyncClient(
            transport=transport or HttpTransport(tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self._arrival),
            headers=headers,
            timeout=None,  # noqa: S113 - one deadline over everything instead, see _exchange
            follow_redirects=False,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, exc, traceback)

    async def get(self, path: str, *, within_s: float) -> Reply | Fault:
        """Get a whole body, following redirects of the same origin that lead to no login page, all within one deadline."""
        url, ends = self.address.at(path), self._now() + within_s
        for _ in range(_MAX_HOPS):
            reply = await self._exchange("GET", url, path, within_s=max(ends - self._now(), 0.0))
            if isinstance(reply, Fault) or not _redirected(reply):
                return reply if isinstance(reply, Fault) else reply.cut or reply
            fault, following = redirect_fault(url, reply.location), urljoin(url, reply.location)
            if fault.kind is FaultKind.LOGIN or _origin(following) != _origin(url):
                return fault
            url = following
        return Fault(kind=FaultKind.REDIRECT, words=f"redirects more than {_MAX_HOPS} times")

    async def post(
        self,
        path: str,
        document: Mapping[str, JsonValue],
        *,
        within_s: float,
        take: Callable[[bytes, float], bool],
        grace_s: float = GRACE_S,
        silence_s: float | None = None,
        progress: Callable[[], int] = lambda: 0,
    ) -> Reply | Fault:
        """Send JSON and hand over each read with its arrival time until `take` says that the answer is over.

        Then the server has `grace_s` to close; some never do. A body that was cut comes back with its reason.
        An answer whose `progress` stands still for `silence_s` is given up before `within_s`: comments that keep a
        connection open are no progress.
        """
        url = self.address.at(path)
        patience = _Patience(within_s=within_s, silence_s=silence_s, progress=progress, grace_s=grace_s)
        reply = await self._exchange("POST", url, path, json=dict(document), within_s=within_s, take=take, patience=patience)
        if isinstance(reply, Reply) and _redirected(reply):
            return redirect_fault(url, reply.location)
        return reply

    async def _exchange(
        self,
        method: str,
        url: str,
        path: str,
        *,
        within_s: float,
        json: dict[str, JsonValue] | None = None,
        take: Callable[[bytes, float], bool] = lambda _read, _at_s: False,
        patience: _Patience | None = None,
    ) -> Reply | Fault:
        """Ask once. One deadline covers name, connection, TLS and body, however slowly bytes drip."""
        stages = _Stages(self._now)
        patience = patience or _Patience(within_s=within_s)
        clock = asyncio.get_running_loop().time
        patience.begin(clock())
        self._arrival.at = None
        head: Reply | None = None
        cut: Fault | None = None
        body, over = bytearray(), False
        try:
            async with asyncio.timeout_at(patience.ends) as deadline:
                request = self._client.build_request(method, url, json=json, extensions={"trace": stages.trace})
                async with aclosing(await self._client.send(request, stream=True)) as response:
                    head = _head(path, response)
                    inflate = _inflater(head.encoding)
                    async for raw in _reads(response):
                        at = self._now() if self._arrival.at is None else self._arrival.at
                        read = inflate(raw)
                        body += read
                        if len(body) > MAX_BODY_BYTES:
                            cut = Fault(kind=FaultKind.TOO_LARGE, words=f"the answer is over {MAX_BODY_BYTES} bytes")
                            break
                        if take(read, at - stages.sent) and not over:
                            over = True
                            deadline.reschedule(clock() + patience.grace_s)
                        elif not over and patience.renew(clock()):
                            deadline.reschedule(patience.ends)
        except TimeoutError:
            cut = None if over else stages.deadline(patience, bytes_read=len(body) if head else None)
        except _FOREIGN as exc:
            cut = None if over else fault_of(exc)
        if head is None:
            return cut or Fault(kind=FaultKind.CLOSED, words="the connection was closed without an answer")
        return replace(head, body=bytes(body), connect_s=stages.connect_s, end_s=self._now() - stages.sent, cut=cut)


def tls_context(place: str, *, ca_file: Path | None, insecure: bool) -> ssl.SSLContext:
    """Build what a service's certificate is checked against; costs tens of milliseconds.

    Raises:
        InputError: the file of the authority cannot be read or holds no certificate.
    """
    if insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if ca_file is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as exc:
        found = f"cannot be used ({exc.strerror or exc})"
        raise InputError([Problem(place=place, found=found, expected="a file of PEM certificates")]) from exc


class _Patience:
    """How long one exchange may take: `within_s` in all, and `silence_s` since it last made progress."""

    def __init__(
        self,
        *,
        within_s: float,
        silence_s: float | None = None,
        progress: Callable[[], int] = lambda: 0,
        grace_s: float = GRACE_S,
    ) -> None:
        self.within_s = within_s
        self.grace_s = grace_s
        self.silence_s = within_s if silence_s is None else min(silence_s, within_s)
        self._progress = progress
        self._made = 0
        self._last = self.ends = 0.0

    def begin(self, now: float) -> None:
        self._last = now + self.within_s
        self.ends = min(self._last, now + self.silence_s)

    def renew(self, now: float) -> bool:
        """Wait on if progress was made; tell whether it was."""
        made = self._progress()
        if made <= self._made:
            return False
        self._made = made
        self.ends = min(self._last, now + self.silence_s)
        return True

    @property
    def silent(self) -> bool:
        """Tell whether silence ended it before its time was over."""
        return self.ends < self._last


class _Stages:
    """When connecting began and ended and when sending began, told by httpcore's trace."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.sent = now()
        self._connecting: float | None = None
        self._connected: float | None = None

    async def trace(self, name: str, _info: Mapping[str, Any]) -> None:
        if name == "connection.connect_tcp.started":
            self._connecting = self._now()
        elif name in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connected = self._now()
        elif name == "http11.send_request_headers.started":
            self.sent = self._now()

    @property
    def connect_s(self) -> float | None:
        return None if self._connecting is None or self._connected is None else self._connected - self._connecting

    def deadline(self, patience: _Patience, *, bytes_read: int | None) -> Fault:
        waited = f"{patience.silence_s if patience.silent else patience.within_s:.3g} s"
        if bytes_read is not None:
            stalled = f"nothing new for {waited}" if patience.silent else f"not finished within {waited}"
            return Fault(kind=FaultKind.DEADLINE, words=f"{stalled}; {bytes_read} bytes came")
        if self._connecting is not None and self._connected is None:
            return Fault(kind=FaultKind.UNREACHABLE, words=f"no connection within {waited}")
        return Fault(kind=FaultKind.SILENT, words=f"accepted the connection and sent nothing for {waited}")


def _head(path: str, response: httpx.Response) -> Reply:
    headers = response.headers
    return Reply(
        path=path,
        status=response.status_code,
        content_type=headers.get("content-type", "").partition(";")[0].strip().lower(),
        server=headers.get("server", ""),
        encoding=headers.get("content-encoding", "").strip().lower(),
        location=headers.get("location", ""),
        body=b"",
        whole="content-length" in headers or "chunked" in headers.get("transfer-encoding", "").lower(),
        connect_s=None,
        end_s=0.0,
    )


def _reads(response: httpx.Response) -> AsyncIterator[bytes]:
    # A test double's answer may arrive read already; a real one never does.
    return response.aiter_bytes() if response.is_stream_consumed else response.aiter_raw()


def _inflater(encoding: str) -> Callable[[bytes], bytes]:
    """Undo a compression that was not asked for, never far beyond the bound of a body."""
    if encoding in {"", "identity"}:
        return bytes
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise httpx.DecodingError(f"sent {encoding!r} although no compression was asked for")
    inflater = zlib.decompressobj(wbits=47)
    return lambda raw: inflater.decompress(raw, MAX_BODY_BYTES + 1)


def _redirected(reply: Reply) -> bool:
    return reply.status in {301, 302, 303, 307, 308} and bool(reply.location)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
