"""Keys and machine paths disappear wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.redaction import Redactor, machine_paths, vocabulary, weakness

PATHS = machine_paths(
    home=Path("/home/a"),
    repository=Path("/home/a/src/adr"),
    environment=Path("/home/a/src/adr/.nox/shared"),
    cache=Path("/c/x"),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/a/src/adr/.nox/shared/lib/x.py:3", "<environment>/lib/x.py:3"),
        ("at /home/a/src/adr/fleet.yml", "at <repository>/fleet.yml"),
        ("/home/a", "~"),
        ("/home/abc/x", "/home/abc/x"),
        ("token top-secret.", "token [redacted]."),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]"),
        ("GET https://h/v1?api_key=K&x=1 failed", "GET https://h/v1?[redacted] failed"),
        ("http://me:pw@h:8000/v3", "http://[redacted]@h:8000/v3"),
        ("key sk-abcdefghijklmnop1", "key [redacted]"),
        ("what is 2+2? yes", "what is 2+2? yes"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert Redactor(secrets=["top-secret", "x"], paths=PATHS).text(text) == expected


def test_json_is_redacted_in_keys_and_values() -> None:
    redact = Redactor(secrets=["a-canary-that-sings"])
    assert redact.json({"a-canary-that-sings": ["a a-canary-that-sings", 1, None, True]}) == {
        "[redacted]": ["a [redacted]", 1, None, True]
    }


@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        ("local", '{"scope": "local"}', '{"scope": "local"}'),
        ("openvino", "openvino-genai (embedded)", "openvino-genai (embedded)"),
        ("password1", "refused: password1.", "refused: [redacted]."),
        ("0123456789abcdef", "x0123456789abcdefy", "x[redacted]y"),
    ],
)
def test_a_dummy_key_tears_no_words_apart_and_a_real_one_is_found_anywhere(secret: str, text: str, expected: str) -> None:
    assert Redactor(secrets=[secret]).text(text) == expected


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("short", "has fewer than 8 characters"),
        ("endpoint", "is a word that stands in every evidence file"),
        ("password1", ""),
        ("a-canary-that-sings", ""),
    ],
)
def test_a_secret_that_is_not_redacted_has_a_reason(secret: str, why: str) -> None:
    common = vocabulary({"properties": {"endpoint": {"enum": ["listed"]}, "kind": {"const": "fleet"}}})
    assert common == {"endpoint", "kind", "listed", "fleet"}
    assert weakness(secret, common) == why
    assert (Redactor(secrets=[secret], common=common).text(f"it said {secret}.") == "it said [redacted].") == (not why)
