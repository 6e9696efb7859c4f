"""Baseline against candidate over the whole measurement contract: a verdict per quantity, and one for all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from gen.comparability import Likeness, Side, likeness, sides_of
from gen.contract import QUANTITIES, ContractMetric
from gen.noise import Noise, noise_of
from gen.verdict import Comparison, compare, overall
from gen.words import Verdict
from probes.errors import UsageError
from probes.evidence import Metric, Missing, MissingReason, Per, Run
from probes.fleet import Gates

# A gain that brings one of these back is a regression, whatever the tokens per second say.
VETOES = ("oom_rate", "stalled_streams", "device_resets", "attempts_per_request")
_SETTLED = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.SAME, Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE})


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Everything that a comparison says. `further` are quantities that veto a gain; those without samples are left out.

    `interleaved` tells whether both sides were measured by turns; without it a drift of the machine counts as a difference.
    """

    baseline: Side
    candidate: Side
    likeness: Likeness
    rows: Mapping[ContractMetric, Comparison]
    further: tuple[Comparison, ...]
    interleaved: bool

    @property
    def verdict(self) -> Verdict:
        """Sum up what was measured; what is missing with a reason is told beside it and decides nothing."""
        return overall([one for one in (*self.rows.values(), *self.further) if one.verdict in _SETTLED])

    @property
    def vetoes(self) -> tuple[Comparison, ...]:
        """Give what got worse and undoes any gain: failures, hangs, storms of retries, poor answers."""
        ruling = (self.rows[ContractMetric.ERROR_RATE], self.rows[ContractMetric.QUALITY], *self.further)
        return tuple(row for row in ruling if row.verdict is Verdict.WORSE)

    @property
    def noise(self) -> Mapping[ContractMetric, Noise]:
        """Say how much each quantity moves by itself, and what this many repetitions can tell apart."""
        found = {metric: noise_of(row) for metric, row in self.rows.items()}
        return {metric: one for metric, one in found.items() if one is not None}

    @property
    def more_runs(self) -> int | None:
        """Estimate how many further repetitions a side would settle everything that is open; None when none would."""
        open_rows = [row for row in self.rows.values() if row.verdict is Verdict.INCONCLUSIVE]
        estimates = [row.more_runs for row in open_rows if row.more_runs is not None]
        return max(estimates) if estimates and len(estimates) == len(open_rows) else None


def judge_run(run: Run, gates: Gates, changes: Collection[str] = ()) -> Judgement:
    """Judge the two sides of one run.

    Raises:
        UsageError: the run is invalid or has no two sides.
    """
    usable(run)
    both = sides_of(run)
    if both is None:
        raise UsageError(f"{run.id}: holds one side; expected a run with baseline and candidate, or a second run")
    return judge(*both, gates, changes, interleaved=True)


def judge_runs(baseline: Run, candidate: Run, gates: Gates, changes: Collection[str] = ()) -> Judgement:
    """Judge two runs of one side each.

    Raises:
        UsageError: one of them is invalid, or holds two sides itself.
    """
    for run in (baseline, candidate):
        usable(run)
        if run.arms:
            raise UsageError(f"{run.id}: holds {len(run.arms)} sides itself; expected it alone, or two runs of one side each")
    if baseline.id == candidate.id:
        raise UsageError(f"{baseline.id}: is both baseline and candidate; expected two runs")
    return judge(Side(run=baseline), Side(run=candidate), gates, changes, interleaved=False)


def judge(baseline: Side, candidate: Side, gates: Gates, changes: Collection[str] = (), *, interleaved: bool) -> Judgement:
    """Hold two sides against each other, quantity by quantity; sides that must not be compared get no verdict."""
    alike = likeness(baseline, candidate, changes)
    rows = {metric: _barred(_row(metric, baseline, candidate, gates), alike) for metric in ContractMetric}
    return Judgement(
        baseline=baseline,
        candidate=candidate,
        likeness=alike,
        rows=rows,
        further=tuple(_barred(one, alike) for one in _further(baseline, candidate, gates)),
        interleaved=interleaved,
    )


def usable(run: Run) -> None:
    """Refuse a run that must not be judged by.

    Raises:
        UsageError: it is invalid; with its reasons.
    """
    if not run.validity.valid:
        raise UsageError(f"{run.id}: is invalid ({'; '.join(run.validity.reasons)}); expected a run that may be used")


def _row(metric: ContractMetric, baseline: Side, candidate: Side, gates: Gates) -> Comparison:
    """Compare under the first name that both sides have samples of, else under the first that either knows."""
    names = QUANTITIES[metric].names
    pairs = [(baseline.metric(name), candidate.metric(name)) for name in names]
    known = [pair for pair in pairs if any(one is not None for one in pair)]
    both = [pair for pair in known if all(one is not None and one.samples for one in pair)]
    if known:
        # The last name says why there is nothing at all: there is no VRAM, and nobody read the memory.
        if metric is ContractMetric.QUALITY:
            return _quality(*(both[0] if both else known[-1]), baseline, candidate, gates)
        return compare(*(both[0] if both else known[-1]), gates)
    none = Missing(missing=MissingReason.NOT_MEASURED, detail="it is no part of this run")
    nobody = Metric(name=names[0], unit="1", direction=QUANTITIES[metric].direction, per=Per.RUN, missing=none)
    return compare(nobody, nobody, gates)


def _quality(one: Metric | None, two: Metric | None, baseline: Side, candidate: Side, gates: Gates) -> Comparison:
    """Answers that repeat word for word have no noise; scores of different tasks are different quantities."""
    found = compare(one, two, gates, exact=baseline.repeats_exactly and candidate.repeats_exactly)
    tasks = {side.quality_tasks for side in (baseline, candidate)} - {None}
    if len(tasks) > 1 and found.verdict is not Verdict.NOT_MEASURED:
        return replace(found, verdict=Verdict.NOT_COMPARABLE, reason="the sides were scored on different tasks", more_runs=None)
    return found


def _further(baseline: Side, candidate: Side, gates: Gates) -> Iterator[Comparison]:
    for name in VETOES:
        one, two = baseline.metric(name), candidate.metric(name)
        if one is not None and two is not None and one.samples and two.samples:
            yield compare(one, two, gates)


def _barred(one: Comparison, alike: Likeness) -> Comparison:
    if not alike.apart or one.verdict is Verdict.NOT_MEASURED:
        return one
    return replace(one, verdict=Verdict.NOT_COMPARABLE, reason=alike.why_not, more_runs=None)
