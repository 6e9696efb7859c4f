"""Own tasks: what a line may hold, and what is said about one that cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from probes.errors import InputError
from probes.quality.corpus import grouped, parse_tasks, read_tasks
from probes.quality.haystack import haystack
from probes.quality.library import suites
from probes.quality.task import Context, Json, tasks_sha256

GOOD: dict[str, Any] = {"id": "a", "prompt": "Hi", "max_tokens": 4, "check": {"kind": "text", "answers": ["x"]}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def check(**fields: Any) -> dict[str, Any]:
    return {"check": fields}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"id": None}, "f.jsonl:2: id: is None; expected"),
        ({"id": "A b"}, "f.jsonl:2: id: is 'A b'; expected"),
        ({"max_tokens": "4"}, "f.jsonl:2: max_tokens: is '4'; expected integer"),
        ({"max_tokens": 0}, "f.jsonl:2: max_tokens: is 0; expected"),
        ({"max_tokens": True}, "f.jsonl:2: max_tokens: is True; expected"),
        ({"prompt": " "}, "f.jsonl:2: prompt: is ' '; expected"),
        ({"colour": 1}, "f.jsonl:2: colour: is not a known field"),
        ({"check": {}}, "f.jsonl:2: check: is {}; expected Unable to extract tag using discriminator 'kind'"),
        (
            check(kind="txt"),
            "f.jsonl:2: check: is {'kind': 'txt'}; expected one of 'text', 'json', 'tools', 'instruction', 'open'",
        ),
        (check(kind="text"), "f.jsonl:2: check.answers: is missing"),
        (check(kind="text", answers=[]), "f.jsonl:2: check.answers: is []; expected"),
        (check(kind="text", answers=["x"], match="all"), "check.match: is 'all'; expected one of 'whole', 'word' or 'number'"),
        (check(kind="json", schema={"type": "objct"}), "f.jsonl:2: check.schema: is {'type': 'objct'}; expected a JSON schema"),
        (check(kind="json", schema={"$ref": "http://h/s"}), "expected a schema that is complete in itself; 'http://h/s' lies"),
        (check(kind="json", schema={"allOf": [{"$ref": "other.json"}]}), "'other.json' lies elsewhere"),
        (check(kind="tools", tools=[]), "f.jsonl:2: check.tools: is []; expected"),
        (check(kind="tools", tools=[{"name": "f"}]), 'expected tools of the form {"type": "function"'),
        (check(kind="tools", tools=[TOOL], calls=[{"name": "g"}]), "expected calls of the tools f; 'g' is none of them"),
        (check(kind="instruction"), "expected at least one rule"),
        (check(kind="instruction", words={"at_least": 3, "at_most": 2}), "check.words: is {'at_least': 3, 'at_most': 2}"),
        ({"context": {"tokens": 100, "depth": 1.5, "needle": "x"}}, "f.jsonl:2: context.depth: is 1.5; expected"),
    ],
)
def test_bad_line_is_told_with_file_line_field_value_and_expectation(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_tasks(f"{json.dumps(GOOD)}\n{json.dumps(GOOD | {'id': 'b'} | change)}\n", "f.jsonl")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{bad", "f.jsonl:1: is not JSON ("),
        ("[]", "f.jsonl:1: is []; expected a mapping"),
        ('{"id": "a", "id": "b"}', "the key 'id' stands there twice"),
        ('{"id": NaN}', "NaN is no JSON number"),
        ("[" * 100_000, "f.jsonl:1: is not JSON ("),
        ("", "f.jsonl: holds no task"),
    ],
)
def test_line_that_is_no_object_is_told(line: str, complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_tasks(line, "f.jsonl")
    assert complaint in str(caught.value)


def test_all_bad_lines_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_tasks("{\n" + json.dumps(GOOD) + "\n{}\n", "f.jsonl")
    assert {problem.place.split(":")[1] for problem in caught.value.problems} == {"1", "3"}


def test_id_is_used_once_in_its_suite() -> None:
    with pytest.raises(InputError, match=r"f\.jsonl:3: id: is 'a', as on line 1; expected an id used once"):
        parse_tasks(f"{json.dumps(GOOD)}\n\n{json.dumps(GOOD)}", "f.jsonl")
    two = parse_tasks(f"{json.dumps(GOOD)}\n{json.dumps(GOOD | {'suite': 'other'})}", "f.jsonl")
    assert [suite.name for suite in grouped(two)] == ["own", "other"]


def test_line_may_hold_separators_that_only_look_like_line_breaks() -> None:
    (task,) = parse_tasks(json.dumps(GOOD | {"prompt": "a\u2028b\x85c"}, ensure_ascii=False), "f.jsonl")
    assert task.prompt == "a\u2028b\x85c"


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_file_that_cannot_be_read_is_told(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"f\.jsonl(:1)?: (is not UTF-8|cannot be read)"):
        read_tasks(path)


def test_file_with_a_mark_of_byte_order_and_other_line_ends_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n")
    assert [task.id for task in read_tasks(path)] == ["a"]


def test_built_in_suites_are_small_and_bounded() -> None:
    found = suites()
    assert [suite.name for suite in found] == ["exact", "json", "tools", "instruction", "retrieval", "open"]
    assert all(12 <= len(suite.tasks) <= 20 for suite in found)
    assert sum(task.max_tokens for suite in found for task in suite.tasks) < 6000
    assert [suite.name for suite in found if not suite.judged] == ["open"]
    assert len({suite.sha256 for suite in found}) == len(found)


def test_hash_holds_what_is_sent_and_how_it_is_judged_and_nothing_else() -> None:
    (base,) = parse_tasks(json.dumps(GOOD), "f")
    for change in ({"prompt": "Ho"}, {"max_tokens": 5}, {"system": "Be brief."}, check(kind="text", answers=["y"])):
        (other,) = parse_tasks(json.dumps(GOOD | change), "f")
        assert other.sha256 != base.sha256, change
    (same,) = parse_tasks(json.dumps(dict(reversed(GOOD.items()))), "g")
    assert same.sha256 == base.sha256
    (second,) = parse_tasks(json.dumps(GOOD | {"id": "b"}), "f")
    assert tasks_sha256([base, second]) == tasks_sha256([second, base])


def test_schemas_of_the_built_in_tasks_refuse_something() -> None:
    for suite in suites():
        for task in suite.tasks:
            if isinstance(task.check, Json):
                assert not Draft202012Validator(task.check.schema_).is_valid("no"), task.id


@pytest.mark.parametrize("depth", [0.0, 0.5, 1.0])
def test_needle_stands_at_its_depth_once(depth: float) -> None:
    text = haystack("seed", 400, depth, "The NEEDLE is here.")
    assert text.count("NEEDLE") == 1
    assert abs(text.index("The NEEDLE") / (len(text) - len("The NEEDLE is here.")) - depth) < 0.05
    assert 1500 < len(text) < 1900
    assert text == haystack("seed", 400, depth, "The NEEDLE is here.")
    assert text != haystack("other", 400, depth, "The NEEDLE is here.")


def test_needle_is_in_no_other_place_of_its_prompt() -> None:
    for suite in suites():
        for task in suite.tasks:
            if isinstance(task.context, Context):
                message = json.dumps(task.body()["messages"], ensure_ascii=False)
                assert message.count(task.context.needle) == 1
                for answer in getattr(task.check, "answers", ()):
                    assert message.replace(task.context.needle, "").lower().count(answer.lower()) == 0, task.id


def test_tasks_of_the_documentation_can_be_asked() -> None:
    text = (Path(__file__).parents[3] / "docs" / "quality.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith('{"id"')]
    assert {task.check.kind for task in parse_tasks("\n".join(lines), "docs")} == {
        "text",
        "json",
        "tools",
        "instruction",
        "open",
    }
