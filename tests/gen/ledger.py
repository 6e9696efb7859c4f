"""Assessments and records made up for the tests of the record files, and a checkout to put them in."""

from __future__ import annotations

import shutil
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from gen.assessment import Assessment, Cell, Conflict, Fact, Ref, RefKind
from gen.contract import ContractMetric
from gen.corpus import Corpus
from gen.knowledge import Knowledge, load_knowledge
from gen.records import Record
from gen.records.naming import record_name
from gen.words import Applicability, Decision, State, Status
from probes.evidence import Missing, MissingReason, ProvenanceKind, Technique
from probes.fleet import Fleet
from tests.gen.specimens import fleet

ROOT = Path(__file__).parents[2]
JULY = date(2026, 7, 10)
NOVEMBER = date(2026, 11, 30)
TECHNIQUE = Technique.PREFIX_CACHING


def fact(name: str = "text-8b/enable_prefix_caching", value: str = "true", day: date = JULY, **changes: Any) -> Fact:
    values: dict[str, Any] = {
        "id": name,
        "value": value,
        "text": f"{name} is {value}",
        "provenance": ProvenanceKind.DECLARED,
        "date": day,
        "ref": Ref(kind=RefKind.SETTING, target=name),
    }
    return Fact(**(values | changes))


def conflict(name: str = "eagle3-without-prefix-caching") -> Conflict:
    return Conflict(id=name, text="EAGLE-3 runs without prefix caching", source="ovms-docs", checked=NOVEMBER)


def cell(service: str = "text-8b", state: State = State.ENABLED, **changes: Any) -> Cell:
    values: dict[str, Any] = {
        "technique": TECHNIQUE,
        "service": service,
        "applicability": Applicability.APPLIES,
        "state": state,
        "decision": Decision.KEEP,
        "summary": f"enable_prefix_caching on {service} is {state.value}",
    }
    return Cell(**(values | changes))


def assessment(**changes: Any) -> Assessment:
    values: dict[str, Any] = {
        "technique": TECHNIQUE,
        "scope": "fleet",
        "on": NOVEMBER,
        "state": State.ENABLED,
        "state_text": "On, on one text service",
        "decision": Decision.KEEP,
        "decision_text": "Keep it; put stable instructions first",
        "why": ("Agents share long prefixes",),
        "next_step": "",
        "would_change": ("A measured hit rate near zero",),
        "facts": (fact("fleet.clients.paperclip.stable_prefix"),),
        "cells": (cell(facts=(fact(),)),),
    }
    return Assessment(**(values | changes))


def disabled(day: date = NOVEMBER) -> Assessment:
    """The same with prefix caching declared off on its one service."""
    off = cell(state=State.DISABLED, decision=Decision.INVESTIGATE, facts=(fact(value="false", day=day),))
    return assessment(state=State.DISABLED, decision=Decision.INVESTIGATE, cells=(off,))


def contract() -> dict[ContractMetric, Missing]:
    return {metric: Missing(missing=MissingReason.NOT_MEASURED, detail="no setting changes") for metric in ContractMetric}


def record(**changes: Any) -> Record:
    """A record of what stands, in force since July unless said otherwise."""
    stored = changes.get("assessment", assessment(on=JULY))
    day = changes.get("date", JULY)
    values: dict[str, Any] = {
        "name": record_name(day, TECHNIQUE, "fleet"),
        "title": "Automatic prefix caching on the fleet: keep",
        "status": Status.ACCEPTED,
        "date": day,
        "technique": TECHNIQUE,
        "scope": "fleet",
        "decision": stored.decision if stored else Decision.KEEP,
        "review_by": date(2027, 1, 6),
        "contract": contract(),
        "body": "# Automatic prefix caching on the fleet: keep\n\nText.",
        "assessment": stored,
    }
    return Record(**(values | changes))


@cache
def knowledge() -> Knowledge:
    """Read once: it is large, and no test changes it."""
    return load_knowledge()


@cache
def inventory() -> Fleet:
    return fleet()


def ledger(*records: Record, **changes: Any) -> Corpus:
    """The real inventory and knowledge with these records and nothing measured."""
    values: dict[str, Any] = {"fleet": inventory(), "knowledge": knowledge(), "records": records}
    nothing = dict.fromkeys(("runs", "local_runs", "local_records", "problems"), ())
    return Corpus(**(values | nothing | changes))


def checkout(folder: Path) -> Path:
    """Lay out a repository with the real inventory and no records."""
    (folder / "adr").mkdir(parents=True)
    shutil.copy(ROOT / "fleet.yml", folder / "fleet.yml")
    return folder
