"""JSON as RFC 8259 has it: no key twice, no NaN, no infinity, and never a RecursionError."""

from __future__ import annotations

import json

from pydantic import JsonValue

_MAX_SHOWN = 60


class KeyTwiceError(ValueError):
    """An object names a key twice; which of the two counts depends on who reads it."""


def parse(text: str | bytes) -> JsonValue:
    """Parse JSON text.

    Raises:
        json.JSONDecodeError: it is not JSON.
        KeyTwiceError: an object names a key twice.
        ValueError: it holds a number that is none, or nests too deep; bytes are no text.
    """
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nests too deep") from None
    return value


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in found:
            raise KeyTwiceError(f"the key {key[:_MAX_SHOWN]!r} stands there twice")
        found[key] = value
    return found


def _constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
