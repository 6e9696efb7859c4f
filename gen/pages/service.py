"""A page per service: what was declared, what was seen, and what each technique means for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen import paths
from gen.assess import engine_of, sightings_of
from gen.assessment import Cell
from gen.knowledge import Engine, Role
from gen.knowledge.schema import ENGINE_TITLES
from gen.markdown import (
    NOTHING,
    Markdown,
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
from gen.pages import checklist, plan_pictures, planners, sweeps, timelines
from gen.pages.atlas import Atlas, Spot
from gen.pages.capabilities import capability_table
from gen.pages.conditions import ENTRY, entries
from gen.pages.controls import knowledge_link
from gen.pages.coverage import kind_claims
from gen.pages.machine import machine_link
from gen.pages.marks import age_limit, chip, dated, not_measured, scalar, unknown, unverified
from gen.pages.page import Page
from gen.pages.run import run_table
from gen.pages.technique import known_facts
from gen.tables import Layout, columns, table
from gen.techniques.wording import listing
from gen.view import FLEET, RELEASE, Sighting, agree
from gen.words import TECHNIQUE_TITLES
from probes.evidence import ProvenanceKind, Run, RunKind
from probes.fleet import ConfigFile, RuntimeName, Service, Unknown, reference_name

_SEEN = (ProvenanceKind.MEASURED, ProvenanceKind.OBSERVED)


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write a page per service of the inventory and per service found on a local machine."""
    for spot in atlas.services:
        yield _page(atlas, spot)


def _page(atlas: Atlas, spot: Spot) -> Page:
    here = atlas.service_paths[spot]
    entry = atlas.corpus.fleet.services.get(spot.name) if spot.scope == FLEET else None
    runs = atlas.runs_of(spot)
    body = paragraphs(
        entries([*_identity(atlas, spot, entry, here), *_reached(atlas, spot, runs, here), *_review(atlas, spot, here)]),
        _questions(entry),
        heading(2, text("Settings"), "settings"),
        _settings(atlas, spot, runs, here),
        heading(2, text("Techniques"), "techniques"),
        _techniques(atlas, spot, here),
        _plans(atlas, spot, here),
        _unverified(atlas, spot, here),
        _capabilities(runs),
        *_course(atlas, spot, runs, here),
        heading(2, text("Runs"), "runs"),
        run_table(atlas, runs, here),
        heading(2, text("Measure it"), "measure"),
        fenced(f"nox -s probe -- --service {spot.name if spot.scope == FLEET else 'embedded'}", "sh"),
    )
    title = entry.title if entry else f"{spot.name} on {atlas.client_alias(spot.scope)}"
    parent = ("Fleet", "fleet.md") if entry else (atlas.client_alias(spot.scope), atlas.machine_paths[spot.scope])
    return Page(path=here, title=title, body=body, trail=(("Matrix", "index.md"), parent))


def _identity(atlas: Atlas, spot: Spot, entry: Service | None, here: str) -> Iterator[ENTRY]:
    if entry is None:
        yield "where", line(machine_link(atlas, spot.scope, here), span(text("local"), "badge"))
        yield "in the inventory", text("no; it speaks for its own machine only")
        return
    fleet = atlas.corpus.fleet
    service = atlas.service_view(spot)
    told = service is not None and service.known.claims
    yield "kind", kind_claims(atlas, spot.name, service.known, here) if service and told else text(entry.kind.value)
    yield "runtime", text("none; it only shares a card") if entry.runtime is RuntimeName.NONE else text(entry.runtime.value)
    yield (
        "runtime version",
        text(entry.runtime_version) if isinstance(entry.runtime_version, str) else unknown(entry.runtime_version),
    )
    if isinstance(entry.host, Unknown):
        yield "host", unknown(entry.host)
    else:
        yield "host", link(text(fleet.hosts[entry.host].title), paths.relative(f"fleet.md#host-{entry.host}", here))
    device = entry.device
    yield "device", unknown(device) if isinstance(device, Unknown) else atlas.device(here, Spot(scope=FLEET, name=device))
    if entry.model is not None:
        yield "model", unknown(entry.model.id) if isinstance(entry.model.id, Unknown) else code(entry.model.id)
        size = entry.model.parameters
        yield "parameters", unknown(size) if isinstance(size, Unknown) else text(size)
    yield "address", _address(entry)
    if entry.clients:
        yield "clients", text(", ".join(fleet.clients[name].title for name in entry.clients))
    if entry.governed_by:
        yield "governed by", text(entry.governed_by)
    if entry.availability_gated:
        yield "availability", text("gated: it answers only while its host is left on")
    if entry.settings_live_on_host:
        yield "settings", text("live on its host, not in this inventory")
    limits = entry.probing
    yield (
        "most a probe may ask",
        text(
            f"{limits.requests} requests of {limits.max_tokens} tokens, {limits.concurrency} at a time, "
            f"{limits.timeout_s:g} s each"
        ),
    )
    if entry.config:
        run = next((run for run in atlas.runs_of(spot) if run.kind is RunKind.DECLARED), None)
        files = (_file(one, run) for one in fleet.config_files(spot.name))
        yield "configuration files", line(*files, _read(atlas, run, here), by="<br>")
    yield "declared", dated(entry.as_of or fleet.as_of, atlas.today, fleet.policies.freshness.declaration_days)


def _file(one: ConfigFile, run: Run | None) -> Markdown:
    """Name a file, what of it counts, and why the last reading could not look at it, if it could not."""
    within = ", ".join(part for part in (one.container, one.entry) if part)
    told = run.native.get("files") if run else None
    entries = [entry for entry in told if isinstance(entry, dict)] if isinstance(told, list) else []
    why = next((str(entry.get("detail", "")) for entry in entries if entry.get("path") == one.path and "missing" in entry), "")
    notes = [span(text(within), "note")] if within else []
    return line(code(one.path), *notes, *([span(text("not configured"), "absent"), span(text(why), "detail")] if why else []))


def _read(atlas: Atlas, run: Run | None, here: str) -> Markdown:
    if run is None:
        return not_measured("no run has read them yet")
    limit = atlas.corpus.fleet.policies.freshness.declaration_days
    return span(line(text("read"), dated(run.date, atlas.today, limit), atlas.run(here, run.id, text("run"))), "note")


def _address(entry: Service) -> Markdown:
    if entry.url is None:
        return span(text("none declared"), "absent")
    name = reference_name(entry.url)
    return line(text("from the environment:"), code(name)) if name else code(entry.url)


def _reached(atlas: Atlas, spot: Spot, runs: tuple[Run, ...], here: str) -> Iterator[ENTRY]:
    """Tell what the service did when it was last asked, by a survey or by a run of its own."""
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    found = next(((run, run.endpoint) for run in runs if run.endpoint is not None), None)
    asked = atlas.asked(spot.name) if spot.scope == FLEET else None
    newest = max((pair for pair in (found, asked) if pair), key=lambda pair: pair[0].started_at, default=None)
    if newest is None:
        yield "when last asked", not_measured("no run has asked it yet")
        return
    run, endpoint = newest
    when = line(
        text("asked from"), text(run.client.alias), dated(run.date, atlas.today, limit), atlas.run(here, run.id, text("run"))
    )
    detail = span(text(endpoint.detail), "detail") if endpoint.detail else NOTHING
    yield "when last asked", line(chip(endpoint.state), detail, span(when, "note"), by="<br>")


def _review(atlas: Atlas, spot: Spot, here: str) -> Iterator[ENTRY]:
    if (target := checklist.link_of(atlas, spot, here)) is not None:
        yield "review", target


def _questions(entry: Service | None) -> Markdown:
    if entry is None or not entry.questions:
        return NOTHING
    return paragraphs(heading(2, text("Open questions"), "questions"), bullets(text(question) for question in entry.questions))


def _settings(atlas: Atlas, spot: Spot, runs: tuple[Run, ...], here: str) -> Markdown:
    """Show each control by every way it is known, with the day and the place of each."""
    service = atlas.service_view(spot)
    found = service.sightings if service else _told(runs)
    engine = service.engine if service else next((engine_of(run, atlas.corpus.fleet) for run in runs if run.settings), None)
    found = tuple(one for one in found if one.kind is not ProvenanceKind.DOCUMENTED)
    names = dict.fromkeys(one.control for one in found)
    declared = {one.control for one in found if one.kind is ProvenanceKind.DECLARED and not one.default_of}
    if not names:
        return text("None is declared, and no run has seen one.")
    body = []
    for control in sorted(names, key=lambda control: (control not in declared, control)):
        own = [one for one in found if one.control == control]
        body.append(
            (
                _name(atlas, spot, engine, control),
                _column(atlas, spot, [one for one in own if one.kind is ProvenanceKind.DECLARED and not one.in_file], here)
                or span(text("not declared"), "absent"),
                _column(atlas, spot, [one for one in own if one.in_file], here) or span(text("in no file"), "absent"),
                _column(atlas, spot, [one for one in own if one.kind in _SEEN], here) or not_measured(),
                _column(atlas, spot, [one for one in own if one.kind is ProvenanceKind.INFERRED], here) or not_measured(),
                _agreement(control, own),
            )
        )
    head = columns("Control", "Declared", "In files", "Observed", "Inferred", "Drift")
    told = "Declared: in the inventory. In files: in the configuration files that it names for this service."
    return paragraphs(span(text(told), "note"), table(head, body, Layout.CARDS, "settings", facets=()))


def _name(atlas: Atlas, spot: Spot, engine: Engine | None, control: str) -> Markdown:
    """Name a setting, and say so where the knowledge has no such control or had none for a release so new."""
    known = atlas.corpus.knowledge
    found = known.control(engine, control)
    unknown = engine in known.controls and control != RELEASE and found is None
    doubt = unverified(atlas.unverified(found.id, scope=spot.scope, service=spot.name)) if found else NOTHING
    return line(code(control), span(text("unknown control"), "absent") if unknown else NOTHING, doubt)


def _told(runs: tuple[Run, ...]) -> tuple[Sighting, ...]:
    """Give what the newest run of a service says that no scope assesses."""
    run = next((run for run in runs if run.kind is RunKind.ENDPOINT and run.validity.valid), None)
    return () if run is None else sightings_of(run)


def _column(atlas: Atlas, spot: Spot, found: Sequence[Sighting], here: str) -> Markdown:
    return line(*(_sighting(atlas, spot, one, here) for one in found), by="<br>") if found else NOTHING


def _sighting(atlas: Atlas, spot: Spot, one: Sighting, here: str) -> Markdown:
    limit = age_limit(one.kind, atlas.corpus.fleet.policies.freshness)
    when = [dated(one.date, atlas.today, limit)]
    if one.in_file:
        when += [code(one.source), atlas.run(here, one.run, text("run"))]
    else:
        when.append(atlas.run(here, one.run, text("run")) if one.run else text(one.source))
    asides = [f"default of {one.default_of}"] if one.default_of else []
    asides += [f"set, not effective: {one.without_effect}"] if one.without_effect and not one.default_of else []
    asides += ["no fixed size"] if _free(atlas, spot, one) else []
    value = line(scalar(one.value), *([span(text("; ".join(asides)), "detail")] if asides else []))
    return line(value, span(line(*when), "note"), by="<br>")


def _free(atlas: Atlas, spot: Spot, one: Sighting) -> bool:
    """Tell a pool of 0, which is dynamic, from one of no bytes."""
    service = atlas.service_view(spot)
    control = atlas.corpus.knowledge.control(service.engine, one.control) if service else None
    return control is not None and control.role is Role.POOL and one.value == 0


def _agreement(control: str, found: Sequence[Sighting]) -> Markdown:
    if len(found) < 2:
        return span(text("nothing to compare"), "note")
    if all(agree(control, found[0].value, other.value) for other in found[1:]):
        return span(text("agrees"), "ok")
    return span(text("drift"), "drift")


def _techniques(atlas: Atlas, spot: Spot, here: str) -> Markdown:
    cells = atlas.cells(spot)
    if not cells:
        return text("No technique is assessed for this service.")
    body = [
        (
            link(
                text(TECHNIQUE_TITLES[cell.technique]),
                paths.relative(f"techniques/{cell.technique.value}.md", here),
                "technique",
            ),
            line(chip(cell.state), *(span(text(f"drift: {one}"), "drift") for one in _drifts(atlas, spot, cell)), by="<br>"),
            chip(cell.decision),
            line(sentence(cell.summary), span(text(cell.applicability.value), "note"), by="<br>"),
            known_facts(atlas, spot, cell.facts, here),
        )
        for _, cell in cells
    ]
    return table(columns("Technique", "State", "Decision", "What it means here", "Known"), body, Layout.CARDS, "cells")


def _plans(atlas: Atlas, spot: Spot, here: str) -> Markdown:
    """Show what the planners make of a text service in a line each, with the way to formula and inputs."""
    found = planners.of_service(atlas, spot)
    if not found:
        return NOTHING
    items = (
        line(
            link(text(planners.TITLES[plan.planner]), paths.relative(planners.place(plan.planner, spot), here)),
            text(f"{plan.headline.name} {plan.headline.span.said()}")
            if plan.headline
            else span(text(f"cannot be worked out: {listing(gap.name for gap in plan.gaps)} missing"), "absent"),
            by=": ",
        )
        for plan in found
    )
    change = fenced(f"python -m gen whatif {planners.named(spot)} CONTROL=VALUE", "sh")
    told = text("What a setting would change, before it is touched:")
    service = atlas.service_view(spot)
    drawn = NOTHING if service is None else plan_pictures.of_service(service, found)
    return paragraphs(heading(2, text("Plans"), "plans"), bullets(items), drawn, told, change)


def _course(atlas: Atlas, spot: Spot, runs: tuple[Run, ...], here: str) -> Iterator[Markdown]:
    """Show what loads of several sizes measured, and how the service did over time."""
    if loads := sweeps.of_loads(atlas, runs, here):
        yield from (heading(2, text("Under load"), "under-load"), loads)
    records = timelines.records_on(atlas, spot.scope, service=spot.name)
    if course := timelines.of_runs(atlas, runs, here, records):
        yield from (heading(2, text("Over time"), "over-time"), course)


def _drifts(atlas: Atlas, spot: Spot, cell: Cell) -> tuple[str, ...]:
    """Name what drifts of a technique: as its assessment has it, and what only this checkout knows."""
    if cell.drift or spot.scope != FLEET:
        return cell.drift
    found = (one for one in atlas.drifts if one.service == spot.name and one.technique is cell.technique)
    return tuple(one.control for one in found)


def _unverified(atlas: Atlas, spot: Spot, here: str) -> Markdown:
    """List what is known of the runtime and was checked for older releases only than the one that runs here."""
    found = [one for one in atlas.everything_unverified if (one.by.scope, one.by.service) == (spot.scope, spot.name)]
    if not found:
        return NOTHING
    by = found[0].by
    body = [
        (
            knowledge_link(atlas, one, here),
            text(one.checked.release) if one.checked.release else span(text("no release that its source names"), "absent"),
            atlas.source(here, one.checked.source),
        )
        for one in found
    ]
    told = f"What nobody has looked at for this release of {ENGINE_TITLES[by.engine]}: it counts as before until somebody has."
    if not found[0].comparable:
        told += f" {by.version} names no release, so that nothing tells whether it is newer than those looked at."
    shown = table(columns("What is known", "Checked for", "Look there"), body, Layout.CARDS, "unverified")
    title = heading(2, text(f"Unverified for {by.version}"), "unverified")
    return paragraphs(title, text(told), details(text(f"{len(found)} to check again"), shown, "data"))


def _capabilities(runs: tuple[Run, ...]) -> Markdown:
    found = next((run for run in runs if run.capabilities), None)
    if found is None:
        return NOTHING
    return paragraphs(heading(2, text("Capabilities"), "capabilities"), capability_table(found.capabilities))
