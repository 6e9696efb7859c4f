"""What a rule concludes, and the part of it that change detection compares."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Self

from pydantic import model_validator

from gen.words import Applicability, Decision, State
from probes.evidence import ProvenanceKind, Technique
from probes.schema import Model


class RefKind(StrEnum):
    """Where a fact can be looked up."""

    SETTING = "setting"
    FLEET = "fleet"
    RUN = "run"
    SOURCE = "source"


class Ref(Model):
    """`target` is 'service/control', a path in fleet.yml, a run id or a source id."""

    kind: RefKind
    target: str


class Fact(Model):
    """One thing a rule relied on.

    `id` is stable across runs and `value` is free of noise (a verdict, never a timing), so that two
    assessments can be compared; `text` is the sentence a reader sees and may carry numbers.
    """

    id: str
    value: str
    text: str
    provenance: ProvenanceKind
    date: date
    ref: Ref


class Conflict(Model):
    """A price or an exclusion that comes with a technique here, from the knowledge base."""

    id: str
    text: str
    source: str
    checked: date


class Cell(Model):
    """One technique on one service. `facts` are those of this service only."""

    technique: Technique
    service: str
    applicability: Applicability
    state: State
    decision: Decision
    summary: str
    facts: tuple[Fact, ...] = ()
    drift: tuple[str, ...] = ()


class Assessment(Model):
    """One technique in one scope: the matrix row and all its why.

    `scope` is 'fleet' or 'local-<fingerprint>'. `state_text` says what is on, `decision_text` what to
    do and `why` for which reasons; `facts` are in the order a reader needs them.
    """

    technique: Technique
    scope: str
    on: date
    state: State
    state_text: str
    decision: Decision
    decision_text: str
    why: tuple[str, ...]
    next_step: str
    would_change: tuple[str, ...]
    facts: tuple[Fact, ...]
    conflicts: tuple[Conflict, ...] = ()
    evidence: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()

    @model_validator(mode="after")
    def _facts_are_unique(self) -> Self:
        ids = [fact.id for fact in self.all_facts()]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"each fact once; {twice} appear twice")
        return self

    def all_facts(self) -> tuple[Fact, ...]:
        """Give the scope's own facts, then those of its cells."""
        return self.facts + tuple(fact for cell in self.cells for fact in cell.facts)

    def key(self) -> dict[str, object]:
        """Give what change detection compares: no dates, no run ids, no timings."""
        return {
            "state": self.state.value,
            "decision": self.decision.value,
            "next_step": self.next_step,
            "conflicts": sorted(conflict.id for conflict in self.conflicts),
            "cells": {c.service: [c.applicability.value, c.state.value, c.decision.value, sorted(c.drift)] for c in self.cells},
            "facts": {fact.id: fact.value for fact in self.all_facts()},
        }

    def newest_change(self, before: Assessment | None) -> date | None:
        """Date the change against an earlier assessment by the newest fact that is new, moved or gone.

        When a fact went nobody wrote down; on its own date it was still known, so the change is no older
        than that. Where no fact tells (another next step, say) the newest fact of all speaks; None without any.
        """
        old = {} if before is None else {fact.id: fact for fact in before.all_facts()}
        now = {fact.id: fact for fact in self.all_facts()}
        moved = [fact.date for name, fact in now.items() if name not in old or old[name].value != fact.value]
        gone = [fact.date for name, fact in old.items() if name not in now]
        return max(moved + gone or [fact.date for fact in now.values()], default=None)
