"""The fleet as declared: services, devices and who shares them, hosts, clients, operations, policies."""

from __future__ import annotations

from collections.abc import Iterator

from gen.markdown import NOTHING, Markdown, bullets, heading, line, paragraphs, sentence, sifted, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.conditions import ENTRY, entries
from gen.pages.marks import chip, dated, not_measured, unknown
from gen.pages.page import Page
from gen.tables import Layout, columns, table
from gen.techniques.wording import amount
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES
from probes.fleet import CoTenant, Service, Unknown

HERE = "fleet.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the fleet's page."""
    fleet = atlas.corpus.fleet
    limit = fleet.policies.freshness.declaration_days
    meta = line(text("declared"), dated(fleet.as_of, atlas.today, limit), text(f"in fleet.yml, from {fleet.source}"))
    body = paragraphs(
        Markdown(span(meta, "meta")),
        heading(2, text("Services"), "services"),
        _services(atlas),
        heading(2, text("Devices and who uses them"), "devices"),
        _devices(atlas),
        heading(2, text("Hosts"), "hosts"),
        _hosts(atlas),
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
    run, endpoint = found
    when = line(
        dated(run.date, atlas.today, atlas.corpus.fleet.policies.freshness.evidence_days), text("from"), text(run.client.alias)
    )
    return line(chip(endpoint.state), span(line(when, atlas.run(HERE, run.id, text("run"))), "note"), by="<br>")


def _devices(atlas: Atlas) -> Markdown:
    fleet = atlas.corpus.fleet
    body = []
    for name, device in fleet.devices.items():
        users = [atlas.service(HERE, Spot(scope=FLEET, name=key)) for key, one in fleet.services.items() if one.device == name]
        body.append(
            (
                atlas.device(HERE, Spot(scope=FLEET, name=name)),
                text(device.vendor),
                unknown(device.host) if isinstance(device.host, Unknown) else text(fleet.hosts[device.host].title),
                line(*users, by="<br>") or span(text("no service is declared on it"), "absent"),
            )
        )
    homeless = sum(isinstance(service.device, Unknown) for service in fleet.services.values())
    note = text(f"Of {homeless} services nobody has said which device serves them; each page holds its question.")
    shared = bullets(_shared(atlas, pair) for pair in fleet.co_tenants)
    shown = table(columns("Device", "Vendor", "Host", "Services declared on it"), body, Layout.CARDS, "devices")
    return paragraphs(shown, note if homeless else NOTHING, shared)


def _shared(atlas: Atlas, pair: CoTenant) -> Markdown:
    card = unknown(pair.device) if isinstance(pair.device, Unknown) else atlas.device(HERE, Spot(scope=FLEET, name=pair.device))
    return line(atlas.service(HERE, Spot(scope=FLEET, name=pair.tenant)), text(f"shares {pair.resource} on"), card)


def _hosts(atlas: Atlas) -> Markdown:
    body = [
        (
            Markdown(f'<span id="host-{name}">{text(host.title)}</span>'),
            text(host.role),
            text("only while its owner leaves it on" if host.availability_gated else "always"),
            sentence(host.note) if host.note else span(text("none"), "note"),
        )
        for name, host in atlas.corpus.fleet.hosts.items()
    ]
    return table(columns("Host", "Role", "Available", "Note"), body, Layout.CARDS, "hosts")


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
