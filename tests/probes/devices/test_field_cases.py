"""What others met on devices in the field, and what the probe makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.child import Outcome, run_child
from probes.devices.capabilities import Request, default_trial, requests
from probes.devices.dump import Dump, executes_elsewhere
from probes.devices.judgement import Proofs, judge
from probes.devices.properties import as_json
from probes.devices.trial import Observation, Tried
from probes.evidence import Capability, CapabilityState

ON_XE2 = "XAttention is not supported by your current GPU architecture or IGC version. Please either disable XAttention"
GPU = requests("GPU.0", {})


def named(name: str, requested: str) -> Request:
    return next(one for one in GPU if one.name == name and one.requested.startswith(requested))


def ran(*devices: str) -> Tried:
    dump = Dump(title="LLM with Paged Attention", properties={}, devices=dict.fromkeys(devices, "name"), scheduler={})
    seen = Observation(dump=dump, tokens=((1, 2), (1, 2)), log_likelihoods=(-1.0, -1.0), steps_to_first=(1, 1))
    return Tried(outcome=Outcome.OK, observation=seen, loaded=True, words="", seconds=1.0, peak_rss_bytes=1)


def raised(words: str) -> Tried:
    return Tried(outcome=Outcome.RAISED, observation=None, loaded=False, words=words, seconds=1.0, peak_rss_bytes=1)


def judged(asked: Request, tried: Tried) -> Capability:
    results = {default_trial("GPU.0"): ran("GPU.0"), asked.against: ran("GPU.0"), asked.trial: tried}
    return judge(asked, Proofs(requests=GPU, tried=results, refused={}, lost={}))


@pytest.mark.parametrize("tightened", ["XATTENTION, a prompt", "XATTENTION, threshold"])
def test_sparse_attention_is_supported_by_what_it_does_and_never_by_the_name_of_the_card(tightened: str) -> None:
    """A card that should have it is refused for its compiler; the words say so, and other requests are untouched."""
    asked = named("use_sparse_attention", tightened)
    found = judged(asked, raised(f"Exception from src/plugins/intel_gpu/program.cpp:42:\n{ON_XE2}"))
    assert (found.state, found.words) == (CapabilityState.REFUSED, f"at compilation: {ON_XE2}")


@pytest.mark.parametrize(
    "words",
    [
        "Option not found: prompt_lookup",
        "NotFound: [ NOT_FOUND ] Unsupported property prompt_lookup by CPU plugin.",
    ],
)
def test_an_option_that_a_plugin_does_not_know_is_refused_in_its_words(words: str) -> None:
    found = judged(named("KEY_CACHE_QUANT_MODE", "BY_TOKEN"), raised(words))
    assert (found.state, found.words) == (CapabilityState.REFUSED, f"at compilation: {words}")


def test_an_engine_that_runs_on_the_cpu_when_a_card_was_asked_for_proves_nothing() -> None:
    dump = ran("CPU").observation
    assert dump is not None
    assert dump.dump is not None
    assert executes_elsewhere("GPU.0", dump.dump) == "asked for GPU.0, and CPU executes"
    found = judged(named("KEY_CACHE_QUANT_MODE", "BY_TOKEN"), ran("CPU"))
    assert (found.state, found.words) == (CapabilityState.FAILED, "asked for GPU.0, and CPU executes")


def test_lists_of_capabilities_are_words_of_any_release() -> None:
    """Those of 2022 and of today, and one that nobody has heard of."""
    old = ["WINOGRAD", "FP32", "FP16", "INT8", "BIN", "EXPORT_IMPORT"]
    assert as_json(old) == old
    assert as_json({*old, "GPU_HW_MATMUL", "NEW_IN_2031"}) == sorted({*old, "GPU_HW_MATMUL", "NEW_IN_2031"})


@pytest.mark.parametrize("size", [16 * 2**30, 16_704_737_280, 2**31, 2**63 - 1])
def test_memory_is_a_number_of_bytes_under_the_name_of_its_source(size: int) -> None:
    """16 GiB on the box, 15.6 from the driver, 2 from elsewhere: each is kept whole, and none is corrected."""
    properties = {"GPU_DEVICE_TOTAL_MEM_SIZE": as_json(size)}
    assert json.loads(json.dumps(properties)) == {"GPU_DEVICE_TOTAL_MEM_SIZE": size}


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("[GPU] out of GPU resources: CL_OUT_OF_HOST_MEMORY", Outcome.OUT_OF_MEMORY),
        ("[GPU] Exceeded max size of memory object allocation: requested 5 bytes", Outcome.OUT_OF_MEMORY),
        ("clCreateBuffer, error code: -4 CL_MEM_OBJECT_ALLOCATION_FAILURE", Outcome.OUT_OF_MEMORY),
        ("zeMemAllocDevice failed: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", Outcome.OUT_OF_MEMORY),
        ("Failed to allocate: Cannot allocate memory", Outcome.OUT_OF_MEMORY),
        ("an error that says nothing of why", Outcome.RAISED),
    ],
)
def test_a_full_card_is_known_by_many_texts_and_an_unknown_text_is_kept(words: str, outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "card.py").write_text(f"def fail():\n    raise RuntimeError({words!r})\n")
    found = run_child("card:fail", {}, timeout_s=120, memory_bytes=2**30, env={"PYTHONPATH": str(tmp_path)})
    assert (found.outcome, found.words) == (outcome, words)
