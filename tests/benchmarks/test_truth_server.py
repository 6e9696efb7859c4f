"""The server keeps its schedule and tells the truth, and the benchmark holds the instrument against it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.instrument import GOALS, STREAMS, Figures, hold_against, page, reached, table, truth, truth_server
from probes.__main__ import main

MS = 1_000_000


def figures(**changes: Any) -> Figures:
    given: dict[str, Any] = {
        "streams": 64, "valid": True, "reasons": (), "ttft_p50": 0.01, "ttft_p95": 0.05, "itl_p50": -0.002, "carried": 0.99,
        "tok_s": 6000.0, "cpu_ms": 50.0, "cpu_all_ms": 100.0, "memory_mb": 90.0, "server_late_p95_ms": 0.1, "load_average": 1.0,
    }  # fmt: skip
    return Figures(**(given | changes))


def test_instrument_agrees_with_the_server_about_every_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors have wide bounds here, since other tests share the machine; the benchmark has the narrow ones."""
    monkeypatch.chdir(tmp_path)
    with truth_server("--tokens", "16") as port:
        url = f"http://127.0.0.1:{port}"
        code = main(
            [
                "load",
                "--url",
                url,
                "--model",
                "truth",
                "--concurrency",
                "4",
                "--requests",
                "24",
                "--max-tokens",
                "64",
                "--json",
                "x",
            ]
        )
        log = truth(port)
    document = json.loads(Path("x").read_text(encoding="utf-8"))
    assert code == (0 if document["valid"] else 1)
    assert {len(line["sent_ns"]) for line in log} == {16, 64}  # the one that asks first is small
    rows = [row for row in document["requests"] if row["error"] is None]
    assert len(rows) == len(log) - 1
    for line in log:
        schedule = [line["received_ns"] + 50 * MS + n * 10 * MS for n in range(len(line["sent_ns"]))]
        assert all(sent >= due for sent, due in zip(line["sent_ns"], schedule, strict=True))
    found = hold_against(document, log, 4, 10**6, 1.0)
    assert all(math.isfinite(value) for value in (found.ttft_p50, found.itl_p50, found.carried))


def test_server_that_is_told_to_dies_in_the_middle() -> None:
    with truth_server("--die-after", "5") as port:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "probes", "load", "--url", f"http://127.0.0.1:{port}", "--model", "m"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "connection lost" in done.stderr


def test_table_shows_figure_and_goal_side_by_side() -> None:
    text = table({64: [figures(), figures(ttft_p95=0.2), figures(ttft_p95=0.3)], 128: [figures(memory_mb=200.0)]})
    assert "| TTFT p95 error | 20.0 % (under 12) **missed** | 5.0 % (under 25) |" in text
    assert "| peak memory, all processes | 90 MB | 200 MB (under 120) **missed** |" in text
    assert "| runs the instrument called valid | 3 of 3 | 1 of 1 |" in text


def test_goals_are_judged_by_medians() -> None:
    good, bad = {64: [figures()] * 3}, {64: [figures(itl_p50=-0.02)] * 3}
    assert all(reached(goal, good) for goal in GOALS)
    assert [goal.name for goal in GOALS if not reached(goal, bad)] == ["itl_p50"]
    assert {bound for goal in GOALS for bound in goal.bounds} == set(STREAMS)


def test_figure_that_a_run_withheld_is_in_no_median() -> None:
    runs = [figures(itl_p50=float("nan")), figures(itl_p50=0.004), figures(itl_p50=0.002)]
    assert "| ITL p50 error | 0.3 % (under 1) |" in table({64: runs})
    assert not all(reached(goal, {64: [figures(itl_p50=float("nan"))]}) for goal in GOALS)


def test_page_holds_the_table_and_how_it_was_made() -> None:
    text = page({64: [figures()] * 5}, "THE TABLE", "THE VERDICTS")
    assert "THE TABLE" in text
    assert "THE VERDICTS" in text
    assert "median of 5 runs" in text
