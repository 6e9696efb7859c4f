"""Errors by what the operator can do about them.

AdrError                 exit code 2, one line per problem, never a traceback
├── UsageError           correct the command line
├── InputError           correct the named file at the named place
├── HostError            mend this machine: disk, permission, port, package
└── ProbeError           nothing to mend here: the runtime refused or failed (becomes evidence)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong with one input: where, what was found, what was expected."""

    place: str
    found: str
    expected: str

    def __str__(self) -> str:
        found = f" {self.found}" if self.found else ""
        expected = f"; expected {self.expected}" if self.expected else ""
        return f"{self.place}:{found}{expected}"


class AdrError(Exception):
    """Base of every error a command reports as a message instead of a traceback."""


class UsageError(AdrError):
    """The command line cannot be carried out as written."""


class HostError(AdrError):
    """This machine lacks something: space, a permission, a free port, a package."""


class ProbeError(AdrError):
    """A runtime or an endpoint refused or failed; the message is its own words, redacted."""


class InputError(AdrError):
    """One or more problems in files people wrote or runs left behind."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems), key=_reading_order))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def _reading_order(problem: Problem) -> tuple[tuple[tuple[int, int | str], ...], str]:
    """Order by place with line 9 before line 10."""
    parts = re.split(r"(\d+)", problem.place)
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts), problem.found
