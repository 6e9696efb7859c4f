"""Other tools are started as they want to be and read by their own words; one that is not here is no error."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.instrument import PeerFigures, PeerRow, hold_peer, measure_peer, peer_table, truth_server
from benchmarks.peers import PEERS, Peer, PeerError, Task, Told, find, measure

BY_NAME = {peer.name: peer for peer in PEERS}


def task(folder: Path, url: str = "http://127.0.0.1:1") -> Task:
    return Task(url=url, streams=4, requests=24, tokens=64, tokenizer="tok", folder=folder)


def program(folder: Path, name: str, code: str) -> Path:
    """Make a program that does what a tool would do at its end."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{code}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_command_says_where_how_many_and_how_long(peer: Peer, tmp_path: Path) -> None:
    words = shlex.join(peer.command(task(tmp_path)))
    told = words + "".join(file.read_text(encoding="utf-8") for file in tmp_path.rglob("*.yml"))
    for needed in ("http://127.0.0.1:1", "truth", "24", "4", "tok"):
        assert needed in told
    assert "64" in told or peer.name == "inference-perf"  # whose prompts for the chat path fix the length


def test_program_is_sought_where_it_is_said_then_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, path = tmp_path / "named", tmp_path / "path"
    for folder in (named, path):
        folder.mkdir()
        program(folder, "aiperf", "")
    monkeypatch.setenv("PATH", str(path))
    assert find(BY_NAME["aiperf"], [named]) == named / "aiperf"
    assert find(BY_NAME["aiperf"], [tmp_path]) == path / "aiperf"
    assert find(BY_NAME["guidellm"], [named]) is None


def evalscope(folder: Path) -> None:
    rows = [{"Percentiles": "50%", "TTFT (ms)": 55.0, "ITL (ms)": 10.1}, {"Percentiles": "95%", "TTFT (ms)": 80.0}]
    (folder / "20261130").mkdir()
    (folder / "20261130" / "benchmark_percentile.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "20261130" / "benchmark_summary.json").write_text('{"Succeed requests": 24}', encoding="utf-8")


def inference_perf(folder: Path) -> None:
    times = {"time_to_first_token": {"median": 0.055, "p95": 0.08}, "inter_token_latency": {"median": 0.0101}}
    (folder / "report").mkdir()
    summary = json.dumps({"successes": {"count": 24, "latency": times}})
    (folder / "report" / "summary_lifecycle_metrics.json").write_text(summary, encoding="utf-8")


@pytest.mark.parametrize(("name", "write"), [("evalscope", evalscope), ("inference-perf", inference_perf)])
def test_summary_is_read_in_seconds(name: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path)
    assert BY_NAME[name].read(tmp_path) == Told(requests=24, ttft_p50_s=0.055, ttft_p95_s=0.08, itl_p50_s=0.0101)


def test_tool_that_fails_leaves_its_last_words(tmp_path: Path) -> None:
    broken = program(tmp_path, "aiperf", "import sys; print('no tokenizer here', file=sys.stderr); sys.exit(3)")
    with pytest.raises(PeerError, match="aiperf: exit code 3: no tokenizer here"):
        measure(BY_NAME["aiperf"], broken, task(tmp_path))


def test_tool_is_held_against_the_log_of_the_server(tmp_path: Path) -> None:
    """A tool of ten lines that asks once, and reports a tenth too much."""
    code = """
import json, sys, urllib.request
url, folder = sys.argv[sys.argv.index('-u') + 1], sys.argv[-1]
body = json.dumps({'model': 'truth', 'max_tokens': 4, 'messages': []}).encode()
urllib.request.urlopen(url + '/v1/chat/completions', data=body).read()
"""
    peer = Peer(
        name="ten lines",
        program="ten",
        command=BY_NAME["aiperf"].command,
        read=lambda _folder: Told(requests=1, ttft_p50_s=0.055, ttft_p95_s=None, itl_p50_s=0.01),
    )
    with truth_server("--tokens", "4") as port:
        found = measure_peer(port, peer, program(tmp_path, "ten", code), task(tmp_path, f"http://127.0.0.1:{port}"))
        assert measure_peer(port, peer, program(tmp_path, "none", ""), task(tmp_path)) == "it sent no request"
    assert isinstance(found, PeerFigures)
    assert (found.requests, found.ttft_p95) == (1, None)
    assert found.ttft_p50 is not None
    assert found.ttft_p50 < 0.1001  # the server is never early


def test_table_says_what_is_not_installed_and_what_failed() -> None:
    log: list[dict[str, Any]] = [{"received_ns": 0, "sent_ns": [50_000_000, 60_000_000, 70_000_000]}]
    found = hold_peer(Told(requests=1, ttft_p50_s=0.055, ttft_p95_s=0.1, itl_p50_s=None), log, 1, 0.003, 0.5)
    rows = [
        PeerRow(name="one", installed=True, levels={1: found, 16: "exit code 3: no | here"}),
        PeerRow(name="two", installed=False),
    ]
    text = peer_table(rows, [1, 16])
    assert "| one | TTFT p50 +10.0 %, p95 +100.0 %, ITL p50 not reported; 46 % carried, 1000 ms CPU; load average 0.5 |" in text
    assert "| failed: exit code 3: no / here |" in text
    assert "| two | not installed | not installed |" in text
