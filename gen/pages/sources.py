"""The sources, the one that nobody has looked at for longest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gen import paths
from gen.knowledge import Knowledge, Source
from gen.knowledge.schema import ENGINE_TITLES, Known
from gen.markdown import (
    NOTHING,
    Markdown,
    anchor,
    bullets,
    code,
    details,
    external,
    heading,
    line,
    link,
    paragraphs,
    sifted,
    span,
    text,
)
from gen.pages.atlas import Atlas
from gen.pages.controls import path_of
from gen.pages.marks import dated
from gen.pages.page import Page
from gen.tables import Layout, columns, table
from gen.words import TECHNIQUE_TITLES
from probes.evidence import slug

HERE = "sources.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of sources."""
    known = atlas.corpus.knowledge
    uses = _uses(known)
    limit = atlas.corpus.fleet.policies.freshness.source_days
    body = [
        (
            line(anchor(slug(source.id)), text(source.title), span(code(source.id), "note")),
            dated(source.checked, atlas.today, limit),
            dated(source.published, atlas.today) if source.published else span(text("bears no date"), "absent"),
            _where(source),
            _describes(source),
            _rests(source, uses),
        )
        for source in sorted(known.sources.values(), key=lambda source: (source.checked, source.id))
    ]
    intro = line(
        text(f"Where the rules take things from, by the day somebody last looked there. After {limit} days a source looks"),
        text("stale; what it says still applies by release and day, but it is time to read it again."),
        link(text("What is taken from them, by age"), paths.relative("knowledge/by-age.md", HERE)),
    )
    last = "Entries that rest on it"
    head = columns("Source", "Last checked", "Published", "Where", "Describes", last, numeric=[last])
    shown = table(head, body, Layout.CARDS, "sources", facets=("Describes",))
    folds = [
        details(
            text(f"{source.title} ({len(uses[source.id])})"),
            bullets(line(anchor(_mark(source)) if n == 0 else NOTHING, one, by="") for n, one in enumerate(uses[source.id])),
            "data",
        )
        for source in sorted(known.sources.values(), key=lambda source: source.title.casefold())
        if uses.get(source.id)
    ]
    yield Page(
        path=HERE,
        title="Sources by age",
        body=paragraphs(intro, shown, heading(2, text("What rests on each"), "rests"), *folds),
        trail=(("Matrix", "index.md"),),
        siblings=True,
        contents=False,
    )


def _uses(known: Knowledge) -> Mapping[str, Sequence[Markdown]]:
    """Name what rests on each source, each entry with the way to its place."""
    found: dict[str, list[Markdown]] = {}

    def note(entry: Known, said: Markdown) -> None:
        for source in dict.fromkeys((entry.source, *entry.also)):
            found.setdefault(source, []).append(said)

    for technique in known.techniques.values():
        note(technique, link(text(TECHNIQUE_TITLES[technique.technique]), f"techniques/{technique.technique.value}.md"))
    for name, model in known.models.items():
        note(model, line(text("model kind"), code(name)))
    for engine, controls in known.controls.items():
        for control in controls:
            title = control.values if control.absent else control.name
            note(control, line(text(f"{ENGINE_TITLES[engine]}:"), link(text(title), f"{path_of(engine)}#{control.id}")))
    for one in (*known.facts, *known.conflicts):
        note(one, link(text(one.text), f"{path_of(one.engines[0])}#{one.id}") if one.engines else text(one.text))
    for card in known.cards:
        note(card, text(f"{card.title}: memory and its speed"))
    for claim in known.claims:
        note(claim, link(text(claim.text), f"claims.md#{slug(claim.id)}"))
    for release in known.releases:
        title = f"{ENGINE_TITLES[release.engine]} {release.version}"
        found.setdefault(release.source, []).append(link(text(title), f"{path_of(release.engine)}#releases"))
    return found


def _rests(source: Source, uses: Mapping[str, Sequence[Markdown]]) -> Markdown:
    """Count what rests on a source, leading to the list."""
    count = len(uses.get(source.id, ()))
    return link(text(str(count)), f"#{_mark(source)}") if count else span(text("none"), "absent")


def _mark(source: Source) -> str:
    return f"rests-{slug(source.id)}"


def _describes(source: Source) -> Markdown:
    if not source.describes:
        return span(text("names no release"), "absent")
    described = (
        sifted(text(f"{ENGINE_TITLES[engine]} {release}"), facet=ENGINE_TITLES[engine])
        for engine, release in source.describes.items()
    )
    return line(*described, by=", ")


def _where(source: Source) -> Markdown:
    if source.url:
        return external(text(source.url), source.url)
    if source.repository:
        return code(source.repository)
    return line(span(text("measured"), "known", "known-measured"), text(source.measurement or ""))
