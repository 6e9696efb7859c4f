"""What the marks of a suite come to: a share per repetition, or the reason why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from probes.evidence import Missing, MissingReason
from probes.quality.result import SCORED, Marked, Outcome, SuiteScore
from probes.quality.task import Suite, tasks_sha256

FEWEST_TASKS: Final = 5
UNANSWERED_AT_MOST: Final = 0.1
# An error is never counted as a wrong answer, nor left out in silence. The first that happened is the reason.
_REASONS: Final = (
    (Outcome.UNSUPPORTED, MissingReason.UNSUPPORTED, "{why}"),
    (Outcome.ERROR, MissingReason.FAILED, "{n} of {all} requests failed; the first: {why}"),
    (Outcome.NOT_ASKED, MissingReason.SKIPPED, "{why}"),
)


def score(suite: Suite, marked: Sequence[Marked], repetitions: int) -> SuiteScore:
    """Give the share of right answers in each repetition; `marked` are the marks of this suite."""
    turns = [[one for one in marked if one.repetition == turn and one.points is not None] for turn in range(repetitions)]
    missing = _missing(suite, marked, fewest=min(map(len, turns)))
    counted = Counter(one.outcome for one in marked)
    shares = () if missing else tuple(sum(one.points or 0.0 for one in turn) / len(turn) for turn in turns)
    return SuiteScore(
        name=suite.name,
        title=suite.title,
        judged=suite.judged,
        suite_sha256=suite.sha256,
        tasks_sha256=scored_sha256([suite], marked),
        shares=shares,
        missing=missing,
        outcomes={outcome.value: counted[outcome] for outcome in Outcome if counted[outcome]},
    )


def _missing(suite: Suite, marked: Sequence[Marked], fewest: int) -> Missing | None:
    """Say why a suite has no share; `fewest` is the number of marks in the repetition that has least."""
    for outcome, reason, words in _REASONS:
        if those := [one for one in marked if one.outcome is outcome]:
            return Missing(missing=reason, detail=words.format(n=len(those), all=len(marked), why=those[0].why))
    if not suite.judged:
        return Missing(missing=MissingReason.NOT_APPLICABLE, detail="its answers are compared and not judged")
    unanswered = [one for one in marked if one.outcome is Outcome.UNANSWERED]
    if len(unanswered) > UNANSWERED_AT_MOST * len(marked):
        detail = f"{len(unanswered)} of {len(marked)} answers ended before they began: {unanswered[0].why}"
        return Missing(missing=MissingReason.TOO_FEW_SAMPLES, detail=detail)
    if fewest < min(FEWEST_TASKS, len(suite.tasks)):
        why = next((one.why for one in marked if one.outcome is Outcome.LEFT_OUT), "")
        return Missing(missing=MissingReason.SKIPPED, detail=f"{fewest} of {len(suite.tasks)} tasks could be asked: {why}")
    return None


def scored_sha256(suites: Sequence[Suite], marked: Sequence[Marked]) -> str:
    """Hash the tasks that counted: two scores with the same hash are of the same questions."""
    scored = {(one.suite, one.task) for one in marked if one.outcome in SCORED}
    return tasks_sha256(task for suite in suites for task in suite.tasks if (suite.name, task.id) in scored)
