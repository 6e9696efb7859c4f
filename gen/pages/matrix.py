"""The matrix of one scope: what each record in force decided, and what newer facts suggest beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from gen import paths
from gen.assessment import Assessment
from gen.markdown import NOTHING, Markdown, bullets, line, link, sentence, span, text
from gen.moves import HEADLINES, moves
from gen.pages.atlas import Atlas, Spot, scope_anchor
from gen.pages.marks import age_limit, chip, dated, known
from gen.reason import reason
from gen.records import Record, in_force, open_proposals, status_on
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Status, Verdict
from probes.evidence import CapabilityState, ProvenanceKind, Technique

MEASURED_SHOWN = 2
# What a device refuses or takes without effect says less about what is on than a verdict or an effect.
_TELL_LITTLE = {state.value for state in CapabilityState} - {CapabilityState.EFFECTIVE.value}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One technique in one scope. `shown` is the snapshot of the record in force, else today's assessment.

    `refused` is the record, if any, in which somebody has turned down what the facts of today lead to.
    """

    shown: Assessment
    current: Assessment
    record: Record | None
    proposals: tuple[Record, ...]
    refused: Record | None = None

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
        records = atlas.records_of(current.technique, scope)
        record = in_force(records, current.technique, scope, atlas.today)
        shown = record.assessment if record and record.assessment else current
        proposals = open_proposals(records, current.technique, scope, atlas.today)
        row = Row(shown=shown, current=current, record=record, proposals=proposals)
        found.append(replace(row, refused=_refused(records, row, atlas.today)) if row.moved else row)
    return tuple(found)


def _refused(records: Sequence[Record], row: Row, today: date) -> Record | None:
    """Find where what the facts of today lead to was turned down, while the same record was in force."""
    held = row.record.name if row.record else None
    return next(
        (
            one
            for one in reversed(records)
            if status_on(one, today) is Status.REJECTED
            and one.assessment is not None
            and (held is None or held in one.supersedes)
            and one.assessment.key() == row.current.key()
        ),
        None,
    )


def brief(atlas: Atlas, scope: str, here: str) -> Markdown:
    """Write the matrix of a scope for a reader in a hurry: one sentence a row, and how old what it rests on is."""
    body = [
        (
            link(text(TECHNIQUE_TITLES[row.technique]), why_target(row.technique, scope, here), "technique"),
            line(chip(row.shown.state, why_target(row.technique, scope, here)), _drift(atlas, row, scope, here)),
            line(*_decision(atlas, row, scope, here)),
            span(sentence(reason(row.shown)), "why"),
            _oldest(atlas, row.shown),
        )
        for row in rows(atlas, scope)
    ]
    return table(columns("Technique", "State", "Decision", "Why", "Known"), body, Layout.CARDS, "matrix brief")


def matrix(atlas: Atlas, scope: str, here: str) -> Markdown:
    """Write the matrix of a scope with all that was measured of it, as a table that becomes cards on a phone."""
    head = columns("Technique", "State", "Decision", "Why", "Known")
    body = [
        (
            link(text(TECHNIQUE_TITLES[row.technique]), why_target(row.technique, scope, here), "technique"),
            chip(row.shown.state, why_target(row.technique, scope, here)),
            line(*_decision(atlas, row, scope, here), by="<br>"),
            _why(atlas, row, scope, here),
            provenance(atlas, row.shown),
        )
        for row in rows(atlas, scope)
    ]
    return table(head, body, Layout.CARDS, "matrix")


def _drift(atlas: Atlas, row: Row, scope: str, here: str) -> Markdown:
    """Name the service whose settings of a row drift, or how many do; the page lists them below."""
    found = {one.service: one.title for one in atlas.drifts if one.technique is row.technique} if scope == FLEET else {}
    if len(found) == 1:
        ((name, title),) = found.items()
        target = paths.relative(f"{atlas.service_paths[Spot(scope=FLEET, name=name)]}#settings", here)
        return span(line(text("drift:"), link(text(title), target)), "drift")
    return span(link(text(f"drift on {len(found)} services"), "#drift"), "drift") if found else NOTHING


def why_target(technique: Technique, scope: str, here: str) -> str:
    """Address the why of one cell of the matrix."""
    return paths.relative(f"techniques/{technique.value}.md#{scope_anchor(scope)}", here)


def moved_target(technique: Technique, scope: str, here: str) -> str:
    """Address what has moved in one row since the record in force."""
    return f"{why_target(technique, scope, here)}-moved"


def provenance(atlas: Atlas, assessment: Assessment) -> Markdown:
    """List how the facts behind a row are known, strongest first, each with the day of the oldest look relied on."""
    return _sources(atlas, _looks(atlas, assessment))


def _oldest(atlas: Atlas, assessment: Assessment) -> Markdown:
    """Say how a row is known at its strongest, and what it relies on that was looked at longest ago."""
    looks = _looks(atlas, assessment)
    oldest = min(looks, key=lambda kind: looks[kind], default=None)
    told = {kind: day for kind, day in looks.items() if kind is next(iter(looks)) or kind is oldest}
    return _sources(atlas, told)


def _looks(atlas: Atlas, assessment: Assessment) -> dict[ProvenanceKind, date]:
    """Give the day of the oldest look that a row relies on for each kind of knowledge, the strongest kind first."""
    oldest: dict[ProvenanceKind, date] = {}
    for fact in assessment.all_facts():
        day = atlas.looked_at(fact)
        oldest[fact.provenance] = min(day, oldest.get(fact.provenance, day))
    return {kind: oldest[kind] for kind in ProvenanceKind if kind in oldest}


def _sources(atlas: Atlas, looks: Mapping[ProvenanceKind, date]) -> Markdown:
    freshness = atlas.corpus.fleet.policies.freshness
    parts = [
        span(line(known(kind), dated(day, atlas.today, age_limit(kind, freshness))), "source") for kind, day in looks.items()
    ]
    return line(*parts) if parts else span(text("no fact known"), "absent")


def _decision(atlas: Atlas, row: Row, scope: str, here: str) -> Iterator[Markdown]:
    """Give the chip, the record behind it, and what is proposed in its place."""
    yield chip(row.shown.decision, why_target(row.technique, scope, here))
    if row.record is not None:
        yield span(line(text("record of"), atlas.record(here, row.record, text(row.record.date.isoformat()))), "note")
    elif scope == FLEET:
        yield span(text("no record in force"), "note")
    for proposal in row.proposals:
        other = proposal.decision if proposal.decision is not row.shown.decision else None
        chips = [chip(other, paths.relative(atlas.record_paths[proposal.name], here))] if other else []
        when = atlas.record(here, proposal, text(f"proposed {proposal.date.isoformat()}"))
        yield span(line(*chips, when), "proposed")
    if row.record is not None and row.moved and not row.proposals:
        if row.refused is not None:
            told = atlas.record(here, row.refused, text(f"newer facts, turned down {row.refused.date.isoformat()}"))
            yield span(told, "proposed")
        else:
            news = chip(row.current.decision, why_target(row.technique, scope, here))
            yield span(line(news, text("newer facts, no draft yet")), "proposed")


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
    """Say which prices, services and facts today's assessment holds otherwise than the record in force."""
    told = (move for move in moves(row.shown, row.current) if move.what not in HEADLINES)
    return bullets(line(Markdown(f"<strong>{text(move.what)}</strong>"), sentence(move.text)) for move in told)
