"""The command that asks whether records still hold, and says what has to be measured to know."""

from __future__ import annotations

import json
import shlex

from rich.table import Table
from rich.text import Text

from gen.commands.call import EXIT_FINDINGS, EXIT_OK, Call, Outcome
from gen.confirmation import Confirmation, chosen, commands, confirm
from gen.corpus import read_corpus
from gen.findings import as_annotation
from gen.markdown import visible


def confirm_records(call: Call) -> Outcome:
    """Judge records by the newest evidence, or print what to measure; exit 1 when one no longer holds."""
    given = call.arguments
    corpus = read_corpus(call.root)
    records = chosen(corpus, given.records, call.today)
    notes = tuple(str(problem) for problem in corpus.problems)
    if given.plan:
        todo = commands(corpus, records)
        if given.json:
            return Outcome(shown=(json.dumps(todo),), notes=notes)
        nothing = "No record in force says how to confirm it."
        lines = [shlex.join(["python", "-m", "probes", *argv]) for argv in todo]
        return Outcome(shown=tuple(map(visible, lines)) or (nothing,), notes=notes)
    found = [confirm(corpus, record, call.today) for record in records]
    findings = [finding for one in found for finding in one.findings]
    code = EXIT_FINDINGS if findings else EXIT_OK
    if given.json:
        return Outcome(
            shown=(json.dumps([_document(one) for one in found], indent=1, ensure_ascii=False),), notes=notes, code=code
        )
    if given.github:
        return Outcome(shown=tuple(as_annotation(finding) for finding in findings), notes=notes, code=code)
    return Outcome(shown=(_table(found), *map(str, findings)), notes=notes, code=code)


def _table(found: list[Confirmation]) -> Table:
    table = Table(title=Text("Do the records still hold?"), title_justify="left", expand=False)
    for column in ("Record", "Outcome", "Measured again by", "Why"):
        table.add_column(column, overflow="fold")
    for one in found:
        runs = ", ".join(run.id for run in one.runs) or "-"
        cells = (one.record.name, one.outcome.value, runs, "; ".join(one.words) or "every gate holds")
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _document(one: Confirmation) -> dict[str, object]:
    return {
        "record": one.record.name,
        "outcome": one.outcome.value,
        "runs": [run.id for run in one.runs],
        "words": list(one.words),
    }
