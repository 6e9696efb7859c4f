"""The fleet as boxes: hosts, the cards in each, the services on each card, and in dashed boxes what nobody has settled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen.markdown import NOTHING, Markdown, block, bullets, heading, line, link, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.marks import age_limit, chip, dated, known, unknown
from gen.paths import relative
from gen.placement import cards_of, cards_open, homeless, services_on, shared
from gen.planners.kv_capacity import pool_of
from gen.planners.plan import Gap
from gen.spread import summary
from gen.techniques.wording import listing
from gen.view import FLEET
from probes.evidence import Metric, ProvenanceKind, Run
from probes.fleet import Host, RuntimeName, ServiceKind, Unknown

# What tells how busy a card is, or how full: on the server's own count, or read on its machine.
_LOAD = ("server_requests_running", "server_requests_waiting", "server_kv_cache_usage", "vram_bytes", "device_resets")


def fleet_map(atlas: Atlas, here: str) -> Markdown:
    """Draw hosts around cards around services; it reads in order without a style sheet, on a phone and in print."""
    hosts = atlas.corpus.fleet.hosts
    boxes = [_host(atlas, name, host, here) for name, host in hosts.items()]
    return block(paragraphs(*boxes, _nowhere(atlas, here)), "map")


def device_facts(atlas: Atlas, device: str, here: str) -> Markdown:
    """Say what a card's maker tells of its memory; nothing where no source was looked up."""
    card = atlas.corpus.knowledge.card(atlas.corpus.fleet.devices[device].title)
    if card is None:
        return line(
            text("memory:"), span(text("not known"), "absent"), span(text("no source is listed for this card"), "detail")
        )
    limit = atlas.corpus.fleet.policies.freshness.source_days
    said = text(f"{card.memory_gib:g} GiB at {card.memory_gb_s:g} GB/s")
    checked = span(line(text("checked"), dated(card.checked, atlas.today, limit)), "note")
    return line(said, known(ProvenanceKind.DOCUMENTED), atlas.source(here, card.source), checked)


def load_of(atlas: Atlas, services: Sequence[str], here: str) -> Iterator[Markdown]:
    """Say how busy and how full a card was when a service on it was last measured; each run speaks for its own day."""
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    for name in services:
        run, found = _loaded(atlas, name)
        if run is not None:
            numbers = text("; ".join(f"{metric.name} {summary(metric)}" for metric in found))
            where = span(line(dated(run.date, atlas.today, limit), atlas.run(here, run.id, text("run"))), "note")
            yield line(atlas.service(here, Spot(scope=FLEET, name=name)), known(ProvenanceKind.MEASURED), numbers, where)


def asked(atlas: Atlas, service: str, here: str) -> Markdown:
    """Show what a service did when it was last asked, linked to its own words, and the day."""
    found = atlas.asked(service)
    if found is None:
        return span(text("not asked yet"), "absent")
    run, endpoint = found
    path = atlas.run_paths.get(run.id)
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    state = chip(endpoint.state, relative(f"{path}#survey", here) if path else "")
    return line(state, span(dated(run.date, atlas.today, limit), "note"))


def _loaded(atlas: Atlas, service: str) -> tuple[Run | None, tuple[Metric, ...]]:
    """Find the newest usable run of a service that tells how busy its card was."""
    for run in atlas.runs_of(Spot(scope=FLEET, name=service)):
        found = tuple(metric for metric in run.metrics if metric.name in _LOAD and metric.samples)
        if found and run.validity.valid:
            return run, found
    return None, ()


def _host(atlas: Atlas, name: str, host: Host, here: str) -> Markdown:
    fleet = atlas.corpus.fleet
    told = [text(host.role), text("availability-gated" if host.availability_gated else "always on")]
    told += [sentence(host.note)] if host.note else []
    cards = [_card(atlas, device, here) for device in cards_of(fleet, name)]
    loose = homeless(fleet, name)
    if loose:
        cards.append(_open_card(atlas, loose, here))
    maybe = [link(text(fleet.devices[device].title), f"#open-{device}") for device in cards_open(fleet, name)]
    return block(
        paragraphs(
            heading(3, text(host.title), f"host-{name}"),
            span(line(*told, by=" · "), "meta"),
            block(paragraphs(*cards), "box-row") if cards else text("No card and no service is declared here."),
            span(line(text("May also hold, which nobody has settled:"), line(*maybe, by=", ")), "note") if maybe else NOTHING,
        ),
        "box",
        "box-host",
    )


def _card(atlas: Atlas, device: str, here: str) -> Markdown:
    """Draw one card: what is known of its memory and its load, what guards it, and who is on it."""
    fleet = atlas.corpus.fleet
    users = services_on(fleet, device)
    load = list(load_of(atlas, users, here))
    unmeasured = span(text("not measured"), "absent")
    facts = [device_facts(atlas, device, here)]
    facts += load or [line(text("load and memory in use:"), unmeasured)]
    if device in fleet.operations.capacity_schedulers:
        facts.append(text(f"governed by the {fleet.operations.capacity_schedulers[device]}"))
    facts += [link(text(f"incident: {one.what}"), "#incidents") for one in fleet.operations.incidents if device in one.devices]
    on_it = bullets(_service(atlas, name, here) for name in users)
    return block(
        paragraphs(
            line(Markdown(f"<strong>{atlas.device(here, Spot(scope=FLEET, name=device))}</strong>")),
            *(span(fact, "note") for fact in facts),
            on_it if users else span(text("no service is declared on it"), "absent"),
        ),
        "box",
        "box-card",
    )


def _open_card(atlas: Atlas, services: Sequence[str], here: str) -> Markdown:
    """Draw the services of a host whose card nobody has named, each with its question."""
    fleet = atlas.corpus.fleet
    rows = []
    for name in services:
        device = fleet.services[name].device
        if isinstance(device, Unknown):
            among = listing(fleet.devices[one].title for one in device.among) if device.among else ""
            asked_for = line(unknown(device), span(text(f"({among})"), "note") if among else NOTHING)
            # Where breaks are not seen, in a search or aloud, a blank keeps the words apart.
            rows.append(line(_service(atlas, name, here), asked_for, by=" <br>"))
    return block(
        paragraphs(Markdown(f"<strong>{text('On a card that nobody has named')}</strong>"), bullets(rows)),
        "box",
        "box-card",
        "box-open",
    )


def _nowhere(atlas: Atlas, here: str) -> Markdown:
    """Draw the cards and services whose host is open."""
    fleet = atlas.corpus.fleet
    cards = []
    for name, device in fleet.devices.items():
        if isinstance(device.host, Unknown):
            place = Markdown(f'<span id="open-{name}">{unknown(device.host)}</span>')
            cards.append(paragraphs(_card(atlas, name, here), place))
    loose = homeless(fleet, None)
    if loose:
        cards.append(_open_card(atlas, loose, here))
    if not cards:
        return NOTHING
    title = heading(3, text("Host not settled"), "host-open")
    return block(paragraphs(title, block(paragraphs(*cards), "box-row")), "box", "box-host", "box-open")


def _service(atlas: Atlas, name: str, here: str) -> Markdown:
    """Name a service with what it is, what it takes of the card, and what it did when last asked."""
    fleet, spot = atlas.corpus.fleet, Spot(scope=FLEET, name=name)
    entry = fleet.services[name]
    if entry.runtime is RuntimeName.NONE:
        what = ServiceKind.MEDIA.value
    else:
        version = entry.runtime_version if isinstance(entry.runtime_version, str) else ""
        what = f"{entry.runtime.value} {version}".rstrip()
    parts = [text(what)]
    view = atlas.service_view(spot)
    pool = pool_of(atlas.fleet, view) if view is not None and entry.kind is ServiceKind.TEXT_GENERATION else None
    if pool is not None and not isinstance(pool, Gap):
        day = dated(pool.day, atlas.today, age_limit(pool.known, fleet.policies.freshness)) if pool.day else NOTHING
        parts.append(line(text(f"KV pool {pool.span.said()}"), known(pool.known), day))
    parts += [text(f"shares {shared(fleet, name)}")] if shared(fleet, name) else []
    parts += [text("availability-gated")] if entry.availability_gated else []
    state = NOTHING if entry.runtime is RuntimeName.NONE else asked(atlas, name, here)
    return line(atlas.service(here, spot), span(line(*parts, state, by=" · "), "note"))
