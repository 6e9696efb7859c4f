"""What a command is given and what it gives back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Self

from rich.console import RenderableType

from probes.errors import Problem

EXIT_OK, EXIT_FINDINGS, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True, kw_only=True)
class Call:
    """One invocation: its arguments, the repository, and the only date that anything may ask for."""

    arguments: Namespace
    root: Path
    today: date


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Lines or tables for standard output, notes for standard error, and the exit code."""

    shown: tuple[RenderableType, ...] = ()
    notes: tuple[str, ...] = ()
    code: int = EXIT_OK

    @classmethod
    def of_what_could_be_read(cls, shown: tuple[RenderableType, ...], problems: Iterable[Problem]) -> Self:
        """Show what there is; a damaged file that was left out is told, and the exit code is that of broken input."""
        notes = tuple(f"left out: {problem}" for problem in problems)
        return cls(shown=shown, notes=notes, code=EXIT_UNUSABLE if notes else EXIT_OK)
