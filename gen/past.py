"""Which records held on each day on which that changed; only what records carry speaks, never today's rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date

from gen.records import Record, status_on
from gen.view import FLEET, LOCAL
from gen.words import Status
from probes.evidence import Technique

_Place = tuple[Technique, str]


@dataclass(frozen=True, kw_only=True)
class Held:
    """One row of the matrix on a day: the record in force, the day it came into force, and the drafts beside it."""

    technique: Technique
    record: Record | None = None
    since: date | None = None
    proposals: tuple[Record, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step:
    """What became of a record on a day; `by` is empty where its history does not say."""

    record: Record
    status: Status
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day on which the matrix changed: what led there, and every row by scope as the day ended.

    The fleet is always there, a machine while a record of its own is in force.
    """

    on: date
    steps: tuple[Step, ...]
    rows: Mapping[str, tuple[Held, ...]]


def days(records: Iterable[Record], until: date) -> tuple[Day, ...]:
    """Replay the records up to a day, oldest first, in time that grows with their number alone.

    A day counts when a record comes into force or goes out of it, or when the drafts beside a row of the fleet change.
    Drafts of a measured machine change no chip, so they make no day.
    """
    turns: dict[date, list[tuple[Record, Status]]] = {}
    for record in records:
        if record.technique is not None and (record.scope == FLEET or record.scope.startswith(LOCAL)):
            for day, status in _turns(record):
                turns.setdefault(day, []).append((record, status))
    return tuple(_replayed(turns, until))


@dataclass(kw_only=True)
class _Shelf:
    """The records of one row by name, as far as the replay has come."""

    holding: dict[str, Record] = field(default_factory=dict)
    waiting: dict[str, Record] = field(default_factory=dict)
    shown: Held

    def turn(self, record: Record, status: Status) -> None:
        for some, wanted in ((self.holding, Status.ACCEPTED), (self.waiting, Status.PROPOSED)):
            if status is wanted:
                some[record.name] = record
            else:
                some.pop(record.name, None)

    def held(self, day: date) -> Held:
        """Give the row as it stands now: of two records that claim it, the newest; drafts oldest first."""
        record = max(self.holding.values(), key=_age, default=None)
        kept = record is not None and self.shown.record is not None and record.name == self.shown.record.name
        since = None if record is None else self.shown.since if kept else day
        proposals = tuple(sorted(self.waiting.values(), key=_age))
        return Held(technique=self.shown.technique, record=record, since=since, proposals=proposals)


def _age(record: Record) -> tuple[date, str]:
    return record.date, record.name


def _row(record: Record) -> tuple[bool, str, int]:
    """Sort as the matrices do: the fleet, then each machine, and the techniques in their order."""
    place = list(Technique).index(record.technique) if record.technique else -1
    return record.scope != FLEET, record.scope, place


def _turns(record: Record) -> Iterator[tuple[date, Status]]:
    """Give each day on which a record's status became another one."""
    before = None
    for day in sorted({record.date, *(move.on for move in record.history if move.on > record.date)}):
        status = status_on(record, day)
        if status is not None and status is not before:
            yield day, status
        before = status


def _replayed(turns: Mapping[date, list[tuple[Record, Status]]], until: date) -> Iterator[Day]:
    shelves: dict[_Place, _Shelf] = {}
    for day in sorted(day for day in turns if day <= until):
        touched: dict[_Place, _Shelf] = {}
        for record, status in turns[day]:
            if record.technique is not None:
                place = (record.technique, record.scope)
                touched[place] = shelves.setdefault(place, _Shelf(shown=Held(technique=record.technique)))
                touched[place].turn(record, status)
        changed = False
        for (_, scope), shelf in touched.items():
            before, shelf.shown = shelf.shown, shelf.held(day)
            changed |= before.record is not shelf.shown.record
            changed |= scope == FLEET and before.proposals != shelf.shown.proposals
        if changed:
            in_order = sorted((record for record, _ in turns[day]), key=_row)
            steps = tuple(step for record in in_order for step in _steps(record, day))
            yield Day(on=day, steps=steps, rows=_rows(shelves))


def _steps(record: Record, day: date) -> Iterator[Step]:
    """Tell what happened to a record on a day; being written goes without saying where more happened."""
    moved = [Step(record=record, status=move.status, by=move.by) for move in record.history if move.on == day]
    if not moved and record.date == day:
        moved = [Step(record=record, status=Status.PROPOSED if record.history else record.status)]
    yield from moved


def _rows(shelves: Mapping[_Place, _Shelf]) -> Mapping[str, tuple[Held, ...]]:
    machines = sorted({scope for (_, scope), shelf in shelves.items() if scope != FLEET and shelf.shown.record is not None})
    return {
        scope: tuple(
            shelves[technique, scope].shown if (technique, scope) in shelves else Held(technique=technique)
            for technique in Technique
        )
        for scope in (FLEET, *machines)
    }
