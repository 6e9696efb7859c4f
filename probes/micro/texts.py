"""Prompts of three kinds for benchmarks of drafts: what is in a text decides how often a draft is right."""

from __future__ import annotations

from pathlib import Path

from probes import telemetry
from probes.devices.prompts import token_ids
from probes.devices.questions import question_ids

# Lines of a log, a form or a table: what comes next stands in the prompt already.
_PLACES = ("north gate", "south gate", "pump room", "roof", "cellar", "office", "workshop", "yard", "garage")
_LINES = 6
_RANDOM_TOKENS = 48


def prompts_of(text: str, ir: Path, count: int) -> tuple[tuple[int, ...], ...]:
    """Give so many prompts of a kind of text, by the tokenizer of a model folder; random ones need none.

    Raises:
        KeyError: there is no such kind.
    """
    made = {"repetitive": _repetitive, "chat": _chat, "random": _random}[text]
    return made(ir, count)


def _repetitive(ir: Path, count: int) -> tuple[tuple[int, ...], ...]:
    telemetry.silence()
    import openvino_genai

    tokenizer = openvino_genai.Tokenizer(str(ir))
    texts = (_report(_PLACES[number % len(_PLACES)], number) for number in range(count))
    return tuple(tuple(int(token) for token in tokenizer.encode(text).input_ids.data.ravel()) for text in texts)


def _report(place: str, number: int) -> str:
    return "".join(
        f"Inspection {number}-{line}: the {place} was checked and found in order.\n" for line in range(1, _LINES + 1)
    )


def _chat(ir: Path, count: int) -> tuple[tuple[int, ...], ...]:
    asked = question_ids(ir)
    return tuple(asked[number % len(asked)] for number in range(count))


def _random(ir: Path, count: int) -> tuple[tuple[int, ...], ...]:  # noqa: ARG001 - no tokenizer is needed
    return tuple(token_ids(f"random text {number}", _RANDOM_TOKENS) for number in range(count))
