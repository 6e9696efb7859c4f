"""The sides change places from round to round, a round counts as a whole, and what was finished stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from probes.contract.block import Block
from probes.contract.course import Course, run_rounds

WHOLE = Block(values={}, kinds={}, measured=1, warmup=1)
UNSOUND = Block(values={}, kinds={}, measured=1, warmup=1, unsound=("instrument-late",))
TROUBLE = Block(values={}, kinds={}, measured=1, warmup=1, trouble=("run-of-errors",), words=("HTTP 500: out of order",))
SIDES = ("baseline", "candidate")


def ticking(step_s: float = 1.0) -> Callable[[], float]:
    clock: Iterator[float] = (n * step_s for n in count())
    return lambda: next(clock)


def course(block: Callable[[str, int], Block], repetitions: int = 6, budget_s: float = 1e6) -> Course:
    return run_rounds(SIDES, block, repetitions=repetitions, budget_s=budget_s, now=ticking(), tell=lambda _line: None)


def test_the_sides_change_places() -> None:
    order: list[str] = []

    def block(side: str, _number: int) -> Block:
        order.append(side[0])
        return WHOLE

    assert len(course(block).kept) == 6
    assert "".join(order) == "bccb" * 3


def test_a_round_that_the_instrument_cannot_vouch_for_is_measured_again_as_a_whole() -> None:
    found = course(lambda side, number: UNSOUND if (side, number) == ("candidate", 2) else WHOLE)
    assert (len(found.kept), len(found.left_out), found.stopped) == (6, 1, "")


def test_a_machine_that_is_never_quiet_ends_the_course() -> None:
    found = course(lambda _side, _number: UNSOUND)
    assert (len(found.kept), len(found.left_out)) == (0, 7)
    assert found.stopped == "unsound: instrument-late in 7 rounds"


def test_a_service_in_trouble_is_not_asked_on() -> None:
    asked: list[tuple[str, int]] = []

    def block(side: str, number: int) -> Block:
        asked.append((side, number))
        return TROUBLE if (side, number) == ("candidate", 3) else WHOLE

    found = course(block)
    assert found.stopped == "candidate: run-of-errors (HTTP 500: out of order)"
    assert asked[-1] == ("candidate", 3)  # in an odd round the candidate comes first
    assert (len(found.kept), len(found.left_out)) == (3, 1)


@pytest.mark.parametrize("by", ["exception", "finding"])
def test_ctrl_c_keeps_finished_rounds(by: str) -> None:
    stopped = Block(values={}, kinds={}, measured=0, warmup=1, interrupted=True)

    def block(side: str, number: int) -> Block:
        if (side, number) != ("baseline", 2):
            return WHOLE
        if by == "exception":
            raise KeyboardInterrupt
        return stopped

    found = course(block)
    assert (len(found.kept), found.interrupted, found.stopped) == (2, True, "interrupted: stopped with Ctrl-C")


def test_no_round_is_begun_that_would_end_after_the_budget() -> None:
    found = course(lambda _side, _number: WHOLE, budget_s=8.0)
    assert 0 < len(found.kept) < 6
    assert (found.out_of_budget, found.stopped) == (True, "skipped: the budget of 8 s was used up")
