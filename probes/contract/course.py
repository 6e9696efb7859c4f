"""The order of the repetitions: A B B A, so that a drift of the machine falls on both sides alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from probes.contract.block import Block

Round = Mapping[str, Block]


@dataclass(kw_only=True)
class Course:
    """How the repetitions went. A round is one block of each side and counts as a whole or not at all.

    `left_out` are rounds that may not be used; `stopped` says why there are no more of them, '' for a course that was
    carried to its end.
    """

    kept: list[Round] = field(default_factory=list)
    left_out: list[Round] = field(default_factory=list)
    stopped: str = ""
    interrupted: bool = False
    out_of_budget: bool = False
    no_time_for_quality: bool = False


def run_rounds(
    sides: Sequence[str],
    block: Callable[[str, int], Block],
    *,
    repetitions: int,
    budget_s: float,
    now: Callable[[], float],
    tell: Callable[[str], None],
) -> Course:
    """Measure rounds until enough are kept; `block` measures one side in a round of a number.

    The sides change places from round to round. A round whose numbers the instrument could not vouch for is measured
    again, as often as there are repetitions; a service in trouble and Ctrl-C end the course, and what was kept stays.
    """
    course = Course()
    began, longest, number = now(), 0.0, 0
    while len(course.kept) < repetitions and not course.stopped:
        start = now()
        if start - began + longest > budget_s:
            course.stopped, course.out_of_budget = f"skipped: the budget of {budget_s:g} s was used up", True
        elif len(course.left_out) > repetitions:
            course.stopped = f"unsound: {_reasons(course.left_out)} in {len(course.left_out)} rounds"
        else:
            found: dict[str, Block] = {}
            try:
                tell(f"Repetition {len(course.kept) + 1} of {repetitions}")
                for side in sides if number % 2 == 0 else tuple(reversed(sides)):
                    found[side] = block(side, number)
                    course.stopped = _trouble(side, found[side], alone=len(sides) == 1)
                    if course.stopped or found[side].interrupted:
                        break
            except KeyboardInterrupt:
                course.interrupted = True
            course.interrupted |= any(one.interrupted for one in found.values())
            if course.interrupted:
                course.stopped = "interrupted: stopped with Ctrl-C"
            whole = len(found) == len(sides) and all(one.whole for one in found.values())
            (course.kept if whole else course.left_out).append(found)
            longest, number = max(longest, now() - start), number + 1
    return course


def _trouble(side: str, one: Block, *, alone: bool) -> str:
    """Say why a service must not be asked on; '' when it may be."""
    if not one.trouble:
        return ""
    words = f" ({one.words[0]})" if one.words else ""
    return f"{'' if alone else f'{side}: '}{', '.join(one.trouble)}{words}"


def _reasons(rounds: Sequence[Round]) -> str:
    return ", ".join(sorted({reason for found in rounds for one in found.values() for reason in one.unsound}))
