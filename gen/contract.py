"""The measurement contract: the eight quantities that a change of tuning records, or says why not."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

from gen.comparability import likeness, sides_of
from gen.spread import FEWEST_FOR_P95, percentile
from gen.verdict import Comparison, Scale, compare
from gen.words import Decision, Verdict
from probes.evidence import Direction, Metric, Missing, MissingReason, Per, Run
from probes.fleet import Gates
from probes.schema import Model


class ContractMetric(StrEnum):
    """The eight quantities, in the order they are read."""

    TTFT = "ttft"
    DECODE_RATE = "decode-rate"
    THROUGHPUT = "throughput"
    P95_LATENCY = "p95-latency"
    ERROR_RATE = "error-rate"
    MEMORY = "memory"
    POWER = "power"
    QUALITY = "quality"


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """How a contract metric is called, counted and found in a run; the first name that a run knows is used."""

    title: str
    direction: Direction
    names: tuple[str, ...]


QUANTITIES = {
    ContractMetric.TTFT: Quantity(title="Time to first token", direction=Direction.LOWER, names=("ttft_s",)),
    ContractMetric.DECODE_RATE: Quantity(title="Decode speed per request", direction=Direction.HIGHER, names=("decode_tok_s",)),
    ContractMetric.THROUGHPUT: Quantity(title="Aggregate throughput", direction=Direction.HIGHER, names=("aggregate_tok_s",)),
    ContractMetric.P95_LATENCY: Quantity(
        title="p95 latency of a request", direction=Direction.LOWER, names=("latency_s", "p95_latency_s")
    ),
    ContractMetric.ERROR_RATE: Quantity(title="Errors and out-of-memory", direction=Direction.LOWER, names=("error_rate",)),
    ContractMetric.MEMORY: Quantity(
        title="VRAM, or memory on a CPU", direction=Direction.LOWER, names=("vram_bytes", "memory_bytes")
    ),
    ContractMetric.POWER: Quantity(title="Power", direction=Direction.LOWER, names=("power_w",)),
    ContractMetric.QUALITY: Quantity(title="Task quality", direction=Direction.HIGHER, names=("task_quality",)),
}


class Measured(Model):
    """One side of one metric: its median (its 95th percentile for p95 latency) and where it comes from."""

    value: float
    unit: Annotated[str, Field(min_length=1)]
    samples: Annotated[int, Field(ge=1)]
    run: Annotated[str, Field(min_length=1)]
    arm: str = ""


class Compared(Model):
    """A candidate against a baseline, with the verdict and the range that it rests on.

    `low` and `high` are the smallest and the largest ratio candidate/baseline that the samples allow
    (differences on an absolute scale); they are absent where no range can be formed, and `reason` says why.
    """

    baseline: Measured
    candidate: Measured
    verdict: Verdict
    scale: Scale = Scale.RELATIVE
    low: float | None = None
    high: float | None = None
    more_runs: int | None = None
    reason: str = ""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if (self.low is None) != (self.high is None) or (
            self.low is not None and self.high is not None and self.low > self.high
        ):
            raise ValueError("low and high both or neither, and low not above high")
        return self


def _kind(entry: object) -> str:
    """Tell which kind of entry is meant, so that a wrong one is told as that and not as each of the three."""
    if isinstance(entry, BaseModel):
        return type(entry).__name__
    fields = entry if isinstance(entry, dict) else {}
    if "missing" in fields:
        return Missing.__name__
    return Compared.__name__ if {"verdict", "baseline", "candidate"} & fields.keys() else Measured.__name__


Entry = Annotated[
    Annotated[Measured, Tag("Measured")] | Annotated[Compared, Tag("Compared")] | Annotated[Missing, Tag("Missing")],
    Discriminator(_kind),
]
Contract = dict[ContractMetric, Entry]

CHANGES_A_SETTING = frozenset({Decision.ENABLE, Decision.TUNE})
_CARRIES = frozenset({Verdict.BETTER, Verdict.SAME})
# What a reviewer acknowledges where a setting changes and no run holds both sides.
UNCOMPARED = "comparison"


def comparisons(contract: Contract) -> tuple[Compared, ...]:
    """Give the entries that hold a candidate against a baseline."""
    return tuple(entry for entry in contract.values() if isinstance(entry, Compared))


def unsettled(contract: Contract) -> dict[ContractMetric, str]:
    """Say for each metric that does not carry a change of a setting why not; a metric without an entry has a gap instead."""
    found: dict[ContractMetric, str] = {}
    for metric in ContractMetric:
        entry = contract.get(metric)
        if isinstance(entry, Compared) and entry.verdict not in _CARRIES:
            found[metric] = entry.verdict.value
        elif isinstance(entry, Missing) and entry.missing is not MissingReason.NOT_APPLICABLE:
            found[metric] = f"missing ({f'{entry.missing}: {entry.detail}' if entry.detail else entry.missing})"
    return found


def standing(runs: Iterable[Run], gates: Gates) -> Contract:
    """Say for each contract metric what the runs hold of it, or why it is missing.

    The newest valid run that has samples speaks; one with arms compares its candidate with its baseline.
    """
    newest_first = sorted((run for run in runs if run.validity.valid), key=lambda run: (run.started_at, run.id), reverse=True)
    return {metric: _entry(metric, newest_first, gates) for metric in ContractMetric}


def _entry(metric: ContractMetric, runs: list[Run], gates: Gates) -> Entry:
    missing: Missing | None = None
    for run in runs:
        for name in QUANTITIES[metric].names:
            baseline, candidate = _arm(run, name, "baseline"), _arm(run, name, "candidate")
            found = baseline or run.metric(name) or candidate
            if found is None:
                continue
            side, other = _side(metric, run, found), candidate and _side(metric, run, candidate)
            if isinstance(side, Missing):
                missing = missing or side
            elif baseline and candidate and isinstance(other, Measured):
                exact = metric is ContractMetric.QUALITY and all(one.repeats_exactly for one in sides_of(run) or ())
                return _compared(side, other, _barred(run, compare(baseline, candidate, gates, exact=exact)))
            else:
                return side
    detail = "no cited run measures it" if runs else "no valid run is cited"
    return missing or Missing(missing=MissingReason.NOT_MEASURED, detail=detail)


def _arm(run: Run, name: str, role: str) -> Metric | None:
    arm = next((arm.name for arm in run.arms if arm.role == role), None)
    return None if arm is None else run.metric(name, arm)


def _barred(run: Run, outcome: Comparison) -> Comparison:
    """Give no verdict on sides that differ in what must not differ."""
    both = sides_of(run)
    reason = likeness(*both).why_not if both else ""
    return replace(outcome, verdict=Verdict.NOT_COMPARABLE, reason=reason, more_runs=None) if reason else outcome


def _compared(baseline: Measured, candidate: Measured, outcome: Comparison) -> Compared:
    return Compared(
        baseline=baseline,
        candidate=candidate,
        verdict=outcome.verdict,
        scale=outcome.gate.scale,
        low=None if outcome.low is None else _readable(outcome.low),
        high=None if outcome.high is None else _readable(outcome.high),
        more_runs=outcome.more_runs,
        reason=outcome.reason,
    )


def _side(metric: ContractMetric, run: Run, found: Metric) -> Measured | Missing:
    if found.missing is not None:
        return found.missing
    value = statistics.median(found.samples)
    # A run may hold the requests themselves or the p95 that its tool made of them.
    if metric is ContractMetric.P95_LATENCY and found.name == "latency_s":
        if found.per is not Per.REQUEST or len(found.samples) < FEWEST_FOR_P95:
            detail = f"{len(found.samples)} of the {FEWEST_FOR_P95} requests that a p95 needs"
            return Missing(missing=MissingReason.TOO_FEW_SAMPLES, detail=detail)
        value = percentile(found.samples, 0.95)
    return Measured(value=_readable(value), unit=found.unit or "1", samples=len(found.samples), run=run.id, arm=found.arm)


def _readable(value: float) -> float:
    """Round to six digits: more than any of these instruments resolves, and few enough to read."""
    return float(f"{value:.6g}")
