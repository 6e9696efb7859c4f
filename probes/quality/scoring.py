"""Judging one answer: right or not, and why, by rules that code can check."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from jsonschema import Draft202012Validator
from pydantic import JsonValue

from probes.load.answer import ToolCall
from probes.quality.chat import Reply
from probes.quality.instruction import broken
from probes.quality.result import Outcome
from probes.quality.task import Call, Instruction, Json, Match, Open, Task, Text, Tools
from probes.strictjson import parse

_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_BARE: Final = " \t\r\n\"'`*_.!“”‘’«»„"
_SEPARATORS: Final = ",'’_\u00a0\u2009\u202f"
_NUMBER: Final = re.compile(
    rf"(?<![\w.])[-−+]?(?:\d{{1,3}}(?:[{_SEPARATORS}]\d{{3}})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d{{1,3}}(?!\w))?"
)
_WRITTEN_CALL: Final = re.compile(
    r"<tool_call>|<function|\[TOOL_CALLS\]|<\|python_tag\|>|\"(?:name|function)\"\s*:\s*\"", re.IGNORECASE
)
_SHOWN: Final = 120


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an answer is worth and the sentence that says why; `points` is None where nothing was judged."""

    outcome: Outcome
    points: float | None
    why: str


def final_answer(reply: Reply) -> str:
    """Give the answer without its thinking; '' while the model still thinks."""
    kept: list[str] = []
    thinks, at = False, 0
    for tag in _THOUGHT.finditer(reply.text):
        if not thinks:
            kept.append(reply.text[at : tag.start()])
        if tag.group(1) and not thinks:
            # Templates of some models open the thinking in the prompt, so that only its end is in the answer.
            kept.clear()
        thinks, at = not tag.group(1), tag.end()
    return "".join([*kept, "" if thinks else reply.text[at:]]).strip()


def judge(task: Task, reply: Reply) -> Verdict:
    """Judge the final answer of a reply that is one (`reply.trouble` is None).

    An answer that was cut off at its limit is right only if it holds a word that nothing to come could take away, and
    else told apart. One that was cut off before anything but thinking came is no answer, and costs no points.
    """
    answer = final_answer(reply)
    cut = reply.finish_reason == "length"
    if not answer and not reply.tool_calls and (cut or (reply.finish_reason is None and reply.reasoning)):
        spent = "thinking" if reply.reasoning or reply.text else "nothing to see"
        return Verdict(outcome=Outcome.UNANSWERED, points=None, why=f"the limit of tokens was spent on {spent}")
    if isinstance(task.check, Open):
        return Verdict(outcome=Outcome.ANSWERED, points=None, why="not judged")
    wrong = _wrong(task.check, answer, reply.tool_calls)
    settled = isinstance(task.check, Text) and task.check.match is Match.WORD
    if wrong is None and cut and not settled:
        wrong = "would be right, had it ended there"
    if wrong is None:
        return Verdict(outcome=Outcome.RIGHT, points=1.0, why="as expected")
    return Verdict(outcome=Outcome.CUT_OFF if cut else Outcome.WRONG, points=0.0, why=wrong)


def expected(task: Task) -> str:
    """Say in one line what is right."""
    check = task.check
    if isinstance(check, Text):
        how = {Match.WHOLE: "nothing but", Match.WORD: "the words", Match.NUMBER: "as its last number"}[check.match]
        return f"{how} {' or '.join(map(repr, check.answers))}"
    if isinstance(check, Json):
        return f"JSON that meets {_json(check.schema_)}"
    if isinstance(check, Tools):
        return " and ".join(f"{call.name}({_json(call.arguments)})" for call in check.calls) or "no tool call"
    if isinstance(check, Instruction):
        return _json(check.model_dump(mode="json", exclude_none=True, exclude={"kind"}))
    return "any answer"


def number_of(text: str) -> Decimal | None:
    """Read the last number of a text: 1,234.5 1'234 1_234 or with a fixed space; the decimal sign is a dot."""
    found = _NUMBER.findall(text)
    return _decimal(found[-1]) if found else None


def parse_strict(text: str, *, fence: bool) -> JsonValue:
    """Parse JSON as RFC 8259 has it: no NaN, no key twice, nothing around it but, if allowed, one markdown fence.

    Raises:
        ValueError: it is none, with the reason.
    """
    inner = _unfenced(text)
    if inner is not None and not fence:
        raise ValueError("stands in a code fence, which was forbidden")
    return parse(text if inner is None else inner)


def _wrong(check: Text | Json | Tools | Instruction, answer: str, calls: tuple[ToolCall, ...]) -> str | None:
    if isinstance(check, Tools):
        return _wrong_calls(check, answer, calls)
    if not answer:
        return "made a tool call where none was offered" if calls else "is empty"
    if isinstance(check, Text):
        return _wrong_text(check, answer)
    if isinstance(check, Json):
        return _wrong_json(check, answer)
    return "; ".join(broken(check, answer)) or None


def _wrong_text(check: Text, answer: str) -> str | None:
    if check.match is Match.NUMBER:
        found, wanted = number_of(answer), [_decimal(one) for one in check.answers]
        if found is None:
            return "holds no number"
        return None if found in wanted else f"its last number is {_short(str(found))}"
    plain = _plain(answer)
    if check.match is Match.WHOLE:
        return None if any(plain == _plain(one) for one in check.answers) else "is something else, or more than that"
    words = any(re.search(rf"(?<!\w){re.escape(_plain(one))}(?!\w)", plain) for one in check.answers)
    return None if words else "does not hold it"


def _wrong_json(check: Json, answer: str) -> str | None:
    try:
        document = parse_strict(answer, fence=check.fence)
    except ValueError as exc:
        return f"is not JSON: {exc}"
    try:
        error = next(Draft202012Validator(check.schema_).iter_errors(document), None)
    except RecursionError:
        return "is nested too deep"
    return None if error is None else f"does not meet the schema: {error.json_path}: {_short(error.message)}"


def _wrong_calls(check: Tools, answer: str, calls: tuple[ToolCall, ...]) -> str | None:
    if not check.calls:
        made = " and ".join(call.name for call in calls)
        return f"called {made} where no tool helps" if calls else None if answer else "is empty"
    if not calls:
        hint = "; its text looks like one, so the server may lack the parser for this model's calls"
        return f"made no tool call{hint if _WRITTEN_CALL.search(answer) else ''}"
    left = [(call.name, _arguments(call)) for call in calls]
    for name, arguments in left:
        if arguments is None:
            return f"the arguments of {name or 'a call without a name'} are no JSON object"
    for wanted in check.calls:
        match = next((one for one in left if _same_call(wanted, *one)), None)
        if match is None:
            return f"called {' and '.join(f'{call.name}({_short(call.arguments)})' for call in calls)}"
        left.remove(match)
    return f"also called {' and '.join(name for name, _ in left)}" if left else None


def _arguments(call: ToolCall) -> dict[str, JsonValue] | None:
    """Read arguments; servers send text or an object, and nothing at all for a tool without parameters."""
    if not call.arguments.strip():
        return {}
    try:
        document = parse_strict(call.arguments, fence=False)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _same_call(wanted: Call, name: str, arguments: dict[str, JsonValue] | None) -> bool:
    return name == wanted.name and arguments is not None and _same(wanted.arguments, arguments)


def _same(wanted: JsonValue, found: JsonValue) -> bool:
    """Compare by value: 5 and 5.0 are one number, true is none, texts may differ in case and outer space."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, dict):
        return isinstance(found, dict) and wanted.keys() == found.keys() and all(_same(wanted[k], found[k]) for k in wanted)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(wanted) == len(found) and all(map(_same, wanted, found))
    if isinstance(wanted, str):
        return isinstance(found, str) and _folded(wanted) == _folded(found)
    return wanted == found


def _plain(text: str) -> str:
    """Take away what does not make an answer another one: a fence, quotes, markdown, a final dot, case, runs of space."""
    inner = _unfenced(text)
    return _folded(text if inner is None else inner).strip(_BARE)


def _unfenced(text: str) -> str | None:
    """Give what stands inside the one code fence around all of a text; None without one."""
    text = text.strip()
    first, _, rest = text.partition("\n")
    fenced = re.fullmatch(r"```[\w+-]{0,20}\s*", first) and rest.endswith("```")
    return rest.removesuffix("```") if fenced else None


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _decimal(text: str) -> Decimal | None:
    digits = re.sub(rf"[{_SEPARATORS}\s]", "", text.replace("−", "-"))
    try:
        return Decimal(digits)
    except InvalidOperation:
        return None


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
