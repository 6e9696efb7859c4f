"""A page per measured machine: what it is, its own matrix, devices, services and runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen import paths
from gen.markdown import Markdown, bullets, code, details, fenced, heading, line, link, paragraphs, span, text
from gen.pages import sweeps, timelines
from gen.pages.atlas import Atlas
from gen.pages.conditions import entries, host_table
from gen.pages.marks import dated, legend
from gen.pages.matrix import brief, matrix
from gen.pages.page import Page
from gen.pages.run import run_table
from gen.pages.workloads import measured_table
from gen.tables import Layout, columns, table
from gen.workloads import measured_workloads
from probes.evidence import Run, RunKind

INDEX = "machines/index.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per machine that has evidence."""
    yield _index(atlas)
    for scope in atlas.machine_paths:
        yield _page(atlas, scope)


def machine_link(atlas: Atlas, scope: str, here: str) -> Markdown:
    """Link to a machine by the name it gives itself."""
    return link(text(atlas.client_alias(scope)), paths.relative(atlas.machine_paths[scope], here))


def _index(atlas: Atlas) -> Page:
    intro = text(
        "Machines outside the inventory, known by their hardware. None of them speaks for the fleet or for another one."
    )
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    body = [
        (
            machine_link(atlas, scope, INDEX),
            text(runs[0].client.cpu),
            code(scope.removeprefix("local-")),
            text(f"{len(runs)}"),
            dated(runs[0].date, atlas.today, limit),
        )
        for scope in atlas.machine_paths
        for runs in [atlas.runs_in(scope)]
    ]
    head = columns("Machine", "CPU", "Fingerprint", "Runs", "Last measured", numeric=["Runs"])
    none = paragraphs(text("None yet. To measure this one:"), fenced("nox -s probe", "sh"))
    shown = table(head, body, Layout.CARDS) if body else none
    return Page(
        path=INDEX, title="Measured machines", body=paragraphs(intro, shown), trail=(("Matrix", "index.md"),), siblings=True
    )


def _page(atlas: Atlas, scope: str) -> Page:
    here = atlas.machine_paths[scope]
    runs = atlas.runs_in(scope)
    devices = [atlas.device(here, spot) for spot in atlas.devices if spot.scope == scope]
    services = [atlas.service(here, spot) for spot in atlas.services if spot.scope == scope]
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    facts = [
        span(text("local"), "badge"),
        text(runs[0].client.cpu),
        line(text("last measured"), dated(runs[0].date, atlas.today, limit)),
    ]
    body = paragraphs(
        Markdown(span(line(*facts, by=" · "), "meta")),
        *_matrix(atlas, scope, here),
        heading(2, text("Services"), "services"),
        bullets(services) if services else text("No service of this machine was measured."),
        *_workloads(atlas, runs, here),
        *_loads(atlas, scope, runs, here),
        heading(2, text("Devices"), "devices"),
        bullets(devices) if devices else text("No device was listed by a runtime."),
        heading(2, text("The machine"), "machine"),
        entries([("name", text(runs[0].client.alias)), ("hardware fingerprint", code(runs[0].client.fingerprint))]),
        host_table(runs[0].client),
        heading(2, text("Runs"), "runs"),
        run_table(atlas, runs, here),
    )
    trail = (("Matrix", "index.md"), ("Machines", INDEX))
    return Page(path=here, title=atlas.client_alias(scope), body=body, trail=trail, contents=False)


def _matrix(atlas: Atlas, scope: str, here: str) -> Iterator[Markdown]:
    """Show the matrix in brief, and folded under it everything measured that its rows rest on."""
    if scope not in atlas.assessments:
        yield text("No technique is assessed for this machine.")
        return
    yield brief(atlas, scope, here)
    yield legend(here)
    yield details(text("The same with what was measured, row by row"), matrix(atlas, scope, here), "data")


def _workloads(atlas: Atlas, runs: Sequence[Run], here: str) -> Iterator[Markdown]:
    """Show the models that write no text, where any was run."""
    if found := measured_workloads(runs):
        yield heading(2, text("Models that write no text"), "workloads")
        why = link(text("workload coverage"), paths.relative("coverage.md#measured", here))
        yield line(text("Which technique bears on each, and what running it showed:"), Markdown(f"{why}."))
        yield measured_table(atlas, found, here)


def _loads(atlas: Atlas, scope: str, runs: Sequence[Run], here: str) -> Iterator[Markdown]:
    """Show loads that were sent from here to what is no service of the inventory, by size and over time."""
    loads = [run for run in runs if run.kind is RunKind.LOAD]
    if swept := sweeps.of_loads(atlas, loads, here):
        yield from (heading(2, text("Under load"), "under-load"), swept)
    if course := timelines.of_runs(atlas, loads, here, timelines.records_on(atlas, scope)):
        yield from (heading(2, text("Over time"), "over-time"), course)
