"""Time travel: the matrix as it stood at the end of each day on which it changed, in the words of the records themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby

from gen import paths
from gen.markdown import NOTHING, Markdown, bullets, heading, line, link, paragraphs, sentence, span, text
from gen.moves import gist
from gen.pages.atlas import Atlas, scope_anchor
from gen.pages.marks import chip
from gen.pages.page import Page
from gen.past import Day, Held, Step
from gen.reason import reason
from gen.records import Record
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Status
from probes.evidence import Technique

INDEX = "as-of/index.md"
SHOWN = 2
_Written = dict[tuple[str, Technique], tuple[Held, tuple[Markdown, ...]]]


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per day."""
    every = tuple(atlas.past.values())
    yield _index(atlas, every)
    # All these pages lie in one folder, so a row that stands as it stood is written once.
    written: _Written = {}
    for before, day, after in zip((None, *every), every, (*every[1:], None), strict=False):
        yield _page(atlas, before, day, after, written)


def place(day: date) -> str:
    """Address the page of a day: by the day itself, so that the address holds whatever is decided later."""
    return f"as-of/{day.isoformat()}.md"


def day_link(day: date, here: str) -> Markdown:
    """Link to the matrix as of a day."""
    return link(text(day.isoformat()), paths.relative(place(day), here))


def earlier(atlas: Atlas, here: str) -> Markdown:
    """Lead from the matrix of today to its earlier states, the latest first."""
    latest = list(atlas.past)[: -SHOWN - 1 : -1]
    every = link(text("all days" if latest else "none yet"), paths.relative(INDEX, here))
    return line(text("as of:"), line(*(day_link(day, here) for day in latest), every, by=", "))


def _index(atlas: Atlas, every: Sequence[Day]) -> Page:
    intro = text(
        "A page for each day on which the matrix changed: a record came into force or went out of it, or a draft about the "
        "fleet was written or answered. Each shows what the records of that day say; the rules of today have no part in it."
    )
    body = [(day_link(day.on, INDEX), _told(atlas, day, INDEX)) for day in reversed(every)]
    shown = table(columns("Day", "What changed"), body, Layout.CARDS, "days", facets=()) if body else text("No record yet.")
    return Page(
        path=INDEX,
        title="The matrix as of a day",
        body=paragraphs(intro, shown),
        trail=(("Matrix", "index.md"), ("Records", "records/index.md")),
        contents=False,
    )


def _page(atlas: Atlas, before: Day | None, day: Day, after: Day | None, written: _Written) -> Page:
    here = place(day.on)
    parts: list[Markdown] = []
    for scope, rows in day.rows.items():
        earlier_rows = {held.technique: held for held in before.rows.get(scope, ())} if before else {}
        parts += [heading(2, atlas.scope_title(scope), scope_anchor(scope))] if len(day.rows) > 1 else []
        lines = [(*_row(atlas, scope, held, here, written), _changed(earlier_rows.get(held.technique), held)) for held in rows]
        last = f"Since {before.on.isoformat()}" if before else "Changed"
        head = columns("Technique", "State", "Decision", "Why", last)
        parts.append(table(head, lines, Layout.CARDS, "matrix brief past"))
    body = paragraphs(
        _turning(before, after, here),
        text("As the day ended, in the words of the records that were in force."),
        *parts,
        heading(2, text("What happened that day"), "steps"),
        bullets(_step(atlas, step, here) for step in day.steps),
    )
    return Page(
        path=here,
        title=f"The matrix as of {day.on.isoformat()}",
        body=body,
        trail=(("Matrix", "index.md"), ("As of a day", INDEX)),
        contents=False,
    )


def _turning(before: Day | None, after: Day | None, here: str) -> Markdown:
    """Lead a day back, a day on, and to the matrix of today."""
    back = line(text("←"), day_link(before.on, here)) if before else span(text("the first day"), "note")
    on = line(day_link(after.on, here), text("→")) if after else span(text("the latest day"), "note")
    return Markdown(span(line(back, on, link(text("today"), paths.relative("index.md", here)), by=" · "), "turning"))


def _row(atlas: Atlas, scope: str, held: Held, here: str, written: _Written) -> tuple[Markdown, ...]:
    known = written.get((scope, held.technique))
    if known is not None and known[0] is held:
        return known[1]
    cells = (_title(held.technique, here), _state(atlas, held, here), _decision(atlas, held, here), span(_why(held), "why"))
    written[scope, held.technique] = (held, cells)
    return cells


def _title(technique: Technique, here: str) -> Markdown:
    return link(
        text(TECHNIQUE_TITLES[technique]), paths.relative(f"techniques/{technique.value}.md#records", here), "technique"
    )


def _state(atlas: Atlas, held: Held, here: str) -> Markdown:
    if held.record is None:
        return span(text("no record in force"), "absent")
    if held.record.assessment is None:
        return span(text("not in the record"), "absent")
    return chip(held.record.assessment.state, _target(atlas, held.record, here))


def _decision(atlas: Atlas, held: Held, here: str) -> Markdown:
    parts: list[Markdown] = []
    if held.record is not None:
        parts += [chip(held.record.decision, _target(atlas, held.record, here))] if held.record.decision else []
        parts.append(span(line(text("record of"), atlas.record(here, held.record, text(held.record.date.isoformat()))), "note"))
        if held.since is not None and held.since != held.record.date:
            parts.append(span(text(f"in force since {held.since.isoformat()}"), "note"))
    for draft in held.proposals:
        other = draft.decision if held.record is None or draft.decision is not held.record.decision else None
        chips = [chip(other, _target(atlas, draft, here))] if other else []
        parts.append(span(line(*chips, atlas.record(here, draft, text(f"proposed {draft.date.isoformat()}"))), "proposed"))
    return line(*parts) if parts else span(text("none"), "absent")


def _target(atlas: Atlas, record: Record, here: str) -> str:
    return paths.relative(atlas.record_paths[record.name], here)


def _why(held: Held) -> Markdown:
    if held.record is None:
        return span(text("No record spoke of it."), "note")
    if held.record.assessment is None:
        return sentence(held.record.title)
    return sentence(reason(held.record.assessment))


def _changed(before: Held | None, now: Held) -> Markdown:
    """Say what became of a row since the day before: of its record, then of the drafts beside it."""
    before = before or Held(technique=now.technique)
    told: list[str] = []
    if now.record is None:
        told += ["no longer in force"] if before.record else []
    elif before.record is None:
        told.append("first record in force")
    elif before.record.name != now.record.name:
        old, new = before.record.assessment, now.record.assessment
        moved = gist(old, new) if old and new else ""
        told.append(f"new record: {moved}" if moved else "new record")
    known = {draft.name for draft in before.proposals}
    told += ["newly proposed"] if any(draft.name not in known for draft in now.proposals) else []
    return text("; ".join(told)) if told else span(text("as before"), "note")


def _step(atlas: Atlas, step: Step, here: str) -> Markdown:
    by = span(text(f"by {step.by}"), "note") if step.by else NOTHING
    return line(chip(step.status, _target(atlas, step.record, here)), atlas.record(here, step.record), by)


def _told(atlas: Atlas, day: Day, here: str) -> Markdown:
    """Name what happened on a day, alike things together."""
    order = list(Status)
    ordered = sorted(day.steps, key=lambda step: order.index(step.status))
    target = paths.relative(f"{place(day.on)}#steps", here)
    lines = [
        line(
            chip(status, target), line(*(atlas.record(here, step.record, _name(atlas, step.record)) for step in some), by=", ")
        )
        for status, some in groupby(ordered, key=lambda step: step.status)
    ]
    return line(*lines, by="<br>")


def _name(atlas: Atlas, record: Record) -> Markdown:
    title = TECHNIQUE_TITLES[record.technique] if record.technique else record.title
    return text(title) if record.scope == FLEET else text(f"{title} on {atlas.client_alias(record.scope)}")
