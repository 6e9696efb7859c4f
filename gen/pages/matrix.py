"""The matrix of one scope: what each record in force decided, and what newer facts suggest beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from gen import paths
from gen.assessment import Assessment
from gen.markdown import Markdown, bullets, line, link, sentence, span, text
from gen.moves import moves
from gen.pages.atlas import Atlas, Spot, scope_anchor
from gen.pages.marks import age_limit, chip, dated, known
from gen.records import Record, in_force, open_proposals
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Verdict
from probes.evidence import CapabilityState, ProvenanceKind, Technique

MEASURED_SHOWN = 2
DRIFTS_SHOWN = 3
# What a device refuses or takes without effect says less about what is on than a verdict or an effect.
_TELL_LITTLE = {state.value for state in CapabilityState} - {CapabilityState.EFFECTIVE.value}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One technique in one scope. `shown` is the snapshot of the record in force, else today's assessment."""

    shown: Assessment
    current: Assessment
    record: Record | None
    proposals: tuple[Record, ...]

    @property
    def technique(self) -> Technique:
        return self.shown.technique

    @property
    def moved(self) -> bool:
        """Tell whether today's facts lead elsewhere than the record in force."""
        return self.shown.key() != self.current.key()


def rows(atlas: Atlas, scope: str) -> tuple[Row, ...]:
    """Put records and today's assessments of a scope side by side, in matrix order."""
    found = []
    for current in atlas.assessments[scope]:
        record = in_force(atlas.records, current.technique, scope, atlas.today)
        shown = record.assessment if record and record.assessment else current
        proposals = open_proposals(atlas.records, current.technique, scope, atlas.today)
        found.append(Row(shown=shown, current=current, record=record, proposals=proposals))
    return tuple(found)


def matrix(atlas: Atlas, scope: str, here: str) -> Markdown:
    """Write the matrix of a scope as a table that becomes cards on a phone."""
    head = columns("Technique", "State", "Decision", "Why", "Known")
    body = [
        (
            link(text(TECHNIQUE_TITLES[row.technique]), why_target(row.technique, scope, here), "technique"),
            line(chip(row.shown.state, why_target(row.technique, scope, here)), *_drifts(atlas, row, scope, here), by="<br>"),
            _decision(atlas, row, scope, here),
            _why(atlas, row, scope, here),
            provenance(atlas, row.shown),
        )
        for row in rows(atlas, scope)
    ]
    return table(head, body, Layout.CARDS, "matrix")


def _drifts(atlas: Atlas, row: Row, scope: str, here: str) -> Iterator[Markdown]:
    """Name the services with settings of a row that drift, each with the place that shows its sources."""
    found = {one.service: one.title for one in atlas.drifts if one.technique is row.technique} if scope == FLEET else {}
    for name, title in list(found.items())[:DRIFTS_SHOWN]:
        target = paths.relative(f"{atlas.service_paths[Spot(scope=FLEET, name=name)]}#settings", here)
        yield span(line(text("drift:"), link(text(title), target)), "drift")
    if len(found) > DRIFTS_SHOWN:
        yield span(text(f"drift of {len(found) - DRIFTS_SHOWN} more"), "drift")


def why_target(technique: Technique, scope: str, here: str) -> str:
    """Address the why of one cell of the matrix."""
    return paths.relative(f"techniques/{technique.value}.md#{scope_anchor(scope)}", here)


def provenance(atlas: Atlas, assessment: Assessment) -> Markdown:
    """List how the facts behind a row are known, strongest first, each with the day of the oldest look relied on."""
    oldest: dict[ProvenanceKind, date] = {}
    for fact in assessment.all_facts():
        day = atlas.looked_at(fact)
        oldest[fact.provenance] = min(day, oldest.get(fact.provenance, day))
    freshness = atlas.corpus.fleet.policies.freshness
    parts = [
        span(line(known(kind), dated(oldest[kind], atlas.today, age_limit(kind, freshness))), "source")
        for kind in ProvenanceKind
        if kind in oldest
    ]
    return line(*parts) if parts else span(text("no fact known"), "absent")


def _decision(atlas: Atlas, row: Row, scope: str, here: str) -> Markdown:
    parts = [chip(row.shown.decision, why_target(row.technique, scope, here))]
    if row.record is not None:
        parts.append(span(line(text("record of"), atlas.record(here, row.record, text(row.record.date.isoformat()))), "note"))
    elif scope == FLEET:
        parts.append(span(text("no record in force"), "note"))
    for proposal in row.proposals:
        news = proposal.decision if proposal.decision is not row.shown.decision else None
        chips = [chip(news)] if news else []
        when = atlas.record(here, proposal, text(f"proposed {proposal.date.isoformat()}"))
        parts.append(span(line(*chips, when), "proposed"))
    if row.record is not None and row.moved and not row.proposals:
        parts.append(span(line(chip(row.current.decision), text("newer facts, no draft yet")), "proposed"))
    return Markdown("<br>".join(parts))


def _why(atlas: Atlas, row: Row, scope: str, here: str) -> Markdown:
    """Say what stands, what follows from it, and what of it was measured."""
    measured = sorted(
        (fact for fact in row.shown.all_facts() if fact.provenance is ProvenanceKind.MEASURED),
        # Whether it pays comes before whether it works.
        key=lambda fact: (fact.value not in set(Verdict), fact.value in _TELL_LITTLE),
    )
    facts = [line(known(fact.provenance), sentence(fact.text), atlas.ref(here, fact.ref)) for fact in measured[:MEASURED_SHOWN]]
    if len(measured) > MEASURED_SHOWN:
        rest = len(measured) - MEASURED_SHOWN
        more = f"{rest} more measured fact{'s' * (rest > 1)}"
        facts.append(link(text(more), paths.relative(f"techniques/{row.technique.value}.md#{scope_anchor(scope)}-facts", here)))
    said = [sentence(row.shown.state_text), span(sentence(row.shown.decision_text), "note"), *facts]
    return line(*said, by="<br>")


def changes(row: Row) -> Markdown:
    """Say what today's assessment holds that the record in force does not."""
    return bullets(
        line(Markdown(f"<strong>{text(move.what)}</strong>"), sentence(move.text)) for move in moves(row.shown, row.current)
    )
