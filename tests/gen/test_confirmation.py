"""A record holds as long as what is measured again keeps its gates; a service that is down breaks nothing."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from gen.confirmation import Holds, chosen, commands, confirm
from gen.corpus import Corpus
from gen.records import Record
from gen.records.record import Confirm, EvidenceRef, Probe
from gen.words import Decision, Status
from probes.errors import UsageError
from probes.evidence import Endpoint, EndpointState, Missing, MissingReason, Run, RunKind, Validity
from probes.load.objective import parse_slo
from tests.gen import ledger, specimens
from tests.gen.compared import FASTER, STEADY, load, one_side, two_sides

TODAY = date(2026, 11, 30)
SCOPE = f"local-{specimens.FINGERPRINT}"


def record(*cited: Run, probe: Probe = Probe.CONTRACT, scope: str = SCOPE, **changes: Any) -> Record:
    given = {
        "scope": scope,
        "assessment": None,
        "decision": Decision.KEEP,
        "confirm": Confirm(probe=probe),
        "evidence": tuple(EvidenceRef(id=run.id, sha256=run.content_sha256) for run in cited),
    }
    return ledger.record(**(given | changes))


def corpus(held: Record, *runs: Run) -> Corpus:
    return ledger.ledger(held, local_runs=runs)


def outcome(held: Record, *runs: Run) -> tuple[Holds, str]:
    found = confirm(corpus(held, *runs), held, TODAY)
    assert bool(found.findings) == (found.outcome is Holds.BROKEN)
    return found.outcome, "; ".join(found.words)


def test_a_record_that_nothing_newer_speaks_of_is_not_measured_again() -> None:
    old = two_sides()
    assert outcome(record(old), old) == (Holds.NOT_MEASURED, "no run is newer than the ones it cites")


def test_a_gain_that_is_there_again_holds() -> None:
    old, new = two_sides(), two_sides(minute=90)
    assert outcome(record(old), old, new) == (Holds.HOLDS, "7 quantities keep their gates")


def test_a_gain_that_is_gone_breaks_the_record() -> None:
    old, new = two_sides(), two_sides(STEADY, STEADY, minute=90)
    held, said = outcome(record(old), old, new)
    assert held is Holds.BROKEN
    assert f"Time to first token: same in {new.id}, where the record has better" in said


def test_errors_that_were_not_there_break_the_record() -> None:
    old, new = two_sides(), two_sides(candidate=FASTER | {"error_rate": (0.1,) * 6}, minute=90)
    held, said = outcome(record(old), old, new)
    assert held is Holds.BROKEN
    assert "Errors and out-of-memory: the candidate is worse" in said


def test_noise_leaves_the_record_open() -> None:
    loud = (0.3, 0.5, 0.2, 0.08, 0.7, 0.1)
    old, new = two_sides(), two_sides(candidate=FASTER | {"ttft_s": loud}, minute=90)
    held, said = outcome(record(old), old, new)
    assert held is Holds.OPEN
    assert "Time to first token: inconclusive" in said


def test_the_newest_of_several_runs_speaks() -> None:
    old, gone, back = two_sides(), two_sides(STEADY, STEADY, minute=90), two_sides(minute=95)
    assert outcome(record(old), old, gone, back)[0] is Holds.HOLDS


def test_an_invalid_run_measures_nothing_again() -> None:
    old = two_sides()
    died = two_sides(STEADY, STEADY, minute=90, validity=Validity(valid=False, reasons=("candidate: run-of-errors",)))
    held, said = outcome(record(old), old, died)
    assert held is Holds.NOT_MEASURED
    assert said == f"{died.id} is invalid: candidate: run-of-errors"


def test_one_side_is_held_against_itself_then_and_now() -> None:
    old = one_side()
    slower = one_side(STEADY | {"ttft_s": tuple(2 * value for value in STEADY["ttft_s"])}, minute=90)
    held, said = outcome(record(old), old, slower)
    assert held is Holds.BROKEN
    assert said.startswith(f"Time to first token: worse in {slower.id} than in {old.id}")
    assert outcome(record(old), old, one_side(minute=90))[0] is Holds.HOLDS


def test_another_load_is_not_comparable_and_breaks_nothing() -> None:
    old, new = one_side(), one_side(minute=90, load=load(concurrency=8))
    held, said = outcome(record(old), old, new)
    assert held is Holds.OPEN
    assert "not comparable" in said
    assert "concurrency: 1 against 8" in said


def test_the_gates_of_the_record_count() -> None:
    old = one_side()
    tenth = one_side(STEADY | {"ttft_s": tuple(1.1 * value for value in STEADY["ttft_s"])}, minute=90)
    wide = Confirm(probe=Probe.CONTRACT, gates={"latency_percent": 25.0})  # type: ignore[arg-type]
    assert outcome(record(old, confirm=wide), old, tenth)[0] is Holds.HOLDS


def test_a_run_of_another_machine_says_nothing() -> None:
    old, new = two_sides(), two_sides(STEADY, STEADY, minute=90)
    elsewhere = record(old, scope="local-fff111fff111")
    assert outcome(elsewhere, old, new)[0] is Holds.NOT_MEASURED


def test_micro_benchmarks_are_held_to_their_own_verdicts() -> None:
    old = specimens.micro_run()
    again = specimens.run(RunKind.MICRO, old.subject, minute=90, arms=old.arms, metrics=old.metrics)
    slow = tuple(m.model_copy(update={"samples": (0.41,) * 7}) if m.name == "ttft_s" else m for m in old.metrics)
    gone = specimens.run(RunKind.MICRO, old.subject, minute=90, arms=old.arms, metrics=slow)
    held = record(old, probe=Probe.MICRO)
    assert outcome(held, old, again)[0] is Holds.HOLDS
    assert outcome(held, old, gone)[0] is Holds.BROKEN


def test_services_that_are_not_there_are_a_state() -> None:
    held = ledger.record(confirm=Confirm(probe=Probe.ENDPOINTS), scope="fleet/text-8b", evidence=())
    why = Missing(missing=MissingReason.NOT_CONFIGURED, detail="OVMS_8B_URL is not set")
    nowhere = Endpoint(url=why, state=EndpointState.NOT_CONFIGURED)
    survey = specimens.run(RunKind.SURVEY, "fleet", survey={"text-8b": nowhere})
    found = confirm(corpus(held, survey), held, TODAY)
    assert (found.outcome, found.words, found.findings) == (Holds.NOT_MEASURED, ("text-8b: not configured",), ())


def test_the_plan_measures_each_thing_once() -> None:
    old = two_sides()
    contract, micro = record(old), record(probe=Probe.MICRO)
    fleet = [ledger.record(confirm=Confirm(probe=Probe.ENDPOINTS), scope=f"fleet/{name}") for name in ("text-8b", "text-30b")]
    service = record(confirm=Confirm(probe=Probe.CONTRACT, service="text-4b"), scope="fleet/text-4b")
    plan = commands(corpus(contract, old), [contract, contract, micro, micro, *fleet, service])
    assert plan[:2] == [["run", "micro"], ["run", "--service", "text-8b", "--service", "text-30b"]]
    assert plan[2][:3] == ["contract", "embedded:enable_prefix_caching=false", "embedded"]
    words = "--repetitions 6 --requests 20 --concurrency 1 --max-tokens 32 --prompt medium --shared-prefix 1"
    assert " ".join(plan[2][3:]) == words
    assert plan[3:] == [["contract", "text-4b"]]


def test_the_plan_holds_the_same_bounds_against_goodput() -> None:
    """Those of the run, whoever gave them: by hand they stand nowhere else, and a workload may have others by now."""
    slo = {"bounds": {"ttft_s": 0.5, "decode_tok_s": 12.125}, "origin": "the SLO of --slo"}
    asked = {"sides": {"side": "embedded"}, "shape": {"repetitions": 6, "slo": slo}}
    old = one_side(native={"contract": asked})
    assert commands(corpus(record(old), old), [record(old)]) == [
        ["contract", "embedded", "--repetitions", "6", "--slo", "ttft_s=0.5,decode_tok_s=12.125"]
    ]
    assert parse_slo("ttft_s=0.5,decode_tok_s=12.125").document()["bounds"] == slo["bounds"]  # type: ignore[union-attr]
    unset = one_side(native={"contract": asked | {"shape": {"repetitions": 6, "slo": None}}})
    assert commands(corpus(record(unset), unset), [record(unset)]) == [["contract", "embedded", "--repetitions", "6"]]


def test_records_in_force_are_confirmed_and_unknown_ones_are_a_misuse() -> None:
    held, waiting = record(), record(status=Status.PROPOSED, name="2026-11-30-waiting")
    both = ledger.ledger(held, waiting)
    assert chosen(both, (), TODAY) == (held,)
    assert chosen(both, (waiting.name,), TODAY) == (waiting,)
    with pytest.raises(UsageError, match="nothing: is not a record here"):
        chosen(both, ("nothing",), TODAY)
    silent = record(confirm=None)
    with pytest.raises(UsageError, match="has no confirm block"):
        chosen(ledger.ledger(silent), (silent.name,), TODAY)
