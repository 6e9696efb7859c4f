"""The device probe on the real runtime: what this machine's CPU proves, and devices that are not there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from probes.context import Context
from probes.devices.probe import probe_devices
from probes.evidence import CapabilityState, Device, Missing, MissingReason, Run, RunKind, Technique, read_run, write_run
from probes.model import ModelFiles, genai_version

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture
def quick(context: Context, said: list[str]) -> Context:
    return replace(context, quick=True, say=said.append)


def test_this_cpu_proves_what_it_does(quick: Context, model_files: ModelFiles, said: list[str], tmp_path: Path) -> None:
    (run,) = probe_devices(quick, model_files, ["CPU"])
    assert read_run(write_run(run, tmp_path)).capabilities == run.capabilities
    assert (run.kind, run.subject, run.validity.valid) == (RunKind.DEVICES, "cpu", True)
    assert isinstance(run.device, Device)
    assert run.device.full_name == run.device.properties["FULL_DEVICE_NAME"]
    assert not isinstance(run.runtime, Missing)
    assert (run.runtime.name, run.runtime.version) == ("openvino-genai", genai_version())
    assert run.model == model_files.facts
    assert run.server == quick.client

    states = {(c.name, c.requested): c for c in run.capabilities}
    assert states["KV_CACHE_PRECISION", "i8"].state is CapabilityState.REFUSED
    assert states["KV_CACHE_PRECISION", "i8"].words.startswith("at the property check: Wrong value i8")
    for value in ("u8", "u4"):
        found = states["KV_CACHE_PRECISION", value]
        assert (found.state, found.technique) == (CapabilityState.EFFECTIVE, Technique.KV_CACHE)
        assert found.words == f"the engine reports KV_CACHE_PRECISION {value}"
        assert "bytes of KV cache per token against" in found.effect
    on, off = (states["enable_prefix_caching", value] for value in ("true", "false"))
    assert (on.state, off.state) == (CapabilityState.EFFECTIVE, CapabilityState.EFFECTIVE)
    assert on.effect.endswith("took 4 steps to its first token, and 1 when repeated; same answer")
    assert off.effect.endswith("took 4 steps to its first token, and 4 when repeated; same answer")
    # Passed by the check but not tried in a quick run: nothing is said about them.
    assert ("KV_CACHE_PRECISION", "f32") not in states
    assert next(line for line in said if line.startswith("CPU: [")) == "CPU: [1/4] default settings"


def test_a_model_that_cannot_be_loaded_refuses_no_setting(quick: Context, model_files: ModelFiles, tmp_path: Path) -> None:
    for file in model_files.ir.iterdir():
        os.link(file, tmp_path / file.name)
    (tmp_path / "openvino_model.xml").unlink()
    (tmp_path / "openvino_model.xml").write_text("<net")
    (run,) = probe_devices(quick, replace(model_files, ir=tmp_path), ["CPU"])
    tried = [c for c in run.capabilities if not c.words.startswith("at the property check")]
    assert {c.state for c in tried} == {CapabilityState.FAILED}
    assert all(c.words.startswith("not tried: with default settings the engine raised: ") for c in tried)
    trials = run.native["trials"]
    assert isinstance(trials, dict)
    assert list(trials) == ["default settings"]


def test_devices_that_are_not_there_are_states(quick: Context, model_files: ModelFiles) -> None:
    first, second = probe_devices(quick, model_files, ["FOO", "FOO/../x"])
    assert first.subject == "foo"
    assert second.subject == "foo-x"
    for run in (first, second):
        assert (run.validity.valid, run.validity.reasons) == (False, ("no device",))
        assert run.capabilities == ()
        assert isinstance(run.device, Missing)
        assert run.device.missing is MissingReason.NOT_APPLICABLE


def test_a_gpu_without_a_driver_is_a_state(quick: Context, model_files: ModelFiles) -> None:
    (run,) = probe_devices(quick, model_files, ["GPU.7"])
    _reason_is_told(run)


def test_plugins_without_a_device_are_listed_beside_what_is_there(quick: Context, model_files: ModelFiles) -> None:
    (run,) = probe_devices(quick, model_files, ["NPU"])
    _reason_is_told(run)
    versions, absent = run.native["versions"], run.native["absent"]
    assert isinstance(versions, dict)
    assert isinstance(absent, dict)
    assert set(versions) == {"openvino", "openvino_genai"}
    assert "CPU" not in absent


def _reason_is_told(run: Run) -> None:
    """On a machine that has the device the probe would prove things; without it, it says why."""
    if isinstance(run.device, Missing):
        assert run.validity.reasons[0] in {"no driver", "no device"}
        assert run.device.detail.startswith(f"{run.subject.upper().replace('-', '.')}: {run.validity.reasons[0]}: ")
    else:
        assert run.capabilities
