"""OpenVINO devices and all their readable properties, as JSON that every release of the runtime fits into."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any

from pydantic import JsonValue

from probes import telemetry
from probes.devices.words import runtime_words
from probes.evidence import Missing, MissingReason
from probes.schema import Model

# Devices that run models themselves; AUTO, MULTI, HETERO and BATCH only hand on.
PLUGINS = ("CPU", "GPU", "NPU")
_UNNAMED = "???"
# Lists that are sets: their order differs between releases and means nothing.
_SETS = ("OPTIMIZATION_CAPABILITIES", "AVAILABLE_DEVICES")
_NO_DRIVER = re.compile(r"cannot load library|cannot open shared object|failed to load|no driver", re.IGNORECASE)
# 'Supported values: u8, u4' and 'Expected AUTO/BY_CHANNEL', but not 'Expected only unsigned integer numbers'.
_SUPPORTED = re.compile(r"Supported values: ([^\n]+)|Expected (\w+(?:/\w+)+)")
BOGUS_VALUE = "no-such-value"


def list_devices() -> JsonValue:
    """Name the devices, and why each known plugin has none (runs in a child)."""
    core = _core()
    import openvino
    import openvino_genai

    devices = list(core.available_devices)
    present = {device.partition(".")[0] for device in devices}
    absent: dict[str, JsonValue] = {}
    for plugin in PLUGINS:
        if plugin not in present:
            absent[plugin] = _why_absent(core, plugin)
    versions: dict[str, JsonValue] = {"openvino": openvino.__version__, "openvino_genai": openvino_genai.__version__}
    return {"devices": [*devices], "absent": absent, "versions": versions}


def read_properties(device: str, emit: Callable[[JsonValue], None]) -> JsonValue:
    """Read every property of one device; those read before a crash are sent already (runs in a child)."""
    core = _core()
    emit({"full_name": str(core.get_property(device, "FULL_DEVICE_NAME"))})
    supported = core.get_property(device, "SUPPORTED_PROPERTIES")
    for name in sorted(supported):
        emit({"name": str(name), "value": _read(core, device, name, str(supported[name]))})
    plugin = core.get_versions(device)
    return {name: str(version.build_number) for name, version in plugin.items()}


class Check(Model):
    """What the plugin's own check said about the values of one property.

    `candidates` are the values that it lists and those that were asked for.
    """

    listed: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    refused: dict[str, str] = {}
    complaint: str = ""


def check_properties(device: str, asked: dict[str, list[str]], emit: Callable[[JsonValue], None]) -> None:
    """Check the values of several properties; those checked before a crash are sent already (runs in a child)."""
    for name, values in asked.items():
        emit({"name": name, "check": check_values(device, name, values).model_dump(mode="json")})


def check_values(device: str, name: str, values: Sequence[str]) -> Check:
    """Offer values to the plugin's own check; it answers with the values it lists and its refusals.

    A value that passes may still fail to compile: the check knows words, not kernels.
    """
    core = _core()
    # Without a loaded plugin the core keeps any value for later and checks nothing.
    core.get_property(device, "SUPPORTED_PROPERTIES")
    complaint = _refusal(core, device, name, BOGUS_VALUE) or ""
    listed = listed_values(complaint)
    candidates = list(dict.fromkeys([*listed, *values]))
    refused = {value: words for value in candidates if (words := _refusal(core, device, name, value)) is not None}
    return Check(listed=listed, candidates=tuple(candidates), refused=refused, complaint=complaint)


def listed_values(complaint: str) -> tuple[str, ...]:
    """Read the values that a plugin names when it refuses one."""
    found = _SUPPORTED.search(complaint)
    parts = (found[1].split(",") if found[1] else found[2].split("/")) if found else ()
    return tuple(value for part in parts if (value := part.strip(" .'\"")))


def as_json(value: Any) -> JsonValue:
    """Convert any property value by rule; one of an unknown class keeps its text and says its class."""
    if isinstance(value, Mapping):
        return {str(as_json(key)): as_json(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((as_json(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return _scalar(value)


def absence(words: str) -> str:
    """Tell a driver that is not there from a device that is not there; both arrive as RuntimeError."""
    return "no driver" if _NO_DRIVER.search(words) else "no device"


def _scalar(value: Any) -> JsonValue:
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if callable(to_string := getattr(value, "to_string", None)):  # openvino.Type: 'u8', not its repr
        return str(to_string())
    name = getattr(value, "name", None)
    if isinstance(name, str) and name != _UNNAMED:
        return name
    return {"type": type(value).__name__, "text": str(value)}


def _read(core: Any, device: str, name: str, access: str) -> JsonValue:
    if access == "WO":
        return Missing(missing=MissingReason.NOT_APPLICABLE, detail="write-only").model_dump(mode="json")
    try:
        value = as_json(core.get_property(device, name))
    except Exception as exc:
        words = runtime_words(f"{type(exc).__name__}: {exc}")
        return Missing(missing=MissingReason.FAILED, detail=words).model_dump(mode="json")
    return sorted(value, key=str) if name in _SETS and isinstance(value, list) else value


def _why_absent(core: Any, plugin: str) -> JsonValue:
    try:
        core.get_property(plugin, "FULL_DEVICE_NAME")
    except Exception as exc:
        words = runtime_words(str(exc))
        return {"state": absence(words), "words": words}
    return {"state": "no device", "words": ""}


def _refusal(core: Any, device: str, name: str, value: str) -> str | None:
    try:
        core.set_property(device, {name: value})
    except Exception as exc:
        return runtime_words(str(exc))
    return None


def _core() -> Any:
    telemetry.silence()
    import openvino

    return openvino.Core()
