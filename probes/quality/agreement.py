"""Whether two sides answer open questions with the same tokens, beside how far one side agrees with itself."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.quality.result import Marked, Quality

AGREEMENT: Final = "quality_agreement"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two answers to one question. `first_difference` counts equal pieces before the first other one; None: no difference."""

    suite: str
    task: str
    repetition: int
    unit: str
    length: int
    first_difference: int | None


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """All pairs of two sides, and the sides' tasks that could not be paired."""

    pairs: tuple[Pair, ...]
    unpaired: tuple[str, ...] = ()

    @property
    def identical_share(self) -> float | None:
        """Share of pairs without a difference."""
        return sum(pair.first_difference is None for pair in self.pairs) / len(self.pairs) if self.pairs else None

    @property
    def first_differences(self) -> tuple[int, ...]:
        """Where the pairs that differ begin to differ, shortest first."""
        return tuple(sorted(pair.first_difference for pair in self.pairs if pair.first_difference is not None))

    @property
    def units(self) -> str:
        """Name what was compared: tokens, words, or both."""
        return " and ".join(f"{unit}s" for unit in sorted({pair.unit for pair in self.pairs}))

    @property
    def words(self) -> str:
        """Say it in one line."""
        if self.identical_share is None:
            return "nothing to compare"
        same = sum(pair.first_difference is None for pair in self.pairs)
        told = f"{same} of {len(self.pairs)} answers identical"
        if not self.first_differences:
            return told
        median = statistics.median(self.first_differences)
        return (
            f"{told}; the others begin to differ after {median:g} {self.units} (median; {self.first_differences[0]} at least)"
        )

    def metric(self, arm: str = "") -> Metric:
        """Give the share of identical answers in each repetition; the baseline's arm is its agreement with itself."""
        turns: dict[int, list[bool]] = {}
        for pair in self.pairs:
            turns.setdefault(pair.repetition, []).append(pair.first_difference is None)
        samples = tuple(sum(same) / len(same) for _, same in sorted(turns.items()))
        why = "a side has to be asked twice before it can agree with itself, and two sides the same tasks"
        missing = None if samples else Missing(missing=MissingReason.NOT_MEASURED, detail=why)
        return Metric(
            name=AGREEMENT,
            unit="share",
            direction=Direction.HIGHER,
            per=Per.REPETITION,
            arm=arm,
            samples=samples,
            missing=missing,
        )

    def document(self) -> dict[str, JsonValue]:
        """Give it as JSON."""
        return {
            "identical_share": self.identical_share,
            "pairs": len(self.pairs),
            "first_differences": list(self.first_differences),
            "unit": self.units,
            "unpaired": list(self.unpaired),
        }


def between(baseline: Quality, candidate: Quality) -> Agreement:
    """Pair the open answers of two sides, repetition by repetition; only tasks with the same content are paired."""
    ours, theirs = _open(baseline.marked), _open(candidate.marked)
    both = [key for key in ours if key in theirs]
    apart = sorted({f"{key[0]}/{key[1]}" for key in ours.keys() ^ theirs.keys() if key[3] == 0})
    return Agreement(pairs=tuple(_pair(ours[key], theirs[key]) for key in both), unpaired=tuple(apart))


def with_itself(side: Quality) -> Agreement:
    """Pair each later repetition of a side with its first one."""
    answers = _open(side.marked)
    first = {key[:3]: one for key, one in answers.items() if key[3] == 0}
    return Agreement(pairs=tuple(_pair(first[key[:3]], one) for key, one in answers.items() if key[3] and key[:3] in first))


def _open(marked: Iterable[Marked]) -> dict[tuple[str, str, str, int], Marked]:
    return {(one.suite, one.task, one.task_sha256, one.repetition): one for one in marked if one.pieces}


def _pair(one: Marked, other: Marked) -> Pair:
    return Pair(
        suite=other.suite,
        task=other.task,
        repetition=other.repetition,
        unit=one.unit if one.unit == other.unit else "piece",
        length=max(len(one.pieces), len(other.pieces)),
        first_difference=first_difference(one.pieces, other.pieces),
    )


def first_difference(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Count equal pieces before the first difference; an answer that ends earlier differs there."""
    if tuple(one) == tuple(other):
        return None
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
