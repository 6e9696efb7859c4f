"""The commands that show or write what the corpus amounts to: pages, matrix, summary, findings, schemas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

from pydantic import BaseModel
from rich.table import Table
from rich.text import Text

from gen.assess import assess, scopes
from gen.assessment import Assessment
from gen.check import check
from gen.commands.call import EXIT_FINDINGS, EXIT_OK, Call, Outcome
from gen.corpus import Corpus, read_corpus, read_for_check
from gen.drift import drifts
from gen.findings import DUE, Severity, as_annotation, as_json, as_markdown
from gen.markdown import visible
from gen.output import write_pages
from gen.published import PublishedEvidence, PublishedMatrix
from gen.records.record import FrontMatter
from gen.records.shelf import Shelf, read_shelf
from gen.words import TECHNIQUE_TITLES, Status
from probes.errors import UsageError
from probes.evidence import EndpointState, Run, RunKind
from probes.files import write_atomic
from probes.fleet import Fleet

DRIFTS_SHOWN = 12
SCHEMAS: dict[str, type[BaseModel]] = {
    "fleet": Fleet,
    "run": Run,
    "record": FrontMatter,
    "matrix": PublishedMatrix,
    "evidence": PublishedEvidence,
}


def write_site(call: Call) -> Outcome:
    """Write every generated page into a folder."""
    # Brings pandas and Altair along, which no other command needs.
    from gen.album import FOLDER, Album
    from gen.site import pages

    folder, album = Path(call.arguments.out), Album(call.root / FOLDER)
    done = write_pages(pages(read_corpus(call.root, texts=True, memory=album), call.today, album), folder)
    return Outcome(shown=(f"{folder}: {done.written} pages written, {done.unchanged} unchanged, {done.removed} removed",))


def matrix(call: Call) -> Outcome:
    """Show what is on and what was decided, scope by scope."""
    corpus = read_corpus(call.root)
    known, wanted = scopes(corpus), call.arguments.scope
    if wanted is not None and wanted not in known:
        raise UsageError(f"--scope: is {wanted!r}; expected one of {', '.join(known)}")
    chosen = [scope for scope in known if wanted in (None, scope)]
    rows = {scope: assess(corpus, scope, call.today) for scope in chosen}
    if call.arguments.json:
        documents = [json.loads(assessment.model_dump_json()) for some in rows.values() for assessment in some]
        return Outcome.of_what_could_be_read((json.dumps(documents, indent=1, ensure_ascii=False),), corpus.problems)
    return Outcome.of_what_could_be_read(tuple(_table(scope, some) for scope, some in rows.items()), corpus.problems)


def summary(call: Call) -> Outcome:
    """Show what is known of the measured machines, and where the site begins."""
    corpus = read_corpus(call.root)
    machines = [scope for scope in scopes(corpus) if scope.startswith("local-")][:1]
    tables = [_found(scope, assess(corpus, scope, call.today)) for scope in machines]
    lines: list[str] = (
        [*_services(corpus), *_drafts(corpus, machines)] if tables else ["No machine has been measured yet: nox -s probe"]
    )
    lines += _drifts(corpus, call.today)
    if call.arguments.site is not None:
        first = Path(call.arguments.site).resolve() / "index.html"
        lines.append(f"First page: {first}" if first.is_file() else f"No site in {call.arguments.site} yet: nox -s docs")
    return Outcome.of_what_could_be_read((*tables, *lines), corpus.problems)


def findings(call: Call) -> Outcome:
    """Check everything; only an error makes the exit code 1, unless warnings are to count."""
    found = check(read_for_check(call.root), call.today)
    if call.arguments.records:
        shelf = read_shelf(call.root)
        places = {place for name in call.arguments.records for place in _places(shelf, name)}
        found = tuple(finding for finding in found if finding.place.partition(":")[0] in places)
    if call.arguments.due:
        found = tuple(finding for finding in found if finding.rule in DUE)
    counted = found if call.arguments.strict else [f for f in found if f.severity is Severity.ERROR]
    code = EXIT_FINDINGS if counted else EXIT_OK
    if call.arguments.json:
        return Outcome(shown=(as_json(found),), code=code)
    if call.arguments.markdown:
        return Outcome(shown=(as_markdown(found),), code=code)
    if call.arguments.github:
        return Outcome(shown=tuple(as_annotation(finding) for finding in found), code=code)
    errors = sum(finding.severity is Severity.ERROR for finding in found)
    total = f"{errors} error{'s' * (errors != 1)}, {len(found) - errors} warning{'s' * (len(found) - errors != 1)}"
    return Outcome(shown=(*map(str, found), total), code=code)


def _places(shelf: Shelf, name: str) -> tuple[str, ...]:
    """Name the files that a record's name may mean, damaged or sound.

    Raises:
        UsageError: there is no such record.
    """
    wanted = name.removesuffix(".md").rpartition("/")[2]
    if wanted not in shelf.damaged:
        wanted = shelf.find(name).record.name
    return f"adr/{wanted}.md", f"adr/local/{wanted}.md"


def schema(call: Call) -> Outcome:
    """Show a JSON Schema, or write all of them into a folder."""
    if call.arguments.out is not None:
        folder = Path(call.arguments.out)
        written = [name for name in SCHEMAS if write_atomic(folder / f"{name}.schema.json", schema_text(name).encode())]
        return Outcome(shown=(f"{folder}: {len(written)} written, {len(SCHEMAS) - len(written)} unchanged",))
    return Outcome(shown=(schema_text(call.arguments.name or "fleet").rstrip("\n"),))


def schema_text(name: str) -> str:
    """Write the JSON Schema of one kind of file."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name].model_json_schema(by_alias=True)}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _found(scope: str, assessments: Iterable[Assessment]) -> Table:
    table = Table(title=Text(f"What was found on this machine ({visible(scope)})"), title_justify="left", expand=False)
    for column in ("Technique", "State", "Decision", "Measured or seen"):
        table.add_column(column, overflow="fold")
    for row in assessments:
        numbers = [fact.text for fact in row.all_facts() if fact.id.endswith(f"/measured/{row.technique}")]
        found = " ".join([row.state_text, *numbers])
        cells = (TECHNIQUE_TITLES[row.technique], row.state.value, row.decision.value, found)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _services(corpus: Corpus) -> Iterator[str]:
    """Say what the services of the inventory did when they were last asked, state by state."""
    surveys = [run for run in corpus.runs + corpus.local_runs if run.kind is RunKind.SURVEY]
    if surveys:
        newest = max(surveys, key=lambda run: (run.started_at, run.id))
        counts = Counter(seen.state for seen in newest.survey.values())
        told = ", ".join(f"{counts[state]} {state}" for state in EndpointState if counts[state])
        yield f"Services of fleet.yml, asked on {newest.date}: {told}"


def _drifts(corpus: Corpus, today: date) -> Iterator[str]:
    """Say about which settings of the inventory's services their sources disagree."""
    found = drifts(corpus, today)
    if found:
        services = len({one.service for one in found})
        settings = f"{len(found)} setting{'s' * (len(found) > 1)}"
        yield f"Drift: the sources of {settings} of {services} service{'s' * (services > 1)} disagree"
    for one in found[:DRIFTS_SHOWN]:
        yield f"  {visible(str(one))}"
    if len(found) > DRIFTS_SHOWN:
        yield f"  and {len(found) - DRIFTS_SHOWN} more, on the pages of their services"


def _drafts(corpus: Corpus, machines: Sequence[str]) -> Iterator[str]:
    waiting = [record for record in corpus.local_records if record.status is Status.PROPOSED and record.scope in machines]
    if waiting:
        yield f"Draft records in adr/local/: {len(waiting)}"


def _table(scope: str, assessments: Iterable[Assessment]) -> Table:
    table = Table(title=Text(visible(scope)), title_justify="left", expand=False)
    for column in ("Technique", "State", "Decision", "Next step"):
        table.add_column(column, overflow="fold")
    for row in assessments:
        cells = (TECHNIQUE_TITLES[row.technique], row.state.value, row.decision.value, row.next_step or "none")
        # Text, not a string: rich would read square brackets as markup.
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table
