"""A page per service: what was declared, what was seen, and what each technique means for it."""

from __future__ import annotations

from collections.abc import Iterator

from gen import paths
from gen.assess import EMBEDDED
from gen.assessment import Cell
from gen.knowledge.schema import ENGINE_TITLES
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
from gen.pages import checklist, plan_pictures, planners, sweeps, timelines
from gen.pages.atlas import Atlas, Spot
from gen.pages.capabilities import capability_table
from gen.pages.conditions import ENTRY, entries, runtime
from gen.pages.controls import knowledge_link
from gen.pages.coverage import kind_claims
from gen.pages.machine import machine_link
from gen.pages.marks import chip, dated, legend, not_measured, unknown
from gen.pages.matrix import why_target
from gen.pages.page import Page
from gen.pages.records import record_table
from gen.pages.run import run_table
from gen.pages.settings import drift_line, settings
from gen.pages.technique import known_facts
from gen.tables import Layout, columns, table
from gen.techniques.wording import listing
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Decision
from probes.evidence import Missing, Run, RunKind
from probes.fleet import ConfigFile, RuntimeName, ServedModel, Service, ServiceKind, Unknown, reference_name

_WAITING = (Decision.INVESTIGATE, Decision.ENABLE, Decision.TUNE, Decision.BENCHMARK_FIRST)


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write a page per service of the inventory and per service found on a local machine."""
    for spot in atlas.services:
        yield _page(atlas, spot)


def _page(atlas: Atlas, spot: Spot) -> Page:
    here = atlas.service_paths[spot]
    entry = atlas.corpus.fleet.services.get(spot.name) if spot.scope == FLEET else None
    runs = atlas.runs_of(spot)
    body = paragraphs(
        entries(_summary(atlas, spot, entry, runs, here)),
        heading(2, text("Techniques"), "techniques"),
        legend(here),
        _techniques(atlas, spot, here),
        heading(2, text("Settings"), "settings"),
        settings(atlas, spot, runs, here),
        _plans(atlas, spot, here),
        _questions(entry),
        *_course(atlas, spot, runs, here),
        heading(2, text("Runs"), "runs"),
        run_table(atlas, runs, here),
        _records(atlas, spot, runs, here),
        _identity(atlas, spot, entry, here) if entry else NOTHING,
        _unverified(atlas, spot, here),
        _capabilities(atlas, runs, here),
        heading(2, text("Measure it"), "measure"),
        _measure(atlas, spot),
    )
    title = entry.title if entry else f"{spot.name} on {atlas.client_alias(spot.scope)}"
    parent = ("Fleet", "fleet.md") if entry else (atlas.client_alias(spot.scope), atlas.machine_paths[spot.scope])
    return Page(path=here, title=title, body=body, trail=(("Matrix", "index.md"), parent))


def _summary(atlas: Atlas, spot: Spot, entry: Service | None, runs: tuple[Run, ...], here: str) -> Iterator[ENTRY]:
    """Answer first what somebody opens the page for: what runs, where, whether it answers, what drifts, what waits."""
    yield "serves", _serves(entry, runs)
    yield "on", _where(atlas, spot, entry, here)
    yield "when last asked", _reached(atlas, spot, runs, here)
    yield "drift", drift_line(atlas, spot)
    yield from _decisions(atlas, spot)
    if (target := checklist.link_of(atlas, spot, here)) is not None:
        yield "review", target


def _serves(entry: Service | None, runs: tuple[Run, ...]) -> Markdown:
    """Say what is served and by which release, as declared or as the newest run saw it."""
    if entry is None:
        run = next((run for run in runs if not isinstance(run.runtime, Missing)), None)
        model = next((run.model.id for run in runs if not isinstance(run.model, Missing)), "")
        return line(runtime(run) if run else not_measured(), code(model) if model else NOTHING, by=" · ")
    if entry.runtime is RuntimeName.NONE:
        return line(text(entry.kind.value), text("no engine; it only shares a card"), by=" · ")
    version = entry.runtime_version
    engine = line(text(entry.runtime.value), unknown(version) if isinstance(version, Unknown) else text(version))
    return line(text(entry.kind.value), engine, _model(entry.model) if entry.model else NOTHING, by=" · ")


def _model(model: ServedModel) -> Markdown:
    size = "model" if isinstance(model.parameters, Unknown) else f"{model.parameters} model"
    return line(text(f"{size}:"), unknown(model.id) if isinstance(model.id, Unknown) else code(model.id))


def _where(atlas: Atlas, spot: Spot, entry: Service | None, here: str) -> Markdown:
    if entry is None:
        own = span(text("not in the inventory; it speaks for its own machine only"), "note")
        return line(machine_link(atlas, spot.scope, here), span(text("local"), "badge"), own)
    device = entry.device
    card = unknown(device) if isinstance(device, Unknown) else atlas.device(here, Spot(scope=FLEET, name=device))
    if isinstance(entry.host, Unknown):
        return line(unknown(entry.host), card, by=" · ")
    host = atlas.corpus.fleet.hosts[entry.host]
    gated = entry.availability_gated or host.availability_gated
    return line(
        link(text(host.title), paths.relative(f"fleet.md#host-{entry.host}", here)),
        line(text("card:"), card),
        text("availability-gated: it answers only while its host is left on") if gated else NOTHING,
        by=" · ",
    )


def _decisions(atlas: Atlas, spot: Spot) -> Iterator[ENTRY]:
    """Show first the decisions that wait for somebody, then those that stand, each leading to its row."""
    groups: dict[Decision, list[Markdown]] = {}
    for _, cell in atlas.cells(spot):
        named = link(text(TECHNIQUE_TITLES[cell.technique]), f"#technique-{cell.technique.value}")
        groups.setdefault(cell.decision, []).append(named)
    rest = groups.pop(Decision.NOT_APPLICABLE, [])
    for label, waits in (("waits for somebody", True), ("decided", False)):
        told = [
            line(chip(decision, "#techniques"), line(*groups[decision], by=", "))
            for decision in Decision
            if decision in groups and (decision in _WAITING) is waits
        ]
        if told:
            yield label, line(*told, by="<br>")
    if rest:
        yield "does not apply", span(line(*rest, by=", "), "note")


def _identity(atlas: Atlas, spot: Spot, entry: Service, here: str) -> Markdown:
    """Show what else the inventory says of a service."""
    return paragraphs(heading(2, text("What it is"), "identity"), entries(_declared(atlas, spot, entry, here)))


def _declared(atlas: Atlas, spot: Spot, entry: Service, here: str) -> Iterator[ENTRY]:
    fleet = atlas.corpus.fleet
    service = atlas.service_view(spot)
    told = service is not None and service.known.claims
    if entry.model is not None:
        size = entry.model.parameters
        yield "parameters", unknown(size) if isinstance(size, Unknown) else text(size)
    yield "kind", kind_claims(atlas, spot.name, service.known, here) if service and told else text(entry.kind.value)
    yield "address", _address(entry)
    if entry.clients:
        yield "clients", text(", ".join(fleet.clients[name].title for name in entry.clients))
    if entry.governed_by:
        yield "governed by", text(entry.governed_by)
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


def _reached(atlas: Atlas, spot: Spot, runs: tuple[Run, ...], here: str) -> Markdown:
    """Tell what the service did when it was last asked, by a survey or by a run of its own."""
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    found = next(((run, run.endpoint) for run in runs if run.endpoint is not None), None)
    asked = atlas.asked(spot.name) if spot.scope == FLEET else None
    newest = max((pair for pair in (found, asked) if pair), key=lambda pair: pair[0].started_at, default=None)
    if newest is None:
        return line(not_measured("no run has asked it yet; this asks:"), code(_probe(spot)))
    run, endpoint = newest
    when = line(
        text("asked from"), text(run.client.alias), dated(run.date, atlas.today, limit), atlas.run(here, run.id, text("run"))
    )
    detail = span(text(endpoint.detail), "detail") if endpoint.detail else NOTHING
    path = atlas.run_paths.get(run.id)
    place = "survey" if run.kind is RunKind.SURVEY else "conditions"
    state = chip(endpoint.state, paths.relative(f"{path}#{place}", here) if path else "")
    return line(state, detail, span(when, "note"), by="<br>")


def _measure(atlas: Atlas, spot: Spot) -> Markdown:
    """Give the commands that ask the service and that measure it, within the limits the inventory gives it."""
    parts = [text("What it is and what it has switched on, by asking it:"), fenced(_probe(spot), "sh")]
    service = atlas.service_view(spot)
    if service is not None and service.kind is ServiceKind.TEXT_GENERATION:
        side = spot.name if spot.scope == FLEET else EMBEDDED
        parts += [text("All eight quantities of the measurement contract:"), fenced(f"python -m probes contract {side}", "sh")]
        if side == EMBEDDED:
            told = text("A setting off and on by turns, with a verdict:")
            parts += [told, fenced(f"nox -s compare -- {side}:CONTROL=VALUE {side}", "sh")]
    return paragraphs(*parts)


def _probe(spot: Spot) -> str:
    return f"nox -s probe -- --service {spot.name if spot.scope == FLEET else EMBEDDED}"


def _questions(entry: Service | None) -> Markdown:
    if entry is None or not entry.questions:
        return NOTHING
    return paragraphs(heading(2, text("Open questions"), "questions"), bullets(text(question) for question in entry.questions))


def _techniques(atlas: Atlas, spot: Spot, here: str) -> Markdown:
    cells = atlas.cells(spot)
    if not cells:
        return text("No technique is assessed for this service.")
    body = [
        (
            line(
                anchor(f"technique-{cell.technique.value}"),
                link(text(TECHNIQUE_TITLES[cell.technique]), why_target(cell.technique, spot.scope, here), "technique"),
                by="",
            ),
            line(
                chip(cell.state, why_target(cell.technique, spot.scope, here)),
                *(span(line(text("drift:"), link(text(one), "#settings")), "drift") for one in _drifts(atlas, spot, cell)),
                by="<br>",
            ),
            chip(cell.decision, why_target(cell.technique, spot.scope, here)),
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


def _capabilities(atlas: Atlas, runs: tuple[Run, ...], here: str) -> Markdown:
    found = next((run for run in runs if run.capabilities), None)
    if found is None:
        return NOTHING
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    by = span(line(text("by"), atlas.run(here, found.id), dated(found.date, atlas.today, limit)), "meta")
    return paragraphs(heading(2, text("Capabilities"), "capabilities"), by, capability_table(found.capabilities, here))


def _records(atlas: Atlas, spot: Spot, runs: tuple[Run, ...], here: str) -> Markdown:
    """List the records that speak of this service alone or rest on one of its runs."""
    own = {run.id for run in runs}
    scope = f"{FLEET}/{spot.name}" if spot.scope == FLEET else spot.scope
    found = [one for one in atlas.records if one.scope == scope or own & {cited.id for cited in one.evidence}]
    return paragraphs(heading(2, text("Records"), "records"), record_table(atlas, found, here)) if found else NOTHING
