"""Running one of our functions in a child process, where a crash, a hang or a full memory is an outcome."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, cast

from pydantic import JsonValue

from probes.sensors.memory import own_peak_rss_bytes, tree_rss_bytes
from probes.telemetry import silence

POLL_S = 0.2
WORDS_LIMIT = 2000
_TAIL_BYTES = 8192
_KILL_WAIT_S = 10.0
_PR_SET_PDEATHSIG = 1
# How allocators of the host and of GPU runtimes say that there is no more memory.
_OUT_OF_MEMORY = re.compile(
    r"\bMemoryError\b|std::bad_alloc|out of memory|cannot allocate memory|exceeded max size of memory"
    r"|CL_OUT_OF_HOST_MEMORY|CL_MEM_OBJECT_ALLOCATION_FAILURE|ZE_RESULT_ERROR_OUT_OF_(HOST|DEVICE)_MEMORY",
    re.IGNORECASE,
)


class Outcome(StrEnum):
    """How a child ended."""

    OK = "ok"
    RAISED = "raised"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True, kw_only=True)
class ChildResult:
    """What came of one child.

    `value` is what the function returned, None unless it did; `sent` is what it emitted before it
    ended in whatever way; `words` say why there is no value.
    """

    outcome: Outcome
    value: JsonValue
    sent: tuple[JsonValue, ...]
    words: str
    seconds: float
    peak_rss_bytes: int


def run_child(
    target: str,
    arguments: Mapping[str, JsonValue],
    *,
    timeout_s: float,
    memory_bytes: int,
    env: Mapping[str, str] | None = None,
    on_sent: Callable[[JsonValue], None] | None = None,
) -> ChildResult:
    """Call `package.module:function` with JSON arguments in a fresh interpreter and wait for its end.

    A function with a parameter `emit` gets a callable that sends a JSON value at once: it reaches
    `on_sent` and survives the child's crash. The child leads a process group of its own, which is
    killed when a bound is exceeded and when this process is interrupted; on Linux the kernel kills
    the child when this process dies. Memory is watched rather than limited, because RLIMIT_AS counts
    the address space that OpenVINO reserves and never touches.
    """
    request = json.dumps({"target": target, "arguments": dict(arguments), "parent": os.getpid()}, allow_nan=False)
    with tempfile.TemporaryFile() as asked, _pipe() as (reading, writing):
        asked.write(request.encode())
        asked.seek(0)
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-m", "probes.child", str(writing.fileno())],
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(env or {}),
            pass_fds=[writing.fileno()],
            process_group=0,
        )
        writing.close()
        with contextlib.closing(_Watch(child=child, replies=reading.fileno(), on_sent=on_sent)) as watch:
            return watch.until_end(timeout_s=timeout_s, memory_bytes=memory_bytes)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as source, os.fdopen(writing, "wb", buffering=0) as sink:
        yield source, sink


class _Watch:
    """The parent's side: reads replies and output, and ends the child when it exceeds a bound."""

    def __init__(self, *, child: subprocess.Popen[bytes], replies: int, on_sent: Callable[[JsonValue], None] | None) -> None:
        self._child = child
        self._replies = replies
        self._output = cast("IO[bytes]", child.stdout)
        self._on_sent = on_sent
        self._started = time.monotonic()
        self._peak = 0
        self._tail = b""
        self._partial = b""
        self._sent: list[JsonValue] = []
        self._end: dict[str, Any] | None = None
        self._selector = selectors.DefaultSelector()
        for handle in (replies, self._output.fileno()):
            os.set_blocking(handle, False)
            self._selector.register(handle, selectors.EVENT_READ)

    def until_end(self, *, timeout_s: float, memory_bytes: int) -> ChildResult:
        deadline = self._started + timeout_s
        next_look = self._started
        while True:
            now = time.monotonic()
            if now >= next_look:
                rss = tree_rss_bytes(self._child.pid)
                self._peak = max(self._peak, rss)
                if rss > memory_bytes:
                    return self._stopped(Outcome.OUT_OF_MEMORY, f"grew to {rss} bytes; the bound is {memory_bytes}")
                next_look = now + POLL_S
            for key, _events in self._selector.select(timeout=max(0.0, min(next_look, deadline) - now)):
                self._take(int(key.fd))
            if self._end is not None:
                return self._answered(self._end)
            if self._child.poll() is not None:
                self._drain()
                return self._answered(self._end) if self._end is not None else self._crashed()
            if time.monotonic() >= deadline:
                return self._stopped(Outcome.TIMED_OUT, f"no end after {timeout_s:g} s")

    def close(self) -> None:
        """Leave no process and no open file behind, whatever happened before."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        # A process stuck in a driver dies when the driver lets go of it; nobody can wait for that.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=_KILL_WAIT_S)
        self._selector.close()
        self._output.close()

    def _take(self, handle: int) -> bool:
        try:
            chunk = os.read(handle, 65536)
        except BlockingIOError:
            return False
        if not chunk:
            with contextlib.suppress(KeyError):
                self._selector.unregister(handle)
            return False
        if handle == self._replies:
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            for line in lines:
                self._reply(json.loads(line))
        else:
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        return True

    def _drain(self) -> None:
        for handle in (self._replies, self._output.fileno()):
            while self._take(handle):
                pass

    def _reply(self, message: dict[str, Any]) -> None:
        if "sent" in message:
            self._sent.append(message["sent"])
            if self._on_sent is not None:
                self._on_sent(message["sent"])
        else:
            self._end = message

    def _answered(self, end: dict[str, Any]) -> ChildResult:
        self._peak = max(self._peak, int(end["peak_rss_bytes"]))
        if "value" in end:
            return self._result(Outcome.OK, "", end["value"])
        words = str(end["raised"])
        return self._result(Outcome.OUT_OF_MEMORY if _OUT_OF_MEMORY.search(words) else Outcome.RAISED, words)

    def _stopped(self, outcome: Outcome, why: str) -> ChildResult:
        self._drain()
        return self._result(outcome, self._with_output(why))

    def _crashed(self) -> ChildResult:
        code = self._child.returncode
        why = signal.Signals(-code).name if code < 0 else f"exit status {code} without an answer"
        words = self._with_output(why)
        # An exception that no handler of the runtime caught aborts the process and says so on stderr.
        return self._result(Outcome.OUT_OF_MEMORY if _OUT_OF_MEMORY.search(words) else Outcome.CRASHED, words)

    def _with_output(self, why: str) -> str:
        output = self._tail.decode(errors="replace").strip()
        return f"{why}; last output: {output}" if output else why

    def _result(self, outcome: Outcome, words: str, value: JsonValue = None) -> ChildResult:
        return ChildResult(
            outcome=outcome,
            value=value,
            sent=tuple(self._sent),
            words=_trimmed(words),
            seconds=time.monotonic() - self._started,
            peak_rss_bytes=self._peak,
        )


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Let the child import this package and, before it, what the caller added to PYTHONPATH."""
    home = str(Path(__file__).resolve().parent.parent)
    search = [extra.get("PYTHONPATH", ""), home, os.environ.get("PYTHONPATH", "")]
    return {**os.environ, **extra, "PYTHONPATH": os.pathsep.join(filter(None, search))}


def _trimmed(words: str) -> str:
    """Keep the beginning, which names the cause, and the end, which is what was said last."""
    if len(words) <= WORDS_LIMIT:
        return words
    half = WORDS_LIMIT // 2
    return f"{words[:half]} […] {words[-half:]}"


def _serve(handle: int) -> None:
    """Be the child: read one request from stdin, call, reply, and leave without running destructors."""
    os.set_inheritable(handle, False)  # noqa: FBT003
    request = json.load(sys.stdin)
    _die_with(request["parent"])
    silence()
    with os.fdopen(handle, "wb") as replies:
        end: dict[str, JsonValue]
        try:
            end = {"value": _call(request["target"], request["arguments"], replies)}
            json.dumps(end, allow_nan=False)
        except BaseException as exc:
            end = {"raised": "".join(_described(exc))}
        _send(replies, {**end, "peak_rss_bytes": own_peak_rss_bytes()})
    sys.stdout.flush()
    sys.stderr.flush()
    # The question is answered; a runtime that hangs or crashes while it is torn down changes nothing.
    os._exit(0)


def _call(target: str, arguments: dict[str, Any], replies: IO[bytes]) -> JsonValue:
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    if "emit" in inspect.signature(function).parameters:
        arguments = {**arguments, "emit": lambda value: _send(replies, {"sent": value})}
    value: JsonValue = function(**arguments)
    return value


def _send(replies: IO[bytes], message: dict[str, JsonValue]) -> None:
    replies.write(json.dumps(message, allow_nan=False).encode() + b"\n")
    replies.flush()


def _described(exc: BaseException) -> Iterator[str]:
    # RuntimeError is how every runtime's own exception arrives; its class says nothing.
    if type(exc) is not RuntimeError:
        yield f"{type(exc).__name__}: "
    yield str(exc).strip() or "no message"


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies; end at once if that has happened already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
