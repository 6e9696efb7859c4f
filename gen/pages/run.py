"""Evidence: the index of runs, and everything that one run holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC

from pydantic import JsonValue

from gen import paths
from gen.markdown import NOTHING, Markdown, code, details, fenced, heading, line, link, paragraphs, sifted, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.capabilities import capability_table
from gen.pages.conditions import conditions, entries, host_entries, moment, runtime
from gen.pages.feed import evidence_path
from gen.pages.marks import absent, age_limit, chip, dated, known, scalar
from gen.pages.measured import since_before
from gen.pages.page import Page
from gen.pages.results import results
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Host, Run, RunKind, Setting

INDEX = "runs/index.md"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per run."""
    intro = text("Every run that this checkout holds, the newest first. Local runs speak for their machine only.")
    yield Page(
        path=INDEX,
        title="Evidence",
        body=paragraphs(intro, run_table(atlas, atlas.runs, INDEX)),
        trail=(("Matrix", "index.md"),),
        siblings=True,
        contents=False,
    )
    for run in atlas.runs:
        yield _page(atlas, run)


def run_table(atlas: Atlas, runs: Sequence[Run], here: str) -> Markdown:
    """List runs with what they were about and whether they may be used."""
    if not runs:
        return text("No run yet.")
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    body = [
        (
            sifted(atlas.run(here, run.id, text(f"{run.kind} · {run.subject}")), facet=run.kind.value),
            sifted(
                line(dated(run.date, atlas.today, limit), span(text(f"{run.started_at.astimezone(UTC):%H:%M} UTC"), "note")),
                sort=run.started_at.astimezone(UTC).isoformat(),
            ),
            line(
                sifted(text(run.client.alias), facet=run.client.alias),
                NOTHING if atlas.scope_of(run) == FLEET else span(text("local"), "badge"),
            ),
            runtime(run),
            sifted(validity(run), facet="valid" if run.validity.valid else "invalid"),
        )
        for run in runs
    ]
    return table(
        columns("Run", "Date", "Machine", "Runtime", "Valid"),
        body,
        Layout.CARDS,
        "runs",
        facets=("Run", "Machine", "Runtime", "Valid"),
    )


def validity(run: Run) -> Markdown:
    """Say whether a run may be used, with the reasons if it may not."""
    if run.validity.valid:
        return span(text("valid"), "ok")
    return line(span(text("invalid"), "bad"), span(text(", ".join(run.validity.reasons)), "detail"))


def _page(atlas: Atlas, run: Run) -> Page:
    here = atlas.run_paths[run.id]
    local = NOTHING if atlas.scope_of(run) == FLEET else span(text("local"), "badge")
    meta = [
        dated(run.date, atlas.today, atlas.corpus.fleet.policies.freshness.evidence_days),
        line(text(run.client.alias), local),
        validity(run),
        link(text("raw JSON"), paths.relative(evidence_path(run), here)),
    ]
    body = paragraphs(
        Markdown(span(line(*meta, by=" · "), "meta")),
        results(atlas, run),
        since_before(atlas, run, here),
        _capabilities(run, here),
        _settings(atlas, run, here),
        _survey(atlas, run, here),
        heading(2, text("Conditions"), "conditions"),
        entries(conditions(atlas, run)),
        heading(3, text("The machine that asked"), "client"),
        entries(host_entries(run.client)),
        heading(3, text("The machine that served"), "server"),
        entries(host_entries(run.server)) if isinstance(run.server, Host) else absent(run.server),
        heading(2, text("Measure it again"), "again"),
        fenced(run.tool.command, "sh"),
        _native(run),
    )
    trail = (("Matrix", "index.md"), ("Evidence", INDEX))
    return Page(path=here, title=f"{run.kind} · {run.subject} · {moment(run.started_at)}", body=body, trail=trail)


def _capabilities(run: Run, here: str) -> Markdown:
    if not run.capabilities:
        return NOTHING
    return paragraphs(heading(2, text("Capabilities"), "capabilities"), capability_table(run.capabilities, here))


def _settings(atlas: Atlas, run: Run, here: str) -> Markdown:
    if not run.settings:
        return NOTHING
    freshness = atlas.corpus.fleet.policies.freshness
    body = [
        (
            code(setting.control),
            line(scalar(setting.value), *(span(text(one), "detail") for one in _asides(setting))),
            known(setting.provenance.kind),
            dated(setting.provenance.date, atlas.today, age_limit(setting.provenance.kind, freshness)),
            link(text(TECHNIQUE_TITLES[setting.technique]), paths.relative(f"techniques/{setting.technique.value}.md", here)),
            text(setting.provenance.source),
        )
        for setting in run.settings
    ]
    head = columns("Control", "Value", "Known", "Since", "Technique", "Where")
    saw = "What the files declare" if run.kind is RunKind.DECLARED else "Settings it saw"
    return paragraphs(
        heading(2, text(saw), "settings"), table(head, body, Layout.CARDS, "settings", facets=("Known", "Technique"))
    )


def _asides(setting: Setting) -> Iterator[str]:
    if setting.default_of:
        yield f"default of {setting.default_of}"
    elif setting.without_effect:
        yield f"set, not effective: {setting.without_effect}"


def _survey(atlas: Atlas, run: Run, here: str) -> Markdown:
    if not run.survey:
        return NOTHING
    body = [
        (
            atlas.service(here, Spot(scope=FLEET, name=name)),
            chip(endpoint.state),
            text(endpoint.detail) if endpoint.detail else span(text("nothing more was said"), "note"),
        )
        for name, endpoint in run.survey.items()
    ]
    head = columns("Service", "When asked", "In its words")
    return paragraphs(heading(2, text("What each address did"), "survey"), table(head, body, Layout.CARDS, "survey"))


def _native(run: Run) -> Markdown:
    if not run.native:
        return NOTHING
    parts = [
        details(
            code(name), fenced(_native_text(value), "text" if isinstance(value, str) else "json"), "data", search_exclude=""
        )
        for name, value in run.native.items()
    ]
    return paragraphs(heading(2, text("In the runtime's own words"), "native"), *parts)


def _native_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
