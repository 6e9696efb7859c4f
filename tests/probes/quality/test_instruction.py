"""Instructions that code can check, each with answers on both sides of its bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probes.quality.instruction import broken
from probes.quality.task import Instruction


def breaks(answer: str, **rules: Any) -> list[str]:
    return list(broken(Instruction.model_validate_json(json.dumps({"kind": "instruction", **rules})), answer))


@pytest.mark.parametrize(
    ("answer", "rules"),
    [
        ("one two three", {"words": {"at_least": 3, "at_most": 3}}),
        ("well-known isn't two", {"words": {"at_most": 3}}),
        ("It rains. It pours!", {"sentences": {"at_least": 2, "at_most": 2}}),
        ("It rains. It pours", {"sentences": {"at_least": 2, "at_most": 2}}),
        ("Pi is 3.14 today.", {"sentences": {"at_most": 1}}),
        ("Really?! Yes... no.", {"sentences": {"at_least": 3, "at_most": 3}}),
        ('He said "go."', {"sentences": {"at_most": 1}}),
        ("a\n\nb", {"lines": {"at_least": 2, "at_most": 2}}),
        ("- a\n* b\n• c", {"bullets": {"at_least": 3, "at_most": 3}}),
        ("  - a\n-b\n\n-", {"bullets": {"at_most": 1}}),
        ("The River runs", {"must_contain": ["river"]}),
        ("waterfall", {"must_not_contain": ["water"]}),
        ("Sky", {"forbidden_characters": "ae"}),
        ("yesterday it rained", {"starts_with": "Yesterday"}),
        ("A dog. The End.", {"ends_with": "the end."}),
        ("ABC 12 Ü!", {"letters": "upper"}),
        ("straße, 12", {"letters": "lower"}),
        ("12345", {"characters": {"at_most": 5}}),
    ],
)
def test_kept(answer: str, rules: dict[str, Any]) -> None:
    assert breaks(answer, **rules) == []


@pytest.mark.parametrize(
    ("answer", "rules", "why"),
    [
        ("one two", {"words": {"at_least": 3, "at_most": 3}}, "has 2 words, not 3"),
        ("a b c", {"words": {"at_most": 2}}, "has 3 words, not at most 2"),
        ("a", {"words": {"at_least": 2}}, "has 1 words, not at least 2"),
        ("A. B. C.", {"sentences": {"at_least": 1, "at_most": 2}}, "has 3 sentences, not 1 to 2"),
        ("a", {"lines": {"at_least": 2}}, "has 1 lines"),
        ("1. a\n2. b", {"bullets": {"at_least": 2}}, "has 0 bullets"),
        ("The rivers run", {"must_contain": ["river"]}, "lacks 'river'"),
        ("Water!", {"must_not_contain": ["water"]}, "holds 'water'"),
        ("A bee", {"forbidden_characters": "AE"}, "holds 'a', 'e'"),
        ("On Yesterday", {"starts_with": "Yesterday"}, "does not begin with 'Yesterday'"),
        ("The end. Bye", {"ends_with": "The end."}, "does not end with 'The end.'"),
        ("ABc", {"letters": "upper"}, "is not all in upper case"),
        ("123", {"letters": "lower"}, "is not all in lower case"),
    ],
)
def test_broken(answer: str, rules: dict[str, Any], why: str) -> None:
    found = breaks(answer, **rules)
    assert len(found) == 1
    assert found[0].startswith(why)


def test_every_broken_rule_is_told() -> None:
    assert len(breaks("Hello, you", words={"at_least": 5}, forbidden_characters=",", letters="lower")) == 3
