"""Answers from tests/data, captured from real servers or in documented form, and doubles that give them again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import httpx

FOLDER = Path(__file__).parent / "data" / "captures"
DOCUMENTED = FOLDER.with_name("documented")


@dataclass(frozen=True, kw_only=True)
class Capture:
    """One recorded exchange; `reads` are the chunks in which a chunked body was sent."""

    method: str
    path: str
    status: int
    headers: dict[str, str]
    reads: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        return b"".join(self.reads)


class Reads(httpx.AsyncByteStream):
    """A body that comes in given pieces."""

    def __init__(self, reads: Iterable[bytes]) -> None:
        self._reads = tuple(reads)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for read in self._reads:
            yield read


def documented(engine: str, name: str) -> Capture:
    """Read an answer in its documented form; its file names the source."""
    return capture(engine, name, DOCUMENTED)


def capture(engine: str, name: str, folder: Path = FOLDER) -> Capture:
    """Read one capture."""
    raw = (folder / engine / f"{name}.http").read_bytes()
    asked, _, answered = raw.partition(b"\n-----RESPONSE-----\n")
    method, path = asked.split(b"\n")[1].decode().split()[:2]
    head, _, body = answered.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    chunked = headers.get("transfer-encoding", "").lower() == "chunked"
    return Capture(
        method=method,
        path=path,
        status=int(status.split()[1]),
        headers=headers,
        reads=tuple(_chunks(body)) if chunked else (body,),
    )


def reply(
    status: int, body: bytes | Iterable[bytes] = b"", content_type: str = "application/json", **headers: str
) -> httpx.Response:
    """Make an answer whose body is read as it would be from a socket."""
    reads = [body] if isinstance(body, bytes) else list(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    framed = {"content-type": content_type, "content-length": str(sum(map(len, reads)))}
    return httpx.Response(status, headers=framed | named, stream=Reads(reads))


def again(recorded: Capture) -> httpx.Response:
    """Give a recorded answer again."""
    return httpx.Response(recorded.status, headers=recorded.headers, stream=Reads(recorded.reads))


Route = Callable[[httpx.Request], httpx.Response]


def server(*recorded: Capture, nowhere: Capture | None = None, chat: Iterable[Capture] = ()) -> Route:
    """Answer like a server that was recorded: GETs by path, chats in order (the last one for ever), the rest `nowhere`."""
    gets = {one.path: one for one in recorded if one.method == "GET"}
    answers = list(chat)

    def route(request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith("/chat/completions") and answers:
            return again(answers.pop(0) if len(answers) > 1 else answers[0])
        known = gets.get(request.url.path, nowhere) if request.method == "GET" else nowhere
        return again(known) if known else reply(404, b'{"detail":"Not Found"}')

    return route


def _chunks(body: bytes) -> Iterable[bytes]:
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return
        yield rest[:length]
        body = rest[length + 2 :]
