"""JSON as strict programs take it: no comments, no key twice, no NaN, and the line of what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from probes.declared.complaint import refuse
from probes.strictjson import parse


def loads(text: str, place: str, line: int | None = None) -> JsonValue:
    """Parse JSON text; `line` is where it begins in the file `place`, None when `place` names the line already.

    Raises:
        InputError: it is not JSON; secrets may stand in it, so no value is quoted.
    """
    try:
        value = parse(text)
    except json.JSONDecodeError as exc:
        where = place if line is None else f"{place}:{line + exc.lineno - 1}"
        hint = "; JSON has no comments" if "//" in text or "/*" in text else ""
        raise refuse(where, f"is not JSON ({exc.msg}, column {exc.colno}{hint})", "JSON") from exc
    except ValueError as exc:
        # json's own words on a number that is too long would quote none of it; NaN and depth are named.
        why = str(exc)
        raise refuse(place if line is None else f"{place}:{line}", f"is not usable JSON ({why})", "plain JSON") from exc
    return value


def mapping(text: str, place: str, line: int | None = None) -> Mapping[str, JsonValue]:
    """Parse JSON text that has to be an object.

    Raises:
        InputError: it is not.
    """
    value = loads(text, place, line)
    if not isinstance(value, dict):
        where = place if line is None else f"{place}:{line}"
        raise refuse(where, f"is {_kind(value)}", "a JSON object")
    return value


def _kind(value: JsonValue) -> str:
    names = {str: "a JSON string, quoted once too often", list: "a JSON list", bool: "a JSON boolean", type(None): "null"}
    return names.get(type(value), "a JSON number")
