"""What a contract run proves, for a reviewer who believes nothing: its numbers, their noise, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gen.circumstances import circumstances
from gen.comparability import Side, sides_of
from gen.comparison_text import bounds, counts, gate_words, noise_words, ratio, why
from gen.contract import QUANTITIES
from gen.judgement import Judgement, judge_run
from gen.noise import Noise
from gen.prose import bullets, prose, table
from gen.spread import Spread, quantity, spread
from gen.techniques.wording import listing
from gen.verdict import ACROSS_THE_GATE, Comparison
from gen.words import Verdict
from probes.evidence import Run, RunKind
from probes.fleet import Gates

_FURTHER = {
    "oom_rate": "Out of memory",
    "stalled_streams": "Stalled streams",
    "device_resets": "Device resets",
    "attempts_per_request": "Attempts per request",
}
# Units that the title of a row has said already.
_COUNTED = frozenset({"requests", "resets", "attempts"})


@dataclass(frozen=True, kw_only=True)
class Proof:
    """How a run with two sides was made, what it comes to, and a table of what it measured and of its noise."""

    run: str
    conditions: str
    verdict: str
    numbers: str


def newest_proof(runs: Iterable[Run], gates: Gates) -> Proof | None:
    """Tell the newest valid contract run with two sides; None where there is none."""
    found = [run for run in runs if run.kind is RunKind.CONTRACT and run.validity.valid and sides_of(run) is not None]
    run = max(found, key=lambda run: (run.started_at, run.id), default=None)
    if run is None:
        return None
    judged = judge_run(run, gates)
    return Proof(
        run=run.id,
        conditions=bullets([*circumstances(run, judged)]),
        verdict=f"Over all: **{judged.verdict.value}** ({counts(judged)}).",
        numbers=_numbers(judged, gates),
    )


def _numbers(judged: Judgement, gates: Gates) -> str:
    """Write the table, under what all of its rows have in common, so that a row holds its numbers alone."""
    rounds = _commonest(judged)
    alone = [row for row in judged.further if row.verdict is not Verdict.SAME]
    noise = judged.noise
    rows = [_row(judged, QUANTITIES[metric].title, row, noise.get(metric), rounds) for metric, row in judged.rows.items()]
    rows += [_row(judged, _FURTHER.get(row.metric, row.metric), row, None, rounds) for row in alone]
    lead = [f"Median and 95 % interval{f' of {rounds} rounds a side' if rounds else ''}.", f"Gates: {gate_words(gates)}."]
    lead += ["*Candidate is* spans what the two intervals allow; *noise* is how far a side moves by itself."]
    same = [row for row in judged.further if row.verdict is Verdict.SAME]
    rest = f"\n\nThe same on both sides: {listing(map(_alike, same))}." if same else ""
    head = ("Metric", "Baseline", "Candidate", "Candidate is", "Verdict", "Noise", "A verdict takes")
    return f"{' '.join(lead)}\n\n{table(head, rows)}{rest}"


def _commonest(judged: Judgement) -> int:
    sizes = Counter(side.n for row in judged.rows.values() for side in (row.baseline, row.candidate) if side is not None)
    return sizes.most_common(1)[0][0] if sizes else 0


def _row(judged: Judgement, title: str, row: Comparison, own: Noise | None, rounds: int) -> tuple[str, ...]:
    moves, takes = ("", "") if own is None else noise_words(own, row.unit)
    return (
        prose(title),
        _side(judged.baseline, row, row.baseline, rounds),
        _side(judged.candidate, row, row.candidate, rounds),
        prose(ratio(row)) or "-",
        f"**{row.verdict.value}**" + (f": {prose(doubt)}" if (doubt := _doubt(row)) else ""),
        prose(moves.removesuffix(" of the median")) or "-",
        prose(takes.removeprefix("a change by ")) or "-",
    )


def _doubt(row: Comparison) -> str:
    """Say why there is no plainer verdict, but for what its word and the cells before it say already."""
    doubt = why(row)
    if row.verdict is Verdict.INCONCLUSIVE and row.reason == ACROSS_THE_GATE:
        return doubt.partition("; ")[2] or "no affordable number of repetitions would settle it"
    return doubt.partition(": ")[2] if row.verdict is Verdict.NOT_MEASURED and ": " in doubt else doubt


def _alike(row: Comparison) -> str:
    title = _FURTHER.get(row.metric, row.metric).casefold()
    if row.baseline is None:
        return prose(title)
    return prose(f"{title} {quantity(row.baseline.median, '' if row.unit in _COUNTED else row.unit)}")


def _side(side: Side, row: Comparison, found: Spread | None, rounds: int) -> str:
    metric = side.metric(row.metric)
    if found is None and metric is not None and metric.samples:
        found = spread(metric.samples, metric.per)
    if found is None:
        return "none" if metric is None or metric.missing is None else f"*{metric.missing.missing}*"
    interval = bounds(found, row.unit)
    aside: Sequence[str] = [
        *([interval if found.bounds_median else f"range {interval}"] if interval else []),
        *([f"n = {found.n}"] if found.n != rounds else []),
    ]
    return prose(quantity(found.median, row.unit)) + (f" ({', '.join(aside)})" if aside else "")
