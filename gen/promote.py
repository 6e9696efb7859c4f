"""Moving evidence: from this machine into a pull request, and from another host onto this machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from gen.records import Record
from probes.errors import HostError, InputError, Problem, UsageError
from probes.evidence import Run, read_run
from probes.files import write_new

# Names end up in links and on other people's disks.
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[a-z0-9-]{3,140}")


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What was copied, what was there already, and what was left behind and why; paths below the repository."""

    copied: tuple[str, ...]
    present: tuple[str, ...]
    left: tuple[str, ...] = ()


def promote(root: Path, run_id: str, drafts: Sequence[Record]) -> Moved:
    """Copy a local run into `adr/evidence/`, with every local draft whose evidence is then complete there.

    Bytes are kept. Running it again copies nothing; a draft that people went on with in `adr/` stays as it is.

    Raises:
        UsageError: no local run has exactly this name.
        InputError: the run is damaged, or another content is there under its name.
    """
    local, shared = root / "adr" / "local", root / "adr"
    names = sorted(path.stem for path in (local / "evidence").glob("*.json"))
    if run_id not in names:
        raise UsageError(_no_such_run(run_id, names, (shared / "evidence" / f"{run_id}.json").is_file()))
    source = local / "evidence" / f"{run_id}.json"
    read_run(source, f"adr/local/evidence/{run_id}.json")
    copies = [(source, shared / "evidence" / source.name)]
    there = {path.stem for path in (shared / "evidence").glob("*.json")} | {run_id}
    left = []
    for draft in drafts:
        cited = {ref.id for ref in draft.evidence}
        if run_id in cited and cited <= there:
            if not (shared / f"{draft.name}.md").exists():
                copies.append((local / f"{draft.name}.md", shared / f"{draft.name}.md"))
        elif run_id in cited:
            absent = ", ".join(sorted(cited - there))
            left.append(f"adr/local/{draft.name}.md also cites {absent}; promote that too")
    return _copy(copies, root, tuple(left))


def import_runs(root: Path, files: Iterable[Path], today: date) -> Moved:
    """Copy evidence made on another host into `adr/local/evidence/`, once all of it has been checked.

    Importing the same file twice is fine.

    Raises:
        InputError: with every file that is damaged, comes from the future, or differs from a run of the same name.
    """
    problems: list[Problem] = []
    copies = []
    for path in files:
        try:
            run = read_run(path, str(path))
            problems += _foreign(run, str(path), today)
        except InputError as exc:
            problems += exc.problems
            continue
        promoted = root / "adr" / "evidence" / f"{run.id}.json"
        copies.append((path, promoted if promoted.exists() else root / "adr" / "local" / "evidence" / f"{run.id}.json"))
    if problems:
        raise InputError(problems)
    return _copy(copies, root)


def _foreign(run: Run, place: str, today: date) -> Iterable[Problem]:
    if not _RUN_ID.fullmatch(run.id):
        yield Problem(place=f"{place}: id", found=f"is {run.id!r}", expected="a name such as 20260710T120000Z-host-what")
    if run.ended_at.date() > today:
        expected = f"a time up to today, {today}; check the clock of {run.client.alias}, or give --today"
        yield Problem(place=f"{place}: ended_at", found=f"is {run.ended_at.isoformat()}", expected=expected)


def _copy(copies: Sequence[tuple[Path, Path]], root: Path, left: tuple[str, ...] = ()) -> Moved:
    """Copy bytes without ever replacing anything; all of it is compared before any of it is written."""
    contents: dict[Path, bytes] = {}
    present: list[Path] = []
    problems: list[Problem] = []
    for source, target in copies:
        try:
            content = source.read_bytes()
            there = target.read_bytes() if target.exists() else None
        except OSError as exc:
            raise HostError(f"{exc.filename}: cannot be read ({exc.strerror})") from exc
        if there == content:
            present.append(target)
        elif there is None and contents.setdefault(target, content) == content:
            continue
        else:
            found = f"differs from {_shown(target, root)}, which has the same name"
            expected = "the same bytes; evidence is never edited and records are not overwritten"
            problems.append(Problem(place=_shown(source, root), found=found, expected=expected))
    if problems:
        raise InputError(problems)
    for target, content in contents.items():
        write_new(target, content)
    return Moved(
        copied=tuple(_shown(path, root) for path in contents), present=tuple(_shown(path, root) for path in present), left=left
    )


def _no_such_run(run_id: str, names: list[str], promoted: bool) -> str:  # noqa: FBT001
    if promoted:
        return f"{run_id} lies in adr/evidence already and has no local copy; there is nothing to promote"
    close = difflib.get_close_matches(run_id, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"{len(names)} local runs: {', '.join(names[-5:]) or 'none'}"
    return f"no local run is called {run_id!r}; {hint}"


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
