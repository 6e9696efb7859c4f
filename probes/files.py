"""Files read whole and bounded, and written so that a crash leaves the old one or the new one, never half of either."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Final

from probes.errors import HostError, InputError, Problem

# As much as a large evidence file: an empty one fits on a full disk.
_TRIAL_BYTES: Final = 2**18
_OUTPUTS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,6})")
# What systems say where there are no hard links: FAT, exFAT, and shares of other systems.
_NO_LINKS: Final = frozenset(
    {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
)


class TakenError(HostError):
    """The name is taken by another file, which stays as it is."""


def read_bounded(path: Path, place: str, *, most: int, expected: str) -> bytes:
    """Read a regular file of at most `most` bytes; `place` names it in messages, `expected` says what it should be.

    Raises:
        InputError: it is absent, no regular file or too large.
    """
    try:
        # Asked before it is opened: a pipe would wait for its writer.
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise _refusal(place, "is no regular file", expected)
        if state.st_size > most:
            raise _refusal(place, f"has {state.st_size} bytes", f"at most {most}: {expected}")
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as exc:
        raise _refusal(place, f"cannot be read ({exc.strerror})", "a readable file") from exc
    except ValueError as exc:
        raise _refusal(place, "cannot be read (its name holds a zero byte)", "a readable file") from exc
    if len(raw) > most:
        raise _refusal(place, f"has more than {most} bytes", expected)
    return raw


def read_text(path: Path, place: str, *, most: int, expected: str) -> str:
    """Read such a file as text in UTF-8; a byte order mark is no content.

    Raises:
        InputError: it cannot be read so; text that is none is told by its line.
    """
    return text_of(read_bounded(path, place, most=most, expected=expected), place)


def text_of(raw: bytes, place: str) -> str:
    """Turn bytes into text.

    Raises:
        InputError: they are no text in UTF-8.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw[: exc.start].count(b"\n") + 1
        raise _refusal(f"{place}:{line}", "is not UTF-8", "text in UTF-8") from exc


def _refusal(place: str, found: str, expected: str) -> InputError:
    return InputError([Problem(place=place, found=found, expected=expected)])


def write_new(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet.

    Raises:
        TakenError: the file exists.
        HostError: the folder cannot be written.
    """
    _write(path, content, replace=False)


def write_atomic(path: Path, content: bytes, *, lasting: bool = True) -> bool:
    """Replace a file as a whole; leave it untouched and return False when nothing would change.

    A terminal, a pipe or a device is no file to be replaced: it is written to. What need not be `lasting` may be lost or
    cut short when the machine goes down, and costs no wait for the disk.

    Raises:
        HostError: the file cannot be read, or the folder cannot be written.
    """
    if is_stream(path):
        _write_through(path, content)
        return True
    try:
        if path.is_file() and path.read_bytes() == content:
            return False
    except OSError as exc:
        raise HostError(f"{path}: cannot be read ({exc.strerror})") from exc
    _write(path, content, replace=True, lasting=lasting)
    return True


def is_stream(path: Path) -> bool:
    """Tell what is written to and never replaced: /dev/stdout, even where it leads to a file, a pipe or a device."""
    first, second, third = (*path.absolute().parts, "", "")[:3]
    # Linux keeps a folder for plain files there.
    named = first == "/" and (second == "proc" or (second == "dev" and third != "shm"))
    return named or (path.exists() and not (path.is_file() or path.is_dir()))


def ensure_writable(folder: Path) -> None:
    """Make a folder and prove that files can be written there, before minutes are spent on their content.

    Raises:
        HostError: they cannot.
    """
    handle, temporary = _temporary(folder, "probe")
    try:
        _fill(handle, os.urandom(_TRIAL_BYTES))
    except OSError as exc:
        expected = f"a writable folder with {_TRIAL_BYTES // 2**10} KiB to spare"
        raise HostError(f"{folder}: cannot be written ({exc.strerror}); expected {expected}") from exc
    finally:
        temporary.unlink(missing_ok=True)


def ensure_target(option: str, path: Path) -> None:
    """Prove that what an option names can be written, before minutes are spent on its content.

    Raises:
        HostError: it cannot.
    """
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise HostError(f"{option} {path}: cannot be written; expected a file in a folder that exists")
    if not is_stream(path):
        ensure_writable(path.absolute().parent)
    elif not path.exists():
        raise HostError(f"{option} {path}: does not exist; expected a file in a folder that can be written")


def current_folder() -> Path:
    """Give the current folder.

    Raises:
        HostError: it was deleted, or must not be read.
    """
    try:
        return Path.cwd()
    except OSError as exc:
        raise HostError(f"the current folder: cannot be used ({exc.strerror}); expected one that exists") from exc


def _write_through(path: Path, content: bytes) -> None:
    try:
        with os.fdopen(_opened(path), "wb") as stream:
            stream.write(content)
    except OSError as exc:
        raise HostError(f"{path}: cannot be written ({exc.strerror})") from exc


def _opened(path: Path) -> int:
    """Open what is written to; an output of this process goes on where it is, as a file opened anew would begin again."""
    name = str(path.absolute())
    if (known := _OUTPUTS.get(name)) is not None:
        return os.dup(known)
    if found := _DESCRIPTOR.fullmatch(name):
        return os.dup(int(found[1]))
    # A pipe that nobody reads refuses at once instead of waiting for ever.
    handle = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(handle, True)
    return handle


def _temporary(folder: Path, name: str) -> tuple[int, Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
    except OSError as exc:
        raise HostError(f"{folder}: cannot be written ({exc.strerror}); expected a writable folder") from exc
    return handle, Path(path)


def _fill(handle: int, content: bytes, *, lasting: bool = True) -> None:
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        if lasting:
            stream.flush()
            os.fsync(stream.fileno())


def _write(path: Path, content: bytes, *, replace: bool, lasting: bool = True) -> None:
    handle, temporary = _temporary(path.parent, path.name)
    try:
        _fill(handle, content, lasting=lasting)
        with contextlib.suppress(PermissionError):  # a file system without permissions grants them all
            temporary.chmod(0o644)
        if replace:
            temporary.replace(path)
        else:
            _link(temporary, path)
    except FileExistsError as exc:
        raise TakenError(f"{path}: exists already and is never overwritten") from exc
    except OSError as exc:
        raise HostError(f"{path}: cannot be written ({exc.strerror})") from exc
    finally:
        temporary.unlink(missing_ok=True)


def _link(temporary: Path, path: Path) -> None:
    """Give a finished file its name, unless that is taken: a link fails then, where a rename would replace the other."""
    try:
        os.link(temporary, path)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        # Creating the name takes it; the content follows as a whole.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        try:
            temporary.replace(path)
        except OSError:
            path.unlink(missing_ok=True)
            raise
