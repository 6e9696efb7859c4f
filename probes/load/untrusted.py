"""Text and numbers from the wire, made safe to use: nothing here raises on what a server sent."""

from __future__ import annotations

import json
import math
from typing import Final

from pydantic import JsonValue

MAX_COUNT: Final = 2**53


def parse_json(text: str | bytes) -> JsonValue:
    """Parse JSON; None when it is none (`null` included), nested too deep or holds too long a number."""
    try:
        document: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document


def count(value: JsonValue) -> int | None:
    """Take a non-negative whole number; anything else is no count (`1e400` parses to infinity)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return int(value) if value == int(value) else None


def rate(amount: float, seconds: float) -> float | None:
    """Divide, unless nothing was counted or no time passed: 0 and infinity are never measurements (1e400 reads as one)."""
    if not (0 < amount < math.inf and 0 < seconds < math.inf):
        return None
    quotient = amount / seconds
    return quotient if 0 < quotient < math.inf else None


def string(value: JsonValue) -> str:
    """Take a string, and nothing for anything else."""
    return value if isinstance(value, str) else ""


def one_line(text: str) -> str:
    """Put text on one line."""
    return " ".join(well_formed(text).split())


def well_formed(text: str) -> str:
    """Join surrogate pairs that arrived in two chunks and replace lone halves, which no file could hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def error_words(document: JsonValue) -> str | None:
    """Find the message in the error bodies of OpenAI, OVMS and FastAPI servers; None when there is none."""
    if isinstance(document, str):
        return one_line(document) or None
    if not isinstance(document, dict):
        return None
    for key in ("error", "detail", "message"):
        value = document.get(key)
        if isinstance(value, str) and value:
            return _with_type(document, value) if key == "message" else one_line(value)
        if isinstance(value, dict) and value:
            message = string(value.get("message"))
            return _with_type(value, message) if message else one_line(json.dumps(value))
        if isinstance(value, list) and value:
            return one_line(json.dumps(value))
    return None


def _with_type(error: dict[str, JsonValue], message: str) -> str:
    kind = string(error.get("type"))
    return one_line(f"{kind}: {message}" if kind and kind not in message else message)
