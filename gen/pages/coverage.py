"""Which techniques bear on which workload, and why."""

from __future__ import annotations

from collections.abc import Iterator

from gen import paths
from gen.coverage import WorkloadCoverage, coverage
from gen.markdown import NOTHING, Markdown, heading, line, link, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.marks import chip, dated
from gen.pages.page import Page
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES, Applicability
from probes.evidence import slug

HERE = "coverage.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of workloads."""
    rows = coverage(atlas.corpus.fleet, atlas.corpus.knowledge)
    overview = table(
        columns("Workload", "What governs it", "Applies", "In another form", "Does not apply"),
        [
            (
                link(text(row.title), f"#{slug(row.workload)}", "technique"),
                sentence(row.summary),
                _named(row, Applicability.APPLIES),
                _named(row, Applicability.DIFFERENT, Applicability.ON_HOST),
                _named(row, Applicability.DOES_NOT_APPLY),
            )
            for row in rows
        ],
        Layout.CARDS,
        "coverage",
    )
    intro = text("A technique bears on a workload because of what its models do, never because of what they are called.")
    body = paragraphs(intro, overview, *(_workload(atlas, row) for row in rows), _left_out(atlas, rows))
    yield Page(path=HERE, title="Workload coverage", body=body, trail=(("Matrix", "index.md"),))


def _named(row: WorkloadCoverage, *wanted: Applicability) -> Markdown:
    found = [(technique, one) for technique, one in row.bearings if one.applicability in wanted]
    titles = [
        line(
            link(text(TECHNIQUE_TITLES[technique]), paths.relative(f"techniques/{technique.value}.md", HERE)),
            span(text(f"({one.applicability.value})"), "note") if one.applicability is Applicability.ON_HOST else NOTHING,
        )
        for technique, one in found
    ]
    return line(*titles, by=", ") or span(text("none"), "note")


def _workload(atlas: Atlas, row: WorkloadCoverage) -> Markdown:
    services = line(*(atlas.service(HERE, Spot(scope=FLEET, name=name)) for name in row.services), by=", ")
    body = [
        (
            link(text(TECHNIQUE_TITLES[technique]), paths.relative(f"techniques/{technique.value}.md", HERE), "technique"),
            chip(one.applicability),
            sentence(one.why),
        )
        for technique, one in row.bearings
    ]
    return paragraphs(
        heading(2, text(row.title), slug(row.workload)),
        span(line(text("Services:"), services), "meta"),
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
