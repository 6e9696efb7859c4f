"""Whose default a value is: the program with the release, or the range of releases it is known for."""

from __future__ import annotations

import re


def default_of(program: str, known_from: str, known_to: str, version: str | None) -> str:
    """Name the release a default belongs to, and say so where nobody has looked at that release."""
    if version is None:
        return f"{program} {known_from} to {known_to}"
    # 2026.3.1 belongs to 2026.3: the last bound covers its patches.
    inside = _parts(known_from) <= _parts(version) and _parts(version)[: len(_parts(known_to))] <= _parts(known_to)
    return f"{program} {version}" if inside else f"{program} {known_to}, not checked for {version}"


def is_newer(version: str | None, known_to: str) -> bool:
    """Tell a release that nobody has looked at yet: it may know words that are not known here."""
    return version is not None and _parts(version)[: len(_parts(known_to))] > _parts(known_to)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
