"""The HTTP side's handle on the engine process: start it, put requests into its batch, take tokens out."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from probes.endpoints.embedded.frames import (
    Accepted,
    Cancel,
    Decoding,
    Failed,
    Message,
    Progress,
    Ready,
    Refused,
    Rejected,
    Start,
    Stats,
    Submit,
    decode_event,
    encode,
)
from probes.endpoints.embedded.settings import Settings
from probes.errors import ProbeError
from probes.evidence import Scalar
from probes.model import ModelFiles

_LINE_LIMIT_BYTES: Final = 1 << 24
_END_WITHIN_S: Final = 3.0


class Rejection(Exception):  # noqa: N818 - an answer for the client, not an error of the service
    """A request that the engine will not run; the message is for the client."""


class Generation:
    """One request in the batch: its tokens as they come, and a way to take it out again."""

    def __init__(self, id: int, cancel: Callable[[int], None]) -> None:
        self.id = id
        self.prompt_tokens = 0
        self.events: asyncio.Queue[Accepted | Rejected | Progress | Failed] = asyncio.Queue()
        self._cancel = cancel

    async def next(self) -> Progress:
        """Wait for more tokens.

        Raises:
            ProbeError: the engine gave up on the request, or ended.
        """
        event = await self.events.get()
        if isinstance(event, Progress):
            return event
        raise ProbeError(event.words if isinstance(event, Failed) else "the engine broke the protocol")

    def cancel(self) -> None:
        """Take the request out of the batch; does nothing once it has finished."""
        self._cancel(self.id)


class Engine:
    """A running engine process."""

    def __init__(self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stats = Stats()
        self.settings: Mapping[str, Scalar] = {}
        self.died = asyncio.Event()
        self.last_words = ""
        self._process = process
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._live: dict[int, Generation] = {}
        self._pump: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, model: ModelFiles, settings: Settings) -> Engine:
        """Start the process and wait until it has generated a token.

        Raises:
            ProbeError: the runtime refused the settings, in its words, or the process ended.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "probes.endpoints.embedded.worker", "--fd", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # the runtime may print; this process's stdout carries one line
                env=importable(os.environ),
                process_group=0,  # Ctrl-C is for the HTTP side, which ends this process in order
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=_LINE_LIMIT_BYTES)
        engine = cls(process, reader, writer)
        try:
            await engine._begin(model, settings)
        except BaseException:
            await engine.close("the service did not start")
            raise
        return engine

    async def submit(self, prompt: str | tuple[Message, ...], decoding: Decoding) -> Generation:
        """Put a request into the batch.

        Raises:
            Rejection: it does not fit the model or the settings.
            ProbeError: the engine has ended.
        """
        if self.died.is_set():
            raise ProbeError("the engine has ended")
        generation = Generation(next(self._ids), self._cancel)
        self._live[generation.id] = generation
        try:
            self._send(Submit(id=generation.id, prompt=prompt, decoding=decoding))
            event = await generation.events.get()
        except BaseException:
            generation.cancel()
            raise
        if isinstance(event, Accepted):
            generation.prompt_tokens = event.prompt_tokens
            return generation
        self._live.pop(generation.id, None)
        if isinstance(event, Rejected):
            raise Rejection(event.words)
        raise ProbeError(event.words if isinstance(event, Failed) else "the engine broke the protocol")

    def fail_all(self, words: str) -> None:
        """End every request with an error for its client."""
        for id, generation in list(self._live.items()):
            generation.events.put_nowait(Failed(id=id, words=words))
        self._live.clear()

    async def close(self, words: str) -> None:
        """End every request and then the process, which leaves after its current step unless it takes too long."""
        self.fail_all(words)
        self.died.set()
        if self._pump is not None:
            self._pump.cancel()
        self._writer.close()
        try:
            await asyncio.wait_for(asyncio.to_thread(self._process.wait), _END_WITHIN_S)
        except TimeoutError:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    async def _begin(self, model: ModelFiles, settings: Settings) -> None:
        self._send(Start(ir=str(model.ir), context_tokens=model.architecture.context_tokens, settings=settings))
        line = await self._reader.readline()
        event = decode_event(line) if line else None
        if isinstance(event, Ready):
            self.settings = event.settings
            self._pump = asyncio.create_task(self._read_events())
        elif isinstance(event, Refused):
            raise ProbeError(event.words)
        else:
            raise ProbeError(f"the engine ended while it loaded the model ({await self._ending()})")

    async def _read_events(self) -> None:
        while line := await self._reader.readline():
            event = decode_event(line)
            if isinstance(event, Stats):
                self.stats = event
            elif isinstance(event, Accepted | Rejected | Progress | Failed):
                self._deliver(event)
        self.stats = Stats()
        self.last_words = f"the engine ended ({await self._ending()})"
        self.died.set()
        self.fail_all(self.last_words)

    def _deliver(self, event: Accepted | Rejected | Progress | Failed) -> None:
        generation = self._live.get(event.id)
        if generation is None:
            return  # cancelled while the frame was on its way
        if isinstance(event, Failed) or (isinstance(event, Progress) and event.finish is not None):
            del self._live[event.id]
        generation.events.put_nowait(event)

    def _cancel(self, id: int) -> None:
        if self._live.pop(id, None) is not None and not self.died.is_set():
            self._send(Cancel(id=id))

    def _send(self, frame: Start | Submit | Cancel) -> None:
        self._writer.write(encode(frame))

    async def _ending(self) -> str:
        return ending(await asyncio.to_thread(self._process.wait))


def ending(code: int) -> str:
    """Say how a process ended, from its return code."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def importable(environ: Mapping[str, str]) -> dict[str, str]:
    """Let a child process import this package from wherever it starts."""
    root = str(Path(__file__).resolve().parents[3])
    return {**environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, environ.get("PYTHONPATH", "")]))}
