"""What a review of a service asks: typed items, each with the test that may tick it and what would fill it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from gen.knowledge.control import Role
from gen.knowledge.schema import Id, Sentence
from probes.evidence import Technique
from probes.fleet import ServiceKind
from probes.schema import Model


class Part(StrEnum):
    """The parts of a review, in the order they are read."""

    CONFIGURATION = "configuration"
    BASELINE = "baseline"
    OPTIMISATION = "optimisation"
    COST = "cost"
    RELIABILITY = "reliability"
    MONITORING = "monitoring"
    ANTI_PATTERNS = "anti-patterns"
    DECISIONS = "decisions"
    SIGN_OFF = "sign-off"


class Check(StrEnum):
    """The tests that may tick a box; none of them takes a person's word for a measurement."""

    MODEL = "model"
    PARAMETERS = "parameters"
    ROLE = "role"
    DEVICE = "device"
    SERVER = "server"
    RUNTIME = "runtime"
    METRIC = "metric"
    TAIL = "tail"
    CONCURRENCY = "concurrency"
    TECHNIQUE = "technique"
    COMPARED = "compared"
    QUALITY_COMPARED = "quality-compared"
    GENERATING = "generating"
    NO_ERRORS = "no-errors"
    ADMISSION = "admission"
    HEADROOM = "headroom"
    ROLLBACK = "rollback"
    ALERT = "alert"
    METRICS_PAGE = "metrics-page"
    NO_DRIFT = "no-drift"
    FRESH = "fresh"
    NO_INCIDENT = "no-incident"
    COMPARED_CHANGES = "compared-changes"
    DECIDED = "decided"
    REVIEW_DATE = "review-date"
    SIGNED = "signed"


_OF: dict[Check, frozenset[str] | None] = {
    Check.ROLE: frozenset(role.value for role in Role),
    Check.TECHNIQUE: frozenset(technique.value for technique in Technique),
    Check.COMPARED: frozenset(technique.value for technique in Technique),
    Check.QUALITY_COMPARED: frozenset(technique.value for technique in Technique),
    Check.ALERT: frozenset({"queue", "kv cache"}),
    Check.METRIC: None,
}


class Item(Model):
    """One box. `of` is what its test is held against; without `kinds` it is asked of every service that infers.

    `run` is the command that would fill it and `fill` what else it takes; one of them at least.
    """

    id: Id
    part: Part
    check: Check
    of: str = ""
    text: Sentence
    run: str = ""
    fill: str = ""
    kinds: Annotated[tuple[ServiceKind, ...], Field(default=())]

    @model_validator(mode="after")
    def _held_against_something(self) -> Self:
        if not self.run and not self.fill:
            raise ValueError("in run or fill, what would fill the box")
        known = _OF.get(self.check, frozenset({""}))
        if known is None:
            if not self.of:
                raise ValueError("in of, the names of a metric")
        elif self.of not in known:
            raise ValueError(f"in of, one of {', '.join(sorted(known)) or 'nothing'}")
        return self


class ChecklistFile(Model):
    items: tuple[Item, ...]
