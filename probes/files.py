"""Writing files so that a crash leaves the old file or the new one, never half of either."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from probes.errors import HostError


def write_new(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet.

    Raises:
        HostError: the file exists, or the folder cannot be written.
    """
    _write(path, content, replace=False)


def write_atomic(path: Path, content: bytes) -> bool:
    """Replace a file as a whole; leave it untouched and return False when nothing would change.

    Raises:
        HostError: the folder cannot be written.
    """
    if path.is_file() and path.read_bytes() == content:
        return False
    _write(path, content, replace=True)
    return True


def ensure_writable(folder: Path) -> None:
    """Make a folder and prove that files can be written there, before minutes are spent on their content.

    Raises:
        HostError: they cannot.
    """
    handle, temporary = _temporary(folder, "probe")
    os.close(handle)
    temporary.unlink()


def _temporary(folder: Path, name: str) -> tuple[int, Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
    except OSError as exc:
        raise HostError(f"{folder}: cannot be written ({exc.strerror}); expected a writable folder") from exc
    return handle, Path(path)


def _write(path: Path, content: bytes, *, replace: bool) -> None:
    handle, temporary = _temporary(path.parent, path.name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        if replace:
            temporary.replace(path)
        else:
            # A link fails on an existing name where a rename would silently replace it.
            os.link(temporary, path)
    except FileExistsError as exc:
        raise HostError(f"{path}: exists already and is never overwritten") from exc
    except OSError as exc:
        raise HostError(f"{path}: cannot be written ({exc.strerror})") from exc
    finally:
        temporary.unlink(missing_ok=True)
