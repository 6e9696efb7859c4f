"""The records of a checkout by name, each with the text of its file, and the damaged ones with what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gen.records.lifecycle import RecordFile
from gen.records.reading import read_text, record_paths
from gen.records.text import parse_record
from probes.errors import InputError, Problem, UsageError


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Every record file; one in `adr/` hides a local one of the same name, sound or damaged."""

    files: Mapping[str, RecordFile]
    damaged: Mapping[str, tuple[Problem, ...]]

    def find(self, name: str) -> RecordFile:
        """Find a record by its name, by its file's name or by its path.

        Raises:
            InputError: its file is damaged; with what is wrong in it.
            UsageError: there is no such file.
        """
        wanted = name.removesuffix(".md").rpartition("/")[2]
        if wanted in self.damaged:
            raise InputError(self.damaged[wanted])
        if wanted not in self.files:
            close_ones = difflib.get_close_matches(wanted, [*self.files, *self.damaged], n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(close_ones)}?" if close_ones else "nox -s adr -- list shows them"
            raise UsageError(f"no record is called {wanted!r}; {hint}")
        return self.files[wanted]


def read_shelf(root: Path) -> Shelf:
    """Read every record of a checkout with its text.

    Raises:
        InputError: a folder of records cannot be listed.
    """
    files: dict[str, RecordFile] = {}
    damaged: dict[str, tuple[Problem, ...]] = {}
    for folder in (root / "adr" / "local", root / "adr"):
        for path in record_paths(folder):
            name, place = path.stem, path.relative_to(root).as_posix()
            try:
                text = read_text(path, place)
                files[name] = RecordFile(path=path, record=parse_record(name, text, place), text=text)
                damaged.pop(name, None)
            except InputError as exc:
                damaged[name] = exc.problems
                files.pop(name, None)
    return Shelf(files=files, damaged=damaged)
