"""Small servers on 127.0.0.1 that do what real ones do only when something is wrong."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

Script = Callable[[socket.socket], None]


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextlib.contextmanager
def talking(script: Script, *, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Run `script` on each connection, in a thread of its own; gives the port.

    A connection stays open after its script, until the client or the test ends.
    """
    open_connections: list[socket.socket] = []
    threads: list[threading.Thread] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def talk(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
                open_connections.append(connection)
            script(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_connections.append(connection)
            thread = threading.Thread(target=talk, args=(connection,), daemon=True)
            threads.append(thread)
            thread.start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        listener.close()
        acceptor.join(5)
        for connection in open_connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in threads:
            thread.join(5)


def saying(*pieces: bytes, then: str = "close") -> Script:
    """Wait for a request, then send `pieces`; `then` is 'close', 'reset' or 'hold'."""

    def script(connection: socket.socket) -> None:
        hear(connection)
        for piece in pieces:
            connection.sendall(piece)
        if then == "close":
            connection.shutdown(socket.SHUT_WR)
        elif then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            connection.close()

    return script


def greeting(banner: bytes) -> Script:
    """Speak first, as SSH and SMTP do, and wait."""
    return lambda connection: connection.sendall(banner)


def silent(connection: socket.socket) -> None:
    """Take the request and say nothing."""
    hear(connection)


def hear(connection: socket.socket) -> bytes:
    """Read one HTTP request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += _some(connection)
    return head + b"\r\n\r\n" + body


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    """Write a whole HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _some(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise OSError("the client left")
    return data
