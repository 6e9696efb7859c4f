"""One process of the load: takes its task from standard input and tells on standard output what it does.

Imports the standard library and modules that do the same, so that a worker is small. Run as
`python -m probes.load.worker`: a task, then `go <ns>` and at last `stop` come in; `R` for ready, `S index ns` for a
request that was sent, `E index ns ok` for one that ended and `X reason words` for a run that has to stop go out.
"""

from __future__ import annotations

import contextlib
import gc
import json
import signal
import sys
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Final

from probes.load.connection import Peer
from probes.load.engine import Engine
from probes.load.task import Task, read_task

_READ_BYTES: Final = 2**16


def peer_of(task: Task) -> Peer:
    """Make the peer of a task; the TLS library is loaded only where TLS is spoken."""
    door = task.door
    if not door.secure:
        return Peer(family=door.family, address=door.address, name=door.name)
    import ssl

    context = ssl.create_default_context(cafile=door.ca_file or None)
    if door.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return Peer(family=door.family, address=door.address, name=door.name, tls=context)


def main() -> int:
    """Work off the task on standard input."""
    # Ctrl-C reaches the whole group; the command decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = FileIO(0, "rb", closefd=False), FileIO(1, "wb", closefd=False)
    _allow_sockets()
    task = read_task(_line(source))

    def tell(messages: list[str]) -> None:
        sink.write("".join(f"{one}\n" for one in messages).encode("utf-8", "replace"))

    with Path(task.spool).open("wb", buffering=0) as file:
        engine = Engine(task, peer_of(task), file, tell)
        tell(["R"])
        orders = _line(source).split()
        if not orders:
            return 1
        engine.listen(source)
        if b"stop" in orders:
            engine.halt()
        gc.collect()
        gc.freeze()
        gc.disable()
        engine.run(int(orders[1]))
    Path(task.stats).write_text(json.dumps(engine.pulse.document() | {"unsent": engine.unsent}), encoding="ascii")
    return 0


def _allow_sockets() -> None:
    """Raise the number of open files to what this process may have."""
    try:
        import resource
    except ImportError:
        return
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _line(source: RawIOBase) -> bytes:
    """Read a line, or what there is of it when the pipe is closed."""
    line = b""
    while not line.endswith(b"\n"):
        piece = source.read(_READ_BYTES)
        if not piece:
            break
        line += piece
    return line


if __name__ == "__main__":
    sys.exit(main())
