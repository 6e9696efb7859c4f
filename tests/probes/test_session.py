"""The probe command as a person runs it: plan, evidence, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from probes.archive import read_runs
from probes.evidence import EndpointState, LocalScope, ModelKind, RunKind
from probes.lock import alone

ROOT = Path(__file__).parents[2]


def probes(*arguments: str, cache: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    env = inherited | {"INFERENCE_ADR_CACHE": str(cache or ROOT)} | environ
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "probes", *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_dry_run_prints_the_plan_and_touches_nothing(tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    done = probes("run", "--dry-run", "--out", str(out), OVMS_8B_URL="http://user-visible.invalid:8000")
    assert done.returncode == 0
    assert done.stdout.startswith("Plan: about ")
    assert "${OVMS_8B_URL}" in done.stdout
    assert "OVMS_30B_URL is unset  " in done.stdout
    assert "user-visible" not in done.stdout
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "mirco"], "probes: mirco: is not a part; expected declared, devices, endpoints, micro"),
        (["run", "--service", "text-8"], "did you mean text-8b"),
        (["run", "--fleet", "absent.yml"], "probes: absent.yml: cannot be read (No such file or directory)"),
        (["endpoint", "--url", "http://[::1"], "probes: --url: is not a valid address"),
        (["endpoint", "--url", "http://h", "--key-env", "UNSET_KEY"], "UNSET_KEY: is unset or empty"),
        (["endpoint", "--url", "http://h", "--max-tokens", "-1"], "--max-tokens -1: is negative"),
        (["endpoint", "--ur", "http://h"], "the following arguments are required: --url"),
        (["serve", "--sett", "cache_size=1"], "unrecognized arguments: --sett"),
        (["speculation", "--i", "x"], "the following arguments are required: --ir"),
        (["load", "--url", "http://h", "--mod", "m"], "unrecognized arguments: --mod m"),
        (["serve", "--setting", "parallel=4"], "setting parallel: is not known; expected one of device"),
    ],
)
def test_a_wrong_command_is_one_message_and_exit_code_2(arguments: list[str], expected: str) -> None:
    done = probes(*arguments)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_written_wrongly_is_told_before_the_first_part_starts(tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    wrong = {"OVMS_8B_URL": "http://h:8000x", "OVMS_30B_URL": "ftp://h", "OVMS_4B_URL": "http://h", "OVMS_API_KEY": "two words"}
    done = probes("run", "--out", str(out), cache=None, **wrong)
    assert (done.returncode, done.stdout, out.exists()) == (2, "", False)
    assert [line.partition(";")[0] for line in done.stderr.splitlines()] == [
        "probes: environment variable OVMS_8B_URL: is not a valid address",
        "probes: environment variable OVMS_30B_URL: is not an http(s) address",
        "probes: environment variable OVMS_API_KEY: holds a space, a line break or a character outside ASCII",
    ]
    assert probes("run", "micro", "--dry-run", cache=None, **wrong).returncode == 0


def test_outside_the_repository_the_way_in_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "probes", "plan"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    expected = "expected the repository's root as the current folder, or --fleet FILE"
    assert (done.returncode, done.stderr) == (2, f"probes: fleet.yml: is not in {tmp_path}; {expected}\n")


@pytest.mark.parametrize(
    ("key", "why"), [("short", "has fewer than 8 characters"), ("endpoint", "is a word that stands in every")]
)
def test_a_key_that_guards_nothing_is_told_and_does_no_harm(tmp_path: Path, key: str, why: str) -> None:
    out = tmp_path / "evidence"
    done = probes("run", "--service", "text-8b", "--out", str(out), cache=tmp_path, OVMS_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).count(f"OVMS_API_KEY: the key {why}") == 1
    assert "1 evidence file in " in done.stdout
    ((run,), problems) = read_runs(out)
    assert (problems, run.kind, list(run.survey)) == ((), RunKind.SURVEY, ["text-8b"])


def test_a_second_run_is_refused_and_a_plan_is_not(tmp_path: Path) -> None:
    out = tmp_path / "evidence"
    with alone(tmp_path, "process 7", print):
        refused = probes("run", "--service", "text-8b", "--out", str(out), cache=tmp_path)
        planned = probes("run", "--dry-run", "--out", str(out), cache=tmp_path)
    assert (refused.returncode, planned.returncode, planned.stderr, out.exists()) == (2, 0, "", False)
    assert "run.lock: is held by process 7; expected no other run on this machine" in refused.stderr


def test_a_user_without_a_home_is_told_what_to_name(tmp_path: Path) -> None:
    unset = {"HOME", "INFERENCE_ADR_CACHE", "XDG_CACHE_HOME"}
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    script = """
import pwd, sys
def nobody(_):
    raise KeyError
pwd.getpwuid = nobody
from probes.__main__ import main
sys.exit(main(["run", "--service", "text-8b", "--out", sys.argv[1]]))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "evidence")]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)  # noqa: S603
    expected = "no home folder: HOME is unset and this user has none; expected HOME, or INFERENCE_ADR_CACHE with a folder"
    assert (done.returncode, done.stderr) == (2, f"probes: {expected}\n")
    environ["INFERENCE_ADR_CACHE"] = str(tmp_path / "cache")
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.engine
@pytest.mark.usefixtures("model_files")
def test_an_embedded_service_that_does_not_start_is_a_state_and_stops_nobody_else(tmp_path: Path, model_cache: Path) -> None:
    inventory = tmp_path / "fleet.yml"
    text = (ROOT / "fleet.yml").read_text(encoding="utf-8")
    assert "    KV_CACHE_PRECISION: u8\n" in text.partition("\nembedded:")[2]
    head, mark, tail = text.partition("\nembedded:")
    inventory.write_text(head + mark + tail.replace("KV_CACHE_PRECISION: u8", "KV_CACHE_PRECISION: u9", 1))
    done = probes("run", "endpoints", "--fleet", str(inventory), "--out", str(tmp_path / "evidence"), cache=model_cache)
    assert done.returncode == 0, done.stderr
    runs, _ = read_runs(tmp_path / "evidence")
    told = {run.subject: run for run in runs}
    assert set(told) == {"embedded", "fleet"}
    assert told["embedded"].endpoint is not None
    assert told["embedded"].endpoint.state is EndpointState.FAILED
    assert "Wrong value u9 for property key KV_CACHE_PRECISION" in told["embedded"].endpoint.detail
    assert not told["embedded"].validity.valid


@pytest.mark.engine
@pytest.mark.usefixtures("model_files")
def test_the_embedded_service_is_started_asked_and_stopped(tmp_path: Path, model_cache: Path) -> None:
    out = tmp_path / "evidence"
    done = probes("run", "--service", "embedded", "--out", str(out), "--json", cache=model_cache)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["interrupted"] is False
    ((run,), problems) = read_runs(out)
    assert problems == ()
    assert run.kind is RunKind.ENDPOINT
    assert isinstance(run.scope, LocalScope)
    assert run.endpoint is not None
    assert run.endpoint.state is EndpointState.GENERATING
    assert {setting.control: setting.value for setting in run.settings}["enable_prefix_caching"] is True
    assert [claim.kind for claim in run.kinds[:1]] == [ModelKind.DECODER]
    assert run.kinds[0].where.startswith("the served model/openvino_model.xml: 60 tensors of a KV cache")
    ttft = run.metric("ttft_s")
    assert ttft is not None
    assert ttft.samples
    assert str(ROOT) not in run.model_dump_json()


@pytest.mark.engine
@pytest.mark.usefixtures("model_files")
def test_ctrl_c_leaves_no_process_and_no_half_file(tmp_path: Path, model_cache: Path) -> None:
    out = tmp_path / "evidence"
    command = [sys.executable, "-m", "probes", "run", "endpoints", "micro", "--quick", "--out", str(out)]
    env = os.environ | {"INFERENCE_ADR_CACHE": str(model_cache)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("prefix-caching: warm-up"):
                break
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        told = process.stdout.read()
    assert process.returncode == 130
    assert "kept" in told
    assert "Traceback" not in told
    deadline = time.monotonic() + 10
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
        assert time.monotonic() < deadline, children
        time.sleep(0.05)
    runs, problems = read_runs(out)
    assert problems == ()
    assert {run.subject for run in runs} == {"embedded", "fleet"}
    assert {path.suffix for path in out.iterdir()} == {".json"}


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("where the folder should be", encoding="utf-8")
    done = probes("run", "micro", "--out", str(blocked), cache=tmp_path)
    assert done.returncode == 2
    assert f"probes: {blocked}: cannot be written" in done.stderr
    assert "warm-up" not in done.stdout
