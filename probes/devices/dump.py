"""What OpenVINO GenAI prints about the engine it really built, when OPENVINO_LOG_LEVEL is a number above 1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from probes.schema import Model

ENVIRONMENT = {"OPENVINO_LOG_LEVEL": "4"}
_TOKENIZERS = ("OV Tokenizer", "OV Detokenizer")
_SCHEDULER = re.compile(r"^SchedulerConfig \{\s*\n(.*?)^\s*\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s+([A-Za-z_]\w*): ?(.*?)\s*$")
_DEVICE = re.compile(r"^ \(?([A-Z]+(?:\.\d+)?)\)?: (.+?)\s*$")


class Dump(Model):
    """The model block of a dump: its title names the attention path, its properties are the live ones.

    `devices` maps each device that executes to its full name.
    """

    title: str
    properties: dict[str, str]
    devices: dict[str, str]
    scheduler: dict[str, str]


def parse_dump(text: str) -> Dump | None:
    """Read the language model's block and the scheduler's; None when nothing was printed.

    The blocks of tokenizer and detokenizer list the same property names with the plugin's defaults,
    so they are passed over.
    """
    titles = [match for match in re.finditer(r"^Model: (.+?)\s*$", text, re.MULTILINE) if match[1] not in _TOKENIZERS]
    if not titles:
        return None
    properties: dict[str, str] = {}
    devices: dict[str, str] = {}
    block = iter(text[titles[0].end() :].lstrip("\n").splitlines())
    for line in block:
        field = _FIELD.match(line)
        if field is None:
            if line.rstrip() == "EXECUTION_DEVICES:":
                devices = _devices(block)
            break
        properties[field[1]] = field[2]
    scheduler = _SCHEDULER.search(text)
    fields = (_FIELD.match(line) for line in scheduler[1].splitlines()) if scheduler else ()
    return Dump(
        title=titles[0][1],
        properties=properties,
        devices=devices,
        scheduler={field[1]: field[2] for field in fields if field},
    )


def executes_elsewhere(device: str, dump: Dump) -> str | None:
    """Name the devices that really execute when they are not the one asked for.

    A device without a number stands for the first of its kind, so GPU may run as GPU.0.
    """
    kind, _, number = device.partition(".")
    accepted = {kind, f"{kind}.0"} if number in {"", "0"} else {device}
    if set(dump.devices) <= accepted:
        return None
    return f"asked for {device}, and {', '.join(sorted(dump.devices))} executes"


def _devices(lines: Iterator[str]) -> dict[str, str]:
    named = (_DEVICE.match(line) for line in lines)
    return {match[1]: match[2] for match in takewhile(lambda match: match is not None, named) if match}
