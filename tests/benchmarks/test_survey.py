"""A survey of servers that are out of order in every way: each state is right, and nothing depends on who was first."""

from __future__ import annotations

import pytest

from benchmarks.survey import GOAL_BYTES, STATES, Figures, lines, measure, servers
from benchmarks.survey_servers import BAD, GOOD
from probes.endpoints.probe import Pacing

FIGURES = {"services": 200, "wall_s": 20.0, "memory_bytes": 2**20, "connections": 100, "told_s": {"ovms": 3.0}, "wrong": ()}


def test_every_kind_of_server_is_told_in_the_order_of_the_inventory() -> None:
    patient = Pacing(question_s=4, questions_s=60, loading_s=0.2, poll_s=0.1)
    with servers(40) as kinds:
        figures = measure(kinds, pacing=patient, silence_s=3)
    assert figures.wrong == ()
    assert set(figures.told_s) == set(STATES) == {*GOOD, *BAD}
    # Each address has one connection at a time; the event loop has a few descriptors of its own.
    assert 0 < figures.connections <= 40 + 10


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"wall_s": 31.0}, "it took 31.0 s; the goal is 30 s"),
        ({"memory_bytes": GOAL_BYTES + 2**20}, "it took 201 MiB; the goal is 200"),
        ({"connections": 300}, "300 connections at once; the goal is 256"),
        ({"told_s": {"ovms": 12.0, "silent": 20.0}}, "an address that answers took 12.0 s; the goal is 10 s"),
        (
            {"wrong": ("the results are not in the order of the inventory",)},
            "the results are not in the order of the inventory",
        ),
    ],
)
def test_goal_that_is_missed_is_named(changes: dict[str, object], words: str) -> None:
    figures = Figures(**(FIGURES | changes))  # type: ignore[arg-type]
    assert figures.missed == (words,)
    assert list(lines(figures))[-1] == f"MISSED: {words}"


def test_goals_that_are_reached_are_not_named() -> None:
    assert Figures(**FIGURES).missed == ()  # type: ignore[arg-type]
