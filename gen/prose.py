"""Sentences inside a record: safe as Markdown and still readable in a diff.

Pages escape every special character (`gen.markdown`); a record is reviewed as plain text, so only
what Markdown or HTML would really read at that place is escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gen.markdown import visible

_ANYWHERE = re.compile(r"[\\`*\[\]{}|]|<|&(?=#?\w+;)|~(?=~)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_AT_START = re.compile(r"^([#>+\-!]|\d+(?=[.)](?:\s|$)))")
_ENTITIES = {"<": "&lt;", "&": "&amp;", "~": "&#126;"}


def prose(value: str) -> str:
    """Put any text on one line that reads the same after Markdown has been at it."""
    line = visible(" ".join(value.split()))
    escaped = _ANYWHERE.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), line)
    return _AT_START.sub(lambda match: match[1] + "\\" if match[1].isdigit() else "\\" + match[1], escaped)


def sentence(value: str) -> str:
    """Write any text as a sentence of its own."""
    line = prose(value)
    return line if not line or line[-1] in ".!?…:" else f"{line}."


def bullets(items: Sequence[str]) -> str:
    """Write lines that are prose already as a list."""
    return "\n".join(f"- {item}" for item in items)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write cells that are prose already as a table; every row has as many cells as the header."""
    lines = [header, ["---"] * len(header), *rows]
    if any(len(line) != len(header) for line in lines):
        raise ValueError(f"{len(header)} cells in every row")
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
