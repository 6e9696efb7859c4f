"""One measurement at a time: two that share a machine measure each other."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from probes.errors import HostError

NAME: Final = "run.lock"
_READ_CHARACTERS: Final = 300


@contextlib.contextmanager
def alone(folder: Path, holder: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a folder for as long as the block lasts; `holder` tells others who does.

    The system releases the lock when the process dies in whatever way. Where a folder or a file system
    takes no lock, `say` is told that a second run would go unnoticed.

    Raises:
        HostError: another process holds it; the message says which.
    """
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+", encoding="utf-8", errors="replace")
    except OSError as exc:
        say(_unguarded(path, exc))
        yield
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            lock.seek(0)
            held_by = lock.read(_READ_CHARACTERS).partition("\n")[0].strip() or "a process that is just starting"
            raise HostError(
                f"{path}: is held by {held_by}; expected no other run on this machine, for each would disturb the other's times"
            ) from exc
        except OSError as exc:
            say(_unguarded(path, exc))
            yield
            return
        lock.truncate(0)
        with contextlib.suppress(OSError):  # a full disk takes the lock, if not the name
            lock.write(f"{holder}\n")
            lock.flush()
        yield


def _unguarded(path: Path, exc: OSError) -> str:
    return f"{path}: takes no lock ({exc.strerror}); a second run at the same time would go unnoticed"
