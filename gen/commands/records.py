"""The commands that list, draft, move and carry records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from pydantic import JsonValue

from gen.acceptance import accepted
from gen.changes import Draft, propose
from gen.commands.call import Call, Outcome
from gen.configuration import WHERE, Configuration, by_hand, of_record, removal, together, told
from gen.corpus import Corpus, read_corpus
from gen.knowledge.spelling import Fragment
from gen.markdown import visible
from gen.promote import Moved, import_runs, promote
from gen.records import Record, parse_record, render_record, status_on
from gen.records.lifecycle import close, supersede
from gen.records.naming import titled_name
from gen.records.record import Move
from gen.records.shelf import Shelf, read_shelf
from gen.records.text import render_front_matter
from gen.view import FLEET
from gen.words import Status
from probes.archive import read_runs
from probes.errors import InputError, UsageError
from probes.files import write_atomic, write_new

_OUTLINE = """# {title}

## Context and problem statement

## Considered options

## Decision outcome

### Consequences
"""


def list_records(call: Call) -> Outcome:
    """Show every record that matches, oldest first; damaged ones are told on standard error."""
    corpus, wanted = read_corpus(call.root), call.arguments
    records = [
        record
        for record in sorted(corpus.records + corpus.local_records, key=lambda record: (record.date, record.name))
        if wanted.status in (None, record.status.value)
        and wanted.technique in (None, record.technique and record.technique.value)
        and wanted.scope in (None, record.scope)
    ]
    if wanted.json:
        documents = [json.loads(record.model_dump_json(by_alias=True)) for record in records]
        return Outcome.of_what_could_be_read((_json(documents),), corpus.problems)
    width = max((len(record.name) for record in records), default=0)
    lines = [f"{record.name:<{width}}  {record.status.value:<10}  {visible(record.title)}" for record in records]
    return Outcome.of_what_could_be_read(tuple(lines) or ("No record matches.",), corpus.problems)


def show(call: Call) -> Outcome:
    """Show one record without its generated block, or all of it as JSON."""
    record = read_shelf(call.root).find(call.arguments.name).record
    if call.arguments.json:
        return Outcome(shown=(_json(json.loads(record.model_dump_json(by_alias=True))),))
    text = f"---\n{render_front_matter(record.front_matter())}---\n\n{record.body}"
    return Outcome(shown=tuple(visible(line) for line in text.split("\n")))


def export(call: Call) -> Outcome:
    """Give every record as JSON, with the file it lies in and whether it holds today; damaged ones are told."""
    corpus = read_corpus(call.root)
    shared = {record.name for record in corpus.records}
    every = sorted(corpus.records + corpus.local_records, key=lambda record: (record.date, record.name))
    documents: list[JsonValue] = [
        {
            "place": f"{'adr' if record.name in shared else 'adr/local'}/{record.name}.md",
            "in_force": status_on(record, call.today) is Status.ACCEPTED,
            **json.loads(record.model_dump_json(by_alias=True)),
        }
        for record in every
    ]
    text = _json({"today": call.today.isoformat(), "records": documents})
    if call.arguments.out is None:
        return Outcome.of_what_could_be_read((text,), corpus.problems)
    path = Path(call.arguments.out)
    if path.suffix != ".json":
        # It is replaced when it is there: no record or inventory must go that way.
        raise UsageError(f"--out: is {call.arguments.out!r}; expected a file named *.json")
    write_atomic(path, f"{text}\n".encode())
    return Outcome.of_what_could_be_read((f"{call.arguments.out}: {len(every)} records",), corpus.problems)


def draft(call: Call) -> Outcome:
    """Draft a record for each assessment that moved; without --write only say which."""
    corpus = _sound(call.root)
    drafts = propose(corpus, call.today, call.arguments.scope)
    lines = []
    for one in drafts:
        since = f"moved since {one.before}" if one.before else "nothing in force yet"
        lines.append(f"{one.path}  ({one.technique.value}: {since})")
    if call.arguments.write:
        for one in drafts:
            write_atomic(call.root / one.path, one.text.encode())
    done = "drafted" if call.arguments.write else "to draft; --write writes them"
    return Outcome(shown=(*lines, f"{len(drafts)} record{'s' * (len(drafts) != 1)} {done}."))


def configure(call: Call) -> Outcome:
    """Show the exact change that a decision asks of each runtime, and the way back; nothing is changed."""
    record = read_shelf(call.root).find(call.arguments.name).record
    found = of_record(_sound(call.root), record)
    notes = () if record.status is Status.ACCEPTED else (f"{record.name} is {record.status.value}: nobody has decided it",)
    if call.arguments.json:
        return Outcome(shown=(_json([_configuration(one) for one in found]),), notes=notes)
    if not found:
        return Outcome(shown=(f"{record.name} changes no setting of a runtime whose grammar is known.",), notes=notes)
    lines = (f"# {WHERE}", *(line for one in together(found) for line in _configured(one)))
    return Outcome(shown=tuple(map(visible, lines)), notes=notes)


def _configured(one: Configuration) -> Iterator[str]:
    yield f"# {one.title}"
    yield from (f"#   {line}" for line in told(one))
    yield from (f"#   stands in {place}" for place in one.where)
    if remark := by_hand(one):
        yield f"#   {remark}"
    for lead, some in (("to carry it out", one.forth), ("the way back", one.back)):
        for fragment in some:
            yield f"# {fragment.place.value}: {lead}"
            yield from fragment.text.split("\n") if fragment.text else ()
            if remark := removal(fragment):
                yield f"#   {remark}"


def _configuration(one: Configuration) -> JsonValue:
    return {
        "service": one.service,
        "runtime": one.engine.value,
        "changes": [
            {"control": each.control, "before": each.before, "after": each.after, "why": each.why} for each in one.changes
        ],
        "forth": [_fragment(each) for each in one.forth],
        "back": [_fragment(each) for each in one.back],
        "by_hand": list(one.unspelled),
        "where": list(one.where),
    }


def _fragment(each: Fragment) -> JsonValue:
    return {"place": each.place.value, "text": each.text, "removed": list(each.removed)}


def new(call: Call) -> Outcome:
    """Start a record about the project itself; its words are for people to write."""
    corpus, title = _sound(call.root), call.arguments.title
    name = titled_name(call.today, title)
    if not title.strip() or title != " ".join(title.split()):
        raise UsageError(f"TITLE: is {title!r}; expected one line of words with one space between them")
    record = Record(
        name=name,
        title=title,
        status=Status.PROPOSED,
        date=call.today,
        scope="project",
        review_by=call.today + timedelta(days=corpus.fleet.policies.freshness.review_days),
        body=_OUTLINE.format(title=title),
    )
    write_new(call.root / "adr" / f"{name}.md", render_record(record).encode())
    return Outcome(shown=(f"adr/{name}.md",))


def accept_record(call: Call) -> Outcome:
    """Put a record in force, in place of the one that is."""
    shelf = read_shelf(call.root)
    name = shelf.find(call.arguments.name).record.name
    return _write(shelf, accepted(_sound(call.root), shelf.files, name, _move(call, Status.ACCEPTED)))


def reject(call: Call) -> Outcome:
    """Close a proposal with a reason."""
    shelf = read_shelf(call.root)
    return _write(shelf, close(shelf.find(call.arguments.name), _move(call, Status.REJECTED)))


def deprecate(call: Call) -> Outcome:
    """Take a record out of force without another in its place."""
    shelf = read_shelf(call.root)
    return _write(shelf, close(shelf.find(call.arguments.name), _move(call, Status.DEPRECATED)))


def supersede_record(call: Call) -> Outcome:
    """Link a record to the accepted one that takes its place."""
    shelf = read_shelf(call.root)
    old, successor = shelf.find(call.arguments.old), shelf.find(call.arguments.new)
    return _write(shelf, supersede(old, successor, _move(call, Status.SUPERSEDED)))


def promote_run(call: Call) -> Outcome:
    """Copy a local run with the drafts it completes, or a draft with its runs, to where a pull request can hold them.

    A run of the fleet moves what the fleet's records say only once it is there, so what it moves is drafted then.
    """
    before = _sound(call.root)
    moved = promote(call.root, call.arguments.name, before.local_records)
    drafts = _moved_by(before, _sound(call.root), call.today) if moved.copied else ()
    for one in drafts:
        write_atomic(call.root / one.path, one.text.encode())
    drafted = [f"drafted  {one.path}  (the run moves it)" for one in drafts]
    return _told(moved, drafted)


def _moved_by(before: Corpus, after: Corpus, today: date) -> tuple[Draft, ...]:
    """Give the drafts of the fleet that only what was promoted calls for."""
    waiting = {(one.name, one.text) for one in propose(before, today, FLEET)}
    return tuple(one for one in propose(after, today, FLEET) if (one.name, one.text) not in waiting)


def import_files(call: Call) -> Outcome:
    """Take evidence files that another host wrote, and say what a reviewer asks of each."""
    known = [run for folder in ("adr/evidence", "adr/local/evidence") for run in read_runs(call.root / folder)[0]]
    return _told(import_runs(call.root, [Path(name) for name in call.arguments.files], call.today, known))


def _sound(root: Path) -> Corpus:
    """Read the corpus; a file that cannot be read may hold the very record that matters."""
    corpus = read_corpus(root)
    if corpus.problems:
        raise InputError(corpus.problems)
    return corpus


def _move(call: Call, status: Status) -> Move:
    day: date = call.arguments.on or call.today
    if day > call.today:
        raise UsageError(f"--on: is {day}; expected a day up to today, {call.today}")
    for option in ("by", "why"):
        value = getattr(call.arguments, option)
        if value is not None and (not value.strip() or "\n" in value or "\r" in value):
            raise UsageError(f"--{option}: is {value!r}; expected one line of text")
    return Move(status=status, on=day, by=call.arguments.by, why=call.arguments.why or "")


def _write(shelf: Shelf, texts: Mapping[str, str]) -> Outcome:
    lines = []
    for name, text in texts.items():
        path = shelf.files[name].path
        changed = write_atomic(path, text.encode())
        status = parse_record(name, text, path.name).status.value
        lines.append(f"{name}: {status}" + ("" if changed else " (nothing to write)"))
    return Outcome(shown=tuple(lines))


def _json(document: JsonValue) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False)


def _told(moved: Moved, drafted: Sequence[str] = ()) -> Outcome:
    lines: Iterable[str] = (
        *(f"copied   {path}" for path in moved.copied),
        *(f"present  {path}" for path in moved.present),
        *drafted,
        *(f"left     {reason}" for reason in moved.left),
        *moved.remarks,
    )
    return Outcome(shown=tuple(visible(line) for line in lines))
