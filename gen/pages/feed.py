"""The same facts for programs: the matrix, the index of evidence, and each run's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from gen.assessment import Assessment
from gen.pages.atlas import Atlas
from gen.pages.matrix import Row, rows, why_target
from gen.published import PublishedCell, PublishedEvidence, PublishedFact, PublishedMatrix, PublishedRow, PublishedRun
from probes.archive import content_hash
from probes.evidence import Run

MATRIX = "matrix.json"
INDEX = "evidence/index.json"


def files(atlas: Atlas) -> Iterator[tuple[str, str]]:
    """Write every raw file of the site as path and content."""
    yield MATRIX, _written(_matrix(atlas).model_dump(mode="json"))
    index = PublishedEvidence(runs=tuple(_run(atlas, run) for run in atlas.runs))
    yield INDEX, _written(index.model_dump(mode="json"))
    for run in atlas.runs:
        yield atlas.run_files[run.id], atlas.corpus.texts.get(run.id) or _written(document(run))


def document(run: Run) -> dict[str, JsonValue]:
    """Give the file of a run back as it was read, so that its content hash still holds."""
    whole: dict[str, JsonValue] = json.loads(run.model_dump_json())
    if content_hash(whole) == run.content_sha256:
        return whole
    # Written before a later field got its default: what the file did not say is left out again.
    said: dict[str, JsonValue] = json.loads(run.model_dump_json(exclude_unset=True))
    return said if content_hash(said) == run.content_sha256 else whole


def _matrix(atlas: Atlas) -> PublishedMatrix:
    return PublishedMatrix(
        fleet=atlas.corpus.fleet.name,
        on=atlas.today,
        scopes={scope: tuple(_row(row, scope) for row in rows(atlas, scope)) for scope in atlas.scopes},
    )


def _row(row: Row, scope: str) -> PublishedRow:
    return PublishedRow(
        technique=row.technique,
        page=_address(why_target(row.technique, scope, MATRIX)),
        shown=_cell(row.shown),
        today=_cell(row.current),
        record=row.record.name if row.record else None,
        proposed=tuple(record.name for record in row.proposals),
        moved=row.moved,
    )


def _cell(assessment: Assessment) -> PublishedCell:
    return PublishedCell(
        state=assessment.state,
        decision=assessment.decision,
        next_step=assessment.next_step,
        facts=tuple(
            PublishedFact(id=fact.id, value=fact.value, known=fact.provenance, date=fact.date, at=fact.ref.target)
            for fact in assessment.all_facts()
        ),
        evidence=assessment.evidence,
    )


def _run(atlas: Atlas, run: Run) -> PublishedRun:
    return PublishedRun(
        id=run.id,
        file=atlas.run_files[run.id],
        page=_address(atlas.run_paths[run.id]) if run.id in atlas.run_paths else None,
        kind=run.kind,
        subject=run.subject,
        scope=atlas.scope_of(run),
        started_at=run.started_at,
        valid=run.validity.valid,
        content_sha256=run.content_sha256,
    )


def _address(page: str) -> str:
    """Address a page as the site is built; links inside Markdown name its source."""
    return page.replace(".md", ".html", 1)


def _written(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
