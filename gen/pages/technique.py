"""A page per technique: the why of its row in every scope, its controls, its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen import paths
from gen.assessment import Assessment, Cell, Fact, RefKind
from gen.benchmarks import of_technique
from gen.markdown import (
    NOTHING,
    Markdown,
    anchor,
    block,
    bullets,
    details,
    fenced,
    heading,
    line,
    link,
    paragraphs,
    sentence,
    span,
    text,
)
from gen.measuring import looks
from gen.pages import claims, controls, planners
from gen.pages.atlas import Atlas, Spot, scope_anchor
from gen.pages.marks import age_limit, chip, dated, known, unverified
from gen.pages.matrix import Row, changes, rows, why_target
from gen.pages.measured import pictures
from gen.pages.page import Page
from gen.pages.records import record_table
from gen.pages.tried import tried
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Applicability
from probes.evidence import RunKind, Technique

# A machine that was asked for many settings has a fact for each; the ones that decide come first.
MOST_FACTS = 12


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and the seven pages."""
    yield _index(atlas)
    for technique in Technique:
        yield _page(atlas, technique)


def _index(atlas: Atlas) -> Page:
    here = "techniques/index.md"
    body = [
        (
            link(text(TECHNIQUE_TITLES[row.technique]), f"{row.technique.value}.md", "technique"),
            chip(row.shown.state, why_target(row.technique, FLEET, here)),
            chip(row.shown.decision, why_target(row.technique, FLEET, here)),
            sentence(atlas.corpus.knowledge.techniques[row.technique].about),
        )
        for row in rows(atlas, FLEET)
    ]
    content = table(columns("Technique", "State in the fleet", "Decision", "What it is"), body, Layout.CARDS, "techniques")
    return Page(path=here, title="Techniques", body=content, trail=(("Matrix", "index.md"),), siblings=True)


# What people call a technique, beyond its title.
_WORDS = {
    Technique.PREFIX_CACHING: ("APC",),
    Technique.KV_CACHE: ("PagedAttention",),
    Technique.FLASH_ATTENTION: ("XAttention",),
    Technique.SPECULATIVE_DECODING: ("EAGLE", "EAGLE3"),
}


def _page(atlas: Atlas, technique: Technique) -> Page:
    here = f"techniques/{technique.value}.md"
    sections = [_scope(atlas, scope, technique, here) for scope in atlas.scopes]
    entry = atlas.corpus.knowledge.techniques[technique]
    body = paragraphs(
        span(sentence(entry.about), "lead"),
        details(text("What it needs"), bullets(sentence(need) for need in entry.needs), "data"),
        planners.of_technique(technique, here),
        *sections,
        claims.of_technique(atlas, technique, here),
        controls.of_technique(atlas, technique, here),
        _records(atlas, technique, here),
    )
    trail = (("Matrix", "index.md"), ("Techniques", "techniques/index.md"))
    return Page(
        path=here, title=TECHNIQUE_TITLES[technique], body=body, trail=trail, siblings=True, words=_WORDS.get(technique, ())
    )


def _scope(atlas: Atlas, scope: str, technique: Technique, here: str) -> Markdown:
    row = next(row for row in rows(atlas, scope) if row.technique is technique)
    mark = scope_anchor(scope)
    shown = row.current
    return paragraphs(
        heading(2, atlas.scope_title(scope), mark),
        _standing(atlas, row, here),
        _summary(atlas, row, mark),
        _news(row),
        _listed("Why", f"{mark}-why", shown.why),
        _listed("What would change it", f"{mark}-change", shown.would_change),
        _prices(atlas, shown, here, f"{mark}-prices"),
        _measured(atlas, scope, technique, here),
        heading(3, text("Facts"), f"{mark}-facts"),
        facts_table(atlas, scope, shown.facts, here),
        _cells(atlas, shown, here, f"{mark}-services"),
        _evidence(atlas, shown, here, f"{mark}-evidence"),
        heading(3, text("Measure it again"), f"{mark}-measure"),
        *_again(atlas, shown),
    )


def _standing(atlas: Atlas, row: Row, here: str) -> Markdown:
    """Name the record that holds and the drafts beside it."""
    if row.record is None:
        held = text("No record is in force; this is what the facts say today.")
    else:
        held = line(text("In force:"), atlas.record(here, row.record), text("of"), dated(row.record.date, atlas.today))
    drafts = [
        line(chip(one.status, paths.relative(atlas.record_paths[one.name], here)), atlas.record(here, one))
        for one in row.proposals
    ]
    return line(span(held, "meta"), *drafts, by="<br>")


def _summary(atlas: Atlas, row: Row, mark: str) -> Markdown:
    """Show the decision in force and, where the facts have moved, what they say today below it."""
    held = text("In force") if row.record else text("Today")
    body = [_line(row.shown if row.moved else row.current, held, mark)]
    if row.moved:
        today = line(anchor(f"{mark}-moved"), text("Facts of"), dated(atlas.today, atlas.today))
        body.append(_line(row.current, today, mark, before=row.shown))
    return table(columns("As of", "State", "Decision", "Next step"), body, Layout.CARDS, "summary")


def _line(one: Assessment, label: Markdown, mark: str, before: Assessment | None = None) -> tuple[Markdown, ...]:
    """Say what stands and what follows; words that stand in the line above are not said again."""
    same = span(text("as in force"), "note")
    why = f"#{mark}-why" if one.why else f"#{mark}-facts"
    state = same if before and before.state_text == one.state_text else sentence(one.state_text)
    decision = same if before and before.decision_text == one.decision_text else sentence(one.decision_text)
    step = sentence(one.next_step) if one.next_step else span(text("none"), "note")
    return (
        label,
        line(chip(one.state, f"#{mark}-facts"), state, by="<br>"),
        line(chip(one.decision, why), decision, by="<br>"),
        same if before and before.next_step == one.next_step else step,
    )


def _news(row: Row) -> Markdown:
    """List what has moved besides what the lines above it show side by side."""
    said = changes(row)
    told = text("What else has moved since the record in force:")
    return block(paragraphs(told, said), "change") if said else NOTHING


def _listed(title: str, name: str, items: Sequence[str]) -> Markdown:
    return paragraphs(heading(3, text(title), name), bullets(sentence(item) for item in items)) if items else NOTHING


def _prices(atlas: Atlas, assessment: Assessment, here: str, name: str) -> Markdown:
    if not assessment.conflicts:
        return NOTHING
    limit = atlas.corpus.fleet.policies.freshness.source_days
    items = [
        line(
            sentence(c.text),
            span(line(atlas.source(here, c.source), text("checked"), dated(c.checked, atlas.today, limit)), "note"),
            _beside(atlas, c.id, here),
            unverified(atlas.unverified(c.id, scope=assessment.scope)),
        )
        for c in assessment.conflicts
    ]
    return paragraphs(heading(3, text("Conflicts and prices"), name), bullets(items))


def _beside(atlas: Atlas, price: str, here: str) -> Markdown:
    """Set what a probe saw beside a documented price; a record may cite one that the knowledge base has dropped."""
    conflict = next((one for one in atlas.corpus.knowledge.conflicts if one.id == price), None)
    seen = tried(atlas, conflict, here) if conflict is not None else NOTHING
    return (
        Markdown(f"<br>{span(text('Executed, each for its own device and version:'), 'note')}<br>{seen}") if seen else NOTHING
    )


def _measured(atlas: Atlas, scope: str, technique: Technique, here: str) -> Markdown:
    """Show the technique off and on, as far as a machine has measured it."""
    runs = [run for run in atlas.runs_in(scope) if run.kind is RunKind.MICRO]
    shown = pictures(atlas, runs, of_technique(technique), here, prefix=f"{scope_anchor(scope)}-")
    return paragraphs(heading(3, text("Measured off and on"), f"{scope_anchor(scope)}-measured"), shown) if shown else NOTHING


def facts_table(atlas: Atlas, scope: str, facts: Sequence[Fact], here: str) -> Markdown:
    """Show facts with how and when each became known, where to look it up, and for which releases nobody did."""
    if not facts:
        return text("No fact is known here.")
    body = [
        (
            line(sentence(fact.text), unverified(atlas.unverified(fact.id, scope=scope)), by="<br>"),
            known(fact.provenance),
            since(atlas, fact),
            atlas.ref(here, fact.ref),
        )
        for fact in facts
    ]
    head = columns("Fact", "Known", "Since", "Where")
    shown = table(head, body[:MOST_FACTS], Layout.CARDS, "facts")
    rest = body[MOST_FACTS:]
    if not rest:
        return shown
    return paragraphs(shown, details(text(f"{len(rest)} more facts"), table(head, rest, Layout.CARDS, "facts"), "data"))


def since(atlas: Atlas, fact: Fact) -> Markdown:
    """Date a fact by when it became known; a documented one also by when its source was last looked at."""
    limit = age_limit(fact.provenance, atlas.corpus.fleet.policies.freshness)
    looked_at = atlas.looked_at(fact)
    if fact.ref.kind is not RefKind.SOURCE:
        return dated(looked_at, atlas.today, limit)
    return line(dated(fact.date, atlas.today), span(line(text("checked"), dated(looked_at, atlas.today, limit)), "note"))


def _cells(atlas: Atlas, assessment: Assessment, here: str, name: str) -> Markdown:
    bearing = [cell for cell in assessment.cells if cell.applicability is not Applicability.DOES_NOT_APPLY]
    others = [cell for cell in assessment.cells if cell.applicability is Applicability.DOES_NOT_APPLY]
    if not assessment.cells:
        return NOTHING
    parts = [heading(3, text("Services"), name)]
    if bearing:
        parts.append(_cell_table(atlas, assessment.scope, bearing, here))
    if others:
        parts.append(
            details(
                text(f"It does not apply to {len(others)} more"), _cell_table(atlas, assessment.scope, others, here), "data"
            )
        )
    return paragraphs(*parts)


def _cell_table(atlas: Atlas, scope: str, cells: Sequence[Cell], here: str) -> Markdown:
    body = [
        (
            atlas.service(here, Spot(scope=scope, name=cell.service)),
            line(chip(cell.state, _cell_target(atlas, scope, cell, here)), _drift(cell), by="<br>"),
            chip(cell.decision, _cell_target(atlas, scope, cell, here)),
            line(sentence(cell.summary), span(text(cell.applicability.value), "note"), by="<br>"),
            known_facts(atlas, Spot(scope=scope, name=cell.service), cell.facts, here),
        )
        for cell in cells
    ]
    return table(columns("Service", "State", "Decision", "What it means here", "Known"), body, Layout.CARDS, "cells")


def _cell_target(atlas: Atlas, scope: str, cell: Cell, here: str) -> str:
    """Address the row of a technique on the page of a service."""
    page = atlas.service_paths[Spot(scope=scope, name=cell.service)]
    return paths.relative(f"{page}#technique-{cell.technique.value}", here)


def known_facts(atlas: Atlas, spot: Spot, facts: Sequence[Fact], here: str) -> Markdown:
    """Put a cell's facts into one cell of a table."""
    if not facts:
        return span(text("follows from the kind of service"), "note")
    return Markdown(
        "<br>".join(
            line(
                known(fact.provenance),
                text(fact.text),
                since(atlas, fact),
                atlas.ref(here, fact.ref),
                unverified(atlas.unverified(fact.id, scope=spot.scope, service=spot.name)),
            )
            for fact in facts
        )
    )


def _drift(cell: Cell) -> Markdown:
    return line(*(span(text(f"drift: {one}"), "drift") for one in cell.drift), by="<br>")


def _evidence(atlas: Atlas, assessment: Assessment, here: str, name: str) -> Markdown:
    """List the runs that an assessment rests on, each with its page and its file."""
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    items = []
    for run in (atlas.corpus.run_by_id[run_id] for run_id in assessment.evidence):
        about = line(text(f"{run.kind.value}, {run.subject}"), dated(run.date, atlas.today, limit))
        raw = link(text("JSON"), paths.relative(atlas.run_files[run.id], here))
        items.append(line(atlas.run(here, run.id), about, raw, by=" · "))
    return paragraphs(heading(3, text("Evidence"), name), bullets(items)) if items else NOTHING


def _again(atlas: Atlas, assessment: Assessment) -> Iterator[Markdown]:
    """Say which command measures what of a row."""
    for look in looks(atlas.corpus, assessment):
        yield line(text(f"{look.asks}:"), span(text(look.about), "note") if look.about else NOTHING)
        yield fenced(look.command, "sh") if look.command else NOTHING


def _records(atlas: Atlas, technique: Technique, here: str) -> Markdown:
    records = [record for record in atlas.records if record.technique is technique]
    return paragraphs(heading(2, text("Records"), "records"), record_table(atlas, records, here))
