"""The tree that a change is compared with: a folder as it is, or a revision that git lays out for the time it is read."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from probes.errors import HostError, UsageError

_KEPT = ("fleet.yml", "adr", "gen/knowledge")
_EXPECTED = "expected a folder with a fleet.yml, or a commit, branch or tag that git knows here"


@dataclass(frozen=True, kw_only=True)
class Base:
    """Where the base lies, and how a reader of the summary finds it again."""

    folder: Path
    label: str


@contextmanager
def laid_out(root: Path, wanted: str) -> Iterator[Base]:
    """Give the base as a folder; of a revision it is the commit at which the checkout left it.

    Raises:
        UsageError: it is neither a folder with an inventory nor a commit with one.
        HostError: git is not there.
    """
    folder = Path(wanted)
    if wanted.strip() and (folder / "fleet.yml").is_file():
        yield Base(folder=folder, label=wanted)
        return
    commit = _commit(root, wanted)
    if not commit:
        found = "is a folder without a fleet.yml" if wanted.strip() and folder.is_dir() else "is no base to compare with"
        raise UsageError(f"{wanted!r}: {found}; {_EXPECTED}")
    # What came to the base since then is no part of this change.
    left = _git(root, "merge-base", commit, "HEAD").strip() or commit
    with tempfile.TemporaryDirectory(prefix="inference-adr-base-") as name:
        _unpack(root, left, wanted, Path(name))
        since = "" if left == commit else f", left at {left[:12]}"
        yield Base(folder=Path(name), label=f"{wanted} ({commit[:12]}{since})")


def _commit(root: Path, wanted: str) -> str:
    if wanted.startswith("-"):
        return ""
    return _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{wanted}^{{commit}}").strip()


def _unpack(root: Path, commit: str, wanted: str, folder: Path) -> None:
    there = [path for path in _KEPT if _git(root, "ls-tree", "--name-only", commit, "--", path).strip()]
    if "fleet.yml" not in there:
        raise UsageError(f"{wanted!r}: holds no fleet.yml at {commit[:12]}; {_EXPECTED}")
    with tarfile.open(fileobj=io.BytesIO(_bytes(root, "archive", "--format=tar", commit, "--", *there))) as archive:
        archive.extractall(folder, filter="data")


def _git(root: Path, *words: str) -> str:
    return _bytes(root, *words).decode("utf-8", "replace")


def _bytes(root: Path, *words: str) -> bytes:
    """Ask git; what it has no answer for is empty, and what that means is the caller's to say."""
    try:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=False).stdout  # noqa: S603, S607
    except OSError as exc:
        raise HostError(f"git: cannot be started ({exc.strerror}); expected git on the PATH, or a folder as base") from exc
