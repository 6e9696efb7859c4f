"""The engine's own description of itself, as OpenVINO GenAI 2026.4.1 prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.devices.dump import Dump, executes_elsewhere, parse_dump

CAPTURED = Path(__file__).resolve().parents[2] / "data/openvino-genai/debug-dump-2026.4.1-cpu.txt"


def dump(*devices: str) -> Dump:
    return Dump(title="LLM with Paged Attention", properties={}, devices=dict.fromkeys(devices, "name"), scheduler={})


def test_the_language_model_is_told_from_its_tokenizers() -> None:
    """All three blocks list KV_CACHE_PRECISION; the tokenizers' hold the plugin's default u8."""
    found = parse_dump(CAPTURED.read_text())
    assert found is not None
    assert found.title == "LLM with Paged Attention"
    assert found.properties["KV_CACHE_PRECISION"] == "u4"
    assert found.properties["NETWORK_NAME"] == "Model0"
    assert found.properties["MODEL_DISTRIBUTION_POLICY"] == ""
    assert found.properties["RUNTIME_REQUIREMENTS"] == "meta=1.0;ov=2026.4.1;isa=Intel AVX2"
    assert found.devices == {"CPU": "AMD EPYC"}
    assert found.scheduler == {
        "max_num_batched_tokens": "256",
        "num_kv_blocks": "0",
        "cache_size": "1",
        "num_linear_attention_blocks": "0",
        "cache_interval_multiplier": "unset",
        "dynamic_split_fuse": "true",
        "use_cache_eviction": "false",
        "max_num_seqs": "256",
        "enable_prefix_caching": "true",
        "use_sparse_attention": "false",
    }


def test_another_attention_path_has_another_title_and_no_scheduler() -> None:
    text = CAPTURED.read_text().replace("LLM with Paged Attention", "Stateful LLM model")
    start, end = text.index("SchedulerConfig {"), text.index("Model: Stateful")
    found = parse_dump(text[:start] + text[end:])
    assert found is not None
    assert (found.title, found.scheduler) == ("Stateful LLM model", {})


def test_several_devices_and_text_after_the_block() -> None:
    text = "Model: LLM\n  A: 1\nEXECUTION_DEVICES:\n GPU.0: Intel Arc B580 (dGPU)\n CPU: Some CPU\nsomething else\n NPU: no\n"
    found = parse_dump(text)
    assert found is not None
    assert found.devices == {"GPU.0": "Intel Arc B580 (dGPU)", "CPU": "Some CPU"}


@pytest.mark.parametrize("text", ["", "noise\n", CAPTURED.read_text().partition("SchedulerConfig {")[0]])
def test_nothing_printed_is_nothing_known(text: str) -> None:
    assert parse_dump(text) is None


@pytest.mark.parametrize(
    ("asked", "found", "elsewhere"),
    [
        ("CPU", ["CPU"], False),
        ("GPU", ["GPU.0"], False),
        ("GPU.0", ["GPU"], False),
        ("GPU.1", ["GPU.1"], False),
        ("GPU.1", ["GPU.0"], True),
        ("GPU", ["GPU.1"], True),
        ("GPU", ["CPU"], True),
        ("GPU", ["GPU.0", "CPU"], True),
        ("CPU", [], False),
    ],
)
def test_a_device_that_was_not_asked_for(asked: str, found: list[str], elsewhere: bool) -> None:
    words = executes_elsewhere(asked, dump(*found))
    assert words == (f"asked for {asked}, and {', '.join(sorted(found))} executes" if elsewhere else None)
