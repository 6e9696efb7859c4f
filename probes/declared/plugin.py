"""plugin_config: a JSON object with properties of a device plugin, wherever OVMS takes one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from probes.declared.complaint import refuse, shown, usable
from probes.declared.entry import Entry
from probes.declared.jsontext import mapping
from probes.errors import InputError
from probes.evidence import Scalar, Technique

TECHNIQUES: Final = {
    "KV_CACHE_PRECISION": Technique.QUANTIZATION,
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": Technique.QUANTIZATION,
    "prompt_lookup": Technique.SPECULATIVE_DECODING,
}
_PER_DEVICE: Final = "DEVICE_PROPERTIES"


def entries(text: str, where: str, device: str) -> tuple[Entry, ...]:
    """Read the JSON text of a plugin_config; an empty one says nothing.

    Raises:
        InputError: it is no JSON object, or a property of a technique has a value that no plugin takes.
    """
    if not text.strip():
        return ()
    try:
        found = mapping(text, where)
    except InputError as exc:
        (problem,) = exc.problems
        told = f"holds an invalid plugin_config: it {problem.found}"
        raise refuse(where, told, 'an object such as {"KV_CACHE_PRECISION": "u8"}') from exc
    return of_object(found, where, device)


def of_object(properties: Mapping[str, JsonValue], where: str, device: str) -> tuple[Entry, ...]:
    """Read a plugin_config that is an object already."""
    return tuple(
        Entry(technique=TECHNIQUES[control], control=control, value=_scalar(control, value, where), where=where)
        for control, value in _flat(properties, device)
        if control in TECHNIQUES
    )


def _flat(properties: Mapping[str, JsonValue], device: str) -> Iterator[tuple[str, JsonValue]]:
    """Give the properties that reach the device: its own before those for all.

    Where several devices serve and each has its own value, no single one holds, and none is given.
    """
    own = properties.get(_PER_DEVICE)
    each = {name.upper(): value for name, value in own.items() if isinstance(value, dict)} if isinstance(own, dict) else {}
    merged: dict[str, JsonValue] = {name: value for name, value in properties.items() if name != _PER_DEVICE}
    chosen = _of_devices(each, device)
    for name in dict.fromkeys(name for one in chosen for name in one):
        values = [one.get(name, merged.get(name)) for one in chosen]
        merged.pop(name, None)
        if all(value == values[0] for value in values):
            merged[name] = values[0]
    yield from merged.items()


def _of_devices(each: Mapping[str, dict[str, JsonValue]], device: str) -> list[dict[str, JsonValue]]:
    """Choose what is meant for the devices of a word such as GPU, GPU.1 or AUTO:GPU.1,CPU; GPU is the first of them."""
    if not device:
        return list(each.values()) if len(each) == 1 else []
    found = []
    for name in re.split(r"[:,]", device.upper()):
        spellings = (name, name.split(".")[0] if "." in name else f"{name}.0")
        found += [each[one] for one in spellings if one in each][:1]
    return found


def _scalar(control: str, value: JsonValue, where: str) -> Scalar:
    if isinstance(value, str) and control == "DYNAMIC_QUANTIZATION_GROUP_SIZE" and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, str) and control == "prompt_lookup" and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if isinstance(value, bool | int | float) or (isinstance(value, str) and usable(value)):
        return value
    raise refuse(f"{where}: {control}", f"is {shown(str(value))}", "a text, a number or a boolean")
