"""Starts and ends the embedded service: in this process, or in a child that cannot outlive it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

import uvicorn

from probes.endpoints.embedded.app import Service, build_app
from probes.endpoints.embedded.engine import Engine, ending, importable
from probes.endpoints.embedded.metrics import Metrics
from probes.endpoints.embedded.settings import Settings, parse_settings, read_settings
from probes.errors import AdrError, HostError, ProbeError, UsageError
from probes.evidence import Scalar
from probes.model import ModelFiles, genai_version

__all__ = [
    "EmbeddedAddress",
    "end_with_parent",
    "parse_settings",
    "read_settings",
    "running",
    "say",
    "serve",
    "tell_parent",
    "tell_parent_why_not",
]

_READY_WITHIN_S: Final = 180.0
_END_WITHIN_S: Final = 10.0
_TAIL_BYTES: Final = 2000
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
_KINDS: Final[Mapping[str, type[AdrError]]] = {kind.__name__: kind for kind in (UsageError, HostError, ProbeError)}


@dataclass(frozen=True, kw_only=True)
class EmbeddedAddress:
    """Where the service answers. `url` is its root, without /v1 or /v3."""

    url: str
    model: str
    genai_version: str
    device: str
    pid: int


def say(address: EmbeddedAddress) -> None:
    """Tell the person at the terminal where the service is."""
    about = f"{address.model} on {address.device} with openvino-genai {address.genai_version}"
    sys.stdout.write(f"{about} answers at {address.url}; Ctrl-C ends it\n")
    sys.stdout.flush()


def serve(
    model: ModelFiles,
    settings: Mapping[str, Scalar],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
    announce: Callable[[EmbeddedAddress], None] = say,
) -> None:
    """Serve until SIGTERM or Ctrl-C; `announce` is called once, when requests can be answered.

    Raises:
        UsageError: a setting or a host that cannot be used.
        HostError: the port is in use.
        ProbeError: the runtime refused the settings, in its words, or ended while it served.
    """
    wanted = read_settings(settings)
    _check_host(host, api_key)
    with contextlib.closing(_bind(host, port)) as listener:
        asyncio.run(_serve(model, wanted, listener, api_key, announce))


@contextlib.contextmanager
def running(
    settings: Mapping[str, Scalar],
    cache: Path,
    log: Path | None = None,
    *,
    api_key_env: str | None = None,
    ready_within_s: float = _READY_WITHIN_S,
) -> Iterator[EmbeddedAddress]:
    """Run the service in a child process on a free port of 127.0.0.1, for as long as the block lasts.

    The child ends when the block does, and when this process dies in whatever way. `log` takes what it writes,
    `api_key_env` names the environment variable with the key that clients must send.

    Raises:
        UsageError, HostError, ProbeError: as `serve` does; or the child was not ready in time.
    """
    read_settings(settings)
    words = [f"--setting={name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items()]
    words += [f"--api-key-env={api_key_env}"] if api_key_env is not None else []
    with log.open("a+b") if log is not None else tempfile.TemporaryFile() as said:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "probes.endpoints.embedded", "--child", f"--cache={cache.absolute()}", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=importable(os.environ),
            start_new_session=True,  # Ctrl-C is for this process, which then ends the child in order
        )
        try:
            yield _ready(child, said, time.monotonic() + ready_within_s)
        finally:
            _end(child)


def tell_parent(address: EmbeddedAddress) -> None:
    """Write the one line that `running` waits for."""
    sys.stdout.write(json.dumps(asdict(address)) + "\n")
    sys.stdout.flush()


def tell_parent_why_not(error: AdrError) -> None:
    """Write, in place of an address, why there is none."""
    sys.stdout.write(json.dumps({"error": type(error).__name__, "words": str(error)}) + "\n")
    sys.stdout.flush()


def end_with_parent() -> None:
    """End this process when its standard input closes, which happens even if the parent is killed."""

    def watch() -> None:
        while os.read(0, 1):  # sys.stdin would hold a lock that the interpreter needs at its end
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_END_WITHIN_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


async def _serve(
    model: ModelFiles,
    settings: Settings,
    listener: socket.socket,
    api_key: str | None,
    announce: Callable[[EmbeddedAddress], None],
) -> None:
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None  # noqa: S101 - asyncio.run makes this a task
    for number in _ENDING:
        loop.add_signal_handler(number, this.cancel)
    try:
        engine = await Engine.start(model, settings)
    except asyncio.CancelledError:
        return
    service = Service(
        engine=engine,
        metrics=Metrics(model.facts.id, engine.settings),
        model=model.facts.id,
        genai_version=genai_version(),
        api_key=api_key,
    )
    address = EmbeddedAddress(
        url=_url(listener), model=service.model, genai_version=service.genai_version, device=settings.device, pid=os.getpid()
    )
    server = _Server(service, lambda: announce(address))
    for number in _ENDING:
        loop.add_signal_handler(number, server.end)
    try:
        await server.run_on(listener)
    finally:
        await engine.close("the service has ended")
    if engine.last_words:
        raise ProbeError(engine.last_words)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end this process before the engine is put away."""

    def __init__(self, service: Service, started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            build_app(service),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        super().__init__(config)
        self._engine = service.engine
        self._started = started

    def end(self) -> None:
        """Answer what is being answered with an error, then stop."""
        self._engine.fail_all("the service is ending")
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._engine.died.is_set()

    async def run_on(self, listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        try:
            await self.serve(sockets=[listener])
        except OSError as exc:
            raise HostError(_cannot_listen(host, port, exc)) from exc


def _check_host(host: str, api_key: str | None) -> None:
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError as exc:
        raise UsageError(f"host {host!r}: is not an address; expected 127.0.0.1 or another IP address") from exc
    if not local and not api_key:
        raise UsageError(f"host {host}: is open to other machines; expected 127.0.0.1, or a key that clients must send")


def _bind(host: str, port: int) -> socket.socket:
    """Take the port before the model is loaded, without listening: clients are refused until it can answer."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as exc:
        listener.close()
        raise HostError(_cannot_listen(host, port, exc)) from exc
    return listener


def _cannot_listen(host: str, port: int, exc: Exception) -> str:
    why = exc.strerror if isinstance(exc, OSError) else str(exc)
    return f"{host}:{port}: cannot be listened on ({why}); expected a free port, or 0 to take any"


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _ready(child: subprocess.Popen[bytes], said: IO[bytes], deadline: float) -> EmbeddedAddress:
    line = _first_line(child, deadline)
    if line is None:
        raise HostError(f"the embedded service was not ready in time{_last_words(said)}")
    try:
        told = json.loads(line)
    except ValueError:
        raise ProbeError(f"the embedded service did not start ({ending(child.wait())}){_last_words(said)}") from None
    if "error" in told:
        raise _KINDS.get(told["error"], ProbeError)(told["words"])
    return EmbeddedAddress(**told)


def _first_line(child: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """Read up to a line break or the end of the output; None when the deadline comes first."""
    assert child.stdout is not None  # noqa: S101 - it was started with a pipe
    pipe, line = child.stdout.fileno(), b""
    while not line.endswith(b"\n"):
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        data = os.read(pipe, 4096)
        if not data:
            break
        line += data
    return line


def _last_words(said: IO[bytes]) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL_BYTES))
    words = said.read().decode(errors="replace").strip()
    return f": {words}" if words else ""


def _end(child: subprocess.Popen[bytes]) -> None:
    try:
        child.terminate()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_END_WITHIN_S)
    finally:
        child.kill()
        child.wait()
