"""The benchmarks on the real model, shortened, and what makes a report unusable."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from probes.child import Outcome
from probes.context import Context
from probes.devices.dump import Dump
from probes.errors import UsageError
from probes.evidence import Device, Load, Missing, MissingReason, Run, RunKind, read_run, write_run
from probes.micro.metrics import CONTRACT
from probes.micro.probe import came_to_nothing, doubts, probe_micro, read, written
from probes.micro.rounds import Report, Request, Round
from probes.model import ModelFiles

ROOT = Path(__file__).resolve().parents[3]
NO_SENSOR = Missing(missing=MissingReason.NO_SENSOR)


def shortened(context: Context, model: ModelFiles, name: str) -> Run:
    (run,) = probe_micro(replace(context, quick=True), model, only=[name], repetitions=2)
    return run


def samples(run: Run, name: str, arm: int) -> tuple[float, ...]:
    metric = run.metric(name, run.arms[arm].name)
    assert metric is not None
    return metric.samples


@pytest.mark.engine
def test_a_cached_prefix_is_measured_against_none(context: Context, model_files: ModelFiles, tmp_path: Path) -> None:
    said: list[str] = []
    run = shortened(replace(context, say=said.append), model_files, "prefix-caching")
    assert read_run(write_run(run, tmp_path)).metrics == run.metrics
    assert (run.kind, run.subject) == (RunKind.MICRO, "prefix-caching")
    assert run.validity.reasons == ("too few samples: 2 repetitions of each arm; expected 6",)
    assert [(arm.role, arm.settings) for arm in run.arms] == [
        ("baseline", {"enable_prefix_caching": False}),
        ("candidate", {"enable_prefix_caching": True}),
    ]
    assert isinstance(run.device, Device)
    assert run.device.name == "CPU"
    for arm in (0, 1):
        for name in ("ttft_s", "decode_tok_s", "aggregate_tok_s", "latency_s"):
            assert len(samples(run, name, arm)) == 2
            assert min(samples(run, name, arm)) > 0
    assert samples(run, "error_rate", 0) == (0.0, 0.0)
    assert {metric.name for metric in run.metrics} >= {quantity.name for quantity in CONTRACT}
    # The prefix is reused, which the engine's own steps and answers show without a clock.
    assert samples(run, "token_agreement", 1) == (1.0, 1.0)
    assert isinstance(run.load, Load)
    assert run.load.prompt_tokens == (160, 160)
    assert (run.load.requests, run.load.concurrency, run.load.warmup_requests) == (4, 1, 4)
    live = {setting.control: setting.value for setting in run.settings}
    assert "enable_prefix_caching" not in live
    assert (live["max_num_batched_tokens"], live["dynamic_split_fuse"]) == (256, True)
    assert {setting.provenance.source for setting in run.settings} == {run.id}
    assert [line for line in said if "[" in line] == [
        f"prefix-caching: [{n}/4] prefix caching {arm}" for n, arm in enumerate(["off", "on"] * 2, start=1)
    ]


@pytest.mark.engine
def test_four_requests_run_in_one_batch(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "continuous-batching")
    assert [arm.settings for arm in run.arms] == [{"concurrency": 1}, {"concurrency": 4}]
    assert [len(samples(run, "latency_s", arm)) for arm in (0, 1)] == [8, 8]
    # Four sequences hold four times the blocks of one.
    one, four = (samples(run, "cache_usage_percent", arm) for arm in (0, 1))
    assert four == tuple(4 * usage for usage in one)
    memory = run.metric("memory_bytes")
    assert memory is not None
    assert memory.samples[0] > 100e6


@pytest.mark.engine
def test_a_head_with_random_weights_is_never_right_and_has_a_price(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "speculative-break-even")
    assert [arm.name for arm in run.arms[:2]] == ["plain", "EAGLE-3 random head, k=3"]
    assert run.arms[1].settings["draft_vocab"] == 12_288
    assert samples(run, "tokens_per_step", 1) == (1.0, 1.0)
    assert samples(run, "accepted_tokens", 1) == (0.0, 0.0)
    assert min(samples(run, "break_even_tokens_per_step", 1)) > 0
    for arm in run.arms[2:]:
        price = run.metric("break_even_tokens_per_step", arm.name)
        assert price is not None
        assert price.missing == Missing(missing=MissingReason.SKIPPED, detail="quick")


def test_a_benchmark_that_left_itself_out_did_not_fail() -> None:
    words = "Skipped: budget: 6 repetitions of all 9 arms take about 204 s of 45 s"
    skipped = came_to_nothing(Outcome.RAISED, words)
    assert (skipped.missing, skipped.detail) == (MissingReason.SKIPPED, words.removeprefix("Skipped: "))
    failed = came_to_nothing(Outcome.CRASHED, words)
    assert (failed.missing, failed.detail) == (MissingReason.FAILED, f"crashed: {words}")


@pytest.mark.engine
def test_a_model_that_cannot_be_loaded_is_an_invalid_run_with_the_runtime_s_words(
    context: Context, model_files: ModelFiles, tmp_path: Path
) -> None:
    for file in model_files.ir.iterdir():
        os.link(file, tmp_path / file.name)
    (tmp_path / "openvino_model.bin").unlink()
    run = shortened(context, replace(model_files, ir=tmp_path), "prefix-caching")
    assert run.validity.reasons == ("the benchmark raised",)
    assert {metric.name for metric in run.metrics} == {quantity.name for quantity in CONTRACT}
    for metric in run.metrics:
        assert metric.missing is not None
        assert metric.missing.missing is MissingReason.FAILED
        assert metric.missing.detail == "raised: Empty weights data in bin file or bin file cannot be found!"


def test_an_unknown_benchmark_is_named_with_those_there_are(context: Context, model_files: ModelFiles) -> None:
    with pytest.raises(UsageError, match="prefix: is not a micro-benchmark; expected prefix-caching, continuous-batching"):
        probe_micro(context, model_files, only=["prefix"])


def test_by_hand_without_a_model_a_benchmark_says_what_is_missing() -> None:
    environ = {**os.environ, "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "probes/micro/bench_prefix_caching.py"]
    run = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0
    assert "no model: name its folder with --ir" in run.stdout


def rounds(repetitions: int, **scheduler: str) -> Report:
    from probes.micro.bench_prefix_caching import VARIANTS

    arms = tuple(variant.arm for variant in VARIANTS)
    request = Request(prompt_tokens=1, tokens=(1, 2), steps=2, steps_to_first=1, ttft_s=0.1, latency_s=0.2, decode_tok_s=10.0)
    base = Round(arm="", requests=(request,), cache_usage_percent=1.0, power_w=NO_SENSOR)
    dumps = {
        arm.name: Dump(
            title="LLM",
            properties={},
            devices={"CPU": "name"},
            scheduler={"enable_prefix_caching": written(arm.settings["enable_prefix_caching"]), **scheduler},
        )
        for arm in arms
    }
    return Report(
        arms=arms,
        rounds=tuple(base.model_copy(update={"arm": arm.name}) for _ in range(repetitions) for arm in arms),
        dumps=dumps,
        schedule="",
        concurrency=1,
        warmup_requests=2,
        max_tokens=2,
        prompt_set_sha256="",
    )


def test_a_sound_report_raises_no_doubt() -> None:
    assert doubts(rounds(6), "CPU") == ()


def test_fewer_than_six_repetitions_bound_no_median() -> None:
    assert doubts(rounds(5), "CPU") == ("too few samples: 5 repetitions of each arm; expected 6",)


def test_another_device_is_a_doubt_once() -> None:
    assert doubts(rounds(6), "GPU") == ("asked for GPU, and CPU executes",)


def test_an_engine_that_did_not_take_the_arm_s_setting_is_a_doubt() -> None:
    assert doubts(rounds(6, enable_prefix_caching="true"), "CPU") == (
        "prefix caching off: enable_prefix_caching is true; expected false",
    )


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False), ("256", 256), ("u8", "u8"), ("unset", "unset")])
def test_settings_are_read_as_the_runtime_writes_them(text: str, value: bool | int | str) -> None:
    assert read(text) == value
    assert written(value) == text
