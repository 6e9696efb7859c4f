"""The import as a user runs it: evidence that says what it does not know, and one message for a file that is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from probes.__main__ import main
from probes.archive import read_runs
from probes.evidence import EndpointState, Missing, Run, RunKind
from probes.exchange.importing import bounded

DATA = Path(__file__).parents[2] / "data" / "exchange"
AIPERF = DATA / "aiperf-0.13.0"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def imported(*words: str | Path) -> list[Run]:
    assert main(["import", *map(str, words), "--out", "evidence"]) == 0
    runs, problems = read_runs(Path("evidence"))
    assert problems == ()
    return list(runs)


def test_file_becomes_evidence_of_its_own_time_that_describes_no_machine(capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = imported(DATA / "guidellm-0.8.1.json")
    assert (run.kind, run.validity.valid, str(run.date)) == (RunKind.LOAD, True, "2026-11-30")
    assert 0.8 < (run.ended_at - run.started_at).total_seconds() < 1.0
    assert (run.client.alias, run.client.cpu) == ("not-described", "not described")
    for value in (run.client.memory_bytes, run.client.logical_cores, run.server, run.runtime, run.device, run.load):
        assert isinstance(value, Missing)
        assert value.detail
    assert run.endpoint is not None
    assert (run.endpoint.url, run.endpoint.state) == ("http://127.0.0.1:8923", EndpointState.GENERATING)
    native = run.native["imported"]
    assert isinstance(native, dict)
    assert (native["tool"], native["version"], native["file"]) == ("guidellm", "0.8.1", "guidellm-0.8.1.json")
    assert "10 of 14 metrics" in capsys.readouterr().out


def test_two_files_of_one_run_of_aiperf_are_one_run() -> None:
    (run,) = imported(AIPERF / "profile_export_aiperf.json", AIPERF / "profile_export.jsonl")
    ttft = run.metric("ttft_s")
    assert ttft is not None
    assert len(ttft.samples) == 6
    assert run.metric("aggregate_tok_s") is not None


def test_records_find_their_summary_beside_them() -> None:
    (run,) = imported(AIPERF / "profile_export.jsonl")
    rate = run.metric("aggregate_tok_s")
    assert rate is not None
    assert rate.missing is None


def test_every_file_is_read_before_one_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text('{"hello": 1, "world": 2}')
    assert main(["import", str(DATA / "guidellm-0.8.1.json"), "bad.json", "--out", "evidence"]) == 2
    said = capsys.readouterr().err
    assert "probes: bad.json: is of no tool that is known (it holds hello, world); expected guidellm 0.8" in said
    assert not Path("evidence").exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is not JSON"),
        (b"not json", "is not JSON"),
        (b"[1, 2]", "is of no tool that is known"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"metadata": {"guidellm_version": "0.3.0", "version": 1}}', "metadata.version: is 1 (guidellm 0.3.0)"),
        (b'{"metadata": {"guidellm_version": "0.8.1", "version": 2}, "benchmarks": []}', "benchmarks: is empty"),
        (b'{"aiperf_version": "9", "schema_version": "9.0"}', "schema_version: is '9.0'"),
        (b'{"aiperf_version": "0.13.0", "schema_version": "1.4"}', "start_time and end_time: are None and None"),
    ],
)
def test_file_that_is_none_is_one_message_and_exit_code_2(
    tmp_path: Path, content: bytes, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert main(["import", "x.json"]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "Traceback" not in said


def test_bad_line_of_records_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = (AIPERF / "profile_export.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "r.jsonl").write_text(f"{first}\n\nbroken\n")
    assert main(["import", "r.jsonl"]) == 2
    assert "r.jsonl: line 3: is not JSON" in capsys.readouterr().err


def test_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "nowhere.json"]) == 2
    assert "nowhere.json: cannot be read" in capsys.readouterr().err


def test_run_is_imported_once(capsys: pytest.CaptureFixture[str]) -> None:
    imported(DATA / "guidellm-0.8.1.json")
    assert main(["import", str(DATA / "guidellm-0.8.1.json"), "--out", "evidence"]) == 2
    assert "is imported already, as 20261130T151724Z-not-described" in capsys.readouterr().err


def test_one_file_named_twice_is_one_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(DATA / "guidellm-0.8.1.json")
    assert main(["import", file, file, "--out", "evidence"]) == 2
    assert "guidellm-0.8.1.json: is imported already, as guidellm-0.8.1.json" in capsys.readouterr().err
    assert not Path("evidence").exists()


def test_machines_are_told_apart_by_what_they_are_called() -> None:
    runs = imported(DATA / "guidellm-0.8.1.json") + imported(DATA / "vllm-bench-0.32.0.json", "--host", "lab")
    scopes = {run.client.alias: run.scope for run in runs}
    assert scopes["lab"] != scopes["not-described"]


def test_machine_that_ran_the_tool_may_be_this_one() -> None:
    (run,) = imported(DATA / "guidellm-0.8.1.json", "--here")
    assert not isinstance(run.client.memory_bytes, Missing)


def test_service_that_the_inventory_does_not_know_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(Path(__file__).parents[3] / "fleet.yml", tmp_path)
    assert main(["import", str(DATA / "guidellm-0.8.1.json"), "--service", "nobody"]) == 2
    assert "--service nobody: is not in the inventory" in capsys.readouterr().err


def test_secrets_of_a_tools_own_part_stay_out(tmp_path: Path) -> None:
    given = json.loads((DATA / "guidellm-0.8.1.json").read_text(encoding="utf-8"))
    backend = given["benchmarks"][0]["config"]["backend"]
    backend |= {
        "api_key": "canary-1",
        "target": "http://user:canary-2@127.0.0.1:1/v1?key=canary-3",
        "headers": {"X": "canary-4"},
    }
    (tmp_path / "g.json").write_text(json.dumps(given))
    (run,) = imported("g.json")
    assert run.endpoint is not None
    assert run.endpoint.url == "http://127.0.0.1:1/v1"
    assert "canary" not in next(Path("evidence").iterdir()).read_text(encoding="utf-8")


def test_own_part_is_small_and_holds_numbers_only_that_are_some() -> None:
    deep: object = 1
    for _ in range(50):
        deep = {"a": deep}
    kept = bounded({"n": float("nan"), "long": "x" * 9999, "many": list(range(9999)), "deep": deep})  # type: ignore[dict-item]
    assert isinstance(kept, dict)
    assert kept["n"] is None
    assert len(json.dumps(kept, allow_nan=False)) < 3000
