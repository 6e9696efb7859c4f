"""What a decision record holds, and which record is in force on which day."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from gen.assessment import Assessment
from gen.contract import Contract
from gen.words import Decision, Status
from probes.evidence import Technique
from probes.fleet import Gates
from probes.schema import Model

NAME_PATTERN = r"^\d{4}-\d{2}-\d{2}-[a-z0-9]+(-[a-z0-9]+)*$"
SCOPE_PATTERN = r"^(project|fleet|fleet/[a-z0-9][a-z0-9.-]{0,40}|local-[0-9a-z]{4,64})$"

RecordName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
ScopeName = Annotated[str, StringConstraints(pattern=SCOPE_PATTERN)]
Line = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\n\r]*$")]

# Inside a class with a field called `date` the type needs another name.
Day = date

LEGAL_MOVES = {
    Status.PROPOSED: frozenset({Status.ACCEPTED, Status.REJECTED, Status.SUPERSEDED}),
    Status.ACCEPTED: frozenset({Status.SUPERSEDED, Status.DEPRECATED}),
    Status.REJECTED: frozenset[Status](),
    Status.DEPRECATED: frozenset[Status](),
    Status.SUPERSEDED: frozenset[Status](),
}


class Probe(StrEnum):
    """The parts of a probe run, as `nox -s probe` calls them; `contract` repeats the contract runs that are cited."""

    DEVICES = "devices"
    ENDPOINTS = "endpoints"
    MICRO = "micro"
    CONTRACT = "contract"


class EvidenceRef(Model):
    """A run that a record rests on, nailed down by its content hash."""

    id: Line
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Confirm(Model):
    """How to find out again whether the record still holds; `service` null means every service it speaks of."""

    probe: Probe
    service: Line | None = None
    gates: Gates = Gates()


class Acknowledgement(Model):
    """A finding that a reviewer has seen and accepts for this record, with the reason."""

    rule: Annotated[str, StringConstraints(pattern=r"^IA\d{3}$")]
    about: Line
    by: Line
    date: date
    reason: Line


class Move(Model):
    """One step in the life of a record."""

    status: Status
    on: Annotated[Day, Field(alias="date")]
    by: Line
    why: str = ""


class FrontMatter(Model):
    """The typed head of a record file, MADR 4 with the project's own fields.

    `status` stays text here: a wrong word is told with the file's name where the file is read.
    """

    title: Line
    status: Annotated[str, Field(json_schema_extra={"enum": [status.value for status in Status]})]
    date: date
    decision_makers: Annotated[tuple[Line, ...], Field(alias="decision-makers")] = ()
    technique: Technique | None = None
    scope: ScopeName
    decision: Decision | None = None
    evidence: tuple[EvidenceRef, ...] = ()
    supersedes: tuple[RecordName, ...] = ()
    superseded_by: Annotated[RecordName | None, Field(alias="superseded-by")] = None
    review_by: Annotated[Day, Field(alias="review-by")]
    confirm: Confirm | None = None
    contract: Contract = {}
    acknowledgements: tuple[Acknowledgement, ...] = ()
    history: tuple[Move, ...] = ()

    @model_validator(mode="after")
    def _technique_decides(self) -> Self:
        if (self.technique is None) != (self.decision is None):
            raise ValueError("a decision for a record about a technique, and none for any other record")
        if self.scope == "project" and self.technique is not None:
            raise ValueError("a scope of fleet, fleet/SERVICE or local-FINGERPRINT for a record about a technique")
        return self


class Record(FrontMatter):
    """One decision record; `name` is the file's name without `.md`, `body` what people read.

    `assessment` is the snapshot that change detection compares with; it lies in the generator's own
    block of the file, apart from the body. `untouched` says that the file is word for word a draft.
    """

    name: RecordName
    status: Status
    body: str
    assessment: Assessment | None = None
    untouched: bool = False

    @field_validator("body")
    @classmethod
    def _normal(cls, body: str) -> str:
        return re.sub(r"\r\n?", "\n", body).strip("\n")

    def front_matter(self) -> FrontMatter:
        """Give the head of the file."""
        return FrontMatter.model_construct(**{name: getattr(self, name) for name in FrontMatter.model_fields})


def status_on(record: Record, day: date) -> Status | None:
    """Tell what a record's status was on a day; None when it did not exist yet."""
    if record.date > day:
        return None
    if not record.history:
        return record.status
    return next((move.status for move in reversed(record.history) if move.on <= day), Status.PROPOSED)


def about(records: Iterable[Record], technique: Technique | None, scope: str) -> tuple[Record, ...]:
    """Pick the records of one technique in one scope, oldest first."""
    return tuple(sorted((r for r in records if r.technique is technique and r.scope == scope), key=lambda r: (r.date, r.name)))


def in_force(records: Iterable[Record], technique: Technique | None, scope: str, day: date) -> Record | None:
    """Find the record that holds for a technique and scope on a day; the newest where two claim to."""
    holding = [r for r in about(records, technique, scope) if status_on(r, day) is Status.ACCEPTED]
    return holding[-1] if holding else None


def open_proposals(records: Iterable[Record], technique: Technique | None, scope: str, day: date) -> tuple[Record, ...]:
    """Give the drafts that wait for an answer on a day, oldest first."""
    return tuple(r for r in about(records, technique, scope) if status_on(r, day) is Status.PROPOSED)
