"""Property values by rule, and what the CPU plugin of this machine lets us read."""

from __future__ import annotations

import enum
import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import openvino
import pytest
from pydantic import JsonValue

from probes.child import Outcome, run_child
from probes.devices.properties import BOGUS_VALUE, absence, as_json, check_values, listed_values, read_properties


class Colour(enum.IntEnum):
    RED = 1


class Odd:
    def __str__(self) -> str:
        return "odd thing"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (0, 0),
        (None, None),
        ("", ""),
        (1.0, 1.0),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (openvino.Type.u8, "u8"),
        (openvino.Type.dynamic, "dynamic"),
        (openvino.properties.hint.PerformanceMode.LATENCY, "LATENCY"),
        (openvino.properties.device.Type.INTEGRATED, "INTEGRATED"),
        (Colour.RED, "RED"),
        (SimpleNamespace(name="???"), {"type": "SimpleNamespace", "text": "namespace(name='???')"}),
        (set(), []),
        ({"b", "a"}, ["a", "b"]),
        ({openvino.Type.u8, openvino.Type.f16}, ["f16", "u8"]),
        ((1, 2), [1, 2]),
        ({openvino.Type.u8: {1, 2}}, {"u8": [1, 2]}),
        (timedelta(seconds=90), 90.0),
        (Odd(), {"type": "Odd", "text": "odd thing"}),
        ([Odd(), [None]], [{"type": "Odd", "text": "odd thing"}, [None]]),
    ],
)
def test_every_value_becomes_json_and_an_unknown_one_says_its_class(value: Any, expected: JsonValue) -> None:
    assert as_json(value) == expected
    json.dumps(as_json(value), allow_nan=False)


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("Cannot load library libopenvino_intel_gpu_plugin.so: libOpenCL.so.1: cannot open shared object file", "no driver"),
        ('Device with "FOO" name is not registered in the OpenVINO Runtime', "no device"),
        ("[GPU] Can't get PERFORMANCE_HINT property as no supported devices found", "no device"),
    ],
)
def test_no_driver_and_no_device_are_told_apart(words: str, state: str) -> None:
    assert absence(words) == state


def test_listed_values_are_read_from_the_complaint() -> None:
    assert listed_values("Wrong value x for property key K. Supported values: u8, u4, f32\nmore") == ("u8", "u4", "f32")
    assert listed_values("Supported values: 'BY_TOKEN', 'BY_CHANNEL'.") == ("BY_TOKEN", "BY_CHANNEL")
    assert listed_values("Wrong value x for property key K. Expected AUTO/BY_CHANNEL") == ("AUTO", "BY_CHANNEL")
    assert listed_values("Wrong value x for property key K. Expected only unsigned integer numbers") == ()
    assert listed_values("not a complaint of that kind") == ()


def test_all_properties_of_this_cpu_are_read_or_say_why_not() -> None:
    sent: list[Any] = []
    plugin = read_properties("CPU", sent.append)
    assert isinstance(plugin, dict)
    assert str(plugin["CPU"]).startswith(openvino.__version__.split("-", 1)[0])
    assert list(sent[0]) == ["full_name"]
    properties = {entry["name"]: entry["value"] for entry in sent[1:]}
    json.dumps(properties, allow_nan=False)
    assert properties["FULL_DEVICE_NAME"] == sent[0]["full_name"]
    assert set(properties) == set(properties["SUPPORTED_PROPERTIES"])
    assert properties["KV_CACHE_PRECISION"] in {"u8", "f16", "bf16", "f32"}
    assert properties["OPTIMIZATION_CAPABILITIES"] == sorted(properties["OPTIMIZATION_CAPABILITIES"])
    # Of OpenVINO 2026.4.1: one that Python cannot hold, one that may only be written.
    assert properties["COMPATIBILITY_CHECK"]["missing"] == "failed"
    assert properties["COMPATIBILITY_CHECK"]["detail"].startswith("TypeError: Unable to convert")
    assert properties["WEIGHTS_PATH"] == {"missing": "not applicable", "detail": "write-only"}


def test_the_plugin_names_its_values_and_refuses_others() -> None:
    """In a fresh process: a core that has not loaded the plugin yet takes any value."""
    mode, size = "KEY_CACHE_QUANT_MODE", "KEY_CACHE_GROUP_SIZE"
    result = run_child(
        "probes.devices.properties:check_properties",
        {"device": "CPU", "asked": {"KV_CACHE_PRECISION": ["u8", "i8", "f8e4m3"], mode: ["BY_TOKEN"], size: ["x"]}},
        timeout_s=60,
        memory_bytes=2**31,
    )
    assert result.outcome is Outcome.OK, result.words
    sent: list[Any] = list(result.sent)
    checked = {entry["name"]: entry["check"] for entry in sent}
    precision = checked["KV_CACHE_PRECISION"]
    assert "u8" in precision["listed"]
    assert precision["candidates"] == [*precision["listed"], "i8", "f8e4m3"]
    assert set(precision["refused"]) == {"i8", "f8e4m3"}
    assert precision["refused"]["i8"].startswith("Wrong value i8 for property key KV_CACHE_PRECISION. Supported values: ")
    assert BOGUS_VALUE in precision["complaint"]
    assert (checked[mode]["listed"], checked[mode]["refused"]) == (["AUTO", "BY_CHANNEL", "BY_TOKEN"], {})
    assert (checked[size]["listed"], list(checked[size]["refused"])) == ([], ["x"])


def test_a_property_that_the_plugin_lacks_refuses_every_value() -> None:
    checked = check_values("CPU", "NO_SUCH_PROPERTY", ["1"])
    assert checked.listed == ()
    assert list(checked.refused) == ["1"]
