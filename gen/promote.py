"""Moving evidence: from this machine into a pull request, and from another host onto this machine."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from gen.arrival import clock_remarks, host_facts, likeness_remark
from gen.records import Record
from probes.archive import read_run
from probes.errors import HostError, InputError, Problem, UsageError
from probes.evidence import Run
from probes.files import write_new

# Names end up in links and on other people's disks.
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[a-z0-9-]{3,140}")
Runs = Mapping[str, Path]


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What was copied, what was there already, and what was left behind and why; paths below the repository.

    `remarks` say of evidence from elsewhere which host it comes from, whether its times agree, what it compares with.
    """

    copied: tuple[str, ...]
    present: tuple[str, ...]
    left: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def promote(root: Path, wanted: str, drafts: Sequence[Record]) -> Moved:
    """Copy a local run or a local draft to where a pull request can hold it; `drafts` are the local records.

    A run takes along every draft whose evidence is then complete in `adr/`, a draft the runs that it cites.
    Bytes are kept. Running it again copies nothing; a draft that people went on with in `adr/` stays as it is.
    `wanted` is a name, a file's name, or a path from the current folder or the repository.

    Raises:
        UsageError: no local run or draft has exactly this name.
        InputError: a run is damaged or not there, or another content is there under its name.
    """
    name = _name(root, wanted)
    local, shared = _runs_in(root / "adr" / "local" / "evidence"), _runs_in(root / "adr" / "evidence")
    draft = next((draft for draft in drafts if draft.name == name), None)
    if draft is not None:
        return _promote_draft(root, draft, local, shared, {other.name for other in drafts})
    if name not in local:
        if name in _stems(root / "adr", ".md") and name in _stems(root / "adr" / "local", ".md"):
            return Moved(copied=(), present=(f"adr/{name}.md",))
        raise UsageError(_nothing_called(root, wanted, name, [*local, *(draft.name for draft in drafts)]))
    read_run(local[name], _shown(local[name], root))
    copies = [(local[name], root / "adr" / "evidence" / local[name].name)]
    there, promoted = {*shared, name}, _stems(root / "adr", ".md")
    left: list[str] = []
    for draft in drafts:
        cited = {ref.id for ref in draft.evidence}
        if name in cited and cited <= there and draft.name not in promoted:
            copies.append(_paths(root, draft))
            left += _links_left(draft, {other.name for other in drafts})
        elif name in cited and not cited <= there:
            absent = ", ".join(sorted(cited - there))
            left.append(f"adr/local/{draft.name}.md also cites {absent}; promote that too")
    return _copy(copies, root, tuple(left))


def _promote_draft(root: Path, draft: Record, local: Runs, shared: Runs, drafts: Collection[str]) -> Moved:
    absent = [ref.id for ref in draft.evidence if ref.id not in local and ref.id not in shared]
    if absent:
        expected = "it in adr/local/evidence or adr/evidence; else delete the draft, and nox -s adr -- propose --write"
        place = f"adr/local/{draft.name}.md"
        raise InputError([Problem(place=place, found=f"cites {run}, which is not there", expected=expected) for run in absent])
    copies = []
    for ref in draft.evidence:
        if ref.id not in shared:
            read_run(local[ref.id], _shown(local[ref.id], root))
            copies.append((local[ref.id], root / "adr" / "evidence" / local[ref.id].name))
    return _copy([*copies, _paths(root, draft)], root, tuple(_links_left(draft, drafts)))


def _paths(root: Path, draft: Record) -> tuple[Path, Path]:
    return root / "adr" / "local" / f"{draft.name}.md", root / "adr" / f"{draft.name}.md"


def _links_left(draft: Record, drafts: Collection[str]) -> Iterator[str]:
    """Tell which records a promoted draft speaks of that stay where a pull request does not show them."""
    for name in draft.supersedes:
        if name in drafts:
            yield f"adr/{draft.name}.md takes the place of {name}, which lies in adr/local only; promote that too"


def import_runs(root: Path, files: Iterable[Path], today: date, known: Sequence[Run] = ()) -> Moved:
    """Copy evidence made on another host into `adr/local/evidence/`, once all of it has been checked.

    Importing the same file twice is fine. `known` are the runs that are here, to say what the new ones compare with.

    Raises:
        InputError: with every file that is damaged, comes from the future, or differs from a run of the same name.
    """
    problems: list[Problem] = []
    copies = []
    taken: list[Run] = []
    shared = _runs_in(root / "adr" / "evidence")
    for path in files:
        try:
            run = read_run(path, str(path))
            problems += _foreign(run, str(path), today)
        except InputError as exc:
            problems += exc.problems
            continue
        copies.append((path, shared.get(run.id, root / "adr" / "local" / "evidence" / f"{run.id}.json")))
        taken.append(run)
    if problems:
        raise InputError(problems)
    remarks = tuple(line for run in taken for line in _remarks(run, [*known, *taken], today))
    return replace(_copy(copies, root), remarks=remarks)


def _remarks(run: Run, others: Sequence[Run], today: date) -> Iterator[str]:
    valid = "valid" if run.validity.valid else f"invalid: {', '.join(run.validity.reasons)}"
    yield f"{run.id}: {run.kind.value} {run.subject}, {valid}, hash {run.content_sha256[:12]}"
    yield f"  asked from   {host_facts(run.client)}"
    yield f"  served by    {host_facts(run.server)}"
    yield f"  clock        {'; '.join(clock_remarks(run, today)) or 'its times agree'}"
    yield f"  comparable   {likeness_remark(run, others)}"


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
            there = _plain_bytes(target)
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


def _plain_bytes(path: Path) -> bytes | None:
    """Read a file that may be absent; what is neither is in the way."""
    if not path.exists():
        return None
    if not path.is_file():
        raise HostError(f"{path}: is not a plain file; expected a file, or nothing")
    return path.read_bytes()


def _name(root: Path, wanted: str) -> str:
    """Reduce what was asked for to a name; a path that leads elsewhere stays as it is, and names nothing."""
    path = Path(wanted)
    if len(path.parts) > 1:
        folders = ("adr/local/evidence", "adr/local", "adr/evidence", "adr")
        homes = {os.path.realpath(root / folder) for folder in folders}
        if not homes & {os.path.realpath(base / path.parent) for base in (Path(), root)}:
            return wanted
    return path.stem if path.suffix in {".json", ".md"} else path.name


def _nothing_called(root: Path, wanted: str, name: str, names: Sequence[str]) -> str:
    for folder, suffix in (("adr/evidence", ".json"), ("adr", ".md")):
        if name in _stems(root / folder, suffix):
            return f"{name} lies in {folder} already and has no local copy; there is nothing to promote"
    close = difflib.get_close_matches(name, names, n=1)
    some = f"{len(names)} in adr/local: {', '.join(sorted(names)[-5:]) or 'none'}"
    return f"no local run or draft is called {wanted!r}; {f'did you mean {close[0]}?' if close else some}"


def _runs_in(folder: Path) -> Runs:
    return {path.stem: path for path in _listed(folder, ".json")}


def _stems(folder: Path, suffix: str) -> frozenset[str]:
    return frozenset(path.stem for path in _listed(folder, suffix))


def _listed(folder: Path, suffix: str) -> tuple[Path, ...]:
    """List what is named like a file of this kind, whatever it is; nothing where there is no such folder.

    Raises:
        HostError: the folder cannot be listed, or something else lies in its place.
    """
    try:
        return tuple(sorted(path for path in folder.iterdir() if path.suffix == suffix))
    except FileNotFoundError:
        return ()
    except OSError as exc:
        raise HostError(f"{folder}: cannot be read ({exc.strerror}); expected a readable folder") from exc


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
