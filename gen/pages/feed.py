"""The same facts for programs: the matrix, the index of evidence, and each run's file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import JsonValue

from gen.assessment import Assessment
from gen.pages.atlas import Atlas
from gen.pages.matrix import rows
from probes.archive import content_hash
from probes.evidence import Run

MATRIX = "matrix.json"
INDEX = "evidence/index.json"
SCHEMA = "inference-adr/matrix/1"


def files(atlas: Atlas) -> Iterator[tuple[str, str]]:
    """Write every raw file of the site as path and content."""
    yield MATRIX, _written(_matrix(atlas))
    yield INDEX, _listed([_entry(atlas, run) for run in atlas.runs])
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


def _matrix(atlas: Atlas) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "fleet": atlas.corpus.fleet.name,
        "on": atlas.today.isoformat(),
        "scopes": {
            scope: [
                {
                    "technique": row.technique.value,
                    "shown": _cell(row.shown),
                    "today": _cell(row.current),
                    "record": row.record.name if row.record else None,
                    "proposed": [record.name for record in row.proposals],
                    "moved": row.moved,
                }
                for row in rows(atlas, scope)
            ]
            for scope in atlas.scopes
        },
    }


def _cell(assessment: Assessment) -> dict[str, Any]:
    return {
        "state": assessment.state.value,
        "decision": assessment.decision.value,
        "next_step": assessment.next_step,
        "facts": [
            {"id": f.id, "value": f.value, "known": f.provenance.value, "date": f.date.isoformat(), "at": f.ref.target}
            for f in assessment.all_facts()
        ],
        "evidence": list(assessment.evidence),
    }


def _entry(atlas: Atlas, run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "file": atlas.run_files[run.id],
        "kind": run.kind.value,
        "subject": run.subject,
        "scope": atlas.scope_of(run),
        "started_at": run.started_at.isoformat(),
        "valid": run.validity.valid,
        "content_sha256": run.content_sha256,
    }


def _listed(entries: Sequence[dict[str, Any]]) -> str:
    """Write a list with an entry a line, so that one more run is one more line."""
    lines = ",\n".join(f" {json.dumps(entry, ensure_ascii=False, allow_nan=False)}" for entry in entries)
    return f"[\n{lines}\n]\n" if entries else "[]\n"


def _written(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
