"""Ollama's environment and its Modelfiles (envconfig/config.go, parser/parser.go @fb307609)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from probes.declared.complaint import refuse, shown, usable
from probes.declared.entry import Entry, Reading
from probes.declared.launch import Launch, Word
from probes.declared.options import Option, Takes, defaults, match
from probes.declared.release import default_of
from probes.evidence import Scalar, Technique
from probes.fleet import ConfigKind

PROGRAMS: Final = ("ollama",)
DEFAULTS: Final = ("Ollama", "0.32", "0.33")
_TRUE: Final = {"1", "t", "true"}
_FALSE: Final = {"0", "f", "false"}


def _flash(text: str, place: str) -> Scalar:
    if text.lower() not in _TRUE | _FALSE:
        raise refuse(place, f"is {shown(text)}", "1 or 0")
    return text.lower() in _TRUE


def _variable(control: str, technique: Technique, takes: Takes) -> Option:
    read = _flash if takes is Takes.TRUTH else None
    return Option(control=control, technique=technique, flags=(), takes=takes, environment=(control,), read=read)


OPTIONS: Final = (
    _variable("OLLAMA_NUM_PARALLEL", Technique.CONTINUOUS_BATCHING, Takes.WHOLE),
    _variable("OLLAMA_MAX_QUEUE", Technique.CONTINUOUS_BATCHING, Takes.WHOLE),
    _variable("OLLAMA_MAX_LOADED_MODELS", Technique.CONTINUOUS_BATCHING, Takes.WHOLE),
    _variable("OLLAMA_FLASH_ATTENTION", Technique.FLASH_ATTENTION, Takes.TRUTH),
    _variable("OLLAMA_KV_CACHE_TYPE", Technique.QUANTIZATION, Takes.WORD),
    _variable("OLLAMA_CONTEXT_LENGTH", Technique.KV_CACHE, Takes.WHOLE),
    _variable("OLLAMA_KEEP_ALIVE", Technique.KV_CACHE, Takes.WORD),
    _variable("OLLAMA_GPU_OVERHEAD", Technique.KV_CACHE, Takes.WHOLE),
)
_DEFAULTS: Final[Mapping[str, Scalar]] = {"OLLAMA_NUM_PARALLEL": 1, "OLLAMA_MAX_QUEUE": 512, "OLLAMA_KV_CACHE_TYPE": "f16"}
_COMMANDS: Final = frozenset(
    "from license template system adapter draft renderer parser parameter message requires".split()  # noqa: SIM905
)
PARAMETERS: Final = {"num_ctx": Technique.KV_CACHE, "draft_num_predict": Technique.SPECULATIVE_DECODING}


def read_launch(launch: Launch, version: str | None) -> Reading:
    """Read the environment that `ollama serve` gets; it has no options of this kind on its command line.

    Raises:
        InputError: every known variable whose value it does not take.
    """
    # envconfig.Var trims spaces and quotes.
    environment = {
        name: Word(text=word.text.strip().strip("\"'"), where=word.where, open_to=word.open_to)
        for name, word in launch.environment.items()
        if word.open_to or word.text.strip().strip("\"'")
    }
    found = match(OPTIONS, (), environment)
    left_out = defaults(OPTIONS, found, launch, _DEFAULTS, default_of(*DEFAULTS, version))
    return Reading(kind=ConfigKind.ENVIRONMENT, entries=(*found.entries.values(), *left_out), unread=found.unread)


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction of a Modelfile; `name` is in lower case, a parameter's its own."""

    name: str
    value: str
    line: int


def read_modelfile(text: str, name: str) -> Reading:
    """Read a Modelfile.

    Raises:
        InputError: Ollama would refuse it.
    """
    entries: list[Entry] = []
    facts: dict[str, JsonValue] = {}
    instructions = _instructions(text, name)
    if not any(one.name == "from" for one in instructions):
        raise refuse(name, "has no FROM line", "FROM with a model or a file")
    for one in instructions:
        where = f"{name}:{one.line}"
        if one.name == "from" and usable(one.value):
            facts["from"] = one.value
        elif one.name == "draft":
            value = _word(one, where)
            entries.append(Entry(technique=Technique.SPECULATIVE_DECODING, control="draft_model", value=value, where=where))
        elif one.name in PARAMETERS:
            number = re.fullmatch(r"[+-]?\d{1,18}", one.value, re.ASCII)
            if number is None:
                raise refuse(f"{where}: {one.name}", f"is {shown(one.value)}", "a whole number")
            entries = [entry for entry in entries if entry.control != one.name]
            entries.append(Entry(technique=PARAMETERS[one.name], control=one.name, value=int(number.group()), where=where))
    return Reading(kind=ConfigKind.MODELFILE, entries=tuple(entries), facts=facts)


def _word(one: Instruction, where: str) -> str:
    if not one.value or not usable(one.value):
        raise refuse(f"{where}: {one.name.upper()}", f"is {shown(one.value)}", "one printable word")
    return one.value


def _instructions(text: str, name: str) -> list[Instruction]:
    """Split into instructions as ParseFile does: a value in quotes may go over several lines."""
    found: list[Instruction] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line, number = lines[at].strip(" \t"), at + 1
        at += 1
        if not line or line.startswith("#"):
            continue
        head = re.match(r"([A-Za-z]+)(?:[ \t]+(.*))?$", line)
        word = head.group(1).lower() if head else ""
        if head is None or word not in _COMMANDS:
            raise refuse(f"{name}:{number}", f"begins with {shown(line.split(None, 1)[0])}", "an instruction such as FROM")
        value = head.group(2) or ""
        if word == "parameter":
            parameter = re.match(r"([A-Za-z0-9_]+)[ \t]+(.*)$", value)
            if parameter is None:
                raise refuse(f"{name}:{number}: PARAMETER", "has no value", "PARAMETER NAME VALUE")
            word, value = parameter.group(1).lower(), parameter.group(2)
            if word in _COMMANDS:
                word = f"parameter {word}"
        elif word == "message":
            value = re.sub(r"^(?:system|user|assistant)[ \t]+", "", value)
        value = value.strip()
        quote = next((mark for mark in ('"""', '"') if value.startswith(mark)), "")
        while quote and not (len(value) >= 2 * len(quote) and value.endswith(quote)):
            if at >= len(lines):
                raise refuse(f"{name}:{number}", "opens a quote that is never closed", "whole quotes")
            value = f"{value}\n{lines[at]}".rstrip()
            at += 1
        value = value[len(quote) : len(value) - len(quote)] if quote else value
        found.append(Instruction(name=word, value=value, line=number))
    return found
