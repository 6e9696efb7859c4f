"""How answers are judged: each rule with the answers that only just keep it and those that only just do not."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.load.answer import ToolCall
from probes.quality.chat import Reply
from probes.quality.corpus import parse_tasks
from probes.quality.result import Outcome
from probes.quality.scoring import expected, final_answer, judge, number_of, parse_strict
from probes.quality.task import Task


def task(**check: Any) -> Task:
    line = {"id": "t", "prompt": "Do it.", "max_tokens": 32, "check": check}
    return parse_tasks(json.dumps(line), "test")[0]


def text(*answers: str, match: str = "whole") -> Task:
    return task(kind="text", answers=list(answers), match=match)


def outcome(of: Task, answer: str, **more: Any) -> Outcome:
    return judge(of, Reply(text=answer, **({"finish_reason": "stop"} | more))).outcome


@pytest.mark.parametrize("answer", ["Paris", " paris.\n", "**Paris**", '"PARIS"', "```\nParis\n```", "`Paris`", "Ｐａｒｉｓ"])
def test_whole_answer_may_differ_in_case_quotes_markdown_and_final_dot(answer: str) -> None:
    assert outcome(text("Paris"), answer) is Outcome.RIGHT


@pytest.mark.parametrize("answer", ["The capital is Paris", "Paris, France", "Pari", "", "   "])
def test_whole_answer_holds_nothing_else(answer: str) -> None:
    assert outcome(text("Paris"), answer) is Outcome.WRONG


def test_whole_answer_compares_composed_and_decomposed_letters_as_equal() -> None:
    assert outcome(text("Grüße aus 東京"), "Gru\u0308ße aus 東京") is Outcome.RIGHT
    assert outcome(text("Grüße aus 東京"), "Grusse aus 東京") is Outcome.WRONG


def test_word_is_a_whole_word() -> None:
    assert outcome(text("hot", match="word"), "The opposite is: hot!") is Outcome.RIGHT
    assert outcome(text("hot", match="word"), "A photo of a hotel") is Outcome.WRONG
    assert outcome(text("KT-2098", match="word"), "It is kt-2098.") is Outcome.RIGHT


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("1200000", "1200000"), ("1,200,000", "1200000"), ("1'200'000", "1200000"), ("1_200_000", "1200000"),
        ("1\u202f200\u202f000", "1200000"), ("1\u00a0200\u00a0000", "1200000"), ("The answer is 42.", "42"), ("-7", "-7"),
        ("−7", "-7"), ("2 + 2 = 4", "4"), ("$\\boxed{12}$", "12"), ("3.50", "3.5"), ("10-5", "5"), ("1, 2, 3", "3"),
        ("1,2,3", "3"), ("5e3", "5000"), ("$1,234.50", "1234.5"), ("12,34", "34"), ("٣", "3"), ("50 %", "50"),
    ],
)  # fmt: skip
def test_last_number_is_read_with_its_separators(answer: str, number: str) -> None:
    assert number_of(answer) == Decimal(number)


@pytest.mark.parametrize("answer", ["none", "", "B580", "v2", "twelve"])
def test_no_number_is_no_number(answer: str) -> None:
    assert number_of(answer) is None
    assert outcome(text("580", match="number"), answer or "-") is Outcome.WRONG


@given(st.integers(-(10**12), 10**12))
def test_any_number_is_read_back_however_it_is_written(number: int) -> None:
    for written in (f"{number}", f"{number:,}", f"{number:_}", f"It is {number:,}.", f"{number}.0"):
        assert number_of(written) == number


@given(st.text())
def test_no_answer_makes_judging_fail(answer: str) -> None:
    for of in (
        text("x"),
        text("1", match="number"),
        task(kind="json", schema={}),
        task(kind="instruction", sentences={"at_most": 1}),
    ):
        assert judge(of, Reply(text=answer)).why


@pytest.mark.parametrize(
    "answer",
    [
        "..." * 50_000,
        "\n" * 100_000,
        "<think>" * 30_000,
        "9" * 100_000,
        "```" + " " * 100_000,
        "[" * 100_000,
        " \t" * 50_000 + "xy",
    ],
)
def test_long_nonsense_is_judged_without_trouble(answer: str) -> None:
    for of in (
        text("x"),
        text("1", match="number"),
        task(kind="json", schema={}),
        task(kind="instruction", bullets={"at_least": 1}),
    ):
        assert judge(of, Reply(text=answer)).points != 1


SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": False}


@pytest.mark.parametrize("answer", ['{"age": 3}', ' {"age":3}\n', '```json\n{"age": 3}\n```', '```\n{"age": 3}\n```'])
def test_json_may_stand_in_one_fence(answer: str) -> None:
    assert outcome(task(kind="json", schema=SCHEMA), answer) is Outcome.RIGHT


def test_fence_is_wrong_where_the_task_forbids_it() -> None:
    strict = task(kind="json", schema=SCHEMA, fence=False)
    assert outcome(strict, '{"age": 3}') is Outcome.RIGHT
    verdict = judge(strict, Reply(text='```json\n{"age": 3}\n```'))
    assert (verdict.outcome, verdict.why) == (Outcome.WRONG, "is not JSON: stands in a code fence, which was forbidden")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('Here it is: {"age": 3}', "is not JSON"),
        ('{"age": 3} I hope this helps!', "is not JSON"),
        ('```json\n{"age": 3}\n```\nDone.', "is not JSON"),
        ("{'age': 3}", "is not JSON"),
        ('{"age": 3,}', "is not JSON"),
        ('{"age": NaN}', "NaN is no JSON number"),
        ('{"age": 3, "age": 4}', "the key 'age' stands there twice"),
        ('{"age": "3"}', "$.age: '3' is not of type 'integer'"),
        ('{"age": 3, "name": "x"}', "Additional properties are not allowed"),
        ("{}", "'age' is a required property"),
        ("3", "3 is not of type 'object'"),
    ],
)
def test_json_is_strict_and_says_why(answer: str, why: str) -> None:
    verdict = judge(task(kind="json", schema=SCHEMA), Reply(text=answer))
    assert verdict.outcome is Outcome.WRONG
    assert why in verdict.why


def test_null_is_json_and_true_is_not_one() -> None:
    assert outcome(task(kind="json", schema={"const": None}), "null") is Outcome.RIGHT
    assert outcome(task(kind="json", schema={"const": 1}), "true") is Outcome.WRONG


def test_parse_strict_keeps_unicode() -> None:
    assert parse_strict('{"a": "K\\u00f6ln", "b": "東京"}', fence=True) == {"a": "Köln", "b": "東京"}


TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
OTHER = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}


def tools(*calls: tuple[str, dict[str, Any]]) -> Task:
    return task(kind="tools", tools=[TOOL, OTHER], calls=[{"name": name, "arguments": args} for name, args in calls])


def called(of: Task, *calls: tuple[str, str], answer: str = "", finish: str = "tool_calls") -> tuple[Outcome, str]:
    made = tuple(ToolCall(id=f"c{n}", name=name, arguments=args) for n, (name, args) in enumerate(calls))
    verdict = judge(of, Reply(text=answer, tool_calls=made, finish_reason=finish))
    return verdict.outcome, verdict.why


ADD = ("add", {"a": 5, "b": "Rome"})


@pytest.mark.parametrize("arguments", ['{"a": 5, "b": "Rome"}', '{"b":"rome ","a":5.0}'])
def test_arguments_are_compared_by_value(arguments: str) -> None:
    assert called(tools(ADD), ("add", arguments))[0] is Outcome.RIGHT


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("now", '{"a": 5, "b": "Rome"}'), ("Add", '{"a": 5, "b": "Rome"}'), ("", '{"a": 5, "b": "Rome"}'),
        ("add", '{"a": 5}'), ("add", '{"a": 5, "b": "Rome", "c": 1}'), ("add", '{"a": "5", "b": "Rome"}'),
        ("add", '{"a": true, "b": "Rome"}'), ("add", '{"a": 5, "b": "Rome"'), ("add", '[5, "Rome"]'), ("add", '"x"'),
        ("add", '{"a": 5, "a": 5, "b": "Rome"}'),
    ],
)  # fmt: skip
def test_wrong_name_or_arguments_are_wrong(name: str, arguments: str) -> None:
    assert called(tools(ADD), (name, arguments))[0] is Outcome.WRONG


def test_call_without_parameters_may_come_without_arguments() -> None:
    for arguments in ("", "{}", " "):
        assert called(tools(("now", {})), ("now", arguments))[0] is Outcome.RIGHT


def test_parallel_calls_may_come_in_any_order_but_each_once() -> None:
    both = tools(("add", {"a": 1}), ("add", {"a": 2}))
    one, two = ("add", '{"a": 1}'), ("add", '{"a": 2}')
    assert called(both, one, two)[0] is called(both, two, one)[0] is Outcome.RIGHT
    assert called(both, one)[0] is Outcome.WRONG
    assert called(both, one, one)[0] is Outcome.WRONG
    assert called(both, one, two, two) == (Outcome.WRONG, "also called add")


def test_calls_are_judged_whatever_the_finish_reason_says() -> None:
    """OVMS before 2026.1 said 'stop' for tool calls."""
    assert called(tools(ADD), ("add", '{"a": 5, "b": "Rome"}'), finish="stop")[0] is Outcome.RIGHT
    assert called(tools(ADD), answer="I would add them.", finish="tool_calls")[0] is Outcome.WRONG


def test_call_where_none_helps_is_wrong_and_words_are_right() -> None:
    assert called(tools(), ("now", "{}"))[0] is Outcome.WRONG
    assert called(tools(), answer="Hello!", finish="stop")[0] is Outcome.RIGHT
    assert called(tools(), answer="", finish="stop")[0] is Outcome.WRONG


def test_call_that_is_only_written_in_the_text_is_no_call_and_the_parser_is_named() -> None:
    found, why = called(tools(ADD), answer='<tool_call>{"name": "add", "arguments": {"a": 5, "b": "Rome"}}</tool_call>')
    assert found is Outcome.WRONG
    assert "lack the parser" in why


@pytest.mark.parametrize(
    ("whole", "final"),
    [
        ("<think>2+2=5?</think>\n\n4", "4"),
        ("hmm, 5?</think>4", "4"),
        ("<think>5", ""),
        ("<think>a</think>4<think>b</think>", "4"),
        ("<THINKING>5</THINKING> 4", "4"),
        ("4", "4"),
        ("a < b and <i>c</i>", "a < b and <i>c</i>"),
    ],
)
def test_thinking_is_no_part_of_the_answer(whole: str, final: str) -> None:
    assert final_answer(Reply(text=whole)) == final


def test_thinking_that_uses_up_the_budget_is_no_answer_and_no_wrong_one() -> None:
    """Scored as wrong, it lowered scores by tens of points in practice."""
    for reply in (
        Reply(reasoning="Let me see", finish_reason="length"),
        Reply(text="<think>Let me see", finish_reason="length"),
        Reply(text="", finish_reason="length"),
        Reply(reasoning="Let me see"),
    ):
        verdict = judge(text("4"), reply)
        assert (verdict.outcome, verdict.points) == (Outcome.UNANSWERED, None)


def test_answer_beside_reasoning_is_judged() -> None:
    assert outcome(text("4"), "4", reasoning="2+2 is 5, no, 4") is Outcome.RIGHT
    assert outcome(text("4"), "", reasoning="it is 4") is Outcome.WRONG


def test_answer_that_was_cut_off_is_told_apart() -> None:
    assert outcome(text("4"), "Well, let us see", finish_reason="length") is Outcome.CUT_OFF
    assert outcome(text("9.8", match="number"), "To compare 9.11 and 9.8", finish_reason="length") is Outcome.CUT_OFF
    assert outcome(text("Paris", match="word"), "Paris is a town and", finish_reason="length") is Outcome.RIGHT
    assert outcome(task(kind="instruction", words={"at_most": 5}), "one two three", finish_reason="length") is Outcome.CUT_OFF
    assert judge(text("4"), Reply(text="Well, let us see", finish_reason="length")).points == 0


def test_open_question_is_answered_and_not_judged() -> None:
    verdict = judge(task(kind="open"), Reply(text="The sea.", finish_reason="length"))
    assert (verdict.outcome, verdict.points) == (Outcome.ANSWERED, None)


def test_what_is_expected_is_told() -> None:
    assert expected(text("4", "four")) == "nothing but '4' or 'four'"
    assert expected(tools(ADD)) == 'add({"a": 5, "b": "Rome"})'
    assert expected(tools()) == "no tool call"
    assert "integer" in expected(task(kind="json", schema=SCHEMA))
