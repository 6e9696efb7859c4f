"""The first page: what is on, what was decided, what needs somebody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from gen import paths
from gen.findings import DUE, Finding, Rule
from gen.markdown import (
    NOTHING,
    Markdown,
    block,
    bullets,
    code,
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
from gen.pages import rules
from gen.pages.atlas import Atlas, scope_anchor
from gen.pages.marks import chip, dated
from gen.pages.matrix import Row, changes, matrix, rows
from gen.pages.page import Page
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Status

HERE = "index.md"
MACHINES_SHOWN = 3
SOON_DAYS = 30
UNFOLDED = 2


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the first page."""
    fleet = atlas.corpus.fleet
    facts = [
        line(text(f"{len(fleet.services)} services on {len(fleet.devices)} devices")),
        line(text("inventory of"), dated(fleet.as_of, atlas.today, fleet.policies.freshness.declaration_days)),
        line(text("page of"), dated(atlas.today, atlas.today)),
    ]
    body = paragraphs(
        Markdown(span(line(*facts, by=" · "), "meta")),
        matrix(atlas, FLEET, HERE),
        link(text("How to read this matrix"), "how-to-read.md"),
        _changed(atlas),
        _due(atlas),
        _findings(atlas),
        *_machines(atlas),
    )
    yield Page(
        path=HERE, title=fleet.name, body=body, description="Which inference techniques are on, and why.", contents=False
    )


def _changed(atlas: Atlas) -> Markdown:
    head = heading(2, text("Changed since the last record"), "changed")
    moved = [row for row in rows(atlas, FLEET) if row.moved or row.proposals]
    if not moved:
        last = max((row.record.date for row in rows(atlas, FLEET) if row.record), default=None)
        said = f"Nothing has moved since the last record, of {last.isoformat()}." if last else "No record is in force yet."
        return paragraphs(head, text(said))
    return paragraphs(head, *(_change(atlas, row) for row in moved))


def _change(atlas: Atlas, row: Row) -> Markdown:
    drafts = line(*(atlas.record(HERE, record) for record in row.proposals), by=", ") or text("no record drafted yet")
    title = line(Markdown(f"<strong>{text(TECHNIQUE_TITLES[row.technique])}</strong>"), chip(Status.PROPOSED), drafts)
    said = changes(row)
    return block(paragraphs(title, details(text("What has moved"), said) if said else NOTHING), "change")


def _due(atlas: Atlas) -> Markdown:
    soon = [
        line(atlas.record(HERE, record), text("is to be reviewed by"), dated(record.review_by, atlas.today))
        for record in atlas.records
        if record.status is Status.ACCEPTED and atlas.today <= record.review_by <= atlas.today + timedelta(days=SOON_DAYS)
    ]
    due = _grouped(atlas, [one for one in atlas.findings if one.rule in DUE])
    nothing = text(f"Nothing is due, and nothing falls due within {SOON_DAYS} days.")
    return paragraphs(heading(2, text("Due for review"), "due"), bullets(soon), due, NOTHING if soon or due else nothing)


def _findings(atlas: Atlas) -> Markdown:
    found = _grouped(atlas, [one for one in atlas.findings if one.rule not in DUE])
    nothing = text("The checks of inventory, evidence and records found nothing wrong.")
    return paragraphs(heading(2, text("Findings"), "findings"), found or nothing)


def _grouped(atlas: Atlas, findings: Sequence[Finding]) -> Markdown:
    """Put findings of one rule together; more than a few are folded under their number."""
    groups: dict[Rule, list[Markdown]] = {}
    for one in findings:
        groups.setdefault(one.rule, []).append(_finding(atlas, one))
    loose = [item for items in groups.values() if len(items) <= UNFOLDED for item in items]
    folds = [
        details(text(f"{len(items)} times: {rule.finds}"), bullets(items), "data")
        for rule, items in groups.items()
        if len(items) > UNFOLDED
    ]
    return paragraphs(bullets(loose), *folds) if findings else NOTHING


def _finding(atlas: Atlas, finding: Finding) -> Markdown:
    name = finding.place.removeprefix("adr/").removeprefix("local/").removesuffix(".md")
    record = next((record for record in atlas.records if record.name == name), None)
    place = atlas.record(HERE, record) if record else code(finding.place)
    rule = link(text(finding.rule.number), f"{rules.HERE}#{finding.rule.number.lower()}", "note")
    return line(place, sentence(finding.message), span(line(text("To mend it:"), text(finding.fix)), "note"), rule)


def _machines(atlas: Atlas) -> Iterator[Markdown]:
    local = [scope for scope in atlas.scopes if scope != FLEET]
    yield heading(2, text("Measured machines"), "machines")
    if not local:
        yield text("No machine has been measured from this checkout yet. To measure this one:")
        yield fenced("nox -s probe", "sh")
        return
    yield text("Each machine speaks for itself only; nothing here is a statement about the fleet.")
    for scope in local[:MACHINES_SHOWN]:
        yield _machine(atlas, scope)
    if len(local) > MACHINES_SHOWN:
        yield line(text(f"{len(local) - MACHINES_SHOWN} more:"), link(text("all machines"), "machines/index.md"))


def _machine(atlas: Atlas, scope: str) -> Markdown:
    newest = next(run for run in atlas.runs if atlas.scope_of(run) == scope)
    freshness = atlas.corpus.fleet.policies.freshness
    title = line(text(newest.client.alias), span(text("local"), "badge"))
    facts = [
        text(newest.client.cpu),
        line(text("last measured"), dated(newest.date, atlas.today, freshness.evidence_days)),
        link(text("this machine"), paths.relative(atlas.machine_paths[scope], HERE)),
    ]
    return paragraphs(heading(3, title, scope_anchor(scope)), span(line(*facts, by=" · "), "meta"), matrix(atlas, scope, HERE))
