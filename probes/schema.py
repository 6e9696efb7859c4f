"""What every typed file shares: strict frozen models, and pydantic's complaints as problems."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from probes.errors import Problem

MAX_SHOWN = 80
# A refused address is quoted in the message; the password in it is not.
_SECRET_FIELDS = frozenset({"api_key"})
# What pydantic adds to the path of a mapping's key that is refused.
_KEY = "[key]"
_SECRET_IN_URL = re.compile(r"(://)[^/@\s]+@")


class Model(BaseModel):
    """Base of all schemas: unknown fields, NaN and silent conversions are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


def problems_of(error: ValidationError, place: Callable[[tuple[int | str, ...]], str]) -> list[Problem]:
    """Translate a pydantic error; `place` turns a field path into 'file:line: field'.

    The branches of a union report one error each for the same value; they become one problem
    that lists every accepted form.
    """
    merged: dict[tuple[str, str], list[str]] = {}
    for item in error.errors(include_url=False):
        where = place(tuple(part for part in item["loc"]))
        merged.setdefault((where, _found(item)), []).append(_expected(item))
    return [
        Problem(place=where, found=found, expected=" or ".join(dict.fromkeys(filter(None, expected))))
        for (where, found), expected in merged.items()
    ]


def _found(item: Any) -> str:
    if item["type"] == "missing":
        return "is missing"
    if item["type"] == "extra_forbidden":
        return "is not a known field"
    if item["loc"][-1:] == (_KEY,):
        return f"is the key {_shown(item['input'])}"
    if _SECRET_FIELDS.intersection(map(str, item["loc"])):
        return "holds a value that is not shown here"
    return f"is {_shown(item['input'])}"


def _shown(value: object) -> str:
    shown = _SECRET_IN_URL.sub(r"\1…@", repr(value))
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"


def _expected(item: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind in {"missing", "extra_forbidden"}:
        return "" if kind == "extra_forbidden" else "a value"
    if kind in {"enum", "literal_error", "union_tag_invalid"}:
        return f"one of {context.get('expected') or context['expected_tags']}"
    if kind == "string_type" and isinstance(item["input"], int | float):
        return "text; put it in quotes, or 2026.20 becomes 2026.2"
    if kind in {"model_type", "model_attributes_type", "dict_type"}:
        return "a mapping"
    if kind == "value_error":
        return str(context["error"])
    message: str = item["msg"]
    if kind == "string_pattern_mismatch":
        message = f"{'a key' if item['loc'][-1:] == (_KEY,) else 'text'} of the pattern {context['pattern']}"
    return message.removeprefix("Input should be ").removeprefix("a valid ")
