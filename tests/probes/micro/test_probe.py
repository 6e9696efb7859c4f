"""The benchmarks on the real model, shortened, and what makes a report unusable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from probes.archive import read_run, write_run
from probes.child import Outcome
from probes.context import Context
from probes.devices.dump import Dump
from probes.errors import UsageError
from probes.evidence import Device, Load, Missing, MissingReason, Run, RunKind
from probes.micro.catalogue import MODULES
from probes.micro.metrics import CONTRACT, waits
from probes.micro.probe import benchmark, came_to_nothing, doubts, probe_micro, read, written
from probes.micro.rounds import Report, Request, Round
from probes.model import ModelFiles

ROOT = Path(__file__).resolve().parents[3]
NO_SENSOR = Missing(missing=MissingReason.NO_SENSOR)


# No arm is left out on a machine that others keep busy.
AMPLE_S = 900.0


def shortened(context: Context, model: ModelFiles, name: str, *, quick: bool = True, repetitions: int = 2) -> Run:
    (run,) = probe_micro(replace(context, quick=quick), model, only=[name], repetitions=repetitions, budget_s=AMPLE_S)
    return run


def rounds_of(run: Run, arm: int) -> list[Round]:
    report = run.native["report"]
    assert isinstance(report, dict)
    read = Report.model_validate_json(json.dumps(report))
    return [row for row in read.rounds if row.arm == run.arms[arm].name]


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
    assert (run.load.requests, run.load.concurrency, run.load.warmup_requests, run.load.quick) == (4, 1, 4, True)
    live = {setting.control: setting.value for setting in run.settings}
    assert "enable_prefix_caching" not in live
    assert (live["max_num_batched_tokens"], live["dynamic_split_fuse"]) == (256, True)
    assert {setting.provenance.source for setting in run.settings} == {run.id}
    assert [line for line in said if "[" in line] == [
        f"prefix-caching: [{n}/4] prefix caching {arm}" for n, arm in enumerate(["off", "on"] * 2, start=1)
    ]


@pytest.mark.engine
def test_batches_of_every_size_hold_so_many_requests(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "continuous-batching", quick=False, repetitions=1)
    assert [arm.settings["concurrency"] for arm in run.arms] == [1, 4, 2, 8]
    assert [len(samples(run, "latency_s", arm)) for arm in range(4)] == [8] * 4
    usage = [samples(run, "cache_usage_percent", arm)[0] for arm in range(4)]
    assert usage == [usage[0] * int(arm.settings["concurrency"]) for arm in run.arms]
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


@pytest.mark.engine
def test_each_weight_precision_reads_its_own_bytes(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "quantization", quick=False, repetitions=1)
    assert [arm.settings["weights"] for arm in run.arms] == ["f16", "u4", "int8"]
    assert [arm.settings["as_shipped"] for arm in run.arms] == [False, True, False]
    f16, shipped, int8 = (int(arm.settings["weight_bytes"]) for arm in run.arms)
    assert f16 > 1.9 * int8 > 1.9 * shipped
    # The f16 weights are the packed ones unpacked, so greedy answers are nearly the same.
    assert max(samples(run, "token_agreement", 1)) > 0
    assert min(samples(run, "decode_tok_s", 2)) > 0


@pytest.mark.engine
def test_a_kv_cache_is_kept_in_the_precision_of_its_arm(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "kv-cache", quick=False, repetitions=1)
    assert not [reason for reason in run.validity.reasons if "KV_CACHE_PRECISION" in reason]
    report = run.native["report"]
    assert isinstance(report, dict)
    dumps = Report.model_validate_json(json.dumps(report)).dumps
    assert [dumps[arm.name].properties["KV_CACHE_PRECISION"] for arm in run.arms] == ["f16", "u8", "u4", "f32"]
    f16, u8, u4, f32 = (samples(run, "kv_bytes_per_token", arm)[0] for arm in range(4))
    assert f32 == 2 * f16
    # With its scales u4 may take more than u8: on an AVX2 CPU 15,840 bytes a token against 13,680.
    assert max(u8, u4) < f16


@pytest.mark.engine
def test_split_fuse_computes_a_long_prompt_in_more_steps(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "split-fuse", quick=False, repetitions=1)
    assert [arm.settings["dynamic_split_fuse"] for arm in run.arms] == [False, True, True]
    steps = []
    for arm in range(3):
        (late,) = [request for request in rounds_of(run, arm)[0].requests if request.added_s > 0]
        assert late.prompt_tokens == 384
        steps.append(late.steps_to_first)
    assert steps[0] == steps[2] == 1
    assert steps[1] > 3
    # Whoever waits for a step of its own waits once; whoever is fused gets a token in every step.
    gaps = [len(waits(rounds_of(run, arm)[0])) for arm in range(3)]
    assert gaps[1] > gaps[0] == 2
    assert len(samples(run, "worst_itl_s", 1)) == len(samples(run, "late_ttft_s", 1)) == 1


@pytest.mark.engine
def test_sparse_attention_runs_on_the_prompts_it_is_named_after(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "sparse-attention-700", repetitions=1)
    assert [arm.settings["use_sparse_attention"] for arm in run.arms] == [False, True]
    assert isinstance(run.load, Load)
    assert run.load.prompt_tokens == (700,)
    assert run.validity.reasons == ("too few samples: 1 repetition of each arm; expected 6",)
    assert [request.steps_to_first for arm in (0, 1) for row in rounds_of(run, arm) for request in row.requests] == [1, 1]


@pytest.mark.engine
def test_drafts_are_right_where_the_text_repeats_itself(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "drafts-repetitive", repetitions=1)
    assert [arm.name for arm in run.arms] == ["plain", "prompt lookup, k=3", "target as its own draft, k=3"]
    assert {arm.settings["text"] for arm in run.arms} == {"repetitive"}
    assert samples(run, "tokens_per_step", 1)[0] > 1.5
    # The target's own drafts are refused only where batches of other sizes round otherwise.
    assert samples(run, "tokens_per_step", 2)[0] > 2


@pytest.mark.engine
def test_decoding_reaches_a_share_of_what_memory_allows(context: Context, model_files: ModelFiles) -> None:
    run = shortened(context, model_files, "memory-bandwidth")
    values = {metric.name: metric.samples for metric in run.metrics}
    assert [len(values[name]) for name in ("memory_read_bytes_s", "memory_copy_bytes_s", "share_of_limit")] == [2, 2, 2]
    assert min(values["share_of_limit"]) > 0
    assert values["bytes_per_token"][0] > (model_files.ir / "openvino_model.bin").stat().st_size * 0.99
    assert run.arms == ()
    assert isinstance(run.device, Device)
    assert str(run.native["formula"]).startswith("limit in tokens per second = ")


def planted(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """Put a benchmark that breaks in the place of a real one."""
    (folder / "conftest.py").write_text("from probes.micro.conftest import bench, pytest_addoption\n")
    (folder / "bench_planted.py").write_text(f"import os, time\n\n\ndef test_planted(bench):\n    {body}\n")
    monkeypatch.setitem(MODULES, "prefix-caching", str(folder / "bench_planted"))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("os.abort()", ("the benchmark crashed", "SIGABRT")),
        ("os.kill(os.getpid(), 9)", ("the benchmark crashed", "SIGKILL")),
        ("held = bytearray(3 * 2**30); time.sleep(60)", ("the benchmark out of memory", "the bound is 1073741824")),
        ("raise RuntimeError('std::bad_alloc')", ("the benchmark out of memory", "std::bad_alloc")),
        ("time.sleep(600)", ("the benchmark timed out", "no end after")),
        ("pass", ("the benchmark raised", "0 benchmarks ran; expected 1")),
    ],
)
def test_a_benchmark_that_breaks_is_an_outcome(
    context: Context, model_files: ModelFiles, monkeypatch: pytest.MonkeyPatch, body: str, told: tuple[str, str]
) -> None:
    reason, words = told
    context.root.joinpath("planted").mkdir()
    planted(monkeypatch, context.root / "planted", body)
    # Time to import the engine on a busy machine; only what hangs needs all of it.
    monkeypatch.setattr("probes.micro.probe.TIMEOUT_S", 2.0 if "600" in body else 200.0)
    run = benchmark(context, model_files.ir, model_files.facts, "prefix-caching", memory_bytes=2**30)
    assert run.validity.reasons == (reason,)
    ttft = run.metric("ttft_s")
    assert ttft is not None
    assert ttft.missing is not None
    assert ttft.missing.missing is MissingReason.FAILED
    assert words in ttft.missing.detail


REFUSING = """if True:
        from probes.evidence import Arm
        from probes.micro.bench import Repetition, Variant
        names = (("f32", "baseline"), ("u3", "candidate"), ("u8", "candidate"))
        arms = [Variant(arm=Arm(name=n, role=r), properties=dict(KV_CACHE_PRECISION=n)) for n, r in names]
        one = Repetition(measured=(tuple(range(300, 332)),))
        keep = arms[:2] if {alone} else arms
        bench.compare(keep, [one], scheduler=dict(num_kv_blocks=16), warmup=one, max_tokens=2, schedule="")"""


@pytest.mark.engine
@pytest.mark.parametrize("alone", [False, True])
def test_an_arm_that_the_runtime_refuses_leaves_the_others(
    context: Context, model_files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    planted(monkeypatch, tmp_path, REFUSING.format(alone=alone))
    run = benchmark(context, model_files.ir, model_files.facts, "prefix-caching")
    if alone:
        assert run.validity.reasons == ("the benchmark raised",)
        assert "kvcache" in str(run.native["words"])
        return
    assert [arm.name for arm in run.arms] == ["f32", "u8", "u3"]
    refused = run.metric("ttft_s", "u3")
    assert refused is not None
    assert refused.missing is not None
    assert refused.missing.missing is MissingReason.REFUSED
    assert "kvcache" in refused.missing.detail
    assert len(samples(run, "ttft_s", 1)) == 1


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
