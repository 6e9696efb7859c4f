"""The page that sets claims of articles beside what was measured here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gen.claims import Answer, Relation, relation, side
from gen.knowledge.claim import Claim, Figure
from gen.knowledge.schema import ENGINE_TITLES
from gen.markdown import (
    NOTHING,
    Markdown,
    anchor,
    bullets,
    code,
    details,
    heading,
    line,
    link,
    paragraphs,
    sentence,
    span,
    text,
)
from gen.pages.atlas import Atlas
from gen.pages.controls import reading_word
from gen.pages.marks import dated
from gen.pages.page import Page
from gen.paths import relative
from gen.spread import quantity
from gen.tables import Layout, columns, table
from gen.techniques.wording import listing
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Technique, slug

HERE = "claims.md"
_ORDER = (Relation.DISAGREES, Relation.EXCEEDS, Relation.AGREES, Relation.OTHER_CONDITIONS, Relation.NOT_MEASURED)
_COUNTED = {
    Relation.DISAGREES: "not borne out by what was measured or reckoned here",
    Relation.EXCEEDS: "better here than claimed",
    Relation.AGREES: "borne out",
    Relation.OTHER_CONDITIONS: "measured under other conditions",
    Relation.NOT_MEASURED: "not measured here",
}
_TONES = {
    Relation.AGREES: "good",
    Relation.EXCEEDS: "good",
    Relation.DISAGREES: "alarm",
    Relation.OTHER_CONDITIONS: "part",
    Relation.NOT_MEASURED: "quiet",
}


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of claims, those that a measurement speaks against first."""
    found = sorted(atlas.claims, key=lambda pair: _ORDER.index(relation(pair[1])))
    counts = Counter(relation(answer) for _, answer in found)
    said = listing(f"{counts[one]} {_COUNTED[one]}" for one in _ORDER if counts[one])
    intro = span(
        text(
            "Numbers from articles are hypotheses until they are measured under the same conditions. A measurement speaks for "
            "its own device, runtime and version: one under other conditions neither proves nor disproves a claim."
        ),
        "lead",
    )
    rows = [_row(atlas, claim, answer) for claim, answer in found]
    head = columns("Claim", "Relation", "Claimed", "Measured here", "Said under", "Source")
    yield Page(
        path=HERE,
        title="Claims against measurements",
        body=paragraphs(
            intro, sentence(f"{len(found)} claims: {said}"), table(head, rows, Layout.STACK, "claims", facets=("Relation",))
        ),
        trail=(("Matrix", "index.md"),),
        description="What articles claim about inference tuning, beside what this repository measured",
        siblings=True,
        contents=False,
    )


def of_technique(atlas: Atlas, technique: Technique, here: str) -> Markdown:
    """List the claims about a technique with how each stands to what was measured here."""
    mine = [pair for pair in atlas.claims if pair[0].technique is technique]
    if not mine:
        return NOTHING
    items = (
        line(
            relation_chip(relation(found), relative(f"{HERE}#{slug(claim.id)}", here)),
            sentence(claim.text),
        )
        for claim, found in mine
    )
    label = text(f"{len(mine)} claims of articles beside what was measured")
    return paragraphs(heading(2, text("Claims"), "claims"), details(label, bullets(items), "data"))


def _row(atlas: Atlas, claim: Claim, found: Sequence[Answer]) -> tuple[Markdown, ...]:
    limit = atlas.corpus.fleet.policies.freshness.source_days
    sources = (claim.source, *claim.also)
    source = atlas.corpus.knowledge.source_of(claim)
    published = dated(source.published, atlas.today) if source.published else NOTHING
    meta = line(
        *(atlas.source(HERE, one) for one in sources),
        text(claim.at) if claim.at else NOTHING,
        published,
        text("checked"),
        dated(claim.checked, atlas.today, limit),
        text(f"({reading_word(claim.reading)})"),
    )
    technique = NOTHING
    if claim.technique is not None:
        technique = link(text(TECHNIQUE_TITLES[claim.technique]), f"techniques/{claim.technique.value}.md")
    return (
        line(anchor(slug(claim.id)), sentence(claim.text)),
        relation_chip(relation(found)),
        line(text(claimed(claim.figure)), _beside(atlas, claim), by="<br>"),
        line(*(_answer(atlas, claim, answer) for answer in found), by="<br>")
        or line(span(text("nothing yet; it would take"), "absent"), code(claim.needs)),
        line(sentence(claim.conditions.text), _conditions(claim)),
        line(meta, technique, by="<br>"),
    )


def _measured_on(atlas: Atlas, run: str) -> Markdown:
    known = atlas.by_id.get(run)
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    return dated(known.date, atlas.today, limit) if known else NOTHING


def claimed(figure: Figure) -> str:
    """Write the claimed number."""
    low = quantity(figure.low, figure.unit)
    if figure.high is None:
        return f"at least {low}"
    return low if figure.low == figure.high else f"{low} to {quantity(figure.high, figure.unit)}"


def relation_chip(one: Relation, target: str = "") -> Markdown:
    """Show a relation as a chip with a shape of its own, linked to its why where that stands elsewhere."""
    classes = ("chip", f"chip-{_TONES[one]}")
    return link(text(one.value), target, *classes) if target else span(text(one.value), *classes)


def _conditions(claim: Claim) -> Markdown:
    said = claim.conditions
    parts = [ENGINE_TITLES[engine] for engine in said.engines] + [kind.upper() for kind in said.devices]
    parts += [said.model] if said.model else []
    return span(text(f"Typed: {', '.join(parts)}."), "note") if parts else NOTHING


def _beside(atlas: Atlas, claim: Claim) -> Markdown:
    others = [one for one in atlas.corpus.knowledge.claims if one.id in claim.beside]
    links = (link(text(claimed(one.figure)), f"#{slug(one.id)}") for one in others)
    return span(line(text("the same text also says"), *links), "note") if others else NOTHING


def _answer(atlas: Atlas, claim: Claim, answer: Answer) -> Markdown:
    size = f"n = {answer.samples}" if answer.samples > 1 else ("worked out" if not answer.run else "counted")
    apart = f"; other {listing(answer.apart)}" if answer.apart else ""
    whom = f", {answer.speaks_for}" if answer.speaks_for else ""
    run = line(_measured_on(atlas, answer.run), atlas.run(HERE, answer.run, text("run"))) if answer.run else NOTHING
    return line(
        span(text(answer.span.said()), "figure"),
        text(side(claim, answer)) if side(claim, answer) else NOTHING,
        span(line(text(f"({size}{apart}) {answer.what}{whom}"), run), "note"),
    )
