"""What libyaml reads is what the strict reader reads; where they could differ, only the strict one is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from ruamel.yaml import YAML

from probes import quickyaml
from probes.schema import Model
from probes.strictyaml import loads

ROOT = Path(__file__).parents[2]
PIECES = [
    *("a", "b", "key", "1", "-1", "0x1", "1.5", "true", "null", "~", "yes", "2026-07-10", "012", "1e3", ".5", "1_0", "=", "<<"),
    *(":", ": ", ":\n", "\n", "\n  ", "\n    ", "- ", "\n- ", "{", "}", "[", "]", ", ", ",", "? ", " ", "  ", "\r\n", "\r"),
    *('"', '"x"', "'y'", "'", "|\n", ">\n", "#", " # c\n", "---\n", "...\n", "&a ", "*a", "!x ", "@", "`", "%", "\\", '"\\n"'),
    *("é", "http://x", "a:b", "-", "\t", "\x85", "\u2028"),
]


class Anything(Model):
    value: JsonValue


def strict(text: str) -> object:
    """Read as the fallback does: dates stay as written."""
    reader = YAML(typ="safe", pure=True)
    reader.constructor.add_constructor("tag:yaml.org,2002:timestamp", lambda c, node: str(c.construct_scalar(node)))
    return reader.load(text)


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_what_is_read_quickly_is_what_is_read_strictly(text: str) -> None:
    try:
        quick = quickyaml.read(text)
    except quickyaml.UnsureError:
        return
    assert repr(quick) == repr(strict(text))


@pytest.mark.parametrize("path", sorted((ROOT / "gen" / "knowledge").rglob("*.yaml")), ids=lambda path: path.name)
def test_the_knowledge_base_is_read_quickly_and_alike(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert quickyaml.read(text) == strict(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: &x 1\nb: *x",
        "a: !!str 1",
        "<<: {a: 1}",
        "a: 0x10",
        "a: 012",
        "a: .inf",
        "1: a",
        "a:\t1",
        "--- a\n--- b",
        "%YAML 1.1\n---\na: yes",
        "a: |\n  text",
        "[" * 100 + "]" * 100,
        "a: [",
        "? [a]\n: b",
    ],
)
def test_what_readers_may_differ_on_is_left_to_the_strict_one(text: str) -> None:
    with pytest.raises(quickyaml.UnsureError):
        quickyaml.read(text)


@pytest.mark.parametrize("depth", [10, 100, 100_000])
def test_depth_is_no_crash(depth: int) -> None:
    text = "[" * depth
    with pytest.raises(quickyaml.UnsureError):
        quickyaml.read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("value: no", "no"),
        ("value: 2026.20", 2026.2),
        ("value: 2026-07-10", "2026-07-10"),
        ("value: ~", None),
        ("value: True", True),
    ],
)
def test_values_are_those_of_yaml_1_2(text: str, value: object) -> None:
    assert loads(text, Anything, "x.yaml").value == value
