"""`python -m probes contract` as a user runs it: what it writes, what it says, how it exits."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probes.__main__ import main
from probes.archive import read_runs
from probes.contract.block import QUANTITIES
from probes.evidence import Metric, Missing, MissingReason, Per, Run, RunKind
from tests.engines.llamacpp import llamacpp
from tests.loading import STREAM_HEAD, chunked, event, usage
from tests.probing import service
from tests.servers import Script, free_port, hear, http, talking

CONTRACT = (
    "ttft_s",
    "decode_tok_s",
    "aggregate_tok_s",
    "p95_latency_s",
    "error_rate",
    "memory_bytes",
    "power_w",
    "task_quality",
)
MODELS = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode()
FLEET = """
schema: inference-adr/fleet/1
name: Test
as_of: 2026-07-10
source: a test
hosts: {{}}
devices: {{}}
services:
{services}
embedded: {{title: Embedded, settings: {{}}}}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without an inventory; the command works with one and without."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INFERENCE_ADR_CACHE", str(tmp_path / "cache"))


def chatting(fails: Callable[[int], bool] = lambda _number: False, first_s: float = 0.05) -> Script:
    """List one model and answer each request for text in two pieces; the n-th fails where `fails` says so."""
    numbers, lock = iter(range(10**6)), threading.Lock()

    def script(connection: socket.socket) -> None:
        while True:
            asked = hear(connection)
            if asked.startswith(b"GET "):
                path = asked.split()[1]
                connection.sendall(
                    http("200 OK", MODELS, "Content-Type: application/json") if path == b"/v1/models" else http("404 No")
                )
                continue
            with lock:
                number = next(numbers)
            if fails(number):
                connection.sendall(http("500 No", b'{"error": {"message": "out of order"}}'))
                continue
            time.sleep(first_s)
            connection.sendall(STREAM_HEAD + chunked(event({"role": "assistant", "content": "sea"})))
            time.sleep(first_s)
            connection.sendall(chunked(event({"content": "gull"}, "stop") + usage(2) + b"data: [DONE]\n\n") + b"0\r\n\r\n")

    return script


def contract(*words: str) -> tuple[int, Run | None]:
    quality = () if "--quality-repetitions" in words else ("--quality-repetitions", "0")
    code = main(["contract", *words, *quality, "--out", "evidence"])
    runs, problems = read_runs(Path("evidence"))
    assert not problems
    return code, runs[-1] if runs else None


def metric(run: Run, name: str, arm: str = "") -> Metric:
    found = run.metric(name, arm)
    assert found is not None, name
    return found


def test_two_sides_give_every_quantity_once_a_repetition_or_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    with talking(chatting()) as one, talking(chatting()) as two:
        addresses = [f"http://127.0.0.1:{port}/v1" for port in (one, two)]
        code, run = contract(*addresses, "--requests", "2", "--max-tokens", "2")
    assert run is not None
    assert (run.kind, [arm.role for arm in run.arms]) == (RunKind.CONTRACT, ["baseline", "candidate"])
    assert f"evidence/{run.id}.json" in capsys.readouterr().out
    for arm in ("baseline", "candidate"):
        for name in (*QUANTITIES, *CONTRACT):
            found = metric(run, name, arm)
            assert found.per is Per.REPETITION, name
            assert bool(found.samples) != (found.missing is not None), name
            assert len(found.samples) in {0, 6} or not run.validity.valid, name
    told: Any = run.native["contract"]
    # Only a machine that is too busy for the instrument may keep nothing.
    assert run.validity.valid or told["stopped"].startswith("unsound: instrument-")
    assert code == (0 if run.validity.valid else 2)
    assert list(told["sides"].values()) == addresses
    assert told["rounds_kept"] == len(metric(run, "ttft_s", "baseline").samples)
    p95 = metric(run, "p95_latency_s", "baseline").missing
    assert p95 is not None
    assert p95.missing in {MissingReason.TOO_FEW_SAMPLES, MissingReason.FAILED}


def test_requests_of_all_repetitions_are_kept_and_no_percentile_of_all_is_made_of_those_of_each() -> None:
    """One p95 stands for each repetition; whoever wants that of all requests has them."""
    with talking(chatting(first_s=0.005)) as port:
        _, run = contract(f"http://127.0.0.1:{port}", "--requests", "20", "--max-tokens", "2")
    assert run is not None
    told: Any = run.native["contract"]
    kept: list[list[float]] = told["latencies_s"]["side"]
    assert [len(latencies) for latencies in kept] == [20] * told["rounds_kept"]
    p95 = metric(run, "p95_latency_s")
    assert p95.per is Per.REPETITION
    assert list(p95.samples) == pytest.approx([sorted(latencies)[18] for latencies in kept])
    assert "latency_s" not in {one.name for one in run.metrics}


def test_one_side_has_no_arms() -> None:
    with talking(chatting()) as port:
        code, run = contract(f"http://127.0.0.1:{port}", "--requests", "1", "--max-tokens", "2")
    assert run is not None
    assert (run.arms, run.subject) == ((), f"127.0.0.1:{port}")
    assert code == (0 if run.validity.valid else 2)
    assert not isinstance(run.load, Missing)
    assert run.load.schedule == "closed loop: 1 at a time, in blocks of 1 requests"


def test_a_service_that_dies_half_way_leaves_what_was_finished_marked_as_invalid(capsys: pytest.CaptureFixture[str]) -> None:
    with talking(chatting(lambda number: number > 14)) as port:
        code, run = contract(f"http://127.0.0.1:{port}", "--requests", "2", "--max-tokens", "2")
    assert code == 2
    assert run is not None
    assert not run.validity.valid
    told: Any = run.native["contract"]
    kept: int = told["rounds_kept"]
    assert len(metric(run, "error_rate").samples) == kept < 6
    assert any("nothing-succeeded" in reason or "run-of-errors" in reason for reason in run.validity.reasons), run.validity
    assert any(reason.startswith(f"too few samples: {kept} repetitions a side") for reason in run.validity.reasons)
    assert "INVALID: " in capsys.readouterr().err


def test_a_side_that_is_down_is_a_state_and_its_reason_stands_in_every_metric() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with talking(chatting()) as port:
        code, run = contract(f"http://127.0.0.1:{port}", nowhere, "--requests", "1")
    assert code == 0
    assert run is not None
    assert not run.validity.valid
    assert run.validity.reasons[0].startswith("candidate: not reachable")
    for arm, reason in (("candidate", MissingReason.NOT_REACHABLE), ("baseline", MissingReason.SKIPPED)):
        missing = [metric(run, name, arm).missing for name in CONTRACT if name != "task_quality"]
        assert {one.missing for one in missing if one} == {reason}


def test_the_budget_ends_the_run_with_what_there_is() -> None:
    with talking(chatting(first_s=0.2)) as port:
        code, run = contract(f"http://127.0.0.1:{port}", "--requests", "2", "--max-tokens", "2", "--budget-s", "2.5")
    assert code == 2
    assert run is not None
    assert any("the budget of 2.5 s was used up" in reason or "unsound" in reason for reason in run.validity.reasons)


def test_the_limits_of_the_inventory_hold(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[int] = []

    def note(number: int) -> bool:
        asked.append(number)
        return False

    with talking(chatting(note)) as port:
        Path("fleet.yml").write_text(
            FLEET.format(services=service("text", url="${TEXT_URL}", runtime="openai-compatible")), encoding="utf-8"
        )
        monkeypatch.setenv("TEXT_URL", f"http://127.0.0.1:{port}")
        assert main(["contract", "text", "--allow-load", "--out", "evidence"]) == 2
        assert main(["contract", f"http://127.0.0.1:{port}", "--out", "evidence"]) == 2
    said = capsys.readouterr().err
    assert "services.text.probing.requests in fleet.yml: allows 2 requests" in said
    assert "is the service text of fleet.yml; expected its name" in said
    assert asked == []


def test_a_service_without_an_address_here_is_not_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("fleet.yml").write_text(FLEET.format(services=service("text", url="${TEXT_URL}")), encoding="utf-8")
    monkeypatch.delenv("TEXT_URL", raising=False)
    code, run = contract("text")
    assert code == 0
    assert run is not None
    assert run.validity.reasons == ("not configured: TEXT_URL is not set",)
    assert metric(run, "ttft_s").missing == Missing(missing=MissingReason.NOT_CONFIGURED, detail="TEXT_URL is not set")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "nobody: is not a side"),
        (["embedded", "embedded", "embedded"], "embedded: is a third side"),
        (["embedded", "--repetitions", "0"], "--repetitions 0: expected 6 to 1000; fewer do not bound a median at 95 %"),
        (["embedded", "--requests", "0"], "--requests 0: expected 1 to 100000"),
        (["embedded", "--concurrency", "9999"], "--concurrency 9999: expected 1 to 256"),
        (["embedded", "--max-tokens", "1"], "--max-tokens 1: expected 2 to 8192"),
        (["embedded", "--shared-prefix", "1.5"], "--shared-prefix 1.5: expected 0 to 1"),
        (["embedded", "--budget-s", "nan"], "--budget-s nan: expected 1 to 86400"),
        (["embedded", "--model", "m"], "--model: is for an address"),
        (["http://127.0.0.1:1", "--key-env", "NO_SUCH_VARIABLE"], "is unset or empty"),
        (["http://127.0.0.1:1", "--ca-file", "nowhere.pem"], "--ca-file nowhere.pem: does not exist"),
        (["embedded", "--fleet", "no-such.yml"], "--fleet no-such.yml: does not exist"),
        (["embedded:enable_prefix_caching=perhaps"], "embedded:enable_prefix_caching=perhaps: setting enable_prefix_caching"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anything_is_started(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["contract", *words, "--out", "evidence"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("probes: ")
    assert not list(Path().glob("evidence/*.json"))


@pytest.mark.engine
def test_two_settings_of_the_embedded_engine(monkeypatch: pytest.MonkeyPatch, model_cache: Path, model_files: object) -> None:
    monkeypatch.setenv("INFERENCE_ADR_CACHE", str(model_cache))
    words = ("embedded:enable_prefix_caching=false", "embedded:enable_prefix_caching=true")
    code, run = contract(*words, "--requests", "1", "--max-tokens", "2", "--quality-repetitions", "0")
    assert run is not None
    assert code == (0 if run.validity.valid else 2)
    assert [arm.settings for arm in run.arms] == [{"enable_prefix_caching": False}, {"enable_prefix_caching": True}]
    assert not isinstance(run.model, Missing)
    assert (run.server == run.client, run.model.id) == (True, "SmolLM2-135M-Instruct")
    for arm in run.arms:
        memory = metric(run, "memory_bytes", arm.name)
        assert min(memory.samples) > 100 * 2**20, "one process each, with the model in it"
        assert set(metric(run, "completion_tokens", arm.name).samples) == {2.0}
    assert metric(run, "vram_bytes", "baseline").missing is not None


@pytest.mark.engine
def test_a_setting_that_the_engine_refuses_is_told_in_its_words(
    monkeypatch: pytest.MonkeyPatch, model_cache: Path, model_files: object, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INFERENCE_ADR_CACHE", str(model_cache))
    assert main(["contract", "embedded", "embedded:KV_CACHE_PRECISION=u3", "--out", "evidence"]) == 2
    assert "embedded:KV_CACHE_PRECISION=u3: " in capsys.readouterr().err


@pytest.mark.engine
def test_a_real_llamacpp_server() -> None:
    with llamacpp("n_parallel=1") as url:
        code, run = contract(url, "--requests", "1", "--max-tokens", "4", "--quality-repetitions", "0")
    assert run is not None
    assert code == (0 if run.validity.valid else 2)
    assert not isinstance(run.runtime, Missing)
    assert run.runtime.name == "llama.cpp"
    assert set(metric(run, "completion_tokens").samples) == {4.0}, "it heeds ignore_eos"
    assert min(metric(run, "memory_bytes").samples) > 50 * 2**20
