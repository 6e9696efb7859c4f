"""Two hundred small servers on 127.0.0.1, half of them out of order in every way that delays a client.

    python -m benchmarks.survey_servers 200

Prints one line of JSON, a list of [kind, port] in the order of the inventory, and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

# What answers, and then what does not: every second one of the inventory is of the second row.
GOOD: Final = ("ovms", "vllm", "ollama", "comfyui", "tei")
BAD: Final = (
    "refused",
    "unreachable",
    "silent",
    "head only",
    "drips",
    "hangs on text",
    "comments for ever",
    "loads for ever",
    "login",
    "another protocol",
)
_CHUNKS: Final = (
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "The sea."}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}},
)
_STREAM: Final = b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in _CHUNKS) + b"data: [DONE]\n\n"
_EVENTS: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_AVAILABLE: Final = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": "OK"}}
_STATS: Final = {"system": {"comfyui_version": "v0.3.10", "argv": ["main.py"]}, "devices": [{"name": "xpu:0"}]}
_INFO: Final = {"model_id": "m", "model_dtype": "float16", "max_batch_tokens": 16384, "version": "1.9.3"}


def _listing(owner: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": owner}]}


_BODIES: Final[dict[str, dict[str, Any]]] = {
    "ovms": {
        "/v2": {"name": "OpenVINO Model Server", "version": "2026.2"},
        "/v1/config": {"m": {"model_version_status": [_AVAILABLE]}},
        "/v1/models": _listing("OVMS"),
        "/v3/models": _listing("OVMS"),
    },
    "vllm": {"/v1/models": _listing("vllm"), "/version": {"version": "0.32.0"}},
    "ollama": {
        "/v1/models": _listing("library"),
        "/api/version": {"version": "0.32.15"},
        "/api/ps": {"models": []},
        "/api/tags": {"models": [{"name": "m", "model": "m", "details": {"quantization_level": "Q4_K_M"}}]},
    },
    "comfyui": {"/system_stats": _STATS, "/prompt": {"exec_info": {"queue_remaining": 0}}},
    "tei": {"/info": _INFO},
}


async def main(count: int) -> None:
    servers: list[Any] = []
    kinds = [kind for place in range(count // 2) for kind in (GOOD[place % len(GOOD)], BAD[place % len(BAD)])]
    ports = [[kind, await _start(kind, servers)] for kind in kinds]
    print(json.dumps(ports), flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)


async def _start(kind: str, servers: list[Any]) -> int:
    if kind in {"refused", "unreachable"}:
        return _closed(servers, full=kind == "unreachable")
    server = await asyncio.start_server(_talk(kind), "127.0.0.1", 0, backlog=64)
    servers.append(server)
    port: int = server.sockets[0].getsockname()[1]
    return port


def _closed(servers: list[Any], *, full: bool) -> int:
    """Take a port that nobody listens on, or one whose queue is full, so that the kernel drops what comes."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    servers.append(listener)
    if full:
        listener.listen(0)
        for _ in range(4):
            waiting = socket.socket()
            waiting.setblocking(False)  # noqa: FBT003
            waiting.connect_ex(("127.0.0.1", port))
            servers.append(waiting)
    return port


def _talk(kind: str) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if kind == "another protocol":
                writer.write(b"SSH-2.0-OpenSSH_9.2p1\r\n")
            method, path = await _hear(reader)
            await _answer(kind, method, path, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    return talk


async def _hear(reader: asyncio.StreamReader) -> tuple[str, str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lengths = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
    if lengths:
        await reader.readexactly(int(lengths[0]))
    method, path, _ = head.split("\r\n")[0].split(" ")
    return method, path


async def _answer(kind: str, method: str, path: str, writer: asyncio.StreamWriter) -> None:
    if kind in {"silent", "another protocol"}:
        await asyncio.sleep(3600)
    elif kind == "head only":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        await asyncio.sleep(3600)
    elif kind == "drips":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.5)
    elif kind == "loads for ever":
        _send(writer, 503, {"error": {"message": "Loading model", "code": 503}}, "Server: llama.cpp\r\n")
    elif kind == "login":
        _send(writer, 302, {}, "Location: https://sso.example/login\r\n")
    elif method == "POST":
        await _text(kind, writer)
    else:
        bodies = _BODIES["vllm"] if kind in {"hangs on text", "comments for ever"} else _BODIES[kind]
        _send(writer, 200 if path in bodies else 404, bodies.get(path, {"detail": "Not Found"}))


async def _text(kind: str, writer: asyncio.StreamWriter) -> None:
    writer.write(_EVENTS)
    if kind == "hangs on text":
        await asyncio.sleep(3600)
    while kind == "comments for ever":
        writer.write(b": still here\n\n")
        await writer.drain()
        await asyncio.sleep(0.5)
    writer.write(_STREAM)


def _send(writer: asyncio.StreamWriter, status: int, body: dict[str, Any], more: str = "") -> None:
    raw = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n{more}\r\n"
    writer.write(head.encode() + raw)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
