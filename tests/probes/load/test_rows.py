"""A CSV file that a spreadsheet opens and does not run."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from probes.__main__ import main
from probes.load.rows import COLUMNS, as_csv
from tests.loading import DONE, STREAM_HEAD, WHOLE, answering, chunked, event, usage
from tests.servers import http, talking


def read(written: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written.decode(), newline="")))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+2", "@SUM(A1)", "\tx", "\rx"])
def test_text_that_would_be_a_formula_is_text(text: str) -> None:
    (row,) = read(as_csv([(1, [{"words": text, "index": 0}])]))
    assert row["words"] == f"'{text}"


def test_numbers_stay_numbers_and_unknown_stays_empty() -> None:
    (row,) = read(as_csv([(4, [{"due_s": -0.5, "ttft_s": None, "stalled": False, "words": 'a "b", c'}])]))
    assert (row["concurrency"], row["due_s"], row["ttft_s"], row["stalled"]) == ("4", "-0.5", "", "false")
    assert row["words"] == 'a "b", c'
    assert tuple(row) == COLUMNS


def test_command_writes_every_request_of_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evil = STREAM_HEAD + chunked(event({"content": "a"}) + event({}, "=cmd|' /C calc'!A0") + usage(1) + DONE) + b"0\r\n\r\n"
    refused = http("400 No", b'{"error": {"message": "@SUM(1+1)"}}')
    script: Any = answering(WHOLE, evil, refused, WHOLE)
    with talking(script) as port:
        url = f"http://127.0.0.1:{port}"
        main(["load", "--url", url, "--model", "m", "--concurrency", "1,2", "--requests", "3", "--csv", "out.csv"])
    found = read(Path("out.csv").read_bytes())
    assert {row["concurrency"] for row in found} == {"1", "2"}
    assert any(row["finish_reason"].startswith("'=cmd") for row in found)
    assert any("HTTP 400: @SUM" in row["words"] for row in found)
    assert {row["phase"] for row in found} >= {"warm-up", "measured"}


def test_nowhere_to_write_is_told_before_the_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["load", "--url", "http://127.0.0.1:1", "--model", "m", "--csv", str(tmp_path / "no" / "x.csv")])
    assert code == 2
    assert "--csv" in capsys.readouterr().err
