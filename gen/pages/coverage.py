"""Which techniques bear on which workload, why, and how it is known what each model is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gen import paths
from gen.coverage import WorkloadCoverage, coverage
from gen.markdown import NOTHING, Markdown, anchor, bullets, code, fenced, heading, line, link, paragraphs, sentence, span, text
from gen.modelkind import Claim, KnownKind
from gen.pages.atlas import Atlas, Spot
from gen.pages.machine import machine_link
from gen.pages.marks import age_limit, chip, dated, known, legend
from gen.pages.page import Page
from gen.pages.workloads import technique_tables
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Applicability
from gen.workloads import measured_workloads
from probes.evidence import ProvenanceKind, Technique, slug

HERE = "coverage.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of workloads."""
    kinds = {service.name: service.known for service in atlas.fleet.services}
    rows = coverage(atlas.corpus.fleet, atlas.corpus.knowledge, kinds)
    overview = table(
        columns("Workload", "What it is", "What governs it", "Applies", "In another form", "Does not apply"),
        [
            (
                link(text(row.title), f"#{slug(row.workload)}", "technique"),
                _what_they_are(atlas, [kinds[name] for name in row.services]),
                sentence(row.summary),
                _named(row, Applicability.APPLIES),
                _in_another_form(row),
                _named(row, Applicability.DOES_NOT_APPLY),
            )
            for row in rows
        ],
        Layout.CARDS,
        "coverage",
    )
    intro = text(
        "A technique bears on a workload because of what its models do, never because of what they are called. What a model is "
        "comes from its files or from its own answers; where neither is at hand, the inventory's word stands, as declared."
    )
    own = [_workload(atlas, row, kinds) for row in rows]
    body = paragraphs(intro, legend(HERE), overview, *own, _left_out(atlas, rows), *_measured(atlas))
    yield Page(path=HERE, title="Workload coverage", body=body, trail=(("Matrix", "index.md"),))


def _what_they_are(atlas: Atlas, found: list[KnownKind]) -> Markdown:
    """Name the kinds of a workload's models, each with the strongest way in which it is known and its oldest day."""
    oldest: dict[tuple[str, ProvenanceKind], date] = {}
    for one in found:
        strongest = one.strongest
        key = one.model.value if one.model else one.word.value, strongest.provenance if strongest else ProvenanceKind.DECLARED
        day = strongest.date if strongest else atlas.corpus.fleet.as_of
        oldest[key] = min(day, oldest.get(key, day))
    freshness = atlas.corpus.fleet.policies.freshness
    told = (
        line(text(kind), span(line(known(how), dated(day, atlas.today, age_limit(how, freshness))), "note"))
        for (kind, how), day in oldest.items()
    )
    return line(*told, by=" <br>")


def kind_claims(atlas: Atlas, name: str, one: KnownKind, here: str) -> Markdown:
    """Tell everything that says what a service's model is, the strongest first, and whether it agrees."""
    entry, fleet = atlas.corpus.fleet.services[name], atlas.corpus.fleet
    declared = dated(entry.as_of or fleet.as_of, atlas.today, fleet.policies.freshness.declaration_days)
    word = line(text(one.word.value), known(ProvenanceKind.DECLARED), span(line(text("in the inventory"), declared), "note"))
    said = [_claim(atlas, claim, here) for claim in one.claims]
    drifts = [span(text(f"drift: {drift}"), "drift") for drift in one.drift(atlas.corpus.knowledge)]
    return line(*said, word, *drifts, by=" <br>")


def _claim(atlas: Atlas, claim: Claim, here: str) -> Markdown:
    limit = age_limit(claim.provenance, atlas.corpus.fleet.policies.freshness)
    where = line(code(claim.where), dated(claim.date, atlas.today, limit), atlas.run(here, claim.run, text("run")))
    return line(text(claim.kind.value), known(claim.provenance), span(where, "note"))


def _named(row: WorkloadCoverage, wanted: Applicability) -> Markdown:
    """Name the techniques that bear so, each leading to the row that says why."""
    found = [technique for technique, one in row.bearings if one.applicability is wanted]
    titles = [link(text(TECHNIQUE_TITLES[technique]), f"#{_mark(row, technique)}") for technique in found]
    return line(*titles, by=", ") or span(text("none"), "note")


def _in_another_form(row: WorkloadCoverage) -> Markdown:
    """Tell what applies in another form from what only its host can settle."""
    found = {one.applicability for _, one in row.bearings}
    parts = [_named(row, Applicability.DIFFERENT)] if Applicability.DIFFERENT in found else []
    if Applicability.ON_HOST in found:
        parts.append(line(text(f"{Applicability.ON_HOST.value}:"), _named(row, Applicability.ON_HOST)))
    return line(*parts, by="<br>") or span(text("none"), "note")


def _mark(row: WorkloadCoverage, technique: Technique) -> str:
    return f"{slug(row.workload)}-{technique.value}"


def _workload(atlas: Atlas, row: WorkloadCoverage, kinds: dict[str, KnownKind]) -> Markdown:
    services = bullets(
        line(
            line(atlas.service(HERE, Spot(scope=FLEET, name=name)), by=""),
            kind_claims(atlas, name, kinds[name], HERE),
            by=": ",
        )
        for name in row.services
    )
    body = [
        (
            line(
                anchor(_mark(row, technique)),
                link(text(TECHNIQUE_TITLES[technique]), paths.relative(f"techniques/{technique.value}.md", HERE), "technique"),
                by="",
            ),
            chip(one.applicability),
            sentence(one.why),
        )
        for technique, one in row.bearings
    ]
    return paragraphs(
        heading(2, text(row.title), slug(row.workload)),
        text("Services, and how it is known what each of them serves:"),
        services,
        _slo(atlas, row.workload),
        table(columns("Technique", "Bearing", "Why"), body, Layout.CARDS, "bearing"),
    )


def _slo(atlas: Atlas, name: str) -> Markdown:
    """Say what a request of the workload has to keep, where the inventory does."""
    fleet = atlas.corpus.fleet
    slo = fleet.workloads[name].slo
    if slo is None:
        return NOTHING
    bounds = ", ".join(f"{metric} {bound:g}" for metric, bound in slo.bounds.items())
    told = text(f"SLO: {bounds}; declared")
    return span(line(told, dated(slo.as_of or fleet.as_of, atlas.today), text(f"by {slo.source or fleet.source}")), "meta")


def _left_out(atlas: Atlas, rows: tuple[WorkloadCoverage, ...]) -> Markdown:
    covered = {service for row in rows for service in row.services}
    others = [name for name in atlas.corpus.fleet.services if name not in covered]
    if not others:
        return NOTHING
    named = line(*(atlas.service(HERE, Spot(scope=FLEET, name=name)) for name in others), by=", ")
    return paragraphs(heading(2, text("In no workload"), "in-no-workload"), named)


def _measured(atlas: Atlas) -> Iterator[Markdown]:
    """Show the models that machines ran, where nothing is declared and everything was seen."""
    yield heading(2, text("Models that write no text, run for real"), "measured")
    found = [(scope, workloads) for scope in atlas.machine_paths if (workloads := measured_workloads(atlas.runs_in(scope)))]
    if not found:
        yield text("None was run yet. To run small ones that packages ship:")
        yield fenced("nox -s probe -- workloads", "sh")
        return
    yield text(
        "Small models that packages ship, compiled and asked on a machine: what does not apply to them was asked of the "
        "runtime, and its own words say so. Numbers stand on the page of the machine."
    )
    for number, (scope, workloads) in enumerate(found, 1):
        yield heading(3, text(f"On {atlas.client_alias(scope)}"), f"measured-{number}")
        yield line(text("Measured:"), machine_link(atlas, scope, HERE), span(text("local"), "badge"))
        yield technique_tables(atlas, workloads, HERE)
