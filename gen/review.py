"""What a change does, for whoever reviews it: cells, records, evidence and findings of a checkout against its base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from gen.assess import assess, scopes
from gen.assessment import Assessment
from gen.check import check
from gen.configuration import of_record, together, told
from gen.contract import CHANGES_A_SETTING
from gen.corpus import Corpus
from gen.findings import Finding
from gen.moves import Move, moves
from gen.records import Record
from gen.records.record import LEGAL_MOVES, FrontMatter
from gen.words import Status
from probes.evidence import Run, Technique

WHOLE = "the whole scope"
# What commands change when they move a record; anything else was changed by hand or drafted anew.
_MOVED_BY_COMMANDS = frozenset({"status", "history", "supersedes", "superseded_by", "decision_makers"})


@dataclass(frozen=True, kw_only=True)
class CellMove:
    """One cell of the matrix, or a whole row of it, that reads otherwise; '' on the side where it was not there."""

    scope: str
    technique: Technique
    service: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class RowMove:
    """Everything that moved in one row, facts and prices included."""

    scope: str
    technique: Technique
    moves: tuple[Move, ...]


@dataclass(frozen=True, kw_only=True)
class RecordChange:
    """A record that was added, changed or taken away; one of both sides is None where it was not there."""

    name: str
    before: Record | None
    after: Record | None

    @property
    def fields(self) -> tuple[str, ...]:
        """Name what differs besides what a move of the record changes by itself."""
        if self.before is None or self.after is None:
            return ()
        names = [*(name for name in FrontMatter.model_fields if name not in _MOVED_BY_COMMANDS), "body", "assessment"]
        return tuple(name.replace("_", "-") for name in names if getattr(self.before, name) != getattr(self.after, name))

    @property
    def fault(self) -> str:
        """Say why the status cannot have come about by legal moves; '' when it can."""
        if self.after is None:
            return "records are superseded or deprecated, never taken away"
        known = self.before.history if self.before is not None else ()
        if self.after.history[: len(known)] != known:
            return "its history was rewritten"
        status = self.before.status if self.before is not None else Status.PROPOSED
        for move in self.after.history[len(known) :]:
            if move.status not in LEGAL_MOVES[status]:
                return f"{status.value} cannot become {move.status.value}"
            status = move.status
        if status is not self.after.status:
            return f"no move leads from {status.value} to {self.after.status.value}"
        closed = self.before is not None and self.before.status is not Status.PROPOSED
        return (
            "what was decided has been rewritten" if closed and {"decision", "evidence", "assessment"} & {*self.fields} else ""
        )


@dataclass(frozen=True, kw_only=True)
class Review:
    """A checkout against its base, on one day. `settings` are what each new record would change on which service."""

    today: date
    cells: tuple[CellMove, ...]
    rows: tuple[RowMove, ...]
    records: tuple[RecordChange, ...]
    settings: Mapping[str, tuple[str, ...]]
    added_runs: tuple[Run, ...]
    lost_runs: tuple[Run, ...]
    altered_runs: tuple[Run, ...]
    new: tuple[Finding, ...]
    fixed: tuple[Finding, ...]


def review(before: Corpus, after: Corpus, today: date) -> Review:
    """Compare what a pull request would merge with what it would be merged into.

    Only what is committed counts: files that git ignores are no part of a change. Both sides are judged on the
    same day, so that nothing moves by the calendar alone.
    """
    before, after = _committed(before), _committed(after)
    rows = tuple(_rows(before, after, today))
    old_runs, new_runs = ({run.id: run for run in side.runs} for side in (before, after))
    was, now = check(before, today), check(after, today)
    changed = tuple(_records(before.records, after.records))
    return Review(
        today=today,
        cells=tuple(cell for one, two in rows for cell in _cells(one, two)),
        rows=tuple(
            RowMove(scope=two.scope, technique=two.technique, moves=found)
            for one, two in rows
            if one is not None and two is not None and (found := moves(one, two))
        ),
        records=changed,
        settings={
            one.name: tuple(f"{each.service}: {line}" for each in together(of_record(after, one.after)) for line in told(each))
            for one in changed
            if one.before is None and one.after is not None and one.after.decision in CHANGES_A_SETTING
        },
        added_runs=tuple(run for name, run in new_runs.items() if name not in old_runs),
        lost_runs=tuple(run for name, run in old_runs.items() if name not in new_runs),
        altered_runs=tuple(
            run for name, run in new_runs.items() if name in old_runs and run.content_sha256 != old_runs[name].content_sha256
        ),
        new=tuple(finding for finding in now if finding not in was),
        fixed=tuple(finding for finding in was if finding not in now),
    )


def _committed(corpus: Corpus) -> Corpus:
    return replace(
        corpus,
        local_runs=(),
        local_records=(),
        problems=tuple(problem for problem in corpus.problems if not problem.place.startswith("adr/local")),
    )


def _rows(before: Corpus, after: Corpus, today: date) -> Iterator[tuple[Assessment | None, Assessment | None]]:
    for scope in dict.fromkeys((*scopes(after), *scopes(before))):
        old, new = (
            {one.technique: one for one in assess(side, scope, today)} if scope in scopes(side) else {}
            for side in (before, after)
        )
        for technique in Technique:
            if technique in old or technique in new:
                yield old.get(technique), new.get(technique)


def _cells(before: Assessment | None, after: Assessment | None) -> Iterator[CellMove]:
    known = after or before
    if known is None:
        return
    old, new = (
        {} if one is None else {WHOLE: f"{one.state.value}, {one.decision.value}"}
        | {cell.service: f"{cell.state.value}, {cell.decision.value}" for cell in one.cells}
        for one in (before, after)
    )  # fmt: skip
    for service in dict.fromkeys((*new, *old)):
        if old.get(service) != new.get(service):
            yield CellMove(
                scope=known.scope,
                technique=known.technique,
                service=service,
                before=old.get(service, ""),
                after=new.get(service, ""),
            )


def _records(before: Sequence[Record], after: Sequence[Record]) -> Iterator[RecordChange]:
    old, new = ({record.name: record for record in side} for side in (before, after))
    for name in sorted({*old, *new}):
        if _said(old.get(name)) != _said(new.get(name)):
            yield RecordChange(name=name, before=old.get(name), after=new.get(name))


def _said(record: Record | None) -> Record | None:
    """Leave out whether a draft is still word for word the generator's: that is no content."""
    return None if record is None else record.model_copy(update={"untouched": False})
