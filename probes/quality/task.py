"""What a model is asked and how its answer is judged: tasks, suites, and the request that a task becomes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import Field, JsonValue, field_validator, model_validator

from probes.archive import canonical
from probes.quality.haystack import haystack
from probes.schema import Model

TaskName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
Count = Annotated[int, Field(ge=0, le=10_000)]
Words = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=2000)], ...], Field(min_length=1, max_length=50)]


class Match(StrEnum):
    """How much of an answer has to be the expected text."""

    WHOLE = "whole"
    WORD = "word"
    NUMBER = "number"


class Text(Model):
    """The answer is, or holds, one of a few texts.

    `whole`: nothing else stands in it, but for case, quotes, markdown and a final dot. `word`: it stands in it as whole
    words. `number`: the last number of the answer has that value, however it is written.
    """

    kind: Literal["text"]
    answers: Words
    match: Annotated[Match, Field(strict=False)] = Match.WHOLE


class Json(Model):
    """The answer is JSON that meets a schema (draft 2020-12); `fence` accepts one markdown code fence around all of it."""

    kind: Literal["json"]
    schema_: Annotated[dict[str, JsonValue], Field(alias="schema")]
    fence: bool = True

    @field_validator("schema_")
    @classmethod
    def _usable(cls, schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as exc:
            raise ValueError(f"a JSON schema of draft 2020-12; {exc.message}") from exc
        if far := _far_reference(schema):
            raise ValueError(f"a schema that is complete in itself; {far!r} lies elsewhere")
        return schema


class Call(Model):
    """A call that has to be made; `arguments` are compared by value, text without regard to case at its ends."""

    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, JsonValue] = {}


class Tools(Model):
    """The answer is these calls and no other, in any order; none at all when `calls` is empty."""

    kind: Literal["tools"]
    tools: Annotated[tuple[dict[str, JsonValue], ...], Field(min_length=1, max_length=20)]
    calls: tuple[Call, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Self:
        names = [_tool_name(tool) for tool in self.tools]
        if not all(names):
            raise ValueError('tools of the form {"type": "function", "function": {"name": ..., "parameters": {...}}}')
        if stray := [call.name for call in self.calls if call.name not in names]:
            raise ValueError(f"calls of the tools {', '.join(names)}; {stray[0]!r} is none of them")
        return self


class Bounds(Model):
    """How many of something; at least one bound."""

    at_least: Count | None = None
    at_most: Count | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        low, high = self.at_least, self.at_most
        if (low is None and high is None) or (low is not None and high is not None and low > high):
            raise ValueError("at_least, at_most or both, and at_least not above at_most")
        return self


class Instruction(Model):
    """The answer keeps every rule given; an empty answer keeps none.

    Words are runs of characters between spaces, sentences end in . ! or ?, lines are those that are not blank, bullets
    are lines that begin with -, * or •. Letters and words are compared without regard to case.
    """

    kind: Literal["instruction"]
    words: Bounds | None = None
    sentences: Bounds | None = None
    lines: Bounds | None = None
    bullets: Bounds | None = None
    characters: Bounds | None = None
    must_contain: Words | None = None
    must_not_contain: Words | None = None
    forbidden_characters: Annotated[str, Field(min_length=1)] | None = None
    starts_with: Annotated[str, Field(min_length=1)] | None = None
    ends_with: Annotated[str, Field(min_length=1)] | None = None
    letters: Literal["upper", "lower"] | None = None

    @model_validator(mode="after")
    def _some_rule(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields if name != "kind"):
            raise ValueError("at least one rule: words, sentences, lines, must_contain, ...")
        return self


class Open(Model):
    """The answer is not judged; two sides are compared by it."""

    kind: Literal["open"]


Check = Annotated[Text | Json | Tools | Instruction | Open, Field(discriminator="kind")]


class Context(Model):
    """Filler of about so many tokens before the prompt, with one sentence hidden at a depth between 0 and 1."""

    tokens: Annotated[int, Field(ge=16, le=200_000)]
    depth: Annotated[float, Field(ge=0, le=1, strict=False)]
    needle: Annotated[str, Field(min_length=1, max_length=2000)]


class Task(Model):
    """One question with its check."""

    id: TaskName
    suite: TaskName
    prompt: Annotated[str, Field(min_length=1, max_length=400_000, pattern=re.compile(r"\S"))]
    system: str = ""
    max_tokens: Annotated[int, Field(ge=1, le=8192)]
    context: Context | None = None
    check: Check

    def body(self, extra_tokens: int = 0) -> dict[str, JsonValue]:
        """Write the request, all but the model: greedy, in one piece."""
        text = self.prompt
        if self.context is not None:
            text = f"{haystack(self.id, self.context.tokens, self.context.depth, self.context.needle)}\n\n{text}"
        messages: list[JsonValue] = [{"role": "user", "content": text}]
        if self.system:
            messages.insert(0, {"role": "system", "content": self.system})
        body: dict[str, JsonValue] = {
            "messages": messages,
            "max_tokens": self.max_tokens + extra_tokens,
            "temperature": 0,
            "stream": False,
        }
        if isinstance(self.check, Tools):
            body |= {"tools": list(self.check.tools), "tool_choice": "auto"}
        return body

    @cached_property
    def prompt_sha256(self) -> str:
        """Hash what is sent: messages, tools and the answer's limit."""
        return hashlib.sha256(canonical(self.body())).hexdigest()

    @cached_property
    def sha256(self) -> str:
        """Hash what is sent and how the answer is judged."""
        return tasks_sha256([self])


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tasks of one kind that give one score."""

    name: str
    title: str
    tasks: tuple[Task, ...]

    @property
    def sha256(self) -> str:
        """Hash all tasks; equal for two sides that were asked the same."""
        return tasks_sha256(self.tasks)

    @property
    def judged(self) -> bool:
        """Tell whether it gives a score."""
        return any(not isinstance(task.check, Open) for task in self.tasks)


def tasks_sha256(tasks: Any) -> str:
    """Hash tasks by what is sent and how answers are judged, in any order."""
    parts = [canonical([task.suite, task.id, task.body(), task.check.model_dump(mode="json")]) for task in tasks]
    return hashlib.sha256(b"\n".join(sorted(parts))).hexdigest()


def _tool_name(tool: dict[str, JsonValue]) -> str:
    function = tool.get("function")
    name = function.get("name") if tool.get("type") == "function" and isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _far_reference(value: JsonValue) -> str | None:
    """Find a reference that leaves the schema; following it would be a request to somebody."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in {"$ref", "$dynamicRef"} and isinstance(item, str) and not item.startswith("#"):
                return item
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((far for item in inner if (far := _far_reference(item))), None)
