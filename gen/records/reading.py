"""Reading a folder of records; a bad file is a problem and stops no other."""

from __future__ import annotations

import re
from pathlib import Path

from gen.records.record import NAME_PATTERN, Record
from gen.records.text import parse_record
from probes.errors import InputError, Problem

MAX_BYTES = 4 * 2**20
_NOT_RECORDS = frozenset({"readme.md"})


def read_records(folder: Path) -> tuple[tuple[Record, ...], tuple[Problem, ...]]:
    """Read every record of a folder, oldest first, with the problems of the files that are none."""
    records: list[Record] = []
    problems: list[Problem] = []
    try:
        paths = record_paths(folder)
    except InputError as exc:
        return (), exc.problems
    for path in paths:
        place = f"{shown_folder(folder)}/{path.name}"
        try:
            records.append(parse_record(path.stem, read_text(path, place), place))
        except InputError as exc:
            problems.extend(exc.problems)
    return tuple(sorted(records, key=lambda record: (record.date, record.name))), tuple(problems)


def record_paths(folder: Path) -> tuple[Path, ...]:
    """List what claims to be a record, whatever it is; nothing where there is no such folder.

    Raises:
        InputError: the folder cannot be listed, or something else lies in its place.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".md")
    except FileNotFoundError:
        return ()
    except OSError as exc:
        found = f"cannot be read ({exc.strerror})"
        raise InputError([Problem(place=shown_folder(folder), found=found, expected="a readable folder")]) from exc
    return tuple(path for path in paths if path.name.lower() not in _NOT_RECORDS)


def read_text(path: Path, place: str) -> str:
    """Read a record's file as it is, byte order mark and line ends included.

    Raises:
        InputError: the file is not named like a record, not a plain file, too large or not UTF-8.
    """

    def refuse(found: str, expected: str) -> InputError:
        return InputError([Problem(place=place, found=found, expected=expected)])

    if path.suffix != ".md" or not re.fullmatch(NAME_PATTERN, path.stem):
        raise refuse("is not named like a record", "YYYY-MM-DD-words.md in lower case, or README.md")
    try:
        # Asked before it is opened: a pipe would never come to an end.
        if path.is_symlink() or not path.is_file():
            raise refuse("is not a plain file", "a record is a file of its own, never a link")
        if path.stat().st_size > MAX_BYTES:
            raise refuse(f"is over {MAX_BYTES} bytes", "a record that people can read")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as exc:
        raise refuse(f"is not UTF-8 (byte {exc.start})", "text in UTF-8") from exc
    except OSError as exc:
        raise refuse(f"cannot be read ({exc.strerror})", "a readable file") from exc


def shown_folder(folder: Path) -> str:
    """Name a folder of records as messages do: 'adr' or 'adr/local'."""
    return f"{folder.parent.name}/{folder.name}" if folder.name == "local" else folder.name
