"""The sources, the one that nobody has looked at for longest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gen import paths
from gen.knowledge import Source
from gen.knowledge.schema import ENGINE_TITLES
from gen.markdown import Markdown, anchor, code, external, line, link, paragraphs, sifted, span, text
from gen.pages.atlas import Atlas
from gen.pages.marks import dated
from gen.pages.page import Page
from gen.tables import Layout, columns, table
from probes.evidence import slug

HERE = "sources.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of sources."""
    known = atlas.corpus.knowledge
    uses = Counter(
        source
        for entry in (
            *known.techniques.values(),
            *known.models.values(),
            *known.facts,
            *known.conflicts,
            *known.cards,
            *known.claims,
            *(c for cs in known.controls.values() for c in cs),
        )
        for source in (entry.source, *entry.also)
    )
    uses.update(release.source for release in known.releases)
    limit = atlas.corpus.fleet.policies.freshness.source_days
    body = [
        (
            line(anchor(slug(source.id)), text(source.title), span(code(source.id), "note")),
            dated(source.checked, atlas.today, limit),
            dated(source.published, atlas.today) if source.published else span(text("bears no date"), "absent"),
            _where(source),
            _describes(source),
            text(str(uses[source.id])),
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
    yield Page(
        path=HERE,
        title="Sources by age",
        body=paragraphs(intro, shown),
        trail=(("Matrix", "index.md"),),
        siblings=True,
        contents=False,
    )


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
