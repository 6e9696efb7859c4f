"""What is known of each runtime: its controls, also the ones it does not have, its prices, facts and releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen import paths
from gen.knowledge import Control, Engine
from gen.knowledge.schema import ENGINE_TITLES, ENGINES, Bound, Known, KnownConflict, Reading
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
from gen.pages.marks import dated, unverified
from gen.pages.page import Page
from gen.pages.tried import tried
from gen.recheck import Unverified
from gen.tables import Layout, columns, table
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Technique, slug

INDEX = "knowledge/index.md"
_READING = {
    Reading.MEASURED: "measured",
    Reading.READ: "source read",
    Reading.EXCERPT: "excerpt seen",
    Reading.UNVERIFIED: "unverified; test before use",
}


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per runtime that has controls, facts, prices or releases."""
    yield _index(atlas)
    for engine in _engines(atlas):
        yield _page(atlas, engine)


def reading_word(reading: Reading) -> str:
    """Say how closely a source was looked at."""
    return _READING[reading]


def of_technique(atlas: Atlas, technique: Technique, here: str) -> Markdown:
    """Show the controls of one technique, the fleet's runtimes first and open."""
    used = {ENGINES[service.runtime] for service in atlas.corpus.fleet.services.values() if service.runtime in ENGINES}
    parts = [heading(2, text("Controls"), "controls")]
    for engine in sorted(_engines(atlas), key=lambda engine: (engine not in used, list(Engine).index(engine))):
        found = [control for control in atlas.corpus.knowledge.controls.get(engine, ()) if control.technique is technique]
        if not found:
            continue
        absent = all(control.absent for control in found)
        label = line(text(ENGINE_TITLES[engine]), text("has no such control" if absent else f"{len(found)} known"), by=": ")
        parts.append(details(label, _controls(atlas, engine, found, here), "data"))
    return paragraphs(*parts) if len(parts) > 1 else NOTHING


def knowledge_link(atlas: Atlas, one: Unverified, here: str) -> Markdown:
    """Link to a piece of knowledge by what it says."""
    known = next((known for known in atlas.corpus.knowledge.of_engine(one.by.engine) if known.id == one.id), None)
    if known is None:
        target = f"{path_of(one.by.engine)}#releases"
        return link(text(f"which release of {ENGINE_TITLES[one.by.engine]} is the newest"), paths.relative(target, here))
    said = known.name if isinstance(known, Control) else getattr(known, "text", known.id)
    return link(text(said), paths.relative(f"{path_of(one.by.engine)}#{known.id}", here))


def _engines(atlas: Atlas) -> list[Engine]:
    known = atlas.corpus.knowledge
    spoken = set(known.controls) | {release.engine for release in known.releases}
    spoken |= {engine for entry in (*known.facts, *known.conflicts) for engine in entry.engines}
    return [engine for engine in Engine if engine in spoken]


def path_of(engine: Engine) -> str:
    """Address the page of a runtime."""
    return f"knowledge/{slug(engine.value)}.md"


def _index(atlas: Atlas) -> Page:
    controls = atlas.corpus.knowledge.controls
    body = [
        (
            link(text(ENGINE_TITLES[engine]), paths.relative(path_of(engine), INDEX), "technique"),
            *(
                _counted([c for c in controls.get(engine, ()) if c.technique is technique], engine, technique)
                for technique in Technique
            ),
        )
        for engine in _engines(atlas)
    ]
    intro = text(
        "Which runtime has a control for which technique. A runtime without one is a fact too: nobody needs to look for "
        "another engine's flags there."
    )
    head = columns("Runtime", *(TECHNIQUE_TITLES[technique] for technique in Technique))
    shown = table(head, body, Layout.CARDS, "engines")
    return Page(
        path=INDEX,
        title="Controls by runtime",
        body=paragraphs(intro, shown),
        trail=(("Matrix", "index.md"),),
        siblings=True,
        contents=False,
    )


def _price(atlas: Atlas, engine: Engine, price: KnownConflict, here: str) -> Markdown:
    """Show a price with what was tried of it on any device, each speaking for itself."""
    return line(_entry(atlas, engine, price, price.text, here), tried(atlas, price, here), by="<br>")


def _counted(found: Sequence[Control], engine: Engine, technique: Technique) -> Markdown:
    if not found:
        return span(text("not looked up"), "absent")
    target = paths.relative(f"{path_of(engine)}#{technique.value}", INDEX)
    there = [control for control in found if not control.absent]
    return link(text(f"{len(there)} known" if there else "no such control"), target)


def _page(atlas: Atlas, engine: Engine) -> Page:
    here, known = path_of(engine), atlas.corpus.knowledge
    controls = known.controls.get(engine, ())
    parts: list[Markdown] = []
    for technique in Technique:
        found = [control for control in controls if control.technique is technique]
        if found:
            title = link(text(TECHNIQUE_TITLES[technique]), paths.relative(f"techniques/{technique.value}.md", here))
            parts += [heading(2, title, technique.value), _controls(atlas, engine, found, here)]
    prices = [one for one in known.conflicts if engine in one.engines]
    if prices:
        shown = bullets(_price(atlas, engine, price, here) for price in prices)
        parts += [heading(2, text("Conflicts and prices"), "prices"), shown]
    facts = [one for one in known.facts if engine in one.engines]
    if facts:
        shown = bullets(_entry(atlas, engine, fact, fact.text, here) for fact in facts)
        parts += [heading(2, text("Facts"), "facts"), shown]
    releases = sorted((r for r in known.releases if r.engine is engine), key=lambda r: (r.published, r.version), reverse=True)
    if releases:
        body = [
            (
                code(release.version),
                dated(release.published, atlas.today),
                line(*(sentence(news.text) for news in release.brings), by="<br>") or span(text("nothing noted"), "note"),
                atlas.source(here, release.source),
            )
            for release in releases
        ]
        shown = table(columns("Release", "Published", "Brings", "Source"), body, Layout.CARDS, "releases", facets=())
        parts += [heading(2, text("Releases"), "releases"), shown]
    trail = (("Matrix", "index.md"), ("Knowledge", INDEX))
    return Page(path=here, title=ENGINE_TITLES[engine], body=paragraphs(*parts), trail=trail)


def _controls(atlas: Atlas, engine: Engine, controls: Sequence[Control], here: str) -> Markdown:
    body = [
        (
            line(anchor(control.id), span(text("no such control"), "absent") if control.absent else code(control.name), by=""),
            sentence(control.values) if control.values else span(text("not documented"), "absent"),
            _default(control),
            _observed(control),
            line(*(sentence(limit) for limit in control.limits), *([sentence(control.note)] if control.note else []), by="<br>")
            or span(text("none noted"), "note"),
            _checked(atlas, engine, control, here),
        )
        for control in controls
    ]
    head = columns("Control", "Values", "Default, set by", "How it shows", "Limits and notes", "Source")
    return table(head, body, Layout.STACK, "controls", facets=())


def _default(control: Control) -> Markdown:
    if control.absent:
        return span(text("nothing to set"), "note")
    default = text(control.default) if control.default else span(text("default not documented"), "absent")
    set_by = span(text(", ".join(way.value for way in control.set_by)), "note")
    since = span(text(f"since {control.since}"), "note") if control.since else NOTHING
    return line(default, set_by, since, by="<br>")


def _observed(control: Control) -> Markdown:
    if not control.observe:
        return span(text("no way known"), "absent")
    return line(*(text(f"{one.how.value}: {one.where} {one.field}".strip()) for one in control.observe), by="<br>")


def _entry(atlas: Atlas, engine: Engine, known: Known, said: str, here: str) -> Markdown:
    return line(anchor(known.id), sentence(said), span(line(validity(known), _checked(atlas, engine, known, here)), "note"))


def validity(known: Known) -> Markdown:
    """Say from which release or day to which something holds; nothing for what always does."""
    since, until = _bound(known.true_from), _bound(known.true_until)
    if since and until:
        return text(f"true from {since} until {until};")
    return text(f"true from {since};") if since else text(f"true until {until};") if until else NOTHING


def _bound(bound: Bound | None) -> str:
    if bound is None:
        return ""
    day = bound.day.isoformat() if bound.day else ""
    return " and ".join(part for part in (f"release {bound.release}" if bound.release else "", day) if part)


def _checked(atlas: Atlas, engine: Engine, known: Known, here: str) -> Markdown:
    limit = atlas.corpus.fleet.policies.freshness.source_days
    also = [atlas.source(here, source) for source in known.also]
    source = line(atlas.source(here, known.source), *also, by=", ")
    at = span(text(known.at), "note") if known.at else NOTHING
    when = line(text(reading_word(known.reading)), dated(known.checked, atlas.today, limit))
    release = atlas.corpus.knowledge.checked_for(known, engine).release
    checked = span(text(f"for {release}"), "note") if release else NOTHING
    return line(source, at, when, checked, unverified(atlas.unverified(known.id, engine=engine)))
