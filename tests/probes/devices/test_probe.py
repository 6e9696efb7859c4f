"""The device probe on the real runtime: what this machine's CPU proves, and devices that are not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import openvino
import pytest

from probes.archive import read_run, write_run
from probes.context import Context
from probes.devices.capabilities import requests
from probes.devices.probe import Budget, probe_devices
from probes.devices.trial import Observation, try_settings
from probes.evidence import CapabilityState, Device, Missing, MissingReason, Run, RunKind, Technique
from probes.model import ModelFiles, genai_version

pytestmark = pytest.mark.engine


@pytest.fixture
def quick(context: Context) -> Context:
    return replace(context, quick=True)


@pytest.fixture
def bare(model_files: ModelFiles, tmp_path: Path) -> ModelFiles:
    """The model without tokenizer, configuration and end-of-text id."""
    folder = tmp_path / "bare"
    folder.mkdir()
    for kind in ("xml", "bin"):
        os.link(model_files.ir / f"openvino_model.{kind}", folder / f"openvino_model.{kind}")
    return replace(model_files, ir=folder)


def test_this_cpu_proves_what_it_does_within_its_budget_and_goes_on_from_there(
    quick: Context, bare: ModelFiles, tmp_path: Path
) -> None:
    """The clock advances by a second at each look, two for each trial: time for the first three."""
    said: list[str] = []
    (run,) = probe_devices(replace(quick, say=said.append), bare, ["CPU"], budget=Budget(trials_s=4.5, drafts_s=0))
    assert read_run(write_run(run, tmp_path)).capabilities == run.capabilities
    assert (run.kind, run.subject, run.validity.valid) == (RunKind.DEVICES, "cpu", True)
    assert isinstance(run.device, Device)
    assert run.device.full_name == run.device.properties["FULL_DEVICE_NAME"]
    assert not isinstance(run.runtime, Missing)
    assert (run.runtime.name, run.runtime.version) == ("openvino-genai", genai_version())
    assert (run.model, run.server) == (bare.facts, quick.client)

    states = {(c.name, c.requested): c for c in run.capabilities}
    assert states["KV_CACHE_PRECISION", "i8"].state is CapabilityState.REFUSED
    assert states["KV_CACHE_PRECISION", "i8"].words.startswith("at the property check: Wrong value i8")
    u4 = states["KV_CACHE_PRECISION", "u4"]
    assert (u4.state, u4.technique) == (CapabilityState.EFFECTIVE, Technique.KV_CACHE)
    assert u4.words == "the engine reports KV_CACHE_PRECISION u4"
    assert "bytes of KV cache per token against" in u4.effect
    # Passed by the check but not part of a quick run: nothing is said about it.
    assert ("KV_CACHE_PRECISION", "f16") not in states
    skipped = {key for key, found in states.items() if found.state is CapabilityState.SKIPPED}
    assert ("enable_prefix_caching", "true") in skipped
    assert states["enable_prefix_caching", "true"].words == "skipped: the budget of 4.5 s was spent"
    first = [line for line in said if "/" in line]
    assert first[0].startswith("CPU: [1/")
    assert first[0].endswith("] default settings")

    said.clear()
    (again,) = probe_devices(replace(quick, say=said.append), bare, ["CPU"], budget=Budget(trials_s=0, drafts_s=0))
    assert not [line for line in said if "/" in line]
    assert again.native["resumed"] == [line.partition("] ")[2] for line in first]
    assert {(c.name, c.requested): c for c in again.capabilities}["KV_CACHE_PRECISION", "u4"] == u4


def seen(bare: ModelFiles, name: str, requested: str) -> Observation:
    asked = next(one for one in requests("CPU", {}) if one.name == name and one.requested.startswith(requested))
    result = try_settings(asked.trial, bare.ir)
    assert result.observation is not None, result.words
    return result.observation


def test_a_cache_of_four_bits_leads_nearly_every_answer_in_plain_words_astray(model_files: ModelFiles) -> None:
    exact, coarse = (seen(model_files, "KV_CACHE_PRECISION", precision).told for precision in ("f32", "u4"))
    assert [len(answer) for answer in exact] == [48] * 6
    assert sum(one == other for one, other in zip(exact, coarse, strict=True)) <= 1


def test_a_repeated_prompt_is_reused_and_the_pool_keeps_its_size(bare: ModelFiles) -> None:
    found = seen(bare, "enable_prefix_caching", "true")
    assert found.steps_to_first == (4, 1)
    assert found.tokens[0] == found.tokens[1]
    assert found.pool_bytes[0] == found.pool_bytes[1] > 0


def test_a_cache_that_evicts_holds_less_than_went_through_it(bare: ModelFiles) -> None:
    found = seen(bare, "use_cache_eviction", "start 32")
    assert 0 < found.held_bytes < 200 * found.bytes_per_token


def test_the_runtime_falls_back_to_another_attention_path_with_no_more_than_a_warning(bare: ModelFiles) -> None:
    """On CPUs without bf16 kernels for paged attention; the others build it and warn of nothing."""
    found = seen(bare, "ATTENTION_BACKEND", "PA, the default")
    assert found.dump is not None
    assert found.dump.properties["KV_CACHE_PRECISION"] == "bf16"
    assert bool(found.warnings) is ("Stateful" in found.dump.title)


def no_model(folder: Path) -> None:
    (folder / "openvino_model.xml").write_text("<net")


def no_language_model(folder: Path) -> None:
    image = openvino.opset13.parameter([1, 3, 8, 8], name="image")
    openvino.save_model(openvino.Model([openvino.opset13.relu(image)], [image]), folder / "openvino_model.xml")


@pytest.mark.parametrize("write", [no_model, no_language_model])
def test_a_folder_without_a_language_model_refuses_no_setting(
    quick: Context, model_files: ModelFiles, tmp_path: Path, write: Callable[[Path], None]
) -> None:
    write(tmp_path)
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
