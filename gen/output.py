"""Writing generated pages into a folder that may hold other people's files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from probes.errors import HostError, InputError, Problem
from probes.files import write_atomic

MANIFEST = ".inference-adr-pages.json"


@dataclass(frozen=True, kw_only=True)
class Written:
    """How many pages were written, were up to date already, and were removed because they are generated no more."""

    written: int
    unchanged: int
    removed: int


def write_pages(pages: Mapping[str, str], folder: Path) -> Written:
    """Bring a folder up to date with the pages; a file that was not generated is never touched.

    Raises:
        InputError: a path leaves the folder, or a file that was not generated lies where a page goes.
        HostError: the folder cannot be read or written.
    """
    if (folder / "fleet.yml").exists():
        raise InputError([Problem(place=str(folder), found="is the repository itself", expected="a folder for pages alone")])
    before = _read_manifest(folder)
    contents = {path: text.encode() for path, text in pages.items()}
    try:
        problems = [problem for path, content in contents.items() if (problem := _obstacle(folder, path, content, before))]
    except OSError as exc:
        raise HostError(f"{exc.filename}: cannot be read ({exc.strerror}); expected a readable folder of pages") from exc
    if problems:
        raise InputError(problems)
    # The names go first: a crash in the middle must not orphan what was written before it.
    _write_manifest(folder, before | {path: _digest(content) for path, content in contents.items()})
    changed = sum(write_atomic(folder / path, content) for path, content in contents.items())
    removed = sum(_remove(folder, path, digest) for path, digest in before.items() if path not in contents)
    _write_manifest(folder, {path: _digest(content) for path, content in contents.items()})
    return Written(written=changed, unchanged=len(contents) - changed, removed=removed)


def _obstacle(folder: Path, path: str, content: bytes, before: Mapping[str, str]) -> Problem | None:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path or not parts.name:
        return Problem(place=f"page {path!r}", found="would leave the folder", expected="a relative path inside it")
    target = folder / path
    # Unlike Path.resolve, this takes a link that leads to itself.
    if not Path(os.path.realpath(target.parent)).is_relative_to(os.path.realpath(folder)):
        return Problem(place=str(target), found="lies behind a link out of the folder", expected="a folder of its own")
    if target.is_symlink() or target.is_dir():
        return Problem(place=str(target), found="is a link or a folder", expected="a file, or nothing")
    if path in before or not target.exists() or (target.is_file() and target.read_bytes() == content):
        return None
    return Problem(place=str(target), found="was not written by this command", expected="another --out, or the file moved away")


def _remove(folder: Path, path: str, digest: str) -> bool:
    target = folder / path
    try:
        if not target.is_file() or target.is_symlink() or _digest(target.read_bytes()) != digest:
            return False
        target.unlink()
        for parent in target.relative_to(folder).parents:
            if parent.parts and not any((folder / parent).iterdir()):
                (folder / parent).rmdir()
    except OSError as exc:
        raise HostError(f"{target}: cannot be removed ({exc.strerror})") from exc
    return True


def _read_manifest(folder: Path) -> dict[str, str]:
    path = folder / MANIFEST
    expected = "the list of an earlier run"
    try:
        if path.exists() and not path.is_file():
            raise InputError([Problem(place=str(path), found="is not a plain file", expected=expected)])
        document = json.loads(path.read_bytes()) if path.exists() else {}
    except OSError as exc:
        raise HostError(f"{path}: cannot be read ({exc.strerror}); expected {expected}") from exc
    except ValueError as exc:
        raise InputError([Problem(place=str(path), found=f"is not JSON ({exc})", expected=expected)]) from exc
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        raise InputError([Problem(place=str(path), found="is not a list of pages", expected=expected)])
    # A list from elsewhere must not make this command delete what lies outside.
    return {
        name: digest for name, digest in document.items() if ".." not in PurePosixPath(name).parts and not name.startswith("/")
    }


def _write_manifest(folder: Path, digests: Mapping[str, str]) -> None:
    write_atomic(folder / MANIFEST, (json.dumps(digests, indent=1, sort_keys=True) + "\n").encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
