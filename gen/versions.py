"""Release numbers compared as numbers: '2026.20' comes after '2026.3', and '2026.4' equals '2026.4.0'."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARK = r"(?:(?:a|b|rc|alpha|beta|pre)[.-]?\d{1,3}|dev[.-]?\d{1,8})(?!\w)"
_END = rf"(?=$|[^0-9a-z]|{_MARK})"
# A 'v' or the 'b' of a build number ('v2026.2', 'b10519'), the numbers, and a pre-release mark. What follows names a
# build of the same release, also where it begins with a digit: '2026.4.1-22982-e213a147257',
# '2026.4.1.0-3408-ab01d1771e4', and OVMS's '2025.4.0.61d4ad1c'. A commit is none of this, not even one of digits alone.
_VERSION = re.compile(rf"^\s*[vb]?(\d{{1,6}}{_END}(?:\.\d{{1,5}}{_END})*)(?:[-._]?({_MARK}))?", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Version:
    """Numbers without trailing zeros; a pre-release sorts before its release."""

    numbers: tuple[int, ...]
    final: bool = True
    mark: tuple[str, int] = ("", 0)


def parse_version(text: str) -> Version:
    """Read a release number as runtimes print it.

    Raises:
        ValueError: the text does not begin with a number.
    """
    match = _VERSION.match(text)
    if not match:
        raise ValueError(f"{text!r} is not a release number such as '2026.4.1' or 'b10519'")
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    if match[2] is None:
        return Version(tuple(numbers))
    word = match[2].rstrip("0123456789")
    return Version(tuple(numbers), final=False, mark=(word.rstrip(".-").lower(), int(match[2][len(word) :])))


def known_version(text: str | None) -> Version | None:
    """Read what a server or an inventory says its version is; None when it says nothing comparable.

    Builds that nobody stamped say 0.0.0, llama.cpp's b0, and setuptools-scm 0.1.dev1 where it finds no tag.
    """
    try:
        version = None if text is None else parse_version(text)
    except ValueError:
        return None
    if version is None or not any(version.numbers) or (version.numbers == (0, 1) and version.mark[0] == "dev"):
        return None
    return version
