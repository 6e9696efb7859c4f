"""Evidence: the index of runs, and everything that one run holds for those that somebody needs to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC

from pydantic import JsonValue

from gen import paths
from gen.album import written
from gen.markdown import NOTHING, Markdown, bullets, code, details, fenced, heading, line, link, paragraphs, sifted, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.capabilities import capability_table
from gen.pages.conditions import conditions, entries, host_entries, moment, runtime
from gen.pages.feed import INDEX as EVERY_FILE
from gen.pages.marks import absent, age_limit, chip, dated, known, scalar
from gen.pages.measured import since_before
from gen.pages.page import Page
from gen.pages.results import results
from gen.tables import Group, Layout, columns, summed, table
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Host, Run, RunKind, Setting

INDEX = "runs/index.md"
# A log or a list of events that is longer is read in the file itself.
MOST_SHOWN_CHARACTERS = 4000
# No text that was escaped holds this character.
_BETWEEN = "\x00"


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index, and a page for each run that something rests on or that is the last of its kind."""
    intro = text("The runs of this checkout, the newest first. Local runs speak for their machine only.")
    yield Page(
        path=INDEX,
        title="Evidence",
        body=paragraphs(intro, run_table(atlas, atlas.runs, INDEX)),
        trail=(("Matrix", "index.md"),),
        siblings=True,
        contents=False,
    )
    for run in atlas.runs:
        if run.id in atlas.run_paths:
            yield _page(atlas, run)


def run_table(atlas: Atlas, runs: Sequence[Run], here: str) -> Markdown:
    """List runs with what they were about and whether they may be used; those without a page are summed up below."""
    if not runs:
        return text("No run yet.")
    with_page = [run for run in runs if run.id in atlas.run_paths]
    return paragraphs(
        _listed(atlas, with_page, here), _summed_up(atlas, [run for run in runs if run.id not in atlas.run_paths], here)
    )


def _listed(atlas: Atlas, runs: Sequence[Run], here: str) -> Markdown:
    if not runs:
        return text("None of these runs has a page.")
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


def _summed_up(atlas: Atlas, runs: Sequence[Run], here: str) -> Markdown:
    """Say of the runs that nothing rests on how many there are, of what and from when, and where their files lie."""
    if not runs:
        return NOTHING
    groups = [(atlas.scope_of(run), run.kind.value, run.subject) for run in runs]
    newest: dict[Group, Run] = dict(zip(reversed(groups), reversed(runs), strict=True))
    body = [
        (
            text(f"{kind} · {subject}"),
            text(atlas.corpus.fleet.name)
            if scope == FLEET
            else line(text(atlas.client_alias(scope)), span(text("local"), "badge")),
            text(f"{one.rows}"),
            line(dated(one.first, atlas.today), text("to"), dated(one.last, atlas.today)),
            text(f"{one.valid}"),
            atlas.run(here, newest[one.group].id, text("newest file")),
        )
        for one in summed(groups, [run.date for run in runs], [run.validity.valid for run in runs])
        for scope, kind, subject in [one.group]
    ]
    head = columns("Of what", "Scope", "Runs", "From and to", "Valid", "Data", numeric=["Runs", "Valid"])
    told = line(
        text(
            f"{len(runs)} {'run has' if len(runs) == 1 else 'runs have'} no page: no record and no cell of the matrix cites "
            f"{'it' if len(runs) == 1 else 'them'}, and a newer run was made of the same. Their files stay as they are:"
        ),
        link(text("list of all files"), paths.relative(EVERY_FILE, here)),
    )
    return details(
        text(f"{len(runs)} more, kept as data"),
        paragraphs(told, table(head, body, Layout.CARDS, "kept", facets=("Scope",))),
        "data",
    )


def validity(run: Run) -> Markdown:
    """Say whether a run may be used, with the reasons if it may not."""
    if run.validity.valid:
        return span(text("valid"), "ok")
    return line(span(text("invalid"), "bad"), span(text(", ".join(run.validity.reasons)), "detail"))


def _page(atlas: Atlas, run: Run) -> Page:
    here = atlas.run_paths[run.id]
    measured, native = _own(atlas, run, here)
    local = NOTHING if atlas.scope_of(run) == FLEET else span(text("local"), "badge")
    meta = [
        dated(run.date, atlas.today, atlas.corpus.fleet.policies.freshness.evidence_days),
        line(text(run.client.alias), local),
        validity(run),
        link(text("raw JSON"), paths.relative(atlas.run_files[run.id], here)),
    ]
    body = paragraphs(
        Markdown(span(line(*meta, by=" · "), "meta")),
        measured,
        since_before(atlas, run, here),
        _capabilities(run, here),
        _settings(atlas, run, here),
        _survey(atlas, run, here),
        heading(2, text("Conditions"), "conditions"),
        entries(conditions(atlas, run)),
        heading(3, text("The machine that asked"), "client"),
        host_entries(run.client),
        heading(3, text("The machine that served"), "server"),
        _server(run),
        heading(2, text("Measure it again"), "again"),
        fenced(run.tool.command, "sh"),
        native,
    )
    trail = (("Matrix", "index.md"), ("Evidence", INDEX))
    title = f"{run.kind} · {run.subject} · {moment(run.started_at)}"
    # Of an id only its time is its own; host and subject are words of many runs.
    return Page(path=here, title=title, body=body, trail=trail, words=(run.id.partition("-")[0],))


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


def _own(atlas: Atlas, run: Run, here: str) -> tuple[Markdown, Markdown]:
    """Say what a run measured and quoted; of one that was read from a file, whose hash names all that it says, it is kept."""
    gates, file = atlas.corpus.fleet.policies.gates, paths.relative(atlas.run_files[run.id], here)
    drawn = run.id in atlas.current_runs

    def write() -> str:
        return _BETWEEN.join((results(run, gates, file, drawn=drawn), _native(run, file)))

    named = f"run\n{run.content_sha256}\n{gates.model_dump_json()}\n{file}\n{drawn}"
    measured, native = (written(named, write) if run.id in atlas.corpus.texts else write()).split(_BETWEEN)
    return Markdown(measured), Markdown(native)


def _server(run: Run) -> Markdown:
    if not isinstance(run.server, Host):
        return absent(run.server)
    return text("The same one.") if run.server == run.client else host_entries(run.server)


def _native(run: Run, file: str) -> Markdown:
    """Quote what the tool or the runtime said; what is too long to be read on a page is read in the file."""
    if not run.native:
        return NOTHING
    parts, long = [], []
    for name, value in run.native.items():
        # Without line breaks first: laying a long one out for nobody takes as long as the rest of the page.
        size = len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if size <= MOST_SHOWN_CHARACTERS:
            parts.append(details(code(name), fenced(_native_text(value)), "data", searched=False))
        else:
            long.append(line(code(name), span(text(f"{size:,} characters"), "note")))
    rest = link(text("the file of the run"), file)
    more = line(text("Longer than a page should be, and whole in"), Markdown(f"{rest}:")) if long else NOTHING
    return paragraphs(heading(2, text("In the runtime's own words"), "native"), *parts, more, bullets(long))


def _native_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
