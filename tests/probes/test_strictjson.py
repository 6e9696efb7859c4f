"""JSON is RFC 8259's, or a ValueError: nothing else comes back, whatever is given."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.strictjson import KeyTwiceError, parse

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(PLAIN)
def test_what_json_writes_is_read_as_it_was(value: object) -> None:
    assert parse(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' stands there twice"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ("[-Infinity]", "-Infinity is no JSON number"),
        ("[" * 100_000, "nests too deep"),
        ("{'a': 1}", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_what_only_lenient_readers_take_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text)


def test_a_long_key_is_not_repeated_whole() -> None:
    key = "k" * 5000
    with pytest.raises(KeyTwiceError) as raised:
        parse(f'{{"{key}": 1, "{key}": 2}}')
    assert len(str(raised.value)) < 100


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_nothing_but_a_value_error_comes_of_any_text(text: str | bytes) -> None:
    with contextlib.suppress(ValueError):
        parse(text)
