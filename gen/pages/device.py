"""A page per device: what shares it, what it accepts when asked, and what its runtime lets be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from gen import paths
from gen.benchmarks import BENCHMARKS
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
from gen.pages.atlas import Atlas, Spot
from gen.pages.capabilities import capability_counts, capability_table
from gen.pages.conditions import ENTRY, entries
from gen.pages.fleet_map import asked, device_facts, load_of
from gen.pages.machine import machine_link
from gen.pages.marks import dated, known, legend, not_measured, unknown
from gen.pages.measured import pictures
from gen.pages.page import Page
from gen.pages.run import run_table
from gen.placement import services_on, services_open, shared
from gen.tables import Layout, columns, table
from gen.techniques.wording import speaks_for
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Capability, CapabilityState, Device, ProvenanceKind, Run, RunKind
from probes.fleet import Service, Unknown


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write a page per device of the inventory and per device found on a local machine."""
    for spot in atlas.devices:
        yield _declared(atlas, spot) if spot.scope == FLEET else _local(atlas, spot)


def _declared(atlas: Atlas, spot: Spot) -> Page:
    here, fleet = atlas.device_paths[spot], atlas.corpus.fleet
    device = fleet.devices[spot.name]
    if isinstance(device.host, Unknown):
        host = unknown(device.host)
    else:
        host = link(text(fleet.hosts[device.host].title), paths.relative(f"fleet.md#host-{device.host}", here))
    load = list(load_of(atlas, services_on(fleet, spot.name), here))
    identity: list[ENTRY] = [
        ("vendor", text(device.vendor)),
        ("host", host),
        ("memory", device_facts(atlas, spot.name, here)),
        ("load and memory in use", line(*load, by="<br>") or not_measured("no run of a service on it tells")),
        ("declared", dated(device.as_of or fleet.as_of, atlas.today, fleet.policies.freshness.declaration_days)),
    ]
    if spot.name in fleet.operations.capacity_schedulers:
        identity.append(("capacity scheduler", text(fleet.operations.capacity_schedulers[spot.name])))
    body = paragraphs(
        entries(identity),
        legend(here),
        heading(2, text("Who uses it"), "tenants"),
        _tenants(atlas, spot, here),
        _incidents(atlas, spot),
        heading(2, text("Capabilities"), "capabilities"),
        not_measured("no run of this inventory's devices is in the evidence"),
        text("On the host that holds this card, this asks it for each setting by running it:"),
        fenced("nox -s probe -- devices", "sh"),
    )
    return Page(path=here, title=device.title, body=body, trail=(("Matrix", "index.md"), ("Fleet", "fleet.md")))


def _tenants(atlas: Atlas, spot: Spot, here: str) -> Markdown:
    """List who is declared to use the card, and who may while nobody has said."""
    fleet = atlas.corpus.fleet
    limit, sign = fleet.policies.freshness.declaration_days, span(text("declared on it"), "known", "known-declared")
    declared = [
        (name, line(sign, dated(fleet.services[name].as_of or fleet.as_of, atlas.today, limit)))
        for name in services_on(fleet, spot.name)
    ]
    open_ones = [(name, _left_open(fleet.services[name])) for name in services_open(fleet, spot.name)]
    body = [
        (
            atlas.service(here, Spot(scope=FLEET, name=name)),
            line(how, text(f"shares {shared(fleet, name)}") if shared(fleet, name) else NOTHING, by=" <br>"),
            asked(atlas, name, here),
        )
        for name, how in (*declared, *open_ones)
    ]
    if not body:
        return text("No service is declared on it, and none is left open that may be.")
    return table(columns("Service", "On this card?", "When last asked"), body, Layout.CARDS, "tenants")


def _left_open(service: Service) -> Markdown:
    return unknown(service.device) if isinstance(service.device, Unknown) else NOTHING


def _incidents(atlas: Atlas, spot: Spot) -> Markdown:
    found = [one for one in atlas.corpus.fleet.operations.incidents if spot.name in one.devices]
    if not found:
        return NOTHING
    told = bullets(sentence(f"{one.what}, after {one.cause} ({TECHNIQUE_TITLES[one.technique]})") for one in found)
    return paragraphs(heading(2, text("What went wrong here"), "incidents"), told)


def _local(atlas: Atlas, spot: Spot) -> Page:
    here = atlas.device_paths[spot]
    runs = atlas.runs_on(spot)
    newest = next((run for run in runs if run.kind is RunKind.DEVICES), runs[0])
    shown = newest.device if isinstance(newest.device, Device) else Device(name=spot.name, full_name=spot.name)
    identity: list[ENTRY] = [
        ("name in its runtime", code(shown.name)),
        ("full name", text(shown.full_name)),
        ("machine", line(machine_link(atlas, spot.scope, here), span(text("local"), "badge"))),
        ("last looked at", dated(newest.date, atlas.today, atlas.corpus.fleet.policies.freshness.evidence_days)),
        ("run", atlas.run(here, newest.id)),
    ]
    body = paragraphs(
        entries(identity),
        heading(2, text("Capabilities"), "capabilities"),
        _capabilities(atlas, _of_one_runtime(runs, newest), here),
        _measured(atlas, runs, here),
        heading(2, text("Properties"), "properties"),
        _properties(shown),
        heading(2, text("Runs"), "runs"),
        run_table(atlas, runs, here),
    )
    title = f"{shown.name}: {shown.full_name}"
    return Page(path=here, title=title, body=body, trail=(("Matrix", "index.md"), ("Machines", "machines/index.md")))


def _of_one_runtime(runs: Sequence[Run], newest: Run) -> list[Run]:
    """Give the device runs, newest first, that speak of the runtime which the newest one found."""
    return [newest] + [
        run
        for run in runs
        if run is not newest and run.kind is RunKind.DEVICES and run.validity.valid and run.runtime == newest.runtime
    ]


def _capabilities(atlas: Atlas, runs: Sequence[Run], here: str) -> Markdown:
    """Show what each run was answered that no newer one was: a short run must not hide what a whole one proved."""
    newest = runs[0]
    if newest.kind is not RunKind.DEVICES or not any(run.capabilities for run in runs):
        return not_measured("no run asked this device for anything")
    answers: list[tuple[Run, list[Capability]]] = []
    told: set[tuple[str, str]] = set()
    for run in runs:
        answered = [one for one in run.capabilities if one.state is not CapabilityState.SKIPPED and _key(one) not in told]
        told |= {_key(one) for one in answered}
        answers.append((run, answered))
    left = [*{_key(one): one for run in reversed(runs) for one in run.capabilities if _key(one) not in told}.values()]
    every = [*(one for _, answered in answers for one in answered), *left]
    shown = [
        text("Each was asked for by running it, not by reading a property. A count leads to the first row that it counts."),
        capability_counts(every, here),
    ]
    for run, answered in answers:
        if answered and run is newest:
            shown += [_by(atlas, run, here), capability_table(answered, here, every)]
        elif answered:
            proven = paragraphs(_by(atlas, run, here), capability_table(answered, here, every))
            shown.append(details(text(f"{len(answered)} proven by an earlier run and not asked since"), proven, "data"))
    if left:
        shown.append(details(text(f"{len(left)} never tried yet"), capability_table(left, here, every), "data"))
    return paragraphs(*shown)


def _by(atlas: Atlas, run: Run, here: str) -> Markdown:
    """Say which run the rows below are from, how old it is, and what it speaks for."""
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    by = line(known(ProvenanceKind.MEASURED), text("by"), atlas.run(here, run.id), text(f"for {speaks_for(run)} on"))
    return span(line(by, dated(run.date, atlas.today, limit)), "meta")


def _key(capability: Capability) -> tuple[str, str]:
    return capability.name, capability.requested


def _measured(atlas: Atlas, runs: Sequence[Run], here: str) -> Markdown:
    """Show each technique off and on, as far as it was measured on this device."""
    shown = pictures(atlas, [run for run in runs if run.kind is RunKind.MICRO], BENCHMARKS, here, level=3)
    told = text(
        "Each technique off and on in turn, a sample per repetition; the first arm is what the others are held against."
    )
    return paragraphs(heading(2, text("What techniques are worth here"), "measured"), told, shown) if shown else NOTHING


def _properties(device: Device) -> Markdown:
    if not device.properties:
        return not_measured("its runtime let no property be read")
    body = [(code(name), _value(value)) for name, value in sorted(device.properties.items())]
    shown = table(columns("Property", "Value"), body, Layout.GRID, "properties", facets=())
    return details(text(f"{len(body)} properties as the runtime reports them"), shown, "data")


def _value(value: JsonValue) -> Markdown:
    if value is None or value == "":
        return span(text("empty"), "absent")
    return text(value) if isinstance(value, str) else code(json.dumps(value, ensure_ascii=False))
