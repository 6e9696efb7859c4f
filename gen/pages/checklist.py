"""The review of each service as a page: boxes that facts have ticked, and for the open ones what would fill them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen import paths
from gen.checklist import Answer, Subject, Tick, answers
from gen.knowledge.review import Part
from gen.markdown import NOTHING, Markdown, code, heading, line, link, paragraphs, sentence, sifted, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.marks import age_limit, dated, known, legend
from gen.pages.page import Page
from gen.records import in_force
from gen.tables import Layout, columns, table
from gen.techniques.wording import capital
from gen.view import FLEET
from probes.evidence import Technique
from probes.fleet import ServiceKind

INDEX = "checklists/index.md"
_TITLES = {part: capital(part.value) for part in Part} | {Part.BASELINE: "Performance baseline", Part.SIGN_OFF: "Sign-off"}


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per service that infers."""
    filled = {spot: answers(subject) for spot in atlas.services if (subject := subject_of(atlas, spot)) is not None}
    yield _index(atlas, filled)
    for spot, found in filled.items():
        yield _page(atlas, spot, found)


def link_of(atlas: Atlas, spot: Spot, here: str) -> Markdown | None:
    """Link to the review of a service with what is left of it; None for one that has none."""
    subject = subject_of(atlas, spot)
    if subject is None:
        return None
    found = answers(subject)
    ticked = span(text(f"{_ticked(found)} of {len(found)} boxes are ticked by facts"), "note")
    return line(link(text("checklist"), paths.relative(_path(atlas, spot), here)), ticked)


def subject_of(atlas: Atlas, spot: Spot) -> Subject | None:
    """Gather what may speak for a service; None for one that does not infer or of which too little is known."""
    entry = atlas.corpus.fleet.services.get(spot.name) if spot.scope == FLEET else None
    service = atlas.service_view(spot)
    kind = entry.kind if entry is not None else service.kind if service is not None else None
    if kind is None or kind is ServiceKind.MEDIA:
        return None
    scopes = (f"{FLEET}/{spot.name}", FLEET) if spot.scope == FLEET else (spot.scope,)
    found = [
        next((r for scope in scopes if (r := in_force(atlas.records, technique, scope, atlas.today))), None)
        for technique in Technique
    ]
    return Subject(
        name=spot.name,
        kind=kind,
        fleet=atlas.corpus.fleet,
        knowledge=atlas.corpus.knowledge,
        today=atlas.today,
        entry=entry,
        service=service,
        cells=tuple(cell for _, cell in atlas.cells(spot)),
        grounds={row.technique: row.facts for row, _ in atlas.cells(spot)},
        runs=atlas.runs_of(spot),
        asked=atlas.asked(spot.name) if spot.scope == FLEET else None,
        records=tuple(record for record in found if record is not None),
    )


def _path(atlas: Atlas, spot: Spot) -> str:
    return atlas.service_paths[spot].replace("services/", "checklists/", 1)


def _index(atlas: Atlas, filled: dict[Spot, tuple[Answer, ...]]) -> Page:
    rows = [
        (
            link(text(_title(atlas, spot)), paths.relative(_path(atlas, spot), INDEX)),
            sifted(text(f"{_ticked(found)} of {len(found)}"), sort=f"{_ticked(found) / len(found):.4f}"),
            text(
                ", ".join(part.value for part in Part if any(a.item.part is part and a.tick is None for a in found)) or "none"
            ),
        )
        for spot, found in filled.items()
    ]
    intro = text(
        "What a review of an inference service asks, filled in as far as facts go. No box is ticked by hand: each tick names "
        "the fact, how it is known and since when. What is open says what would fill it."
    )
    body = paragraphs(
        intro, table(columns("Service", "Ticked", "Open in", numeric=["Ticked"]), rows, Layout.CARDS, "checklists", facets=())
    )
    return Page(path=INDEX, title="Review checklists", body=body, trail=(("Matrix", "index.md"),), contents=False)


def _page(atlas: Atlas, spot: Spot, found: Sequence[Answer]) -> Page:
    here = _path(atlas, spot)
    told = text(
        f"{_ticked(found)} of {len(found)} boxes are ticked by facts; the others say what would fill them. The service:"
    )
    parts: list[Markdown] = [line(told, atlas.service(here, spot)), legend(here)]
    for part in Part:
        own = [answer for answer in found if answer.item.part is part]
        if own:
            rows = [_row(atlas, answer, spot, here) for answer in own]
            parts.append(heading(2, text(_TITLES[part]), part.value.replace(" ", "-")))
            parts.append(table(columns("Box", "Asked", "Known"), rows, Layout.CARDS, "checklist", facets=("Box",)))
    trail = (("Matrix", "index.md"), ("Review checklists", INDEX))
    return Page(path=here, title=f"Review of {_title(atlas, spot)}", body=paragraphs(*parts), trail=trail)


def _row(atlas: Atlas, answer: Answer, spot: Spot, here: str) -> tuple[Markdown, ...]:
    asked = line(text(answer.item.text), span(code(answer.item.id), "note"), by="<br>")
    if answer.tick is None:
        run = code(answer.run) if answer.run else NOTHING
        rest = text(answer.fill) if answer.fill else NOTHING
        return span(text("open"), "absent"), asked, span(line(text("To fill it:"), run, rest), "note")
    return span(text("ticked"), "ok"), asked, _fact(atlas, answer.tick, spot, here)


def _fact(atlas: Atlas, tick: Tick, spot: Spot, here: str) -> Markdown:
    record = next((one for one in atlas.records if one.name == tick.record), None)
    where = (
        atlas.run(here, tick.run, text("run"))
        if tick.run
        else atlas.record(here, record)
        if record
        else atlas.run(here, tick.source)
        if tick.source in atlas.run_files
        else atlas.source(here, tick.source)
        if tick.source in atlas.corpus.knowledge.sources
        else _declared_at(atlas, tick, spot, here)
    )
    # A record has a day of its own by which it is looked at again.
    limit = None if record else age_limit(tick.known, atlas.corpus.fleet.policies.freshness)
    return line(
        sentence(tick.text), span(line(known(tick.known), dated(tick.day, atlas.today, limit), where), "note"), by="<br>"
    )


def _declared_at(atlas: Atlas, tick: Tick, spot: Spot, here: str) -> Markdown:
    """Lead from a place in the inventory to the page that shows what it declares of the service."""
    path = atlas.service_paths.get(spot)
    return link(text(tick.source), paths.relative(f"{path}#settings", here)) if path else text(tick.source)


def _ticked(found: Sequence[Answer]) -> int:
    return sum(answer.tick is not None for answer in found)


def _title(atlas: Atlas, spot: Spot) -> str:
    entry = atlas.corpus.fleet.services.get(spot.name) if spot.scope == FLEET else None
    return entry.title if entry else f"{spot.name} on {atlas.client_alias(spot.scope)}"
