"""YAML as a tree of nodes with lines: words stay as written, merges are followed, aliases are never copied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from probes.declared.complaint import refuse

MAX_MERGES: Final = 16
MAX_ITEMS: Final = 10_000
MAX_BYTES: Final = 2**19
MAX_NESTING: Final = 200
_MERGE: Final = "tag:yaml.org,2002:merge"
_NULL: Final = "tag:yaml.org,2002:null"


@dataclass(frozen=True, kw_only=True)
class Tree:
    """One node. Every look into it goes one level deep, so that aliases of aliases cost nothing."""

    node: Node | None
    name: str
    line: int

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, MappingNode)

    @property
    def is_scalar(self) -> bool:
        return isinstance(self.node, ScalarNode) and self.node.tag != _NULL

    @property
    def is_sequence(self) -> bool:
        return isinstance(self.node, SequenceNode)

    @property
    def absent(self) -> bool:
        """Whether nothing stands there: no node, or null."""
        return self.node is None or (isinstance(self.node, ScalarNode) and self.node.tag == _NULL)

    @property
    def text(self) -> str:
        """The scalar as it is written, '' for anything else."""
        return str(self.node.value) if isinstance(self.node, ScalarNode) and self.node.tag != _NULL else ""

    @property
    def is_block(self) -> bool:
        """Whether it is a literal block, whose lines are lines of the file."""
        return isinstance(self.node, ScalarNode) and self.node.style == "|"

    @property
    def place(self) -> str:
        return f"{self.name}:{self.line}"

    def get(self, *keys: str) -> Tree:
        """Go down a path of keys; what is not there is an absent tree."""
        tree = self
        for key in keys:
            tree = tree._pairs().get(key, Tree(node=None, name=self.name, line=tree.line))
        return tree

    def items(self) -> Iterator[tuple[str, Tree]]:
        """Give the pairs of a mapping, its own before merged ones.

        Raises:
            InputError: a key stands there twice, or merges go in circles.
        """
        yield from self._pairs().items()

    def each(self) -> Iterator[Tree]:
        """Give the items of a sequence."""
        if isinstance(self.node, SequenceNode):
            for item in self.node.value[:MAX_ITEMS]:
                yield self._child(item)

    def _pairs(self, depth: int = 0) -> dict[str, Tree]:
        if not isinstance(self.node, MappingNode):
            return {}
        if depth > MAX_MERGES:
            raise refuse(self.place, "merges mappings in a circle", "merges that end")
        own: dict[str, Tree] = {}
        merged: dict[str, Tree] = {}
        for key, value in self.node.value[:MAX_ITEMS]:
            if key.tag == _MERGE:
                sources = value.value if isinstance(value, SequenceNode) else [value]
                for source in sources[:MAX_MERGES]:
                    merged = {**self._child(source)._pairs(depth + 1), **merged}
            elif isinstance(key, ScalarNode):
                if key.value in own:
                    line = key.start_mark.line + 1
                    raise refuse(f"{self.name}:{line}", f"has the key {str(key.value)[:60]!r} twice", "each key once")
                own[str(key.value)] = Tree(node=value, name=self.name, line=_line(key, value))
        return {**merged, **own}

    def _child(self, node: Node) -> Tree:
        return Tree(node=node, name=self.name, line=node.start_mark.line + 1)


def _line(key: Node, value: Node) -> int:
    """Give a value's line; a block begins on the line after its indicator, an alias where it is used."""
    own = int(value.start_mark.line) + 1
    return own if own >= int(key.start_mark.line) + 1 else int(key.start_mark.line) + 1


def documents(text: str, name: str) -> tuple[Tree, ...]:
    """Parse every document of a text.

    Raises:
        InputError: it is not YAML; templates are told as what they are.
    """
    # The parser takes time that grows with the square of open brackets, and seconds for a megabyte.
    if len(text) > MAX_BYTES:
        raise refuse(name, f"has {len(text)} characters", f"at most {MAX_BYTES}: a file that people wrote")
    if _open_brackets(text) > MAX_NESTING:
        raise refuse(name, f"opens more than {MAX_NESTING} brackets at once", "YAML that people wrote")
    try:
        nodes = list(YAML(typ="safe", pure=True).compose_all(text))
    except MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise refuse(f"{name}:{line}", f"is not valid YAML ({' '.join(str(exc.problem).split())})", _expected(text)) from exc
    except (YAMLError, ValueError, RecursionError, AssertionError, AttributeError) as exc:
        raise refuse(name, f"is not valid YAML ({type(exc).__name__})", _expected(text)) from exc
    return tuple(Tree(node=node, name=name, line=node.start_mark.line + 1) for node in nodes if node is not None)


def _open_brackets(text: str) -> int:
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = max(depth + (1 if bracket in "[{" else -1), 0)
        deepest = max(deepest, depth)
    return deepest


def _expected(text: str) -> str:
    return "a rendered manifest: helm template" if "{{" in text else "YAML"
