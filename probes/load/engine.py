"""The load itself: sends requests, stamps what arrives, puts it away; understands nothing of it."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from io import RawIOBase
from typing import BinaryIO, Final

from probes.load import spool
from probes.load.agenda import Agenda
from probes.load.arrivals import Arrivals, due_times, shares
from probes.load.arriving import Arriving
from probes.load.connection import Connection, Lost, Peer, Phase, end_of, words_of
from probes.load.guard import Stop, too_long, watch
from probes.load.http1 import backoff_s
from probes.load.intercom import Intercom
from probes.load.pulse import TICK_NS, Pulse
from probes.load.request import Request
from probes.load.spool import End, Exchange
from probes.load.task import Task

_READ_BYTES: Final = 2**16
_NS: Final = 10**9
_SWEEP_NS: Final = 250_000_000
_PAUSE_NS: Final = 100_000_000
_BUSY: Final = frozenset({429, 503})
_now_ns = time.perf_counter_ns


class Engine:
    """The loop of one worker. `tell` takes messages, `file` the exchanges."""

    def __init__(self, task: Task, peer: Peer, file: BinaryIO, tell: Callable[[list[str]], None]) -> None:
        self._task = task
        self._peer = peer
        self._file = file
        self._intercom = Intercom(tell)
        self._agenda = Agenda()
        self._selector = self._agenda.selector
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._started = 0
        self._busy: set[Connection] = set()
        self._idle: list[Connection] = []
        self._waiting: deque[Request] = deque()
        self._planned = 0
        self._retrying = 0
        self.unsent = 0
        self._errors = 0
        self._stopping = False
        self._guards = task.guards
        self.pulse = Pulse()

    def listen(self, source: RawIOBase) -> None:
        """Stop when `source` says anything or ends."""
        self._intercom.listen(source, self._selector)

    def run(self, start_ns: int) -> None:
        """Put the load on from `start_ns`, and return when every stream has been read to its end."""
        task = self._task
        if task.arrivals is Arrivals.CLOSED:
            for stream, offset_s in enumerate(task.ramp_s):
                self._agenda.at(start_ns + round(offset_s * _NS), self._begin_stream(stream))
        else:
            self._schedule(self._due(start_ns))
        first_ns = max(start_ns, _now_ns())
        self._agenda.at(first_ns + TICK_NS, self._tick)
        self._agenda.at(first_ns + _SWEEP_NS, self._sweep)
        pulse, wait, act = self.pulse, self._agenda.wait, self._agenda.act
        while not self._finished:
            ready = wait()
            now = _now_ns()
            for key, _ in ready:
                connection = key.data
                if connection is None:
                    if self._intercom.heard():
                        self.halt()
                elif connection.phase is Phase.BUSY and not connection.out:
                    self._read(connection, now)
                else:
                    self._step(connection, now)
            pulse.reads += len(ready)
            act(now)
        self._intercom.flush()
        for connection in self._idle:
            connection.close()

    @property
    def _finished(self) -> bool:
        if self._busy or self._waiting or self._retrying:
            return False
        return self._stopping or (self._started >= self._task.at_most and not self._planned)

    def _tick(self, due: int, now: int) -> None:
        """Note how late this turn began, as the stamps of its reads are."""
        self.pulse.tick(now, due)
        self._intercom.flush()
        # Also after a long stall: the ticks it swallowed were late too.
        self._agenda.at(due + TICK_NS, self._tick)

    def _sweep(self, due: int, now: int) -> None:
        for connection in list(self._busy):
            request = connection.request
            against = watch(connection.answer, request, self._guards, now) if request is not None else None
            if isinstance(against, Stop):
                self._stop(*against)
            elif against is not None:
                self._end(connection, against.end, against.words, reuse=against.reuse)
        self._agenda.at(max(due, now) + _SWEEP_NS, self._sweep)

    # Starting requests.

    def _begin_stream(self, stream: int) -> Callable[[int, int], None]:
        return lambda due, _now: self._next(stream, due)

    def _next(self, stream: int, due: int) -> None:
        """Start the next request of a stream of a closed loop."""
        if not self._stopping and self._started < self._task.at_most:
            self._send(self._request(stream, due))

    def _due(self, start_ns: int) -> Iterator[int]:
        task = self._task
        for n, at_s in enumerate(due_times(task.arrivals, rate=task.rate, seed=task.seed)):
            if n % task.workers == task.worker:
                yield start_ns + round(at_s * _NS)

    def _schedule(self, dues: Iterator[int]) -> None:
        """Set the timer of the next request that is due in an open loop."""
        if self._started >= self._task.at_most or self._stopping:
            return

        def arrive(due: int, _now: int) -> None:
            self._planned -= 1
            if self._stopping:
                return
            self._waiting.append(self._request(0, due))
            self._admit()
            if len(self._waiting) > -(-self._guards.backlog // self._task.workers):
                words = f"{len(self._waiting)} requests wait for a free stream; {self._task.in_flight} are in flight"
                self._stop("growing-queue", words)
            self._schedule(dues)

        self._planned += 1
        self._agenda.at(next(dues), arrive)

    def _admit(self) -> None:
        while self._waiting and len(self._busy) < self._task.in_flight and not self._stopping:
            self._send(self._waiting.popleft())

    def _request(self, stream: int, due: int) -> Request:
        task = self._task
        index = task.worker + self._started * task.workers
        self._started += 1
        before, after = task.bodies[shares(index, task.shared)]
        return Request(index=index, stream=stream, due_ns=due, body=f"{before}{task.mark}{index:08d}{after}".encode("latin-1"))

    def _send(self, request: Request) -> None:
        """Send on an idle connection, else on a new one once it is open."""
        if self._idle:
            connection = self._idle.pop()
            connection.request = request
            self._busy.add(connection)
            self._write(connection)
            return
        now = _now_ns()
        request.last_sent_ns = now
        request.sent_ns = request.sent_ns or now
        try:
            connection = Connection(self._peer, now)
        except OSError as exc:
            exchange = request.over(now, end_of(exc), words_of(exc), None)
            self._over(exchange, request.stream, now, ok=False)
            return
        connection.request = request
        self._busy.add(connection)
        self._selector.register(connection.sock, connection.wanted(), connection)

    def _write(self, connection: Connection) -> None:
        request = connection.request
        if request is None:
            return
        connection.phase = Phase.BUSY
        connection.answer = Arriving()
        now = _now_ns()
        if not request.attempts:
            request.sent_ns = now
            self._intercom.sent(request.index, now)
        request.last_sent_ns = now
        request.attempts += 1
        try:
            connection.send(request.body)
        except OSError as exc:
            self._broken(connection, exc)
            return
        if connection.out:
            self._selector.modify(connection.sock, connection.wanted(), connection)

    # Reading answers.

    def _step(self, connection: Connection, now: int) -> None:
        """Do whatever is due on a connection that is not simply being read."""
        if connection.phase is Phase.IDLE:
            self._drop(connection)
            return
        try:
            if connection.phase is Phase.BUSY:
                connection.flush()
                self._selector.modify(connection.sock, connection.wanted(), connection)
                self._read(connection, now)
            elif connection.connected():
                request = connection.request
                if request is not None:
                    request.connect_ns = _now_ns() - connection.began_ns
                self._selector.modify(connection.sock, connection.wanted(), connection)
                self._write(connection)
            else:
                self._selector.modify(connection.sock, connection.wanted(), connection)
        except OSError as exc:
            self._broken(connection, exc)

    def _read(self, connection: Connection, now: int) -> None:
        """Stamp and keep what arrived; `now` is when the kernel said so, the same for all that were ready together."""
        try:
            data = connection.receive(self._buffer)
        except OSError as exc:
            self._broken(connection, exc)
            return
        if data is None:
            self._closed(connection)
            return
        if len(data):
            over = connection.answer.take(data, now)
            if over is not None:
                self._end(connection, over.end, over.words, reuse=over.reuse)

    def _closed(self, connection: Connection) -> None:
        request = connection.request
        if request is None:
            self._drop(connection)
        elif connection.answer.raw:
            self._end(connection, End.CLOSED, reuse=False)
        else:
            self._broken(connection, Lost("the connection was closed without an answer"))

    def _broken(self, connection: Connection, exc: OSError) -> None:
        """Fail the request, or send it once more if an idle connection died under it before a byte came back."""
        request = connection.request
        if request is not None and connection.used and not connection.answer.raw and request.attempts == 1:
            self._drop(connection)
            connection.request = None
            self._send(request)
            return
        end = End.LOST if connection.phase is Phase.BUSY else end_of(exc)
        self._end(connection, end, words_of(exc), reuse=False)

    def _drop(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.sock)
        connection.close()

    # Ending requests.

    def _end(self, connection: Connection, end: End, words: str = "", *, reuse: bool = True) -> None:
        """Take leave of a request; its stream goes on before the bytes are put away."""
        request, answer = connection.request, connection.answer
        if request is None:
            return
        now = _now_ns()
        head = answer.head
        connection.request = None
        self._busy.discard(connection)
        if reuse and head is not None and head.keeps_open:
            connection.phase = Phase.IDLE
            connection.used = True
            self._idle.append(connection)
        else:
            self._drop(connection)
        status = head.status if head is not None else 0
        exchange = request.over(answer.over_ns or now, end, words, answer.heard)
        if head is not None and status in _BUSY and request.attempts <= self._task.retries and not self._stopping:
            wait_s = backoff_s(head, request.attempts)
            self._retrying += 1
            self._agenda.at(now + round(wait_s * _NS), lambda _due, _now: self._again(request, exchange))
            return
        ok = status == 200 and end in {End.WHOLE, End.CLOSED} and answer.answered
        self._over(exchange, request.stream, now, ok=ok)

    def _again(self, request: Request, before: Exchange) -> None:
        self._retrying -= 1
        if self._stopping:
            self._over(before, request.stream, _now_ns(), ok=False)
        else:
            self._send(request)

    def _over(self, exchange: Exchange, stream: int, now: int, *, ok: bool) -> None:
        """Go on after the last attempt of a request, and put it away."""
        if exchange.attempts == 0:
            self._intercom.sent(exchange.index, exchange.sent_ns)
        self._intercom.ended(exchange.index, exchange.end_ns, ok=ok)
        self._errors = 0 if ok else self._errors + 1
        if self._errors >= self._guards.errors_in_a_row:
            self._stop("run-of-errors", f"{self._errors} requests in a row failed")
        elif late := too_long(exchange.end_ns - exchange.last_sent_ns, self._guards):
            self._stop(*late)
        if self._task.arrivals is not Arrivals.CLOSED:
            self._admit()
        elif ok:
            self._next(stream, now)
        else:
            self._pause(stream, now)
        spool.write(self._file, exchange)

    def _pause(self, stream: int, now: int) -> None:
        """Give a server that just failed a moment before the stream asks again."""
        self._planned += 1

        def go_on(due: int, _now: int) -> None:
            self._planned -= 1
            self._next(stream, due)

        self._agenda.at(now + _PAUSE_NS, go_on)

    # Stopping.

    def _stop(self, reason: str, words: str) -> None:
        if not self._stopping:
            self.halt()
            self._intercom.stopping(reason, words)

    def halt(self) -> None:
        """Start nothing more; what is in flight is read to its end, because a disconnect has crashed servers."""
        self._stopping = True
        self.unsent += len(self._waiting)
        self._waiting.clear()
