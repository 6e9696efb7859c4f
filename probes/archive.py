"""Evidence files: a run sealed with the hash of its content, written once, read back and checked."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import JsonValue, ValidationError

from probes.errors import HostError, InputError, Problem
from probes.evidence import SCHEMA, Run
from probes.files import TakenError, read_text, write_new
from probes.schema import problems_of
from probes.strictjson import parse

MAX_FILE_BYTES = 16 * 2**20
_MOST_NAMESAKES: Final = 1000
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """A run beside the text it was read from, and the hash of that text."""

    run: Run
    text: str
    text_sha256: str


def canonical(document: JsonValue) -> bytes:
    """Serialise for hashing: sorted keys, no spaces, UTF-8, no NaN (RFC 8785 in spirit)."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def content_hash(document: dict[str, JsonValue]) -> str:
    """Hash everything but the hash itself."""
    body = {key: value for key, value in document.items() if key != "content_sha256"}
    return hashlib.sha256(canonical(body)).hexdigest()


def seal(run: Run) -> Run:
    """Return the run with its content hash filled in."""
    return run.model_copy(update={"content_sha256": content_hash(_document(run))})


def write_run(run: Run, folder: Path) -> Path:
    """Seal a run and write it as `<id>.json`; never replaces a file.

    A run that began in the same second as one of the same name gets the first free number at the end of its id.

    Raises:
        HostError: the folder is read-only or full; the message names the file.
    """
    for named in _named(run):
        path = folder / f"{named.id}.json"
        text = json.dumps(_document(seal(named)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            write_new(path, text.encode())
        except TakenError:
            continue
        return path
    raise HostError(f"{folder / run.id}.json: {_MOST_NAMESAKES} runs have this name already; expected a free one")


def read_run(path: Path, name: str | None = None) -> Run:
    """Read one evidence file and check schema, name and hash.

    Raises:
        InputError: with every problem found; `name` replaces the path in messages.
    """
    return _read(path, name or path.name, {}).run


def _read(path: Path, place: str, checked: Mapping[str, str]) -> RunFile:
    text = read_text(path, place, most=MAX_FILE_BYTES, expected="a whole evidence file")
    text_sha256 = hashlib.sha256(text.encode()).hexdigest()
    found_hash = checked.get(text_sha256) or _checked(text, place)
    try:
        run = Run.model_validate_json(text)
    except ValidationError as exc:
        raise InputError(problems_of(exc, lambda loc: f"{place}: {'.'.join(map(str, loc))}")) from exc
    problems = []
    if run.content_sha256 != found_hash:
        problems.append(
            Problem(
                place=f"{place}: content_sha256",
                found=f"does not match the content ({found_hash[:12]}…)",
                expected=f"{run.content_sha256[:12]}…; evidence is never edited, measure again with `nox -s probe`",
            )
        )
    if path.stem != run.id:
        problems.append(Problem(place=f"{place}: id", found=f"is {run.id!r}", expected=f"the file's name, {path.stem!r}"))
    if problems:
        raise InputError(problems)
    return RunFile(run=run, text=text, text_sha256=text_sha256)


def _checked(text: str, place: str) -> str:
    """Give the hash of what a text says, once it is JSON of this schema."""
    try:
        document = parse(text)
    except ValueError as exc:
        raise InputError([Problem(place=place, found=f"is not JSON ({exc})", expected="a whole evidence file")]) from exc
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise InputError([Problem(place=f"{place}: schema", found=f"is {found!r}", expected=repr(SCHEMA))])
    return content_hash(document)


def read_runs(folder: Path) -> tuple[tuple[Run, ...], tuple[Problem, ...]]:
    """Read every evidence file of a folder, oldest first; a damaged file is a problem and stops no other.

    So is a folder that cannot be read; one that is not there holds no runs.
    """
    runs, problems = _each(folder, {}, lambda file: file.run)
    return tuple(sorted(runs, key=lambda run: (run.started_at, run.id))), problems


def read_run_files(folder: Path, checked: Mapping[str, str]) -> tuple[tuple[RunFile, ...], tuple[Problem, ...]]:
    """Read every evidence file in the same way, and keep the texts: to publish them as they are, for they are large.

    `checked` gives, by the hash of a text, the content hash that it was found to have before: an immutable file is parsed
    for it once.
    """
    files, problems = _each(folder, checked, lambda file: file)
    return tuple(sorted(files, key=lambda file: (file.run.started_at, file.run.id))), problems


def _each(folder: Path, checked: Mapping[str, str], kept: Callable[[RunFile], _T]) -> tuple[list[_T], tuple[Problem, ...]]:
    place = _place(folder)
    found: list[_T] = []
    problems: list[Problem] = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))  # noqa: PTH208 (Path.glob hides errors)
    except FileNotFoundError:
        names = []
    except OSError as exc:
        names = []
        problems.append(Problem(place=place, found=f"cannot be read ({exc.strerror})", expected="a folder of evidence files"))
    for name in names:
        try:
            found.append(kept(_read(folder / name, f"{place}/{name}", checked)))
        except InputError as exc:
            problems.extend(exc.problems)
    return found, tuple(problems)


def _named(run: Run) -> Iterator[Run]:
    """Give the run under its own id, then under each of its numbered ones; what it says of itself follows."""
    yield run
    for number in range(2, _MOST_NAMESAKES + 1):
        name = f"{run.id}-{number}"
        settings = tuple(
            one.model_copy(update={"provenance": one.provenance.model_copy(update={"source": name})})
            if one.provenance.source == run.id
            else one
            for one in run.settings
        )
        yield run.model_copy(update={"id": name, "settings": settings})


def _place(folder: Path) -> str:
    """Name a folder as it stands in the repository: from `adr` on where it lies there."""
    parts = folder.absolute().parts
    start = len(parts) - 1 - parts[::-1].index("adr") if "adr" in parts[:-1] else -2
    return "/".join(parts[start:])


def _document(run: Run) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = json.loads(run.model_dump_json())
    return document
