"""The legal moves of a record, as new texts of the files concerned; what people wrote stays byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from gen.records.record import LEGAL_MOVES, Move, Record
from gen.records.text import parse_record, render_field
from gen.words import Status
from probes import strictyaml
from probes.errors import InputError, Problem, UsageError

_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*\r?$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class RecordFile:
    """A record with the file and the text it was read from, byte order mark and line ends included."""

    path: Path
    record: Record
    text: str


def accept(target: RecordFile, replaced: Iterable[RecordFile], move: Move) -> dict[str, str]:
    """Accept a record in place of others and link both sides.

    Gives the new text of each file by record name, the replaced ones first: where writing stops
    half-way, no two records are in force, and accepting again finishes the work.

    Raises:
        UsageError: the move is not a legal one.
    """
    others = sorted(replaced, key=lambda file: file.record.name)
    names = dict.fromkeys([*target.record.supersedes, *(file.record.name for file in others)])
    people = dict.fromkeys([*target.record.decision_makers, move.by])
    texts = {
        file.record.name: _superseded(file, target.record.name, move)
        for file in others
        if file.record.status is not Status.SUPERSEDED
    }
    texts[target.record.name] = _moved(target, move, decision_makers=tuple(people), supersedes=tuple(names))
    return texts


def close(target: RecordFile, move: Move) -> dict[str, str]:
    """Reject or deprecate a record.

    Raises:
        UsageError: the move is not a legal one.
    """
    return {target.record.name: _moved(target, move)}


def supersede(old: RecordFile, new: RecordFile, move: Move) -> dict[str, str]:
    """Link a record that is in force to the accepted record that takes its place.

    Raises:
        UsageError: the move is not a legal one, or the new record is not accepted.
    """
    if new.record.status is not Status.ACCEPTED:
        raise UsageError(f"{new.record.name} is {new.record.status.value}; only an accepted record takes another's place")
    if (old.record.technique, old.record.scope) != (
        new.record.technique,
        new.record.scope,
    ) or old.record.name == new.record.name:
        raise UsageError(f"{new.record.name} is not another record of the same technique and scope as {old.record.name}")
    links = tuple(dict.fromkeys([*new.record.supersedes, old.record.name]))
    return {
        old.record.name: _superseded(old, new.record.name, move),
        new.record.name: _edited(new, new.record.model_copy(update={"supersedes": links})),
    }


def _superseded(file: RecordFile, by_record: str, move: Move) -> str:
    step = move.model_copy(update={"status": Status.SUPERSEDED, "why": ""})
    return _moved(file, step, superseded_by=by_record)


def _moved(file: RecordFile, move: Move, **fields: object) -> str:
    record = file.record
    if move.status not in LEGAL_MOVES[record.status]:
        legal = ", ".join(sorted(status.value for status in LEGAL_MOVES[record.status])) or "nothing"
        raise UsageError(f"{record.name} is {record.status.value} and can become {legal}, not {move.status.value}")
    if (record.history and move.on < record.history[-1].on) or move.on < record.date:
        newest = max([record.date, *(step.on for step in record.history)])
        raise UsageError(f"{record.name} cannot be {move.status.value} on {move.on}: its newest date is {newest}")
    return _edited(file, record.model_copy(update={"status": move.status, "history": (*record.history, move), **fields}))


def _edited(file: RecordFile, wanted: Record) -> str:
    """Rewrite the fields that differ, and read the result again: an edit that did not take is an error."""
    place = f"{wanted.name}.md"
    wanted = wanted.model_copy(update={"untouched": False})
    before, after = _fields(file.record), _fields(wanted)
    changes = {key: value for key, value in after.items() if before[key] != value}
    text = _with_fields(file.text, changes, place)
    try:
        took = parse_record(wanted.name, text, place) == wanted
    except InputError as exc:
        raise InputError([_by_hand(place, changes)]) from exc
    if not took:
        raise InputError([_by_hand(place, changes)])
    return text


def _fields(record: Record) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = json.loads(record.front_matter().model_dump_json(by_alias=True))
    return document


def _with_fields(text: str, changes: Mapping[str, JsonValue], place: str) -> str:
    head = _HEAD.match(text)
    if head is None:
        raise InputError([_by_hand(place, changes)])
    yaml, line_end = head["yaml"], "\r\n" if "\r\n" in head[0] else "\n"
    spans = strictyaml.spans(yaml)
    for key in sorted(changes, key=lambda key: spans.get(key, (len(yaml), 0)), reverse=True):
        line = render_field(key, changes[key]).rstrip("\n").replace("\n", line_end)
        start, end = spans.get(key, (len(yaml), len(yaml)))
        yaml = yaml[:start] + line + (yaml[end:] if key in spans else line_end + yaml[end:])
    return text[: head.start("yaml")] + yaml + text[head.end("yaml") :]


def _by_hand(place: str, changes: Mapping[str, JsonValue]) -> Problem:
    wanted = "; ".join(render_field(key, value).strip() for key, value in changes.items())
    return Problem(place=place, found="has a front matter that cannot be edited safely", expected=f"by hand: {wanted}")
