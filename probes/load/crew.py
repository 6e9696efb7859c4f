"""The workers of a run, as processes: started together, stopped together, none left behind."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from probes.errors import HostError
from probes.load import spool
from probes.load.spool import Exchange
from probes.load.task import Task
from probes.load.window import Progress

_ROOT: Final = Path(__file__).parents[2]
_START_S: Final = 20.0
_LEAD_NS: Final = 20_000_000
_LAST_WORDS: Final = 400


@dataclass(frozen=True, kw_only=True)
class Halt:
    """Why a run was stopped before its end: a reason code and its words."""

    reason: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Course:
    """How a run went. `began_ns` to `stopped_ns` is the time in which new requests were sent."""

    began_ns: int
    stopped_ns: int
    halts: tuple[Halt, ...]
    stats: tuple[dict[str, Any], ...]


@dataclass(slots=True)
class _Hand:
    """One worker's process."""

    task: Task
    process: subprocess.Popen[bytes]
    heard: bytearray = field(default_factory=bytearray)
    gone: bool = False

    @property
    def source(self) -> IO[bytes]:
        if self.process.stdout is None:
            raise HostError("a worker has no standard output")
        return self.process.stdout

    def say(self, line: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self.process.stdin is not None:
                self.process.stdin.write(line)
                self.process.stdin.flush()


def work(
    tasks: Sequence[Task],
    *,
    progress: Progress,
    deadline_s: float | None,
    drain_s: float,
    hired: Sequence[subprocess.Popen[bytes]] = (),
) -> Course:
    """Put the load of all tasks on, until every worker is done, `progress` has enough, a guard stops it or time is up.

    Ctrl-C stops the load and is no exception: what was measured is kept. What is in flight has `drain_s` to end.
    Workers that were hired before are used first, and are gone afterwards as all others.

    Raises:
        HostError: a worker cannot be started.
    """
    processes = [*hired, *hire(max(0, len(tasks) - len(hired)))]
    hands = [_Hand(task=task, process=process) for task, process in zip(tasks, processes, strict=False)]
    try:
        for hand in hands:
            hand.say(hand.task.line())
        return _Watch(hands, progress).run(deadline_s, drain_s)
    finally:
        dismiss(processes)


def hire(count: int) -> list[subprocess.Popen[bytes]]:
    """Start workers that wait for their tasks; they load no package but this one and the standard library.

    Raises:
        HostError: a process cannot be started.
    """
    command = [sys.executable, "-S", "-E", "-m", "probes.load.worker"]
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "LANG"}}
    processes: list[subprocess.Popen[bytes]] = []
    for _ in range(count):
        try:
            process = subprocess.Popen(  # noqa: S603
                command,
                cwd=_ROOT,
                env=kept,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        except OSError as exc:
            dismiss(processes)
            raise HostError(f"a worker of the load cannot be started: {exc.strerror}") from exc
        processes.append(process)
    return processes


def dismiss(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End workers, whatever they are doing."""
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def exchanges(tasks: Sequence[Task]) -> Iterator[Exchange]:
    """Give every exchange that the workers put away, one at a time."""
    for task in tasks:
        path = Path(task.spool)
        if path.exists():
            yield from spool.read(path)


class _Watch:
    """Listens to the workers."""

    def __init__(self, hands: Sequence[_Hand], progress: Progress) -> None:
        self._hands = hands
        self._progress = progress
        self._halts: list[Halt] = []
        self._stopped_ns = 0
        self._selector = selectors.DefaultSelector()
        for hand in hands:
            self._selector.register(hand.source, selectors.EVENT_READ, hand)

    def run(self, deadline_s: float | None, drain_s: float) -> Course:
        with self._selector:
            self._await_ready()
            began_ns = time.perf_counter_ns() + _LEAD_NS
            for hand in self._hands:
                hand.say(b"go %d\n" % began_ns)
            try:
                self._listen(until_ns=None if deadline_s is None else began_ns + round(deadline_s * 1e9))
            except KeyboardInterrupt:
                self._halts.append(Halt(reason="interrupted", words="stopped with Ctrl-C"))
            self._stop()
            try:
                self._listen(until_ns=time.perf_counter_ns() + round(drain_s * 1e9), drain=True)
            except KeyboardInterrupt:
                self._halts.append(Halt(reason="interrupted", words="stopped with Ctrl-C while answers were still arriving"))
        for hand in self._hands:
            if hand.gone and hand.process.wait():
                self._halts.append(Halt(reason="worker-died", words=_last_words(hand)))
        return Course(
            began_ns=began_ns,
            stopped_ns=self._stopped_ns,
            halts=tuple(self._halts),
            stats=tuple(_stats(hand.task) for hand in self._hands),
        )

    def _await_ready(self) -> None:
        waiting, limit = len(self._hands), time.monotonic() + _START_S
        while waiting:
            left = limit - time.monotonic()
            events = self._selector.select(max(left, 0))
            if not events:
                raise HostError(f"the load's workers did not start within {_START_S:g} s")
            for key, _ in events:
                lines = self._lines(key.data)
                if key.data.gone:
                    raise HostError(f"a worker of the load does not start: {_last_words(key.data)}")
                waiting -= lines.count("R")

    def _listen(self, *, until_ns: int | None, drain: bool = False) -> None:
        """Take messages until all workers are gone, or, unless draining, until something says stop."""
        while any(not hand.gone for hand in self._hands):
            left_s = None if until_ns is None else (until_ns - time.perf_counter_ns()) / 1e9
            if left_s is not None and left_s <= 0:
                return
            stop = False
            for key, _ in self._selector.select(left_s):
                for line in self._lines(key.data):
                    stop |= self._take(line)
                stop |= key.data.gone and key.data.process.wait() != 0
            if stop and not drain:
                return

    def _take(self, line: str) -> bool:
        kind, _, rest = line.partition(" ")
        if kind == "X":
            reason, _, words = rest.partition(" ")
            self._halts.append(Halt(reason=reason, words=words))
            return True
        if kind == "S":
            index, _, at_ns = rest.partition(" ")
            self._progress.start(int(index), int(at_ns))
        elif kind == "E":
            index, at_ns, _ = rest.split(" ")
            return self._progress.end(int(index), int(at_ns))
        return False

    def _lines(self, hand: _Hand) -> list[str]:
        piece = os.read(hand.source.fileno(), 2**16)
        if not piece:
            hand.gone = True
            self._selector.unregister(hand.source)
        hand.heard += piece
        *whole, rest = bytes(hand.heard).split(b"\n")
        hand.heard[:] = rest
        return [line.decode("utf-8", "replace") for line in whole]

    def _stop(self) -> None:
        self._stopped_ns = time.perf_counter_ns()
        for hand in self._hands:
            hand.say(b"stop\n")


def _last_words(hand: _Hand) -> str:
    """Give the last line a worker wrote about its end."""
    stream = hand.process.stderr
    lines = (stream.read() if stream is not None else b"").decode("utf-8", "replace").split("\n")
    return next((line.strip()[-_LAST_WORDS:] for line in reversed(lines) if line.strip()), "no word")


def _stats(task: Task) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(Path(task.stats).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
    return document
