"""A runtime's own message, without the places in its source that differ from build to build."""

from __future__ import annotations

import re

LIMIT = 400
_PLACE = re.compile(r"^(Exception from|Check '.*' failed at) \S+:\d+:?$")
_BUILD_PATH = re.compile(r"(?<![\w/])/(?:[\w.+-]+/)+(?=[\w.+-]+\.(?:cpp|hpp|h|inl|so)\b)")


def runtime_words(text: str) -> str:
    """Keep what a message says and drop where it was thrown; a message of nothing but places stays."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not _PLACE.match(line)] or lines
    short = _BUILD_PATH.sub("", " ".join(said))
    return short if len(short) <= LIMIT else f"{short[: LIMIT - 1]}…"
