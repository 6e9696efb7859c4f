"""How a program is started: its words, its environment, and the lines they stand on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

_REFERENCE = re.compile(r"\$\$|\$\((\w+)\)")


@dataclass(frozen=True, kw_only=True)
class Word:
    """One word of a command line, or the value of a variable. `open_to` names what it depends on, where it does."""

    text: str
    where: str
    open_to: str = ""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A command with the environment it runs in.

    `image` is the container's, whose own command stands first unseen unless it is `overridden`. `partial` says what
    else the program gets that is not known here.
    """

    words: tuple[Word, ...]
    environment: Mapping[str, Word] = field(default_factory=dict)
    image: str = ""
    overridden: bool = False
    where: str = ""
    partial: tuple[str, ...] = ()


def expanded(launch: Launch) -> Launch:
    """Replace `$(NAME)` as Kubernetes does: by variables of the same container, and not at all where there is none.

    Where not all variables are known, a word with another one stays open.
    """
    environment: dict[str, Word] = {}
    for name, word in launch.environment.items():
        environment[name] = _expand(word, environment, whole=not launch.partial)
    words = tuple(_expand(word, environment, whole=not launch.partial) for word in launch.words)
    return replace(launch, words=words, environment=environment)


def _expand(word: Word, environment: Mapping[str, Word], *, whole: bool) -> Word:
    open_to = word.open_to

    def value(match: re.Match[str]) -> str:
        nonlocal open_to
        if match.group(1) is None:
            return "$"
        known = environment.get(match.group(1))
        if known is None:
            open_to = open_to or ("" if whole else match.group())
            return match.group()
        open_to = open_to or known.open_to
        return known.text

    return replace(word, text=_REFERENCE.sub(value, word.text), open_to=open_to)


def interpolated(word: Word, known: Callable[[str], Word | None]) -> Word:
    """Replace `$NAME`, `${NAME}` and `${NAME:-default}` by what is known; what is not leaves the word open."""
    open_to = word.open_to

    def value(match: re.Match[str]) -> str:
        nonlocal open_to
        if match.group() == "$$":
            return "$"
        name = match.group(1) or match.group(2)
        found = known(name)
        if found is None:
            open_to = open_to or name
            return match.group()
        open_to = open_to or found.open_to
        return found.text

    text = re.sub(r"\$\$|\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)(?:[:?+-][^}]*)?\}", value, word.text)
    return replace(word, text=text, open_to=open_to)
