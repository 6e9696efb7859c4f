"""What a record says of the run it rests on: conditions in words, and a table of all that was measured."""

from __future__ import annotations

import re
from typing import Any

from gen.proof import Proof, newest_proof
from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.fleet import Gates
from tests.gen.compared import FASTER, STEADY, metrics, one_side, two_sides
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


def test_the_table_has_gates_noise_and_the_reason_for_what_is_missing() -> None:
    told = proof()
    lead, _, rest = told.numbers.partition("\n\n")
    assert lead.startswith("Median and 95 % interval of 6 rounds a side. Gates: 5 % for times, memory and power, ")
    assert "0 % for errors, 1 point for quality." in lead
    rows = rest.splitlines()
    ttft = next(row for row in rows if row.startswith("| Time to first token |"))
    assert ttft == (
        "| Time to first token | 410 ms (402 to 421) | 80.5 ms (78 to 86) | 0.185 to 0.214 times | **better** | ±5.0 % "
        "| a factor of 1.16 |"
    )
    power = next(row for row in rows if row.startswith("| Power |"))
    assert power == "| Power | *no sensor* | *no sensor* | - | **not measured**: no RAPL here | - | - |"
    assert rows[-1] == "The same on both sides: stalled streams 0."
    assert told.verdict == "Over all: **better** (1 better, 6 same, 1 not measured)."


def test_a_row_of_another_number_of_samples_says_so_and_what_vetoes_stands_with_the_others() -> None:
    rare = STEADY | {"task_quality": (0.62, 0.64)}
    worse = FASTER | {"task_quality": (0.62, 0.64), "stalled_streams": (1.0,) * 6}
    rows = proof(metrics=(*metrics(rare, "baseline"), *metrics(worse, "candidate"))).numbers.splitlines()
    assert any(row.startswith("| Task quality | 63 % (range 62 to 64, n = 2) |") for row in rows)
    assert any(row.startswith("| Stalled streams | 0 requests | 1 request |") and "**worse**" in row for row in rows)


def test_an_open_row_says_what_would_settle_it_and_not_what_open_means() -> None:
    loud, near = (3.0, 5.0, 2.0, 8.0, 7.0, 4.0), (0.40, 0.39, 0.43, 0.38, 0.42, 0.37)
    never, some = (
        next(row for row in proof(candidate=FASTER | {"ttft_s": ttft}, baseline=STEADY | {"ttft_s": other}).numbers.splitlines()
             if row.startswith("| Time to first token |"))
        for ttft, other in ((loud, loud), (near, STEADY["ttft_s"]))
    )  # fmt: skip
    assert "| **inconclusive**: no affordable number of repetitions would settle it |" in never
    assert re.search(r"\| \*\*inconclusive\*\*: about \d+ more repetitions a side would settle it \|", some)


def test_how_many_prompts_begin_alike_is_told_for_a_cache_lives_on_that_alone() -> None:
    def load(shared: object) -> str:
        native = {"contract": {"shape": {"shared_prefix": shared}}}
        return next(line for line in proof(native=native).conditions.splitlines() if line.startswith("- Load:"))

    assert (
        "prompts of 250 tokens, all of which begin with one text, new in each round, and differ in their end, answers"
        in load(1.0)
    )
    assert "of which 50 % begin with one text" in load(0.5)
    assert "of which no two begin alike" in load(0)
    assert "begin" not in load(None)


def test_what_the_instrument_was_late_by_and_what_else_tells_the_sides_apart_is_told() -> None:
    cached = [
        Metric(
            name="cached_prompt_tokens",
            unit="tokens",
            direction=Direction.NEUTRAL,
            per=Per.REPETITION,
            arm=arm,
            samples=(value,) * 6,
        )
        for arm, value in (("baseline", 0.0), ("candidate", 240.0))
    ]
    blocks = [
        {
            "baseline": {"lag_p95_s": 0.002, "load_carried": 0.999},
            "candidate": {"lag_p95_s": 0.004, "load_carried": 1.0, "share_waiting_for_a_core": 0.18},
        }
    ]
    both = (*metrics(STEADY, "baseline"), *metrics(FASTER, "candidate"), *cached)
    told = proof(metrics=both, native={"instrument": blocks}).conditions.splitlines()
    assert "- Seen besides: prompt tokens from the cache 0 tokens against 240 tokens." in told
    late = "- The instrument: late by at most 4 ms (p95 of a round), and it carried at least 99.9 % of the load"
    assert f"{late}; it waited for a core at most 18 % of the time." in told
    assert "- When: 2026-11-28 09:00 UTC, in 40 s, by inference-adr 0.1.0 at 0123abc." in told


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
    assert told[-3:-1] == ["- Rounds left out: round 2: busy.", "- warm."]
