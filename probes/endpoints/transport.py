"""Connections that note when bytes arrive and whether the other side speaks HTTP at all."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import httpcore
import httpx

from probes.endpoints.fault import NotHttpError

_GREETING = b"HTTP/"


class Arrival:
    """When the newest bytes were read from the socket; None before the first.

    An HTTP library may cut one read into several chunks. They arrived together, and a time taken
    later would make gaps of microseconds out of gaps of zero.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.at: float | None = None

    def note(self) -> None:
        """Take the time."""
        self.at = self._now()


class HttpTransport(httpx.AsyncHTTPTransport):
    """httpx's transport on such connections, a new one for each request."""

    def __init__(self, tls: ssl.SSLContext, arrival: Arrival) -> None:
        super().__init__(verify=tls, trust_env=False)
        # httpx has no argument for httpcore's public network_backend.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, max_keepalive_connections=0, network_backend=_Backend(arrival)
        )


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, arrival: Arrival) -> None:
        self._inner = httpcore.AnyIOBackend()
        self._arrival = arrival

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        await _resolved(host, port)
        return _Connection(await self._inner.connect_tcp(host, port, *args, **kwargs), self._arrival)


async def _resolved(host: str, port: int) -> None:
    """Wait until the system knows a name, in a thread of its own.

    A name server that does not answer keeps a thread for a minute, and cannot be cancelled. The event loop has a
    handful of threads for names; without this, a few such names would delay every other service, and the end.
    """
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(failure: BaseException | None) -> None:
        if not done.done():
            done.set_result(None) if failure is None else done.set_exception(failure)

    def resolve() -> None:
        failure: BaseException | None = None
        try:
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as exc:
            failure = exc
        with contextlib.suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(tell, failure)

    threading.Thread(target=resolve, daemon=True).start()
    try:
        await done
    except socket.gaierror as exc:
        raise httpcore.ConnectError(str(exc)) from exc


class _Connection(httpcore.AsyncNetworkStream):
    """Raises as soon as the first bytes cannot begin an HTTP answer.

    h11 would wait for a whole header block, and a server that greets first (SSH, SMTP) sends none.
    """

    def __init__(self, inner: httpcore.AsyncNetworkStream, arrival: Arrival) -> None:
        self._inner = inner
        self._arrival = arrival
        self._heard = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        self._arrival.note()
        if len(self._heard) < len(_GREETING):
            self._heard += data
            if not _GREETING.startswith(self._heard[: len(_GREETING)]):
                raise NotHttpError(self._heard)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        try:
            return _Connection(await self._inner.start_tls(*args, **kwargs), self._arrival)
        except BaseException:
            # httpcore leaves a connection open whose handshake is cancelled.
            await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
