"""Decision records: their index, and each one with its links made to work inside the site."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence

from gen import paths
from gen.configuration import CARRY_OUT, WHERE, by_hand, of_record, removal, together, told
from gen.manuscript import published
from gen.markdown import (
    NOTHING,
    Markdown,
    anchor,
    bullets,
    code,
    fenced,
    heading,
    line,
    link,
    paragraphs,
    sentence,
    span,
    text,
)
from gen.pages.atlas import Atlas
from gen.pages.marks import chip, dated
from gen.pages.matrix import why_target
from gen.pages.page import Page
from gen.records import Record
from gen.tables import Layout, columns, table
from gen.techniques.wording import capital
from gen.view import FLEET, LOCAL
from gen.words import TECHNIQUE_TITLES, Status
from probes.evidence import slug

INDEX = "records/index.md"
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per record."""
    months = [(record.date.year, record.date.month) for record in atlas.records]
    body = paragraphs(
        line(
            text("Every decision with its date, the evidence it rests on, and what it replaced."),
            link(text("The matrix as of a day"), paths.relative("as-of/index.md", INDEX)),
        ),
        _timeline(Counter(months)),
        record_table(atlas, atlas.records, INDEX, by_month=True),
    )
    yield Page(path=INDEX, title="Decision records", body=body, trail=(("Matrix", "index.md"),), contents=False)
    for record in atlas.records:
        yield _page(atlas, record)


def _timeline(months: Counter[tuple[int, int]]) -> Markdown:
    """Give each year a line with its months, how many records each has, and the way to them; the newest first."""
    lines = []
    for year in sorted({year for year, _ in months}, reverse=True):
        some = sorted(((month, number) for (of, month), number in months.items() if of == year), reverse=True)
        told = (
            line(link(text(MONTHS[month - 1]), f"#{_month(year, month)}"), span(text(f"({number})"), "note"))
            for month, number in some
        )
        lines.append(line(Markdown(f"<strong>{year}</strong>"), line(*told, by=" · ")))
    return Markdown(span(line(*lines, by="<br>"), "timeline")) if lines else NOTHING


def _month(year: int, month: int) -> str:
    return f"on-{year}-{month:02}"


def record_table(atlas: Atlas, records: Sequence[Record], here: str, *, by_month: bool = False) -> Markdown:
    """List records, newest first; `by_month` lets links lead to the first one of each month."""
    if not records:
        return text("No record yet.")
    firsts = {(one.date.year, one.date.month): one.name for one in reversed(records)} if by_month else {}
    begins = {name: anchor(_month(*month)) for month, name in firsts.items()}
    body = [
        (
            line(begins.get(record.name, NOTHING), atlas.record(here, record), by=""),
            dated(record.date, atlas.today),
            text(TECHNIQUE_TITLES[record.technique]) if record.technique else text("the project itself"),
            _scope(atlas, record),
            chip(record.status, paths.relative(atlas.record_paths[record.name], here)),
            _decision(record, paths.relative(atlas.record_paths[record.name], here)) or span(text("none"), "absent"),
            dated(record.review_by, atlas.today, 0 if record.status is Status.ACCEPTED else None),
        )
        for record in records
    ]
    head = columns("Record", "Date", "Technique", "Scope", "Status", "Decision", "Review by")
    return table(head, body, Layout.CARDS, "records", facets=("Technique", "Scope", "Status", "Decision"))


def _page(atlas: Atlas, record: Record) -> Page:
    here = atlas.record_paths[record.name]
    facts = [
        chip(record.status, "#history" if record.history else ""),
        _decision(record, _why(atlas, record, here)),
        line(text("of"), dated(record.date, atlas.today)),
        link(text("the matrix that day"), paths.relative(f"as-of/{record.date.isoformat()}.md", here))
        if record.date in atlas.past
        else NOTHING,
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
    if record.scope == FLEET or record.scope.startswith(LOCAL):
        return atlas.scope_title(record.scope)
    return span(text(record.scope), "note")


def _why(atlas: Atlas, record: Record, here: str) -> str:
    """Address what the rules say today of the row that a record decides about; nothing for any other record."""
    if record.technique is None or record.scope not in atlas.assessments:
        return ""
    return why_target(record.technique, record.scope, here)


def _decision(record: Record, target: str = "") -> Markdown:
    return chip(record.decision, target) if record.decision else NOTHING


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
    command = paragraphs(text("From the command line:"), fenced(f"nox -s adr -- config {record.name}", "sh"))
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
    items = [
        line(
            atlas.run(here, one.id),
            link(text("JSON"), paths.relative(atlas.run_files[one.id], here)) if one.id in atlas.run_files else NOTHING,
            span(code(one.sha256[:12]), "note"),
        )
        for one in record.evidence
    ]
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
