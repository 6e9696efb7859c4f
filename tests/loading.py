"""Loading small servers, and exchanges written by hand."""

from __future__ import annotations

import json
import socket
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from probes.endpoints.address import parse_address
from probes.load.outcome import Outcome, read
from probes.load.run import Finding, Gate, Shape, doors, measure
from probes.load.spool import End, Exchange
from probes.load.task import Guards
from tests.servers import Script, hear

STARTED = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
MS = 1_000_000


def event(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"choices": choices, **more}).encode() + b"\n\n"


def usage(tokens: int, prompt: int = 20) -> bytes:
    return event(None, usage={"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens})


DONE = b"data: [DONE]\n\n"
ANSWER = (
    event({"role": "assistant", "content": ""})
    + event({"content": "sea"})
    + event({"content": "gull"}, "stop")
    + usage(2)
    + DONE
)


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


WHOLE = STREAM_HEAD + chunked(ANSWER) + b"0\r\n\r\n"


def answering(*answers: bytes) -> Script:
    """Answer request after request on one connection, the last answer for ever."""

    def script(connection: socket.socket) -> None:
        number = 0
        while True:
            hear(connection)
            connection.sendall(answers[min(number, len(answers) - 1)])
            number += 1

    return script


def under_load(
    port: int,
    *,
    scheme: str = "http",
    key: str | None = None,
    ca_file: str = "",
    tokenizer: Path | None = None,
    **shape: Any,
) -> Finding:
    """Put a small load on a port of this machine."""
    gate = Gate(address=parse_address(f"{scheme}://127.0.0.1:{port}/v1", "test"), key=key, ca_file=ca_file)
    guards = Guards(timeout_s=20.0, stall_s=20.0, first_byte_s=20.0)
    given: dict[str, Any] = {"model": "m", "max_tokens": 8, "requests": 4, "guards": guards}
    return measure(gate, Shape(**(given | shape)), doors(gate)[0], STARTED, tokenizer=tokenizer)


def exchange(*reads: bytes, times_ms: Sequence[float] | None = None, end: End = End.WHOLE, **fields: Any) -> Exchange:
    """Make an exchange that was due at 0, was sent at 100 ms and whose reads came 10 ms apart from 200 ms on."""
    at = times_ms if times_ms is not None else [200.0 + 10.0 * n for n in range(len(reads))]
    stamps = array("q", (round(one * MS) for one in at))
    given: dict[str, Any] = {
        "index": 0,
        "due_ns": 0,
        "sent_ns": 100 * MS,
        "last_sent_ns": 100 * MS,
        "end_ns": stamps[-1] if stamps else 300 * MS,
        "connect_ns": 2 * MS,
        "attempts": 1,
        "end": end,
        "stalled": False,
        "words": "",
        "stamps": stamps,
        "sizes": array("I", map(len, reads)),
        "raw": b"".join(reads),
    }
    return Exchange(**(given | fields))


def outcome(*reads: bytes, max_tokens: int = 64, from_due: bool = False, **fields: Any) -> Outcome:
    return read(exchange(*reads, **fields), from_due=from_due, max_tokens=max_tokens)


def stream(*events: bytes) -> list[bytes]:
    """Give the reads of an answer that ends by closing: the head, then one event a read."""
    return [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", *events]


def gaps(times: Sequence[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]
