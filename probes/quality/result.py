"""What a quality run brought: every answer with its points and why, one share per suite and repetition, and metrics."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.schema import Model

SCHEMA: Final = "inference-adr/quality/1"
TASK_QUALITY: Final = "task_quality"
REPEAT_AGREEMENT: Final = "quality_repeat_agreement"


class Outcome(StrEnum):
    """What became of one task; only the first three count in a share."""

    RIGHT = "right"
    WRONG = "wrong"
    CUT_OFF = "wrong, cut off"
    UNANSWERED = "no answer within the budget"
    ANSWERED = "answered, not judged"
    ERROR = "error"
    UNSUPPORTED = "unsupported"
    LEFT_OUT = "left out"
    NOT_ASKED = "not asked"


SCORED: Final = frozenset({Outcome.RIGHT, Outcome.WRONG, Outcome.CUT_OFF})


class Marked(Model):
    """One task in one repetition. Texts are redacted and trimmed; `answer_sha256` is of the whole answer.

    `unit` says what `pieces` are: the server's tokens, or words where it names none.
    """

    suite: str
    task: str
    repetition: Annotated[int, Field(ge=0)]
    prompt_sha256: str
    task_sha256: str
    outcome: Annotated[Outcome, Field(strict=False)]
    points: float | None
    answer: str = ""
    answer_sha256: str = ""
    expected: str = ""
    why: str
    finish_reason: str | None = None
    unit: Literal["token", "word"] = "word"
    pieces: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None

    @property
    def answered(self) -> bool:
        """Tell whether there is an answer to compare."""
        return bool(self.answer_sha256)


class SuiteScore(Model):
    """One suite: the share of right answers in each repetition, or why there is none. `tasks_sha256` is of what counted."""

    name: str
    title: str
    judged: bool
    suite_sha256: str
    tasks_sha256: str
    shares: tuple[float, ...] = ()
    missing: Missing | None = None
    outcomes: dict[str, int] = {}


class Quality(Model):
    """A quality run: enough to print, to keep, and to compare with another one of the same tasks."""

    schema_: Literal["inference-adr/quality/1"] = Field(default=SCHEMA, alias="schema")
    suites: tuple[SuiteScore, ...]
    marked: tuple[Marked, ...]
    repetitions: Annotated[int, Field(ge=1)]
    requests: Annotated[int, Field(ge=0)]
    max_tokens: Annotated[int, Field(ge=1)]
    thinking_tokens: Annotated[int, Field(ge=0)]
    tasks_sha256: str
    stopped: str = ""

    @property
    def repeat_agreement(self) -> float | None:
        """Share of tasks that were answered with the same text in every repetition; None without a second one."""
        answers: dict[tuple[str, str], set[str]] = {}
        times: Counter[tuple[str, str]] = Counter()
        for one in self.marked:
            if one.answered:
                answers.setdefault((one.suite, one.task), set()).add(one.answer_sha256)
                times[one.suite, one.task] += 1
        repeated = [texts for key, texts in answers.items() if times[key] > 1]
        return sum(len(texts) == 1 for texts in repeated) / len(repeated) if repeated else None

    def metrics(self, arm: str = "") -> tuple[Metric, ...]:
        """Give one metric per suite and the contract's `task_quality`, the mean of the suites; a sample is a repetition."""
        return tuple(self._metrics(arm))

    def _metrics(self, arm: str) -> Iterator[Metric]:
        judged = [suite for suite in self.suites if suite.judged]
        for suite in judged:
            yield _metric(f"quality_{suite.name.replace('-', '_')}", suite.shares, suite.missing, arm)
        yield _metric(TASK_QUALITY, *_overall(judged), arm)
        if (agreed := self.repeat_agreement) is not None:
            yield _metric(REPEAT_AGREEMENT, (agreed,), None, arm, per=Per.RUN)


def _overall(judged: list[SuiteScore]) -> tuple[tuple[float, ...], Missing | None]:
    """Average the suites that the server can be asked; one that failed leaves no total, as it would be another quantity."""
    counted = [suite for suite in judged if suite.shares]
    for suite in judged:
        if suite.missing is not None and suite.missing.missing is not MissingReason.UNSUPPORTED:
            return (), Missing(missing=suite.missing.missing, detail=f"{suite.name}: {suite.missing.detail}")
    if not counted:
        detail = "; ".join(f"{s.name}: {s.missing.detail}" for s in judged if s.missing) or "no suite was asked"
        return (), Missing(
            missing=judged[0].missing.missing if judged and judged[0].missing else MissingReason.NOT_MEASURED, detail=detail
        )
    return tuple(statistics.fmean(shares) for shares in zip(*(suite.shares for suite in counted), strict=True)), None


def _metric(name: str, samples: tuple[float, ...], missing: Missing | None, arm: str, *, per: Per = Per.REPETITION) -> Metric:
    return Metric(name=name, unit="share", direction=Direction.HIGHER, per=per, arm=arm, samples=samples, missing=missing)
