"""The command as a user runs it: what it writes, what it says, how it exits."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from probes.__main__ import main
from probes.archive import content_hash, read_runs
from probes.evidence import Missing, Run, RunKind
from probes.load.answer import FirstToken
from tests.loading import DONE, STREAM_HEAD, WHOLE, answering, chunked, event, usage
from tests.servers import Script, greeting, hear, http, saying, talking

ROOT = Path(__file__).parents[3]
METRICS = (
    "ttft_s", "first_event_s", "first_text_s", "itl_s", "tpot_s", "decode_tok_s", "latency_s", "connect_s", "schedule_lag_s",
    "prompt_tokens", "completion_tokens", "cached_prompt_tokens", "chunks", "tokens_per_chunk", "attempts_per_request",
    "counted_tokens", "token_disagreement",
    "aggregate_tok_s", "request_rate", "goodput", "goodput_share", "error_rate", "oom_rate", "stalled_streams",
    "memory_bytes", "system_memory_bytes", "vram_bytes", "cpu_power_w", "gpu_power_w", "power_w", "energy_per_token_j",
    "device_resets",
    "server_requests_running", "server_requests_waiting", "server_kv_cache_usage", "server_prefix_cache_hit_ratio",
    "server_draft_tokens", "server_accepted_tokens", "server_draft_acceptance_ratio", "server_preemptions",
    "server_generated_tokens", "server_latency_s",
)  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without an inventory; the command works with one and without."""
    monkeypatch.chdir(tmp_path)


def load(script: Script, *words: str, model: str = "m") -> tuple[int, dict[str, Any]]:
    with talking(script) as port:
        code = main(["load", "--url", f"http://127.0.0.1:{port}", "--model", model, "--json", "out.json", *words])
    return code, json.loads(Path("out.json").read_text(encoding="utf-8"))


def test_file_holds_every_metric_with_unit_percentiles_samples_and_validity() -> None:
    _, found = load(answering(WHOLE), "--concurrency", "2", "--requests", "20", "--max-tokens", "8")
    assert tuple(found["metrics"]) == METRICS
    for name, metric in found["metrics"].items():
        assert {"unit", "p50", "p90", "p95", "p99", "samples", "n"} <= set(metric), name
        assert bool(metric["samples"]) != ("missing" in metric), name
    ttft = found["metrics"]["ttft_s"]
    assert (ttft["unit"], ttft["n"], len(ttft["samples"])) == ("s", 20, 20)
    assert ttft["p50"] in ttft["samples"]
    assert found["metrics"]["error_rate"]["value"] == 0
    assert found["valid"] is (found["reasons"] == [])
    assert "service time" in found["load"]["latency_counts_from"]
    assert found["load"]["warm_up"] >= 2  # one for each stream, unless another number is asked for
    assert found["percentile_method"].startswith("nearest rank")
    assert set(found["finish_reasons"]) == {"stop"}
    measured = [row for row in found["requests"] if row["phase"] == "measured"]
    assert len(measured) == found["load"]["measured"] == 20
    assert found["load"]["sent"] == len(found["requests"])


def test_file_holds_the_run_as_evidence() -> None:
    code, found = load(answering(WHOLE), "--requests", "3", "--out", "evidence", "--slo", "ttft_s=5")
    (run,), problems = read_runs(Path("evidence"))
    assert (problems, run.kind, run.validity.valid) == ((), RunKind.LOAD, code == 0)
    assert Run.model_validate_json(json.dumps(found["run"])) == run
    assert content_hash(found["run"]) == run.content_sha256
    goodput = run.metric("goodput_share")
    assert goodput is not None
    assert goodput.samples == (1.0,)
    assert not isinstance(run.load, Missing)
    assert run.load.prompt_tokens == (20, 20, 20)  # by the server's count, whatever was meant


def test_sweep_is_a_list_of_runs() -> None:
    _, found = load(answering(WHOLE), "--concurrency", "1,2", "--requests", "2")
    assert [one["load"]["concurrency"] for one in found["sweep"]] == [1, 2]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--concurrency", "0"], "--concurrency 0: expected 1 to 1024"),
        (["--concurrency", "99999"], "expected 1 to 1024"),
        (["--concurrency", "many"], "is not a whole number"),
        (["--requests", "0"], "--requests 0: expected 1 to"),
        (["--max-tokens", "-5"], "--max-tokens -5: expected 1 to"),
        (["--arrivals", "poisson"], "--rate 0: expected 0.001 to"),
        (["--rate", "5"], "a closed loop has none"),
        (["--arrivals", "constant", "--rate", "5", "--concurrency", "1,2"], "a sweep is a closed loop"),
        (["--shared-prefix", "1.5"], "--shared-prefix 1.5: expected 0 to 1"),
        (["--duration-s", "nan"], "--duration-s nan: expected"),
        (["--duration-s", "2", "--warmup-s", "3"], "leave nothing of it"),
        (["--cooldown-s", "3"], "needs --duration-s"),
        (["--warmup-s", "3"], "needs --duration-s"),
        (["--slo", "speed=3"], "--slo speed=3: is no bound"),
        (["--slo", "ttft_s=fast"], "is no bound"),
        (["--model", " "], "--model: is empty"),
        (["--key-env", "NO_SUCH_VARIABLE"], "is unset or empty"),
        (["--ca-file", "nowhere.pem"], "--ca-file nowhere.pem: does not exist"),
        (["--json", "no/such/folder/x.json"], "cannot be written"),
        (["--fleet", "no-such.yml"], "--fleet no-such.yml: does not exist"),
        (["--url", "ftp://127.0.0.1"], "is not an http(s) address"),
        (["--url", "http://user:canary-pass@127.0.0.1:1"], "holds a user or a password"),
        (["--url", "http://127.0.0.1:1?api_key=canary-key"], "holds a query"),
    ],
)
def test_words_that_cannot_be_meant_are_told_before_anything_is_sent(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", "--url", "http://127.0.0.1:1", "--model", "m", *words]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.startswith("probes: ")
    assert "canary" not in said


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        pytest.param(
            saying(http("401 No", b'{"error": {"message": "bad key"}}')), "key refused: HTTP 401: bad key", id="wrong-key"
        ),
        pytest.param(
            answering(http("404 No", b'{"error": {"message": "The model m does not exist."}}')),
            "not found: HTTP 404: The model m does not exist.",
            id="wrong-model",
        ),
        pytest.param(answering(http("404 No")), "not found: HTTP 404", id="no-such-path"),
        pytest.param(saying(http("302 Found", b"", "Location: http://elsewhere.invalid/")), "redirected", id="redirect"),
        pytest.param(greeting(b"SSH-2.0-OpenSSH_9.2\r\n"), "not an answer", id="another-protocol"),
        pytest.param(saying(http("200 OK", b"<html>", "Content-Type: text/html")), "not an answer", id="login-page"),
    ],
)
def test_address_that_cannot_be_measured_gets_one_request_and_a_message(
    script: Script, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = load(script, "--concurrency", "16")
    assert code == 2
    assert complaint in capsys.readouterr().err
    assert (found["valid"], found["reasons"], found["metrics"]) == (False, ["nothing-answered"], {})
    assert complaint in found["notes"][0]


def test_api_prefix_is_found_and_asked_for_only_once() -> None:
    paths: list[str] = []

    def v3_only(connection: Any) -> None:
        while True:
            path = hear(connection).split()[1].decode()
            paths.append(path)
            connection.sendall(WHOLE if path == "/v3/chat/completions" else http("404 No"))

    code, found = load(v3_only, "--requests", "2", "--warmup", "0")
    assert found["metrics"]["error_rate"]["value"] == 0
    assert code in {0, 1}
    assert paths.count("/v1/chat/completions") == 1


@pytest.mark.parametrize(
    ("written", "final"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions or http://h:8000/v3/chat/completions"),
        ("http://h:8000/", "http://h:8000/v1/chat/completions or http://h:8000/v3/chat/completions"),
        ("http://h:8000/v3", "http://h:8000/v3/chat/completions"),
        ("http://h:8000/v3/", "http://h:8000/v3/chat/completions"),
        ("http://h:8000/v1/chat/completions", "http://h:8000/v1/chat/completions"),
        ("http://h/proxy/ovms/v3", "http://h/proxy/ovms/v3/chat/completions"),
        ("http://h/proxy/ovms/", "http://h/proxy/ovms/v1/chat/completions or http://h/proxy/ovms/v3/chat/completions"),
        ("https://[::1]:8443/v1/", "https://[::1]:8443/v1/chat/completions"),
    ],
)
def test_dry_run_shows_the_final_address_and_the_load_and_sends_nothing(
    written: str, final: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", "--url", written, "--model", "m", "--concurrency", "4", "--dry-run", "--allow-load"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"asks POST {final}, first with one small request\n")
    assert "closed loop: 4 at a time; 20 requests after 4 to warm up, at most 64 tokens each" in said
    assert "no answer begun within 30 s, tokens 2 s apart, a stream silent for 10 s, or an answer of 30 s" in said
    assert "goodput: not configured: no SLO was given" in said


FLEET = """
schema: inference-adr/fleet/1
name: Test
as_of: 2026-07-10
source: a test
hosts: {}
devices: {}
services:
  text: &entry
    title: Text
    kind: text generation
    runtime: openai-compatible
    runtime_version: "1"
    host: {unknown: "where?"}
    device: {unknown: "which?"}
    model: {id: m}
    url: ${TEXT_URL}
    probing: {concurrency: 2, requests: 40, max_tokens: 8, silence_s: 7, guards: {itl_s: 0.5, first_byte_s: 9}}
  other: *entry
workloads:
  chat: {title: Chat, services: [text], slo: {ttft_s: 20, latency_s: 30, as_of: 2026-07-01}}
  batch: {title: Batch, services: [other], slo: {latency_s: 0.000001}}
  plain: {title: Plain, services: [text]}
embedded: {title: Embedded, settings: {}}
"""


def of_service(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, dict[str, Any]]:
    Path("fleet.yml").write_text(FLEET, encoding="utf-8")
    with talking(answering(WHOLE)) as port:
        monkeypatch.setenv("TEXT_URL", f"http://127.0.0.1:{port}/v1")
        code = main(["load", "--service", "text", "--requests", "2", "--json", "out.json", *words])
    return code, json.loads(Path("out.json").read_text(encoding="utf-8"))


def test_goodput_is_held_against_the_slo_of_the_workload(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = of_service(monkeypatch)
    origin = "the SLO of workload chat (fleet.yml, as of 2026-07-01)"
    assert found["metrics"]["goodput_share"]["value"] == 1
    assert found["metrics"]["goodput"]["note"] == f"against {origin}: ttft_s <= 20, latency_s <= 30"
    assert found["load"]["slo"] == {"bounds": {"ttft_s": 20, "latency_s": 30}, "origin": origin}
    assert found["run"]["native"]["slo"] == found["load"]["slo"]
    assert found["run"]["model"]["id"] == "m"
    said = capsys.readouterr()
    assert f"goodput against {origin}" in " ".join(said.err.split())
    assert f"requests/s   (against {origin}: ttft_s <= 20, latency_s <= 30)" in said.out
    _, other = of_service(monkeypatch, "--workload", "batch")
    assert other["metrics"]["goodput_share"]["value"] == 0
    _, given = of_service(monkeypatch, "--slo", "latency_s=20")
    assert given["load"]["slo"]["origin"] == "the SLO of --slo"


def test_guards_of_the_inventory_hold_and_the_command_line_is_only_stricter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("fleet.yml").write_text(FLEET, encoding="utf-8")
    monkeypatch.setenv("TEXT_URL", "http://127.0.0.1:1")
    assert main(["load", "--service", "text", "--itl-s", "5", "--stall-s", "1", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "asks POST /v1/chat/completions or /v3/chat/completions at ${TEXT_URL}, first" in said
    assert "within 9 s, tokens 0.5 s apart, a stream silent for 1 s, or an answer of 30 s" in said
    assert "limited to 1 at a time, 40 requests and 8 tokens each: fleet.yml allows text no more" in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--service", "txet"], "--service txet: is not in the inventory; did you mean text?"),
        (["--service", "text"], "--service text: TEXT_URL is not set"),
        (["--service", "text", "--workload", "plain"], "--workload plain: has no slo in fleet.yml; expected chat, batch"),
        (["--service", "text", "--workload", "cat"], "--workload cat: is no workload of fleet.yml"),
        (["--service", "text", "--workload", "chat", "--slo", "ttft_s=1"], "names an SLO, and so does --slo"),
        (["--url", "http://127.0.0.1:1"], "--model: is missing"),
    ],
)
def test_service_and_workload_that_cannot_be_meant(
    words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("fleet.yml").write_text(FLEET, encoding="utf-8")
    if "--workload" in words:
        monkeypatch.setenv("TEXT_URL", "http://127.0.0.1:1")
    assert main(["load", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_model_that_is_a_path_is_asked_for_as_it_is_and_shown_without_its_folders() -> None:
    asked: set[str] = set()

    def script(connection: Any) -> None:
        while True:
            asked.add(json.loads(hear(connection).partition(b"\r\n\r\n")[2] or b'{"model": ""}')["model"])
            connection.sendall(WHOLE)

    _, found = load(script, "--requests", "2", model="/srv/models/alice/Qwen3-8B-int4")
    assert asked - {""} == {"/srv/models/alice/Qwen3-8B-int4"}
    assert found["run"]["model"]["id"].startswith("…/Qwen3-8B-int4 (path ")
    assert found["run"]["model"]["quantization"]["missing"] == "not measured"
    assert "alice" not in json.dumps({**found["run"], "tool": None})


def test_good_chunks_with_an_empty_error_stop_no_run() -> None:
    chunk = event({"content": "a"}, error={}) + event({"content": "b"}, "stop", error=[]) + usage(2)
    _, found = load(answering(STREAM_HEAD + chunked(chunk + DONE) + b"0\r\n\r\n"), "--requests", "12")
    assert "run-of-errors" not in found["reasons"]
    assert found["metrics"]["error_rate"]["value"] == 0


def test_name_with_two_addresses_is_tried_in_order_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of localhost the first address is often ::1, where nobody listens; the user's address is left as it is."""
    real = socket.getaddrinfo

    def both(host: str, port: int, *rest: Any, **more: Any) -> Any:
        if host != "localhost":
            return real(host, port, *rest, **more)
        six = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0))
        return [six, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with talking(answering(WHOLE)) as port:
        main(["load", "--url", f"http://localhost:{port}", "--model", "m", "--requests", "2", "--json", "out.json"])
    found = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert any(note.startswith("::1 was tried first") for note in found["notes"])
    assert found["run"]["endpoint"]["url"] == f"http://localhost:{port}"
    assert found["metrics"]["connect_s"]["n"] + found["metrics"]["ttft_s"]["n"] >= 2
    assert "::1 was tried first" in capsys.readouterr().out


def test_server_that_refuses_to_count_is_asked_without(capsys: pytest.CaptureFixture[str]) -> None:
    def picky(connection: Any) -> None:
        while True:
            refused = b"stream_options" in hear(connection)
            connection.sendall(http("400 No", b'{"error": "unknown field stream_options"}') if refused else WHOLE)

    _, found = load(picky, "--requests", "2")
    assert found["metrics"]["error_rate"]["value"] == 0
    assert "refuses to be asked for token counts" in capsys.readouterr().out


def test_key_is_nowhere_but_in_its_header(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SERVICE_KEY", "canary-key-1234567890")
    repeated = http("400 No", b'{"error": {"message": "no canary-key-1234567890 here"}}')
    code, _ = load(answering(WHOLE, repeated), "--requests", "30", "--key-env", "SERVICE_KEY", "--out", "evidence")
    assert code == 1
    said = capsys.readouterr()
    written = "".join(path.read_text(encoding="utf-8") for path in Path().rglob("*.json"))
    assert "[redacted] here" in written
    assert "canary" not in said.out + said.err + written


def test_proxy_of_the_environment_is_ignored_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    _, found = load(answering(WHOLE), "--requests", "1")
    assert found["metrics"]["error_rate"]["value"] == 0
    assert "proxy in environment ignored: HTTP_PROXY" in capsys.readouterr().out


def test_runtime_says_which_arrival_is_the_first_token_and_stands_in_the_evidence() -> None:
    """OVMS sends an empty chunk when its first token exists; nobody has to know that."""

    def ovms(connection: Any) -> None:
        documents = {
            "/v2": {"name": "OpenVINO Model Server", "version": "2026.2"},
            "/v3/models": {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "OVMS"}]},
            "/v1/config": {
                "m": {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK"}}]}
            },
        }
        while True:
            method, path = hear(connection).split()[:2]
            if method == b"POST":
                connection.sendall(WHOLE)
            elif path.decode() in documents:
                body = json.dumps(documents[path.decode()]).encode()
                connection.sendall(http("200 OK", body, "Content-Type: application/json"))
            else:
                connection.sendall(http("404 No"))

    _, found = load(ovms, "--requests", "2")
    assert found["load"]["first_token"] == FirstToken.FIRST_EVENT
    assert found["run"]["runtime"] == {"name": "ovms", "version": "2026.2"}
    assert found["run"]["server"] == found["run"]["client"]
    assert found["metrics"]["server_latency_s"]["missing"] == "not configured"
    _, asked = load(ovms, "--requests", "2", "--first-token", "output")
    assert asked["load"]["first_token"] == FirstToken.FIRST_OUTPUT


def test_memory_of_the_server_is_in_the_file_of_a_server_on_this_machine() -> None:
    _, found = load(answering(WHOLE), "--requests", "2")
    memory = found["metrics"]["memory_bytes"]
    assert (memory["unit"], memory["per"]) == ("B", "run")
    assert memory["value"] > 2**20
    assert found["run"]["native"]["sensors"]["computes_on"] in {"processor", "card"}


def test_service_that_dies_half_way_leaves_what_was_measured_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    count = [0]

    def mortal(connection: Any) -> None:
        while count[0] < 9:
            count[0] += hear(connection).startswith(b"POST")
            connection.sendall(WHOLE)
        connection.close()

    code, found = load(mortal, "--requests", "100")
    assert code == 1
    assert (found["valid"], "run-of-errors" in found["reasons"]) == (False, True)
    assert found["metrics"]["ttft_s"]["n"] == 7  # one asked first, one warmed up
    assert found["errors"]["connection lost"]["requests"] == 5
    assert "INVALID: run-of-errors" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_full_disk_is_one_message_after_the_numbers(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("full")
    full.symlink_to("/dev/full")
    with talking(answering(WHOLE)) as port:
        words = ["--url", f"http://127.0.0.1:{port}/v1", "--model", "m", "--requests", "2", option, str(full)]
        assert main(["load", *words]) == 2
    said = capsys.readouterr()
    assert "full: cannot be written (No space left on device)" in said.err
    assert "ttft_s" in said.out
    assert full.is_char_device()  # written to, and not replaced


@pytest.mark.parametrize("words", ["--json {file}", "--csv {file}", "--out {file}/x"])
def test_nowhere_to_write_is_told_before_anything_is_sent(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    option, path = words.format(file=tmp_path / "file" / "x").split()
    assert main(["load", "--url", "http://127.0.0.1:1", "--model", "m", option, path]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_closed_pipe_takes_nothing_from_the_file() -> None:
    with talking(answering(WHOLE)) as port:
        command = f"{sys.executable} -m probes load --url http://127.0.0.1:{port}/v1 --model m --requests 3 --json out.json"
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(f"{command} | true", shell=True, env=environ, capture_output=True, check=False)  # noqa: S602
    assert b"Traceback" not in done.stderr
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["metrics"]["ttft_s"]["n"] == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["load", "--requests", "abc"], "argument --requests: invalid int value: 'abc'; `python -m probes load --help`"),
        (["load"], "one of the arguments --url --service is required"),
        (["load", "--service", "a", "--url", "http://b"], "--url: not allowed with argument --service"),
        (["lod"], "argument COMMAND: invalid choice: 'lod'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def test_ctrl_c_during_the_first_request_sends_no_load(tmp_path: Path) -> None:
    heard = threading.Semaphore(0)

    def slow(connection: Any) -> None:
        while True:
            hear(connection)
            heard.release()
            time.sleep(1.0)
            connection.sendall(WHOLE)

    with talking(slow) as port:
        command = [sys.executable, "-m", "probes", "load", "--url", f"http://127.0.0.1:{port}/v1", "--model", "m"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
        assert heard.acquire(timeout=60)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert not heard.acquire(blocking=False)


def test_interrupted_run_keeps_what_was_measured_and_leaves_no_process(tmp_path: Path) -> None:
    under_way = threading.Event()

    def slow(connection: Any) -> None:
        for number in itertools.count():
            hear(connection)
            time.sleep(0.02)
            connection.sendall(WHOLE)
            if number > 20:
                under_way.set()

    with talking(slow) as port:
        command = [sys.executable, "-m", "probes", "load", "--url", f"http://127.0.0.1:{port}", "--model", "m"]
        command += ["--requests", "100000", "--workers", "1", "--json", str(tmp_path / "out.json")]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
        assert under_way.wait(60)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = [int(one) for one in children.read_text(encoding="ascii").split()]
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert found["reasons"][0] == "interrupted"
    assert found["metrics"]["latency_s"]["n"] > 0
    assert workers
    for pid in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
