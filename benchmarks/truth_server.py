"""A chat endpoint that answers by the clock and remembers when it sent what: the truth an instrument is held against.

Every answer keeps an absolute schedule (chunk k is due at arrival + TTFT + k * ITL), so being late once delays no
later chunk. `GET /truth` gives the log of all requests since the last time it was asked for and clears it. Standard
library only.

    python -m benchmarks.truth_server --port 0 --ttft-ms 50 --itl-ms 10 --tokens 64
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import heapq
import json
import os
import select
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_WORDS: Final = (
    "sea",
    "boat",
    "pier",
    "lamp",
    "tide",
    "rock",
    "path",
    "rope",
    "wind",
    "wave",
    "sand",
    "gull",
    "mast",
    "sail",
    "fog",
    "bell",
)
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_NS: Final = 10**9
_COARSE_NS: Final = 1_500_000
_now_ns = time.perf_counter_ns


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What every answer looks like.

    With `die_after` the server breaks off everything after that many chunks in all; after `slow_after` of them it sends
    one only `slow_itl_s` after the one before, as a server does that was given too much.
    """

    ttft_s: float = 0.05
    itl_s: float = 0.01
    tokens: int = 64
    tokens_per_chunk: int = 1
    die_after: int = 0
    slow_after: int = 0
    slow_itl_s: float = 0.0


@dataclass(slots=True)
class Line:
    """The log of one request: when it was whole here, and when each chunk was handed to the kernel."""

    received_ns: int
    due_ns: int
    model: str
    sent_ns: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Caller:
    """One connection."""

    sock: socket.socket
    heard: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    line: Line | None = None
    chunks: int = 0
    prompt_tokens: int = 0


class TruthServer:
    """Serves on a listening socket until it is stopped by a signal or by `die_after`."""

    def __init__(self, listener: socket.socket, schedule: Schedule) -> None:
        self._schedule = schedule
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._due: list[tuple[int, int, Caller, Line]] = []
        self._count = 0
        self._sent = 0
        self._log: list[Line] = []
        words = (" " + _WORDS[n % len(_WORDS)] for n in range(len(_WORDS) * schedule.tokens_per_chunk))
        texts = ["".join(next(words) for _ in range(schedule.tokens_per_chunk)) for _ in _WORDS]
        self._frames = [_frame(_chunk({"content": text})) for text in texts]
        self._role = _frame(_chunk({"role": "assistant", "content": ""}))

    def serve(self) -> None:
        """Answer until the end."""
        buffer = memoryview(bytearray(2**16))
        while True:
            for key, events in self._wait():
                if key.data is None:
                    self._accept()
                    continue
                if events & selectors.EVENT_WRITE:
                    self._send(key.data, b"")
                if events & selectors.EVENT_READ:
                    self._hear(key.data, buffer)
            now = _now_ns()
            while self._due and self._due[0][0] <= now:
                _, _, caller, line = heapq.heappop(self._due)
                if caller.line is line:
                    self._tick(caller, line)
                if self._schedule.die_after and self._sent >= self._schedule.die_after:
                    return

    def _wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._due:
            return self._selector.select(0.5)
        left = self._due[0][0] - _now_ns()
        if left > _COARSE_NS or not hasattr(self._selector, "fileno"):
            return self._selector.select(max(0.0, (left // 1_000_000 - 0.5) / 1e3))
        if left > 0:
            select.select([self._selector.fileno()], [], [], left / _NS)
        return self._selector.select(0)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                sock.setblocking(False)  # noqa: FBT003 - the standard library's signature
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._selector.register(sock, selectors.EVENT_READ, Caller(sock=sock))

    def _hear(self, caller: Caller, buffer: memoryview) -> None:
        try:
            size = caller.sock.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._leave(caller)
            return
        caller.heard += buffer[:size]
        end = caller.heard.find(b"\r\n\r\n")
        if end < 0:
            return
        head = caller.heard[:end].decode("latin-1")
        length = next((int(x.partition(":")[2]) for x in head.split("\r\n") if x.lower().startswith("content-length:")), 0)
        if len(caller.heard) < end + 4 + length:
            return
        body = bytes(caller.heard[end + 4 : end + 4 + length])
        del caller.heard[: end + 4 + length]
        method, path, _ = head.split(" ", 2)
        self._answer(caller, method, path, body)

    def _answer(self, caller: Caller, method: str, path: str, body: bytes) -> None:
        now = _now_ns()
        if path == "/truth":
            log, self._log = [{"model": x.model, "received_ns": x.received_ns, "sent_ns": x.sent_ns} for x in self._log], []
            self._send(caller, _reply(log))
            gc.collect()
        elif path == "/v1/models":
            self._send(caller, _reply({"object": "list", "data": [{"id": "truth", "object": "model"}]}))
        elif method == "POST" and path == "/v1/chat/completions":
            asked = json.loads(body)
            tokens = int(asked.get("max_tokens") or self._schedule.tokens)
            caller.chunks = max(1, tokens // self._schedule.tokens_per_chunk)
            caller.prompt_tokens = len(body) // 4
            line = caller.line = Line(
                received_ns=now, due_ns=now + round(self._schedule.ttft_s * _NS), model=str(asked.get("model"))
            )
            self._log.append(line)
            self._send(caller, _HEAD)
            self._plan(caller, line)
        else:
            self._send(caller, _reply({"error": {"message": f"no {path} here", "type": "not_found"}}, "404 Not Found"))

    def _plan(self, caller: Caller, line: Line) -> None:
        self._count += 1
        due = line.due_ns + round(len(line.sent_ns) * self._schedule.itl_s * _NS)
        if self._schedule.slow_after and self._sent >= self._schedule.slow_after:
            due = _now_ns() + round(self._schedule.slow_itl_s * _NS)
        heapq.heappush(self._due, (due, self._count, caller, line))

    def _tick(self, caller: Caller, line: Line) -> None:
        number = len(line.sent_ns)
        frame = self._frames[number % len(self._frames)]
        line.sent_ns.append(_now_ns())
        self._send(caller, frame if number else self._role + frame)
        self._sent += 1
        if number + 1 < caller.chunks:
            self._plan(caller, line)
            return
        tokens = caller.chunks * self._schedule.tokens_per_chunk
        usage = {"prompt_tokens": caller.prompt_tokens, "completion_tokens": tokens}
        usage["total_tokens"] = sum(usage.values())
        caller.line = None
        last = _frame(_chunk({}, finish="length")) + _frame({"object": "chat.completion.chunk", "choices": [], "usage": usage})
        self._send(caller, last + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    def _send(self, caller: Caller, data: bytes) -> None:
        caller.unsent += data
        try:
            sent = caller.sock.send(caller.unsent) if caller.unsent else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._leave(caller)
            return
        waited = bool(caller.unsent[:-1]) and not data
        del caller.unsent[:sent]
        if caller.unsent or waited:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if caller.unsent else 0)
            self._selector.modify(caller.sock, wanted, caller)

    def _leave(self, caller: Caller) -> None:
        caller.line = None
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(caller.sock)
        caller.sock.close()


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-truth", "object": "chat.completion.chunk", "created": 0, "model": "truth", "choices": [choice]}


def _frame(document: dict[str, Any]) -> bytes:
    return _chunked(b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n")


def _chunked(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def _reply(document: Any, status: str = "200 OK") -> bytes:
    body = json.dumps(document).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve on 127.0.0.1 and print the port as the first line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ttft-ms", type=float, default=50.0)
    parser.add_argument("--itl-ms", type=float, default=10.0)
    parser.add_argument("--tokens", type=int, default=64, help="where the request names no max_tokens")
    parser.add_argument("--tokens-per-chunk", type=int, default=1)
    parser.add_argument("--die-after", type=int, default=0, metavar="CHUNKS", help="break everything off after that many")
    parser.add_argument("--slow-after", type=int, default=0, metavar="CHUNKS", help="get slow after that many")
    parser.add_argument("--slow-itl-ms", type=float, default=0.0, help="how far apart chunks are then")
    parser.add_argument("--realtime", action="store_true", help="let no other process delay a send; needs the privilege")
    given = parser.parse_args(arguments)
    if given.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    schedule = Schedule(
        ttft_s=given.ttft_ms / 1e3,
        itl_s=given.itl_ms / 1e3,
        tokens=given.tokens,
        tokens_per_chunk=given.tokens_per_chunk,
        die_after=given.die_after,
        slow_after=given.slow_after,
        slow_itl_s=given.slow_itl_ms / 1e3,
    )
    with socket.create_server(("127.0.0.1", given.port), backlog=1024) as listener:
        listener.setblocking(False)  # noqa: FBT003 - the standard library's signature
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        gc.collect()
        gc.freeze()
        gc.disable()
        with contextlib.suppress(KeyboardInterrupt):
            TruthServer(listener, schedule).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
