"""Decision records: their index, and each one with its links made to work inside the site."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from gen.configuration import CARRY_OUT, WHERE, by_hand, of_record, removal, together, told
from gen.manuscript import published
from gen.markdown import NOTHING, Markdown, bullets, code, fenced, heading, line, link, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas
from gen.pages.marks import chip, dated
from gen.pages.page import Page
from gen.records import Record
from gen.tables import Layout, columns, table
from gen.techniques.wording import capital
from gen.view import FLEET, LOCAL
from gen.words import TECHNIQUE_TITLES, Status
from probes.evidence import slug

INDEX = "records/index.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per record."""
    body = paragraphs(
        text("Every decision with its date, the evidence it rests on, and what it replaced."),
        record_table(atlas, atlas.records, INDEX),
    )
    yield Page(path=INDEX, title="Decision records", body=body, trail=(("Matrix", "index.md"),), contents=False)
    for record in atlas.records:
        yield _page(atlas, record)


def record_table(atlas: Atlas, records: Sequence[Record], here: str) -> Markdown:
    """List records, newest first."""
    if not records:
        return text("No record yet.")
    body = [
        (
            atlas.record(here, record),
            text(TECHNIQUE_TITLES[record.technique]) if record.technique else text("the project itself"),
            _scope(atlas, record),
            line(chip(record.status), _decision(record)),
            dated(record.date, atlas.today),
            dated(record.review_by, atlas.today, 0 if record.status is Status.ACCEPTED else None),
        )
        for record in records
    ]
    return table(columns("Record", "Technique", "Scope", "Status", "Date", "Review by"), body, Layout.CARDS, "records")


def _page(atlas: Atlas, record: Record) -> Page:
    here = atlas.record_paths[record.name]
    facts = [
        chip(record.status),
        _decision(record),
        line(text("of"), dated(record.date, atlas.today)),
        line(text("review by"), dated(record.review_by, atlas.today, 0 if record.status is Status.ACCEPTED else None)),
        _scope(atlas, record),
    ]
    if record.technique:
        facts.append(link(text(TECHNIQUE_TITLES[record.technique]), f"../techniques/{record.technique.value}.md"))
    body = paragraphs(
        Markdown(span(line(*facts, by=" · "), "meta")),
        _relations(atlas, record, here),
        published(record.body, "adr", lambda path: _site_path(atlas, path), here),
        _configuration(atlas, record),
        _evidence(atlas, record, here),
        _history(atlas, record),
    )
    trail = (("Matrix", "index.md"), ("Records", INDEX))
    return Page(path=here, title=record.title, body=body, trail=trail)


def _scope(atlas: Atlas, record: Record) -> Markdown:
    if record.scope == FLEET:
        return text(atlas.corpus.fleet.name)
    if record.scope.startswith(LOCAL):
        return line(text(atlas.client_alias(record.scope)), span(text("local"), "badge"))
    return span(text(record.scope), "note")


def _decision(record: Record) -> Markdown:
    return chip(record.decision) if record.decision else NOTHING


def _relations(atlas: Atlas, record: Record, here: str) -> Markdown:
    items = [line(text("replaces"), _named(atlas, name, here)) for name in record.supersedes]
    if record.superseded_by:
        items.append(line(text("replaced by"), _named(atlas, record.superseded_by, here)))
    return bullets(items)


def _named(atlas: Atlas, name: str, here: str) -> Markdown:
    known = atlas.corpus.record_by_name.get(name)
    return atlas.record(here, known) if known else code(name)


def _configuration(atlas: Atlas, record: Record) -> Markdown:
    """Show what carrying the decision out takes, in the words of each runtime, and the way back."""
    # Where the draft has told it, that stands, with what people made of it.
    in_draft = CARRY_OUT in record.body
    shown = [] if in_draft else list(_changes(atlas, record))
    if not shown and not in_draft:
        return NOTHING
    command = line(text("From the command line:"), code(f"nox -s adr -- config {record.name}"))
    lead = [text(WHERE)] if shown else []
    return paragraphs(heading(2, text("Configuration"), "configuration"), command, *lead, *shown)


def _changes(atlas: Atlas, record: Record) -> Iterator[Markdown]:
    for one in together(of_record(atlas.corpus, record)):
        yield heading(3, text(one.title), f"configuration-{slug(one.service)}")
        yield bullets(map(sentence, told(one)))
        yield from (text(remark) for remark in (by_hand(one),) if remark)
        for lead, some in (("To carry it out", one.forth), ("The way back", one.back)):
            for each in some:
                yield line(text(f"{lead}, {each.place.value}:"))
                yield from [fenced(each.text, each.language)] if each.text else []
                yield from (sentence(capital(remark)) for remark in (removal(each),) if remark)


def _evidence(atlas: Atlas, record: Record, here: str) -> Markdown:
    if not record.evidence:
        return NOTHING
    items = [line(atlas.run(here, one.id), span(code(one.sha256[:12]), "note")) for one in record.evidence]
    return paragraphs(heading(2, text("Cited evidence"), "cited-evidence"), bullets(items))


def _history(atlas: Atlas, record: Record) -> Markdown:
    """Tell who moved the record's status when, and which findings a reviewer has accepted."""
    items = [
        line(
            chip(move.status),
            text("on"),
            dated(move.on, atlas.today),
            text(f"by {move.by}"),
            sentence(move.why) if move.why else NOTHING,
        )
        for move in record.history
    ]
    items += [
        line(
            code(one.rule),
            text(f"acknowledged for {one.about} by {one.by} on"),
            dated(one.date, atlas.today),
            sentence(one.reason),
        )
        for one in record.acknowledgements
    ]
    return paragraphs(heading(2, text("History"), "history"), bullets(items)) if items else NOTHING


def _site_path(atlas: Atlas, path: str) -> str | None:
    """Map a path of the repository to the page or file that shows it."""
    folder, name = posixpath.split(path)
    stem, extension = posixpath.splitext(name)
    if extension == ".md" and folder in {"adr", "adr/local"}:
        return atlas.record_paths.get(stem) or (INDEX if stem.lower() == "readme" else None)
    if extension == ".json" and folder in {"adr/evidence", "adr/local/evidence"}:
        return atlas.run_paths.get(stem) or atlas.run_files.get(stem)
    if path == "fleet.yml":
        return "fleet.md"
    return path.removeprefix("docs/") if folder.split("/")[0] == "docs" and extension == ".md" else None
