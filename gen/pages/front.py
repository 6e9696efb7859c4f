"""The first page: what is on, what was decided, what needs somebody."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from gen import paths
from gen.findings import DUE, Finding, Rule
from gen.markdown import (
    NOTHING,
    Markdown,
    anchor,
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
from gen.moves import gist
from gen.pages import past, rules
from gen.pages.atlas import Atlas, Spot
from gen.pages.machine import machine_link
from gen.pages.marks import chip, dated
from gen.pages.matrix import Row, brief, moved_target, rows
from gen.pages.page import Page
from gen.records import Record, status_on
from gen.techniques.wording import amount
from gen.view import FLEET, LOCAL, ServiceView
from gen.words import State, Status

HERE = "index.md"
MACHINES_SHOWN = 3
SOON_DAYS = 30
UNFOLDED = 3
_PAGES = {"fleet.yml": "fleet.md", "gen/knowledge": "knowledge/by-age.md"}
_ON = frozenset({State.ENABLED, State.PARTLY})


@dataclass(frozen=True, kw_only=True)
class _Need:
    """One kind of thing that waits for somebody: its anchor, what there is of it in a few words, and each of them.

    Where there is none, `told` says so and `body` is empty.
    """

    name: str
    told: str
    body: Markdown = NOTHING


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the first page."""
    fleet = atlas.corpus.fleet
    matrix = rows(atlas, FLEET)
    needs = (_changed(atlas, matrix), _drift(atlas), _due(atlas), _findings(atlas))
    body = paragraphs(
        _summary(matrix, needs),
        brief(atlas, FLEET, HERE),
        _about(atlas),
        heading(2, text("What needs somebody"), "needs"),
        *(paragraphs(heading(3, text(need.told), need.name), need.body) for need in needs if need.body),
        _nothing([need for need in needs if not need.body]),
        heading(2, text("Measured machines"), "machines"),
        _machines(atlas),
    )
    yield Page(
        path=HERE, title=fleet.name, body=body, description="Which inference techniques are on, and why.", contents=False
    )


def _summary(matrix: Sequence[Row], needs: Sequence[_Need]) -> Markdown:
    """Answer in one line what is on and what needs somebody; each part leads to where it is told."""
    on = sum(row.shown.state in _ON for row in matrix)
    parts = [link(text(f"{on} of {len(matrix)} on"), "#matrix")]
    parts += [link(text(need.told), f"#{need.name}", *(["asks"] if need.body else [])) for need in needs]
    return line(span(line(*parts, by=" · "), "gist"), anchor("matrix"))


def _about(atlas: Atlas) -> Markdown:
    """Say what the matrix speaks of, how to read it, and where its earlier states are."""
    fleet = atlas.corpus.fleet
    inventory = dated(fleet.as_of, atlas.today, fleet.policies.freshness.declaration_days)
    facts = [
        line(text(f"{amount(len(fleet.services), 'service')} on {amount(len(fleet.devices), 'device')}")),
        line(text("inventory of"), inventory),
        line(text("page of"), dated(atlas.today, atlas.today)),
        link(text("how to read this"), "how-to-read.md"),
        past.earlier(atlas, HERE),
    ]
    return Markdown(span(line(*facts, by=" · "), "meta"))


def _nothing(needs: Sequence[_Need]) -> Markdown:
    """Keep the place of what there is nothing of: links to it lead there on any day."""
    return (
        Markdown(span(line(*(line(anchor(need.name), text(need.told), by="") for need in needs), by=" · "), "note"))
        if needs
        else NOTHING
    )


def _changed(atlas: Atlas, matrix: Sequence[Row]) -> _Need:
    """List the drafts that wait for an answer, and what has moved without one."""
    waiting = [
        one for one in atlas.records if status_on(one, atlas.today) is Status.PROPOSED and not one.scope.startswith(LOCAL)
    ]
    undrafted = _undrafted(atlas, local=False)
    told = [f"{amount(len(waiting), 'decision')} to review"] if waiting else []
    told += [f"{amount(len(undrafted), 'change')} without a draft"] if undrafted else []
    answers = "\n".join(f"nox -s adr -- accept {one.name} --by WHO" for one in waiting[:UNFOLDED])
    body = paragraphs(
        _folded([_proposal(atlas, matrix, one) for one in waiting]),
        fenced(answers) if answers else NOTHING,
        _grouped(atlas, undrafted),
    )
    return _Need(name="changed", told=" and ".join(told) or "no decision to review", body=body if told else NOTHING)


def _undrafted(atlas: Atlas, *, local: bool) -> list[Finding]:
    """Find what has moved without a draft: in the fleet, or on machines, which are no business of the fleet."""
    return [one for one in atlas.findings if one.rule is Rule.UNDRAFTED and one.place.startswith("adr/local/") is local]


def _proposal(atlas: Atlas, matrix: Sequence[Row], record: Record) -> Markdown:
    """Say in a line what is proposed and what has moved since the record in force."""
    parts = [atlas.record(HERE, record), line(text("proposed"), dated(record.date, atlas.today))]
    row = next((one for one in matrix if record.scope == FLEET and one.technique is record.technique), None)
    moved = gist(row.shown, record.assessment) if row and row.record and record.assessment else ""
    if row is not None and moved:
        told = text(f"what has moved: {moved}")
        parts.append(link(told, moved_target(row.technique, FLEET, HERE)) if row.moved else told)
    return line(*parts, by=" · ")


def _drift(atlas: Atlas) -> _Need:
    """List the services whose sources disagree, with what each says."""
    by_service: dict[str, list[Markdown]] = {}
    for one in atlas.drifts:
        said = ", ".join(sighting.said(dated=True) for sighting in one.sightings)
        by_service.setdefault(one.service, []).append(line(code(one.control), text(said)))
    items = []
    for name, told in by_service.items():
        place = paths.relative(f"{atlas.service_paths[Spot(scope=FLEET, name=name)]}#settings", HERE)
        title = link(text(atlas.corpus.fleet.services[name].title), place)
        items.append(line(title, line(*told, by="; "), by=" · "))
    if not items:
        return _Need(
            name="drift", told="no drift" if any(map(_comparable, atlas.fleet.services)) else "drift not comparable yet"
        )
    again = " ".join(f"--service {name}" for name in by_service)
    body = paragraphs(_folded(items), fenced(f"nox -s probe -- {again}", "sh"))
    return _Need(name="drift", told=f"{amount(len(items), 'service')} drift{'s' * (len(items) == 1)}", body=body)


def _comparable(service: ServiceView) -> bool:
    """Tell whether any setting is known in two ways: what one source alone says can disagree with nothing."""
    names = {one.control for one in service.sightings}
    return any(len({(one.kind, one.in_file) for one in service.claims(name)}) > 1 for name in names)


def _due(atlas: Atlas) -> _Need:
    """List what is to be looked at again, now or within the next weeks."""
    soon = [
        line(atlas.record(HERE, record), text("is to be reviewed by"), dated(record.review_by, atlas.today))
        for record in atlas.records
        if record.status is Status.ACCEPTED and atlas.today <= record.review_by <= atlas.today + timedelta(days=SOON_DAYS)
    ]
    due = [one for one in atlas.findings if one.rule in DUE and one.rule is not Rule.UNDRAFTED]
    number = len(soon) + len(due)
    body = paragraphs(_folded(soon), _grouped(atlas, due)) if number else NOTHING
    return _Need(name="due", told=f"{amount(number, 'item')} due" if number else "nothing due", body=body)


def _findings(atlas: Atlas) -> _Need:
    found = [one for one in atlas.findings if one.rule not in DUE]
    told = amount(len(found), "finding") if found else "checks clean"
    return _Need(name="findings", told=told, body=_grouped(atlas, found))


def _folded(items: Sequence[Markdown]) -> Markdown:
    """List a few and fold the others under their number."""
    rest = items[UNFOLDED:]
    return (
        paragraphs(bullets(items[:UNFOLDED]), details(text(f"{len(rest)} more"), bullets(rest)) if rest else NOTHING)
        if items
        else NOTHING
    )


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
    rule = link(text(finding.rule.number), f"{rules.HERE}#{finding.rule.number.lower()}", "note")
    fix = span(line(text("To mend it:"), sentence(finding.fix)), "note")
    return line(_place(atlas, finding), sentence(finding.message), fix, rule)


def _place(atlas: Atlas, finding: Finding) -> Markdown:
    """Lead to the page that shows what a finding is about, where there is one."""
    name = posixpath.splitext(posixpath.basename(finding.place))[0]
    if record := atlas.corpus.record_by_name.get(name):
        return atlas.record(HERE, record)
    if name in atlas.run_files:
        return atlas.run(HERE, name)
    page = _PAGES.get(finding.place)
    return link(code(finding.place), page) if page else code(finding.place)


def _machines(atlas: Atlas) -> Markdown:
    """Give each measured machine a line; its own page has its matrix."""
    local = [scope for scope in atlas.scopes if scope != FLEET]
    if not local:
        told = text("No machine has been measured from this checkout yet. To measure this one:")
        return paragraphs(told, fenced("nox -s probe", "sh"))
    rest = len(local) - MACHINES_SHOWN
    more = [link(text(f"{rest} more"), "machines/index.md")] if rest > 0 else []
    lines = bullets([*(_machine(atlas, scope) for scope in local[:MACHINES_SHOWN]), *more])
    return paragraphs(lines, _grouped(atlas, _undrafted(atlas, local=True)))


def _machine(atlas: Atlas, scope: str) -> Markdown:
    newest = atlas.runs_in(scope)[0]
    matrix = rows(atlas, scope)
    states = Counter(row.shown.state for row in matrix)
    proposals = sum(len(row.proposals) for row in matrix)
    place = paths.relative(atlas.machine_paths[scope], HERE)
    freshness = atlas.corpus.fleet.policies.freshness
    facts = [
        line(machine_link(atlas, scope, HERE), span(text("local"), "badge")),
        text(newest.client.cpu),
        line(text("measured"), dated(newest.date, atlas.today, freshness.evidence_days)),
        line(*(span(line(text(f"{states[state]}"), chip(state, place)), "count") for state in State if state in states)),
        text(f"{proposals} proposed") if proposals else NOTHING,
    ]
    return line(*facts, by=" · ")
