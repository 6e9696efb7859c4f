"""Refusing what a file says, in the words of every other input error."""

from __future__ import annotations

from probes.errors import InputError, Problem

MAX_VALUE = 200
MAX_SHOWN = 80


def refuse(place: str, found: str, expected: str) -> InputError:
    """Make the error of one problem."""
    return InputError([Problem(place=place, found=found, expected=expected)])


def shown(value: str) -> str:
    """Quote a value in a message, cut to what a line can hold."""
    quoted = repr(value)
    return quoted if len(quoted) <= MAX_SHOWN else quoted[: MAX_SHOWN - 1] + "…"


def usable(value: str) -> bool:
    """Tell whether a text may become evidence: one line, printable, not endless."""
    return value.isprintable() and len(value) <= MAX_VALUE
