"""Everything that is known, what nobody has looked at for longest first, with the releases it was checked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from gen import paths
from gen.knowledge import Control, Engine
from gen.knowledge.schema import ENGINE_TITLES, Known, TechniqueEntry
from gen.markdown import Markdown, anchor, line, link, paragraphs, sentence, sifted, span, text
from gen.pages.atlas import Atlas
from gen.pages.controls import path_of, reading_word
from gen.pages.marks import dated, unverified
from gen.pages.page import Page
from gen.recheck import Unverified
from gen.tables import Layout, columns, table
from gen.words import TECHNIQUE_TITLES

HERE = "knowledge/by-age.md"


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """One thing known: where it stands in full, whose it is, what it says in short."""

    id: str
    place: str
    kind: str
    engines: tuple[Engine, ...]
    said: Markdown
    source: str
    checked: date
    how: str
    checked_for: tuple[str, ...]
    unverified: tuple[Unverified, ...]


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of all knowledge by age."""
    known = atlas.corpus.knowledge
    limit = atlas.corpus.fleet.policies.freshness.source_days

    def age(entry: _Entry) -> tuple[date, date, str]:
        """Sort by the last look, then by how old the source itself was then."""
        return entry.checked, known.sources[entry.source].published or entry.checked, entry.id

    body = [
        (
            line(
                anchor(f"age-{entry.id}"),
                sifted(link(text(entry.kind), paths.relative(entry.place, HERE)), facet=entry.kind),
                entry.said,
            ),
            line(*(sifted(text(title), facet=title) for title in map(ENGINE_TITLES.__getitem__, entry.engines)), by=", ")
            or text("any runtime"),
            line(dated(entry.checked, atlas.today, limit), span(text(entry.how), "note")),
            _source(atlas, entry.source),
            _checked_for(entry),
            _standing(entry),
        )
        for entry in sorted(_entries(atlas), key=age)
    ]
    intro = line(
        text("Every control, price, fact and release that the rules and pages take from outside."),
        text(
            f"After {limit} days without a look a date is marked stale; where a newer release runs than something was checked"
        ),
        text("for, it is unverified there. Neither changes an assessment: both say that it is time to look."),
        link(text("The sources by age"), paths.relative("sources.md", HERE)),
    )
    head = columns("What is known", "Runtime", "Last checked", "Source", "Checked for", "Where it runs")
    yield Page(
        path=HERE,
        title="Knowledge by age",
        body=paragraphs(
            intro, table(head, body, Layout.CARDS, "knowledge", facets=("What is known", "Runtime", "Where it runs"))
        ),
        trail=(("Matrix", "index.md"), ("Knowledge", "knowledge/index.md")),
        siblings=True,
        contents=False,
    )


def _entries(atlas: Atlas) -> Iterator[_Entry]:
    known = atlas.corpus.knowledge
    for technique in known.techniques.values():
        yield _entry(atlas, technique, (), "technique", text(TECHNIQUE_TITLES[technique.technique]))
    for engine, controls in known.controls.items():
        for control in controls:
            yield _entry(atlas, control, (engine,), "control", _control(control))
    for fact in known.facts:
        yield _entry(atlas, fact, fact.engines, "fact", sentence(fact.text))
    for conflict in known.conflicts:
        yield _entry(atlas, conflict, conflict.engines, "price", sentence(conflict.text))
    for release in known.releases:
        newest = known.newest_release(release.engine, atlas.today) is release
        yield _Entry(
            id=f"{release.engine}-{release.version}",
            place=f"{path_of(release.engine)}#releases",
            kind="release",
            engines=(release.engine,),
            said=text(f"{release.version}, published on {release.published}"),
            source=release.source,
            checked=release.checked,
            how=reading_word(release.reading),
            checked_for=(f"{ENGINE_TITLES[release.engine]} {release.version}",),
            unverified=atlas.unverified(f"releases/{release.engine}") if newest else (),
        )


def _entry(atlas: Atlas, known: Known, engines: tuple[Engine, ...], kind: str, said: Markdown) -> _Entry:
    if isinstance(known, TechniqueEntry):
        place = f"techniques/{known.technique.value}.md"
    else:
        place = f"{path_of(engines[0])}#{known.id}"
    releases = {engine: atlas.corpus.knowledge.checked_for(known, engine).release for engine in engines}
    told = [f"{ENGINE_TITLES[engine]} {release}" for engine, release in releases.items() if release]
    return _Entry(
        id=known.id,
        place=place,
        kind=kind,
        engines=engines,
        said=said,
        source=known.source,
        checked=known.checked,
        how=reading_word(known.reading),
        checked_for=tuple(told),
        unverified=atlas.unverified(known.id),
    )


def _control(control: Control) -> Markdown:
    said = control.values if control.absent else control.name
    return line(text(TECHNIQUE_TITLES[control.technique]), sentence(said), by=": ")


def _checked_for(entry: _Entry) -> Markdown:
    if entry.checked_for:
        return text(", ".join(entry.checked_for))
    return span(text("no release is named"), "absent") if entry.engines else text("any release")


def _source(atlas: Atlas, source: str) -> Markdown:
    published = atlas.corpus.knowledge.sources[source].published
    own = span(line(text("of"), dated(published, atlas.today)), "note") if published else span(text("bears no date"), "note")
    return line(atlas.source(HERE, source), own)


def _standing(entry: _Entry) -> Markdown:
    if not entry.unverified:
        return span(text("nothing newer is seen to run"), "note")
    titles = ", ".join(dict.fromkeys(one.by.title for one in entry.unverified))
    return sifted(line(unverified(entry.unverified), span(text(titles), "note"), by="<br>"), facet="a newer release runs")
