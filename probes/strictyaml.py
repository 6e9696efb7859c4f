"""The one YAML loader: YAML 1.2 values, no duplicate keys, and the line of every field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from probes import quickyaml
from probes.errors import InputError, Problem
from probes.files import read_text
from probes.schema import problems_of

M = TypeVar("M", bound=BaseModel)
Loc = tuple[int | str, ...]
MAX_BYTES = 4 * 2**20


def load(
    path: Path, model: type[M], name: str | None = None, check: Callable[[M], Iterable[tuple[Loc, str, str]]] | None = None
) -> M:
    """Read a YAML file into a model.

    `check` looks for what a schema cannot say and yields (field path, found, expected).

    Raises:
        InputError: with file, line, field, value and expectation of every problem.
    """
    place = name or path.name
    text = read_text(path, place, most=MAX_BYTES, expected="a file that people wrote")
    return loads(text, model, place, check)


def loads(text: str, model: type[M], place: str, check: Callable[[M], Iterable[tuple[Loc, str, str]]] | None = None) -> M:
    """Read YAML text into a model; `place` names it in messages."""
    try:
        value = _read(text)
    except MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        found = f"is not valid YAML ({' '.join(str(exc.problem).split())})"
        raise InputError([Problem(place=f"{place}:{line}", found=found, expected="")]) from exc
    except (YAMLError, ValueError, RecursionError) as exc:
        raise InputError([Problem(place=place, found=f"is not valid YAML ({exc})", expected="")]) from exc
    try:
        document = json.dumps(value)
    except (TypeError, ValueError, RecursionError) as exc:
        # Complex keys, sets and anchors that hold themselves: YAML, but nothing a schema speaks of.
        raise InputError(
            [Problem(place=place, found=f"holds what is no plain data ({exc})", expected="maps, lists and words")]
        ) from exc
    try:
        # JSON mode lets strict models take enum words and ISO dates, and nothing else, as text.
        loaded = model.model_validate_json(document)
    except ValidationError as exc:
        node = _composed(text)
        raise InputError(problems_of(exc, lambda loc: _place(place, node, loc))) from exc
    problems = [
        Problem(place=_place(place, _composed(text), loc), found=found, expected=expected)
        for loc, found, expected in (check(loaded) if check else ())
    ]
    if problems:
        raise InputError(problems)
    return loaded


def spans(text: str) -> dict[str, tuple[int, int]]:
    """Locate each top-level field of a mapping that `loads` accepts: from its key to the end of its value.

    Blank lines and comments after a value are not part of it.
    """
    node = _composed(text)
    if not isinstance(node, MappingNode):
        return {}
    found = {}
    for key, value in node.value:
        start, end = key.start_mark.index, value.end_mark.index
        found[key.value] = (start, start + len(_TRAILING.sub("", text[start:end])))
    return found


_TRAILING = re.compile(r"(?:\s|(?<=\s)#[^\r\n]*(?:\r?\n|\Z))+\Z")


def _composed(text: str) -> Node | None:
    """Parse once more for the lines of fields: half of all the time, and only an error asks for them."""
    return YAML(typ="rt", pure=True).compose(text)  # type: ignore[no-any-return]


class _Constructor(SafeConstructor):
    """Leaves dates as written: the schema judges them, and tells their line."""


def _text(constructor: SafeConstructor, node: ScalarNode) -> str:
    return str(constructor.construct_scalar(node))


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", _text)


def _read(text: str) -> object:
    """Read text; the strict reader decides about all that is not plain, and words every complaint."""
    try:
        return quickyaml.read(text)
    except quickyaml.UnsureError:
        yaml = YAML(typ="safe", pure=True)
        yaml.Constructor = _Constructor
        return yaml.load(text)


def _place(file: str, root: Node | None, loc: Loc) -> str:
    """Follow a field path through the node tree; parts that pydantic invented for unions are skipped."""
    node, path, line = root, [], 1 if root is None else root.start_mark.line + 1
    for index, part in enumerate(loc):
        if isinstance(node, MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if pair is not None:
                line, node = pair[0].start_mark.line + 1, pair[1]
                path.append(str(part))
            elif index == len(loc) - 1 and str(part).replace("-", "_").isidentifier() and part not in _TYPE_WORDS:
                path.append(str(part))
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
            path.append(str(part))
    return f"{file}:{line}: {'.'.join(path)}" if path else f"{file}:{line}"


# What pydantic calls the branches of a union in an error's path.
_TYPE_WORDS = frozenset({"bool", "int", "float", "str", "dict", "tuple", "date"})
