"""The fleet as declared: a map of hosts, cards and services, then services, clients, operations and policies."""

from __future__ import annotations

from collections.abc import Iterator

from gen.markdown import NOTHING, Markdown, anchor, bullets, heading, line, paragraphs, sifted, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.conditions import ENTRY, entries
from gen.pages.fleet_map import asked, fleet_map
from gen.pages.marks import dated, legend, not_measured, unknown
from gen.pages.page import Page
from gen.tables import Layout, columns, table
from gen.techniques.wording import amount
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES
from probes.fleet import Service, Unknown

HERE = "fleet.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the fleet's page."""
    fleet = atlas.corpus.fleet
    limit = fleet.policies.freshness.declaration_days
    meta = line(text("declared"), dated(fleet.as_of, atlas.today, limit), text(f"in fleet.yml, from {fleet.source}"))
    body = paragraphs(
        Markdown(span(meta, "meta")),
        heading(2, text("Who runs where"), "hosts"),
        _intro(atlas),
        fleet_map(atlas, HERE),
        heading(2, text("Services"), "services"),
        _services(atlas),
        heading(2, text("Clients"), "clients"),
        _clients(atlas),
        heading(2, text("Operations"), "operations"),
        entries(list(_operations(atlas))),
        _incidents(atlas),
        heading(2, text("Policies"), "policies"),
        entries(list(_policies(atlas))),
        _questions(atlas),
    )
    yield Page(path=HERE, title=f"Fleet: {fleet.name}", body=body, trail=(("Matrix", "index.md"),))


def _services(atlas: Atlas) -> Markdown:
    body = [
        (
            atlas.service(HERE, Spot(scope=FLEET, name=name)),
            text(service.kind.value),
            line(sifted(text(service.runtime.value), facet=service.runtime.value), _version(service), by="<br>"),
            _where(atlas, service),
            _asked(atlas, name),
        )
        for name, service in atlas.corpus.fleet.services.items()
    ]
    return table(
        columns("Service", "Kind", "Runtime", "Where", "When last asked"),
        body,
        Layout.CARDS,
        "services",
        facets=("Kind", "Runtime"),
    )


def _version(service: Service) -> Markdown:
    version = service.runtime_version
    return unknown(version) if isinstance(version, Unknown) else span(text(version), "note")


def _where(atlas: Atlas, service: Service) -> Markdown:
    fleet = atlas.corpus.fleet
    host = unknown(service.host) if isinstance(service.host, Unknown) else text(fleet.hosts[service.host].title)
    device = service.device
    card = unknown(device) if isinstance(device, Unknown) else atlas.device(HERE, Spot(scope=FLEET, name=device))
    return line(host, card, by="<br>")


def _asked(atlas: Atlas, name: str) -> Markdown:
    found = atlas.asked(name)
    if found is None:
        return not_measured("nobody has asked")
    run, _ = found
    whom = line(text("from"), text(run.client.alias), atlas.run(HERE, run.id, text("run")))
    return line(asked(atlas, name, HERE), span(whom, "note"), by=" <br>")


def _intro(atlas: Atlas) -> Markdown:
    """Say how to read the boxes, and how much of them is open."""
    fleet = atlas.corpus.fleet
    told = "A box is a host, a box in it a card, and a line in that a service. A dashed box holds what nobody has settled."
    open_ones = sum(isinstance(service.device, Unknown) for service in fleet.services.values())
    if open_ones:
        told += f" Nobody has said yet which card serves {open_ones} of the {len(fleet.services)} services."
    return paragraphs(line(anchor("devices"), text(told), by=""), legend(HERE))


def _clients(atlas: Atlas) -> Markdown:
    if not atlas.corpus.fleet.clients:
        return text("None is declared.")
    body = [
        (
            text(client.title),
            text("stable, large" if client.stable_prefix else "not declared as stable"),
            text(", ".join(client.admission_caps)) if client.admission_caps else span(text("none declared"), "absent"),
            text(", ".join(client.protects)) if client.protects else span(text("none declared"), "absent"),
            text("yes" if client.retries else "not declared"),
        )
        for client in atlas.corpus.fleet.clients.values()
    ]
    head = columns("Client", "Prompt prefix", "Admission caps", "Protects", "Retries")
    return table(head, body, Layout.CARDS, "clients")


def _operations(atlas: Atlas) -> Iterator[ENTRY]:
    fleet, operations = atlas.corpus.fleet, atlas.corpus.fleet.operations
    none = span(text("none declared"), "absent")
    yield "alerts", text(", ".join(operations.alerts)) if operations.alerts else none
    eviction = operations.eviction
    yield "eviction", text(f"by {eviction.policy}, per {eviction.scope}") if eviction else none
    yield "reliability headroom", text("kept on purpose" if operations.reliability_headroom else "not declared")
    for device, scheduler in operations.capacity_schedulers.items():
        yield "capacity scheduler", line(text(scheduler), text("on"), atlas.device(HERE, Spot(scope=FLEET, name=device)))
    for technique, tracker in fleet.trackers.items():
        yield f"tracker: {TECHNIQUE_TITLES[technique]}", text(tracker)
    topology = fleet.topology
    pools = "; ".join(" + ".join(pool) for pool in topology.compatible_pools)
    yield "compatible prefill/decode pools", text(pools) if pools else none
    speed = topology.interconnect_gbit_s
    yield "interconnect", text(f"{speed:g} Gbit/s") if speed is not None else none
    yield "KV transfer", text(topology.kv_transfer) if topology.kv_transfer else none


def _incidents(atlas: Atlas) -> Markdown:
    found = atlas.corpus.fleet.operations.incidents
    if not found:
        return NOTHING
    items = [
        line(
            text(f"{one.what}, after {one.cause} ({TECHNIQUE_TITLES[one.technique]})"),
            *(atlas.device(HERE, Spot(scope=FLEET, name=device)) for device in one.devices),
        )
        for one in found
    ]
    return paragraphs(heading(3, text("Incidents that must not come back"), "incidents"), bullets(items))


def _policies(atlas: Atlas) -> Iterator[ENTRY]:
    gates, fresh = atlas.corpus.fleet.policies.gates, atlas.corpus.fleet.policies.freshness
    yield "gate for latency", text(f"{gates.latency_percent:g} %")
    yield "gate for throughput", text(f"{gates.throughput_percent:g} %")
    yield "gate for errors and out-of-memory", text(f"{gates.error_rate:g} of all requests")
    yield "gate for task quality", text(amount(gates.quality_points, "point"))
    yield "evidence looks stale after", text(f"{fresh.evidence_days} days")
    yield "a declaration looks stale after", text(f"{fresh.declaration_days} days")
    yield "a source looks stale after", text(f"{fresh.source_days} days")
    yield "a record is reviewed after", text(f"{fresh.review_days} days")


def _questions(atlas: Atlas) -> Markdown:
    fleet = atlas.corpus.fleet
    asked = [text(question) for question in fleet.questions]
    asked += [
        line(atlas.service(HERE, Spot(scope=FLEET, name=name)), text(question), by=": ")
        for name, service in fleet.services.items()
        for question in service.questions
    ]
    if not asked:
        return NOTHING
    return paragraphs(heading(2, text("Open questions"), "questions"), bullets(asked))
