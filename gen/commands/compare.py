"""The command that judges: one run with two sides, or two runs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from gen.commands.call import Call, Outcome
from gen.comparability import Difference
from gen.comparison_text import bounds, counts, gate_words, noise_words, ratio, why
from gen.contract import QUANTITIES
from gen.corpus import Corpus, read_corpus
from gen.judgement import Judgement, judge_run, judge_runs
from gen.markdown import visible
from gen.noise import Noise
from gen.spread import Spread, quantity
from gen.verdict import Comparison
from gen.words import Verdict
from probes.archive import read_run
from probes.errors import UsageError
from probes.evidence import Run
from probes.fleet import Gates


def compare_runs(call: Call) -> Outcome:
    """Judge a candidate against a baseline over the whole measurement contract."""
    words: list[str] = call.arguments.runs
    if len(words) > 2:
        raise UsageError(f"{words[2]}: is a third run; expected one with two sides, or baseline and candidate")
    corpus = read_corpus(call.root)
    runs = [find_run(corpus, word) for word in words]
    gates, changes = corpus.fleet.policies.gates, call.arguments.changes
    one = judge_run(runs[0], gates, changes) if len(runs) == 1 else judge_runs(runs[0], runs[1], gates, changes)
    if call.arguments.json:
        return Outcome(shown=(json.dumps(document(one), indent=1, ensure_ascii=False),))
    return Outcome(shown=(contract_table(one), *map(visible, lines(one, gates))))


def find_run(corpus: Corpus, word: str) -> Run:
    """Find a run by its id, or read the evidence file that a path names.

    Raises:
        UsageError: there is none.
        InputError: the file is damaged.
    """
    known = {run.id: run for run in corpus.local_runs + corpus.runs}
    if word in known:
        return known[word]
    path = Path(word)
    if path.suffix == ".json" and path.is_file():
        return read_run(path, path.name)
    close = difflib.get_close_matches(word, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise UsageError(f"{word}: is no run of this checkout and no evidence file{hint}")


def contract_table(one: Judgement) -> Table:
    """Lay the contract out, a row per quantity."""
    table = Table(title=Text("Measurement contract"), title_justify="left", expand=False)
    for column in ("Quantity", "Baseline", "Candidate", "n", "Ratio", "Verdict", "Why"):
        table.add_column(column, overflow="fold")
    titled = [(QUANTITIES[metric].title, row) for metric, row in one.rows.items()]
    for title, row in (*titled, *((row.metric, row) for row in one.further)):
        sides = (side(row.baseline, row.unit), side(row.candidate, row.unit), sizes(row))
        cells = (title, *sides, ratio(row) or "-", row.verdict.value, why(row))
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def lines(one: Judgement, gates: Gates) -> Iterator[str]:
    """Say what was compared, what that comes to, and what it takes to settle the rest."""
    yield f"Baseline   {one.baseline.label}"
    yield f"Candidate  {one.candidate.label}"
    alike = one.likeness
    for difference in alike.under_test:
        yield f"Under test {difference}"
    for difference in alike.apart:
        yield f"Differs    {difference}"
    if alike.apart:
        names = " ".join(f"--changes {difference.name}" for difference in alike.apart)
        yield f"Not comparable: only what is under test may differ. Where that was meant: {names}"
    if alike.unknown:
        yield f"Not known of both sides, and so not compared: {', '.join(alike.unknown)}"
    if not one.interleaved:
        yield "The sides were measured one after the other: a drift of the machine between them counts as a difference"
    if alike.same_thing:
        yield "Nothing is known to differ: what follows is noise"
        for metric, noise in one.noise.items():
            moves, takes = noise_words(noise, one.rows[metric].unit)
            yield f"  {QUANTITIES[metric].title}: {moves}; a verdict takes {takes}"
    yield f"Gates: {gate_words(gates)}"
    yield f"Verdict: {one.verdict.value} ({counts(one)})"
    if one.verdict is Verdict.INCONCLUSIVE:
        more = one.more_runs
        yield (
            f"About {more} more repetitions a side would settle it"
            if more
            else "No affordable number of repetitions would settle all of it at this noise"
        )


def side(spread: Spread | None, unit: str) -> str:
    """Write one side as median and 95 % interval."""
    if spread is None:
        return "-"
    interval = bounds(spread, unit)
    return f"{quantity(spread.median, unit)} ({interval})" if interval else quantity(spread.median, unit)


def sizes(row: Comparison) -> str:
    """Write how many repetitions each side has, once where they have as many."""
    found = [str(one.n) for one in (row.baseline, row.candidate) if one is not None]
    return " and ".join(dict.fromkeys(found)) or "-"


def document(one: Judgement) -> dict[str, JsonValue]:
    """Give everything for a program; numbers that are not there are null and have a reason."""
    alike = one.likeness
    return {
        "baseline": {"run": one.baseline.run.id, "arm": one.baseline.arm.name if one.baseline.arm else None},
        "candidate": {"run": one.candidate.run.id, "arm": one.candidate.arm.name if one.candidate.arm else None},
        "interleaved": one.interleaved,
        "verdict": one.verdict.value,
        "more_runs": one.more_runs,
        "under_test": [_difference(each) for each in alike.under_test],
        "apart": [_difference(each) for each in alike.apart],
        "unknown": list(alike.unknown),
        "noise": alike.same_thing,
        "contract": {metric.value: _row(row, one.noise.get(metric)) for metric, row in one.rows.items()},
        "further": {row.metric: _row(row, None) for row in one.further},
    }


def _difference(each: Difference) -> JsonValue:
    return {"name": each.name, "baseline": each.baseline, "candidate": each.candidate}


def _row(row: Comparison, noise: Noise | None) -> JsonValue:
    return {
        "metric": row.metric,
        "unit": row.unit,
        "verdict": row.verdict.value,
        "reason": row.reason,
        "gate": {"scale": row.gate.scale.value, "width": row.gate.width},
        "baseline": _spread(row.baseline),
        "candidate": _spread(row.candidate),
        "low": row.low,
        "high": row.high,
        "more_runs": row.more_runs,
        "noise": None if noise is None else {"share": noise.share, "detectable": noise.detectable},
    }


def _spread(one: Spread | None) -> JsonValue:
    return None if one is None else {"median": one.median, "low": one.low, "high": one.high, "n": one.n}
