"""A page per service: what was declared, what was seen, and what each technique means for it."""

from __future__ import annotations

from collections.abc import Iterator

from gen import paths
from gen.assess import EMBEDDED
from gen.markdown import NOTHING, Markdown, bullets, code, fenced, heading, line, link, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.capabilities import capability_table
from gen.pages.conditions import ENTRY, entries
from gen.pages.machine import machine_link
from gen.pages.marks import chip, dated, not_measured, scalar, unknown
from gen.pages.page import Page
from gen.pages.run import run_table
from gen.pages.technique import known_facts
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES
from probes.evidence import ProvenanceKind, Run, RunKind, Scalar, Setting
from probes.fleet import Declared, RuntimeName, Service, Unknown, reference_name

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
        entries([*_identity(atlas, spot, entry, here), *_reached(atlas, spot, runs, here)]),
        _questions(entry),
        heading(2, text("Settings"), "settings"),
        _settings(atlas, spot, runs, here),
        heading(2, text("Techniques"), "techniques"),
        _techniques(atlas, spot, here),
        _capabilities(runs),
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
    yield "kind", text(entry.kind.value)
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
    yield "declared", dated(entry.as_of or fleet.as_of, atlas.today, fleet.policies.freshness.declaration_days)


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


def _questions(entry: Service | None) -> Markdown:
    if entry is None or not entry.questions:
        return NOTHING
    return paragraphs(heading(2, text("Open questions"), "questions"), bullets(text(question) for question in entry.questions))


def _settings(atlas: Atlas, spot: Spot, runs: tuple[Run, ...], here: str) -> Markdown:
    declared = atlas.corpus.fleet.declared(spot.name) if spot.scope == FLEET else _embedded(atlas, spot, runs)
    seen = {kinds: _newest(runs, kinds) for kinds in (_SEEN, (ProvenanceKind.INFERRED,))}
    observed, inferred = seen.values()
    controls = sorted({*declared, *observed, *inferred}, key=lambda control: (control not in declared, control))
    if not controls:
        return text("None is declared, and no run has seen one.")
    limit = atlas.corpus.fleet.policies.freshness.declaration_days
    body = []
    for control in controls:
        said = declared.get(control)
        stated = span(text("not declared"), "absent")
        if said is not None:
            stated = line(scalar(said.value), span(dated(said.as_of, atlas.today, limit), "note"))
        body.append(
            (
                code(control),
                stated,
                _seen(atlas, observed.get(control), here),
                _seen(atlas, inferred.get(control), here),
                _agreement(said, observed.get(control), inferred.get(control)),
            )
        )
    return table(columns("Control", "Declared", "Observed", "Inferred", "Drift"), body, Layout.CARDS, "settings")


def _embedded(atlas: Atlas, spot: Spot, runs: tuple[Run, ...]) -> dict[str, Declared]:
    """Give what the inventory declares for the embedded service, and what a machine's runs say was declared."""
    fleet, found = atlas.corpus.fleet, _newest(runs, (ProvenanceKind.DECLARED,))
    settings = fleet.embedded.settings if spot.name == EMBEDDED else {}
    declared = {name: Declared(value=value, as_of=fleet.as_of, source=fleet.source) for name, value in settings.items()}
    return declared | {
        control: Declared(value=setting.value, as_of=setting.provenance.date, source=setting.provenance.source)
        for control, (_, setting) in found.items()
    }


def _newest(runs: tuple[Run, ...], kinds: tuple[ProvenanceKind, ...]) -> dict[str, tuple[Run, Setting]]:
    found: dict[str, tuple[Run, Setting]] = {}
    for run in runs:
        if run.kind is not RunKind.ENDPOINT or not run.validity.valid:
            continue
        for setting in run.settings:
            if setting.provenance.kind in kinds:
                found.setdefault(setting.control, (run, setting))
    return found


def _seen(atlas: Atlas, found: tuple[Run, Setting] | None, here: str) -> Markdown:
    if found is None:
        return not_measured()
    run, setting = found
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    when = line(dated(setting.provenance.date, atlas.today, limit), atlas.run(here, run.id, text("run")))
    return line(scalar(setting.value), span(when, "note"))


def _agreement(declared: Declared | None, *seen: tuple[Run, Setting] | None) -> Markdown:
    values: list[Scalar] = [pair[1].value for pair in seen if pair]
    if declared is None or not values:
        return span(text("nothing to compare"), "note")
    if all(_same(declared.value, value) for value in values):
        return span(text("agrees"), "ok")
    return span(text("drift"), "drift")


def _same(one: Scalar, other: Scalar) -> bool:
    return str(one).casefold() == str(other).casefold()


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
            line(chip(cell.state), *(span(text(f"drift: {one}"), "drift") for one in cell.drift), by="<br>"),
            chip(cell.decision),
            line(sentence(cell.summary), span(text(cell.applicability.value), "note"), by="<br>"),
            known_facts(atlas, cell.facts, here),
        )
        for _, cell in cells
    ]
    return table(columns("Technique", "State", "Decision", "What it means here", "Known"), body, Layout.CARDS, "cells")


def _capabilities(runs: tuple[Run, ...]) -> Markdown:
    found = next((run for run in runs if run.capabilities), None)
    if found is None:
        return NOTHING
    return paragraphs(heading(2, text("Capabilities"), "capabilities"), capability_table(found.capabilities))
