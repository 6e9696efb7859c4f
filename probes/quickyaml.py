"""YAML read by libyaml where both versions of the language agree; whatever else is left to the strict reader.

A front matter takes the pure reader ten milliseconds, which a checkout of a thousand records pays a thousand times.
"""

from __future__ import annotations

import re
from typing import Final

import yaml  # type: ignore[import-untyped]
from ruamel.yaml.resolver import implicit_resolvers

MOST_LEVELS: Final = 64
# Line ends that only YAML 1.1 knows; tabs, byte order marks and ends of documents are for the strict reader to judge.
_DISPUTED: Final = re.compile("[\t\x85\u2028\u2029\ufeff]|^[.]{3}", re.MULTILINE)
# A block without indentation ends at a comment for libyaml, and not for YAML 1.2.
_BLOCKS: Final = frozenset({"|", ">"})
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+")
# The words of YAML 1.2 by their first letter, in the order in which the strict reader asks for them.
_WORDS: Final = tuple(
    (tag.rpartition(":")[2], words, first) for versions, tag, words, first in implicit_resolvers if (1, 2) in versions
)


class UnsureError(Exception):
    """Only the strict reader may say what this is."""


def read(text: str) -> object:
    """Read one document of plain data.

    Raises:
        UnsureError: it is none, or holds anything on which readers differ: anchors, tags, odd numbers, doubled keys.
    """
    if _DISPUTED.search(text):
        raise UnsureError
    try:
        return _built(text)
    except (yaml.YAMLError, ValueError) as exc:
        raise UnsureError from exc


def _built(text: str) -> object:
    levels: list[_Level] = [_Level(mapping=False)]
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.NodeEvent) and (isinstance(event, yaml.AliasEvent) or event.anchor or event.tag):
            raise UnsureError
        if isinstance(event, yaml.ScalarEvent):
            if event.style in _BLOCKS:
                raise UnsureError
            levels[-1].take(event.value if event.style else _plain(event.value))
        elif isinstance(event, yaml.CollectionStartEvent):
            levels.append(_Level(mapping=isinstance(event, yaml.MappingStartEvent)))
            if len(levels) > MOST_LEVELS:
                raise UnsureError
        elif isinstance(event, yaml.CollectionEndEvent):
            done = levels.pop()
            levels[-1].take(done.pairs if done.mapping else done.items)
        elif isinstance(event, yaml.DocumentStartEvent) and (event.version or event.tags or levels[0].items):
            raise UnsureError
    return levels[0].items[0] if levels[0].items else None


class _Level:
    """A list or a mapping that is still being read."""

    def __init__(self, *, mapping: bool) -> None:
        self.mapping = mapping
        self.items: list[object] = []
        self.pairs: dict[str, object] = {}
        self._key: str | None = None

    def take(self, value: object) -> None:
        if not self.mapping:
            self.items.append(value)
        elif self._key is not None:
            self.pairs[self._key], self._key = value, None
        elif isinstance(value, str) and value not in self.pairs:
            self._key = value
        else:
            raise UnsureError


def _plain(value: str) -> object:
    """Give an unquoted word its type, where there is one way to write it."""
    for tag, words, first in _WORDS:
        if value[:1] in first and words.match(value):
            return _typed(tag, value)
    return value


def _typed(tag: str, value: str) -> object:
    if tag == "timestamp":
        return value
    if tag == "null":
        return None
    if tag == "bool":
        return value.lower() == "true"
    if tag == "int" and _INT.fullmatch(value):
        return int(value)
    if tag == "float" and _FLOAT.fullmatch(value):
        return float(value)
    raise UnsureError
