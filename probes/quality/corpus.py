"""Reading tasks from JSONL: one task a line, every bad line told with its field, value and expectation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from probes.errors import InputError, Problem
from probes.files import read_text
from probes.quality.task import Suite, Task
from probes.schema import problems_of
from probes.strictjson import parse

MAX_BYTES = 8 * 2**20
MAX_TASKS = 500
OWN: Final = "own"
_ASIDE = ("text", "json", "tools", "instruction", "open")


def read_tasks(path: Path, name: str | None = None) -> tuple[Task, ...]:
    """Read a corpus file; blank lines are skipped.

    Raises:
        InputError: the file cannot be read, or with file, line, field, value and expectation of every bad line.
    """
    place = name or path.name
    text = read_text(path, place, most=MAX_BYTES, expected="a corpus that people wrote")
    return parse_tasks(text, place)


def parse_tasks(text: str, place: str, suite: str = OWN) -> tuple[Task, ...]:
    """Read tasks from text; `place` names it in messages, and `suite` is for tasks that name none.

    Raises:
        InputError: with every problem found.
    """
    problems: list[Problem] = []
    tasks: dict[tuple[str, str], tuple[int, Task]] = {}
    # Only real line breaks end a line: str.splitlines would also break at separators that JSON text may hold.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            task = Task.model_validate_json(json.dumps(_document(line, suite)))
        except ValidationError as exc:
            problems.extend(problems_of(exc, lambda loc, number=number: f"{place}:{number}{_field(loc)}"))  # type: ignore[misc]
        except ValueError as exc:
            problems.append(
                Problem(place=f"{place}:{number}", found=f"is not JSON ({_short(exc)})", expected="one JSON object")
            )
        else:
            first, _ = tasks.setdefault((task.suite, task.id), (number, task))
            if first != number:
                found = f"is {task.id!r}, as on line {first}"
                problems.append(Problem(place=f"{place}:{number}: id", found=found, expected="an id used once in its suite"))
    if not tasks and not problems:
        problems.append(Problem(place=place, found="holds no task", expected="one JSON object a line"))
    if len(tasks) > MAX_TASKS:
        problems.append(Problem(place=place, found=f"holds {len(tasks)} tasks", expected=f"at most {MAX_TASKS}"))
    if problems:
        raise InputError(problems)
    return tuple(task for _, task in tasks.values())


def grouped(tasks: Iterable[Task]) -> tuple[Suite, ...]:
    """Put tasks into their suites, in the order in which they first appear."""
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.suite, []).append(task)
    return tuple(Suite(name=name, title=f"own tasks: {name}", tasks=tuple(those)) for name, those in found.items())


def _document(line: str, suite: str) -> Any:
    document = parse(line)
    return {"suite": suite, **document} if isinstance(document, dict) else document


def _field(loc: tuple[int | str, ...]) -> str:
    """Name a field as it stands in the line; pydantic puts the kind of a check between."""
    parts = [str(part) for at, part in enumerate(loc) if not (at == 1 and loc[0] == "check" and part in _ASIDE)]
    return f": {'.'.join(parts)}" if parts else ""


def _short(exc: BaseException) -> str:
    return " ".join(str(exc).split()) or type(exc).__name__
