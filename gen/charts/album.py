"""Charts that were rendered before, kept in a folder by what they were rendered from."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path

import vl_convert

from probes.errors import HostError, InputError
from probes.files import read_text, write_atomic

FOLDER = Path(".cache/charts")
MOST_SPARE = 2000
_MOST_BYTES = 4 * 2**20
_EXPECTED = "a chart that was rendered before"
_RENDERER = version("vl-convert-python")


class Album:
    """A folder of renderings, each under the hash of its specification and of the renderer that read it.

    Whatever lies there can be thrown away: a rendering that is absent, damaged or cannot be kept is made anew.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._used: set[str] = set()
        self._full = False

    def take(self, spec: str) -> str | None:
        """Give the rendering of a specification as it was kept, None where it was not or is no longer whole."""
        name = _name(spec)
        self._used.add(name)
        try:
            digest, _, drawn = read_text(self.folder / name, name, most=_MOST_BYTES, expected=_EXPECTED).partition("\n")
        except InputError:
            return None
        return drawn if digest == _digest(drawn) else None

    def put(self, spec: str, drawn: str) -> None:
        """Keep a rendering; where the folder takes none, all is rendered anew the next time."""
        if self._full:
            return
        try:
            write_atomic(self.folder / _name(spec), f"{_digest(drawn)}\n{drawn}".encode(), lasting=False)
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
    """Take charts from an album, and put new ones there, until the block ends; the bytes are the same without one."""
    token = _OPEN.set(album)
    try:
        yield
    finally:
        _OPEN.reset(token)
    if album is not None:
        album.tidy()


def svg_of(spec: str) -> str:
    """Render a Vega-Lite specification with data by name, or give what came of it the last time."""
    album = _OPEN.get()
    drawn = album.take(spec) if album is not None else None
    if drawn is None:
        drawn = _rendered(spec)
        if album is not None:
            album.put(spec, drawn)
    return drawn


def _rendered(spec: str) -> str:
    layout = json.loads(spec)
    values = layout.get("datasets", {})
    layout["datasets"] = dict.fromkeys(values, ())
    vega = json.loads(_compiled(json.dumps(layout, sort_keys=True)))
    for data in vega["data"]:
        if data["name"] in values:
            data["values"] = values[data["name"]]
    return str(vl_convert.vega_to_svg(vega, allowed_base_urls=[]))


@functools.lru_cache(maxsize=256)
def _compiled(layout: str) -> str:
    """Translate a layout without its data into Vega, which takes a third of the time that a chart takes."""
    return json.dumps(vl_convert.vegalite_to_vega(layout))


def _name(spec: str) -> str:
    """Name the renderer too: another release may draw another picture."""
    return hashlib.sha256(f"vl-convert {_RENDERER}\n{spec}".encode()).hexdigest()


def _digest(drawn: str) -> str:
    return hashlib.sha256(drawn.encode()).hexdigest()
