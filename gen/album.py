"""Charts and parts of pages that were made before, kept in a folder by what they were made from."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from probes.errors import HostError, InputError
from probes.files import read_text, write_atomic

FOLDER = Path(".cache/pages")
MOST_SPARE = 4000
_MOST_BYTES = 16 * 2**20
_EXPECTED = "a text that was made before"


class Album:
    """A folder of texts, each under the hash of all that it was made from, its maker included.

    Whatever lies there can be thrown away: what is absent, damaged or cannot be kept is made anew.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._used: set[str] = set()
        self._full = False

    def take(self, key: str) -> str | None:
        """Give what was kept under a key, None where nothing was or where it is no longer whole."""
        name = _name(key)
        self._used.add(name)
        try:
            digest, _, made = read_text(self.folder / name, name, most=_MOST_BYTES, expected=_EXPECTED).partition("\n")
        except InputError:
            return None
        return made if digest == _digest(made) else None

    def put(self, key: str, made: str) -> None:
        """Keep a text; where the folder takes none, all is made anew the next time."""
        if self._full:
            return
        try:
            write_atomic(self.folder / _name(key), f"{_digest(made)}\n{made}".encode(), lasting=False)
        except HostError:
            self._full = True

    def tidy(self) -> None:
        """Throw away what was not asked for, but for the newest so many: branches take turns in one checkout."""
        try:
            unused = [path for path in self.folder.iterdir() if path.name not in self._used]
            for path in sorted(unused, key=lambda path: path.lstat().st_mtime_ns, reverse=True)[MOST_SPARE:]:
                path.unlink(missing_ok=True)
        except OSError:
            return


# Neither an argument nor a setting of the module: between a build and its charts stand twenty functions that would hand it
# on, and none of them may say anything else because of it. It ends with the block that opened it.
_OPEN: ContextVar[Album | None] = ContextVar("album", default=None)


@contextmanager
def kept_in(album: Album | None) -> Iterator[None]:
    """Take what was made before from an album, and put there what is new, until the block ends; no byte hangs on it."""
    token = _OPEN.set(album)
    try:
        yield
    finally:
        _OPEN.reset(token)
    if album is not None:
        album.tidy()


def written(key: str, write: Callable[[], str]) -> str:
    """Write a part of a page that hangs on nothing but what `key` names, or give what came of it the last time.

    The sources of this package belong to the key: what another version of them wrote is written anew.
    """
    return kept(f"{_sources()}\n{key}", write)


def kept(key: str, make: Callable[[], str]) -> str:
    """Give what was made from a key before, or make it and keep it."""
    album = _OPEN.get()
    found = album.take(key) if album is not None else None
    if found is None:
        found = make()
        if album is not None:
            album.put(key, found)
    return found


@functools.cache
def _sources() -> str:
    """Hash the program itself."""
    package = Path(__file__).parent
    files = sorted(package.rglob("*.py"))
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _digest(made: str) -> str:
    return hashlib.sha256(made.encode()).hexdigest()
