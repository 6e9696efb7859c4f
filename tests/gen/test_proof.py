"""What a record says of the run it rests on: conditions in words, and a table of all that was measured."""

from __future__ import annotations

from typing import Any

from gen.proof import Proof, newest_proof
from probes.evidence import Missing, MissingReason
from probes.fleet import Gates
from tests.gen.compared import one_side, two_sides
from tests.gen.specimens import host

UNSEEN = Missing(missing=MissingReason.NOT_MEASURED, detail="its machine was not asked")


def proof(**fields: Any) -> Proof:
    found = newest_proof([two_sides(**fields)], Gates())
    assert found is not None
    return found


def test_only_a_run_of_both_sides_proves_anything_and_the_newest_does() -> None:
    old, new = two_sides(), two_sides(minute=5)
    assert newest_proof([one_side(minute=9)], Gates()) is None
    assert (found := newest_proof([new, old], Gates())) is not None
    assert found.run == new.id


def test_the_table_has_gate_noise_and_the_reason_for_what_is_missing() -> None:
    rows = proof().numbers.splitlines()
    ttft = next(row for row in rows if row.startswith("| Time to first token |"))
    assert "0.185 to 0.214 times | **better**, gate 5 % | ±5.0 % of the median" in ttft
    power = next(row for row in rows if row.startswith("| Power |"))
    assert "*no sensor* | *no sensor* |  | **not measured**, gate 5 %; baseline no sensor: no RAPL here" in power


def test_what_is_not_known_of_the_machine_is_left_out_or_told() -> None:
    bare = host().model_copy(update={"physical_cores": UNSEEN, "memory_bytes": UNSEEN})
    where = next(line for line in proof(server=bare).conditions.splitlines() if line.startswith("- Where:"))
    assert "cores" not in where
    assert "missing" not in where
    assert "not measured: its machine was not asked" in proof(server=UNSEEN).conditions


def test_what_was_left_out_of_the_run_is_told() -> None:
    native = {"contract": {"order": "baseline first", "rounds_left_out": ["round 2: busy"], "notes": ["warm"]}}
    told = proof(native=native).conditions.splitlines()
    assert "- Baseline first. One sample is one round, not one request." in told
    assert told[-2:] == ["- Rounds left out: round 2: busy.", "- warm."]
