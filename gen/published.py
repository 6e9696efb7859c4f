"""What the site tells programs: the files beside its pages, as typed as those that people write."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from gen.words import Decision, State
from probes.evidence import ProvenanceKind, RunKind, Technique
from probes.schema import Model

SHA256 = r"^[0-9a-f]{64}$"


class PublishedFact(Model):
    """A fact behind a cell. `id` is stable between builds; `at` is a setting, a place in fleet.yml, a run or a source."""

    id: str
    value: str
    known: ProvenanceKind
    date: date
    at: str


class PublishedCell(Model):
    """What was assessed of a technique; `evidence` are ids of runs."""

    state: State
    decision: Decision
    next_step: str
    facts: tuple[PublishedFact, ...]
    evidence: tuple[str, ...]


class PublishedRow(Model):
    """A technique in a scope: `shown` is the record in force, else today's facts; `moved` says that the two differ.

    `page` leads to the why, from the first page.
    """

    technique: Technique
    page: str
    shown: PublishedCell
    today: PublishedCell
    record: str | None
    proposed: tuple[str, ...]
    moved: bool


class PublishedMatrix(Model):
    """matrix.json: the matrix of the fleet and of each measured machine, on one day."""

    schema_: Literal["inference-adr/matrix/1"] = Field(default="inference-adr/matrix/1", alias="schema")
    fleet: str
    on: date
    scopes: dict[str, tuple[PublishedRow, ...]]


class PublishedRun(Model):
    """One run: `file` is its evidence, from the first page; the file's content hash is the one that records cite.

    `page` is None for a run that is kept as data alone, because nothing that stands cites it.
    """

    id: str
    file: str
    page: str | None
    kind: RunKind
    subject: str
    scope: str
    started_at: datetime
    valid: bool
    content_sha256: str = Field(pattern=SHA256)


class PublishedEvidence(Model):
    """evidence/index.json: every run that the site was built from, the newest first."""

    schema_: Literal["inference-adr/evidence/1"] = Field(default="inference-adr/evidence/1", alias="schema")
    runs: tuple[PublishedRun, ...]
