"""`python -m gen compare` and `confirm` as a user runs them."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from gen.__main__ import main
from gen.records.record import Confirm, EvidenceRef, Probe
from gen.records.text import render_draft
from gen.words import Status
from probes.archive import write_run
from probes.evidence import Run, Validity
from tests.gen import ledger
from tests.gen.compared import FASTER, STEADY, load, one_side, two_sides
from tests.gen.test_confirmation import SCOPE


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository to run commands in."""
    monkeypatch.chdir(ledger.checkout(tmp_path))
    return tmp_path


def keep(checkout: Path, *runs: Run) -> None:
    folder = checkout / "adr" / "local" / "evidence"
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        write_run(run, folder)


def test_one_run_with_both_sides_is_judged(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = two_sides()
    keep(checkout, run)
    assert main(["compare", run.id]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Under test enable_prefix_caching: false against true" in said
    assert "Verdict: better (1 better, 6 same, 1 not measured)" in said


def test_two_runs_are_judged_by_id_and_by_file(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = one_side(), one_side(FASTER, minute=5)
    keep(checkout, one, two)
    assert main(["compare", one.id, f"adr/local/evidence/{two.id}.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["interleaved"], found["apart"]) == ("better", False, [])
    assert set(found["contract"]["ttft"]) >= {"verdict", "reason", "gate", "baseline", "candidate", "low", "high", "noise"}
    assert found["contract"]["power"]["verdict"] == "not measured"


def test_what_differs_is_listed_with_the_way_to_say_that_it_was_meant(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = one_side(), one_side(minute=5, load=load(concurrency=8))
    keep(checkout, one, two)
    assert main(["compare", one.id, two.id]) == 0
    said = capsys.readouterr().out
    assert "Differs    concurrency: 1 against 8" in said
    assert "--changes concurrency" in said
    assert "Verdict: not comparable" in said
    assert main(["compare", one.id, two.id, "--changes", "concurrency"]) == 0
    assert "Under test concurrency: 1 against 8" in capsys.readouterr().out


def test_the_same_thing_twice_is_told_as_noise(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = two_sides(STEADY, STEADY, settings=({}, {}))
    keep(checkout, run)
    assert main(["compare", run.id]) == 0
    said = capsys.readouterr().out
    assert "Nothing is known to differ: what follows is noise" in said
    assert "Time to first token: ±2.3 % of the median; a verdict takes a change by a factor of 1.1" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x"], "x: is no run of this checkout and no evidence file"),
        (["RUN", "RUN"], "is both baseline and candidate"),
        (["RUN", "RUN", "RUN"], "is a third run"),
        (["RUN"], "holds one side; expected a run with baseline and candidate, or a second run"),
        (["RUN", "BAD"], "is invalid (interrupted: stopped with Ctrl-C); expected a run that may be used"),
        (["RUN", "BOTH"], "holds 2 sides itself"),
        (["BOTH", "--changes", "warp"], "--changes warp: is neither a condition nor a setting"),
        ([], "RUN"),
    ],
)
def test_each_misuse_is_one_message_and_exit_code_2(
    checkout: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Validity(valid=False, reasons=("interrupted: stopped with Ctrl-C",))
    runs = {"RUN": one_side(), "BAD": one_side(minute=5, validity=stopped), "BOTH": two_sides(minute=9)}
    keep(checkout, *runs.values())
    assert main(["compare", *(runs[word].id if word in runs else word for word in words)]) == 2
    out, err = capsys.readouterr()
    assert (out, said in err) == ("", True), err


def test_a_record_that_no_longer_holds_is_a_finding_and_exit_code_1(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = two_sides(), two_sides(STEADY, STEADY, minute=90)
    keep(checkout, old)
    held = ledger.record(
        scope=SCOPE,
        name="2026-11-28-automatic-prefix-caching-local-abc123abc123",
        date=date(2026, 11, 28),
        assessment=ledger.assessment(scope=SCOPE),
        confirm=Confirm(probe=Probe.CONTRACT),
        evidence=(EvidenceRef(id=old.id, sha256=old.content_sha256),),
        status=Status.ACCEPTED,
    )
    (checkout / "adr" / "local" / f"{held.name}.md").write_text(render_draft(held), encoding="utf-8")
    assert main(["confirm", "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0][:2] == ["contract", "embedded:enable_prefix_caching=false"]
    assert main(["confirm"]) == 0
    assert "not measured again" in " ".join(capsys.readouterr().out.split())
    keep(checkout, new)
    assert main(["confirm", held.name]) == 1
    assert f"adr/local/{held.name}.md: IA024 error: Time to first token: same in {new.id}" in capsys.readouterr().out
    assert main(["confirm", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["outcome"] == "no longer holds"


def test_without_records_there_is_nothing_to_confirm(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["confirm", "--plan"]) == 0
    assert "No record in force says how to confirm it." in capsys.readouterr().out
    assert main(["confirm", "x"]) == 2
    assert "x: is not a record here" in capsys.readouterr().err
