"""A non-blocking connection, plain or TLS, that never waits: its owner learns what to wait for."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from probes.load.arriving import Arriving
from probes.load.request import Request
from probes.load.spool import End

if TYPE_CHECKING:
    import ssl

_READ_BYTES: Final = 2**16


class Phase(IntEnum):
    """What a connection is doing."""

    CONNECTING = 0
    SHAKING_HANDS = 1
    IDLE = 2
    BUSY = 3


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Where to connect: one resolved address, and the name that a certificate has to carry when TLS is spoken."""

    family: int
    address: tuple[str | int, ...]
    name: str
    tls: ssl.SSLContext | None = None


class Lost(OSError):  # noqa: N818 - a state of the connection, worded for people
    """The other side broke the connection off, or TLS failed on it."""


class Connection:
    """One connection to a server and the answer that is arriving on it."""

    __slots__ = ("answer", "began_ns", "out", "phase", "request", "sock", "tls", "used")

    def __init__(self, peer: Peer, now_ns: int) -> None:
        self.sock = socket.socket(peer.family, socket.SOCK_STREAM)
        self.sock.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = _Tls(peer.tls, peer.name) if peer.tls is not None else None
        self.phase = Phase.CONNECTING
        self.began_ns = now_ns
        self.used = False
        self.out = bytearray()
        self.request: Request | None = None
        self.answer = Arriving()
        error = self.sock.connect_ex(peer.address)
        if error and error not in _IN_PROGRESS:
            self.sock.close()
            raise OSError(error, os.strerror(error))

    def connected(self) -> bool:
        """Take a step towards an open connection; tell whether it is open now.

        Raises:
            OSError: there will be none.
        """
        if self.phase is Phase.CONNECTING:
            error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            self.phase = Phase.SHAKING_HANDS if self.tls else Phase.IDLE
        if self.tls is not None and self.phase is Phase.SHAKING_HANDS:
            if self.tls.shake(self):
                self.phase = Phase.IDLE
            self.flush()
        return self.phase is Phase.IDLE

    def send(self, data: bytes) -> None:
        """Send now what the socket takes, and keep the rest for `flush`.

        Raises:
            OSError: the connection is gone.
        """
        self.out += self.tls.seal(data) if self.tls is not None else data
        self.flush()

    def flush(self) -> None:
        """Send what was kept."""
        while self.out:
            try:
                sent = self.sock.send(self.out)
            except (BlockingIOError, InterruptedError):
                return
            del self.out[:sent]

    def receive(self, buffer: memoryview) -> memoryview | bytes | None:
        """Give what arrived, empty when nothing is complete yet and None at the end of the stream.

        Raises:
            OSError: the connection is gone.
        """
        try:
            size = self.sock.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return b""
        if not size:
            return None
        if self.tls is None:
            return buffer[:size]
        data = self.tls.open(buffer[:size])
        self.out += self.tls.outgoing.read()
        self.flush()
        return data

    def wanted(self) -> int:
        """Say which events the owner has to wait for."""
        if self.phase is Phase.CONNECTING or self.out:
            return selectors.EVENT_READ | selectors.EVENT_WRITE
        return selectors.EVENT_READ

    def close(self) -> None:
        """Close without waiting for anything."""
        with contextlib.suppress(OSError):
            self.sock.close()


class _Tls:
    """TLS over memory, so that the time of a read is taken before it is deciphered."""

    def __init__(self, context: ssl.SSLContext, name: str) -> None:
        import ssl

        self._ssl = ssl
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)

    def shake(self, connection: Connection) -> bool:
        buffer = memoryview(bytearray(_READ_BYTES))
        with contextlib.suppress(BlockingIOError, InterruptedError):
            size = connection.sock.recv_into(buffer)
            if not size:
                raise Lost("the connection was closed during the TLS handshake")
            self.incoming.write(buffer[:size])
        try:
            self._object.do_handshake()
            done = True
        except self._ssl.SSLWantReadError:
            done = False
        finally:
            connection.out += self.outgoing.read()
        return done

    def seal(self, data: bytes) -> bytes:
        view = memoryview(data)
        while view:
            view = view[self._object.write(view) :]
        return self.outgoing.read()

    def open(self, data: memoryview) -> bytes | None:
        self.incoming.write(data)
        parts: list[bytes] = []
        while True:
            try:
                part = self._object.read(_READ_BYTES)
            except self._ssl.SSLWantReadError:
                return b"".join(parts)
            except self._ssl.SSLZeroReturnError:
                return b"".join(parts) or None
            if not part:
                return b"".join(parts) or None
            parts.append(part)


def end_of(exc: OSError) -> End:
    """Class an error that kept a connection from opening."""
    return End.TLS if type(exc).__module__ == "ssl" or isinstance(exc, Lost) else End.UNREACHABLE


def words_of(exc: OSError) -> str:
    """Word an error without the address that some of them repeat."""
    if exc.errno and type(exc).__module__ != "ssl":
        return os.strerror(exc.errno)
    return str(exc) or type(exc).__name__


def _in_progress() -> frozenset[int]:
    import errno

    names = ("EINPROGRESS", "EWOULDBLOCK", "EALREADY", "WSAEINPROGRESS", "WSAEWOULDBLOCK")
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


_IN_PROGRESS: Final = _in_progress()
