"""Which command measures a technique in a scope: whether it is on, whether it pays, what has moved since."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gen.assess import EMBEDDED
from gen.assessment import Assessment
from gen.benchmarks import of_technique
from gen.contract_runs import command, contract_runs
from gen.corpus import Corpus
from gen.view import LOCAL
from gen.words import Applicability
from probes.fleet import Fleet


@dataclass(frozen=True, kw_only=True)
class Look:
    """One question and the command that answers it; `about` says more, or why there is no command."""

    asks: str
    command: str = ""
    about: str = ""


def looks(corpus: Corpus, assessment: Assessment) -> tuple[Look, ...]:
    """Give the commands for one row of the matrix, in the order in which a reader needs them."""
    return tuple(_looks(corpus, assessment))


def addressed(fleet: Fleet, assessment: Assessment) -> tuple[str, ...]:
    """Name the services of the inventory that a technique bears on and that have an address to ask."""
    return tuple(
        cell.service
        for cell in assessment.cells
        if cell.applicability is not Applicability.DOES_NOT_APPLY
        and cell.service in fleet.services
        and fleet.services[cell.service].url is not None
    )


def _looks(corpus: Corpus, assessment: Assessment) -> Iterator[Look]:
    local = assessment.scope.startswith(LOCAL)
    services = (EMBEDDED,) if local else addressed(corpus.fleet, assessment)
    asked = " ".join(f"--service {service}" for service in services)
    nobody = "no service that it bears on has an address; give one its url in fleet.yml"
    on = "Whether it is on"
    yield Look(asks=on, command=f"nox -s probe -- {asked}") if services else Look(asks=on, about=nobody)
    if local:
        yield Look(asks="What the device accepts", command="nox -s probe -- devices")
    yield from _effect(corpus, assessment, services)
    yield Look(asks="What has moved since the record in force", command=f"nox -s adr -- propose --scope {assessment.scope}")


def _effect(corpus: Corpus, assessment: Assessment, services: tuple[str, ...]) -> Iterator[Look]:
    pays = "Whether it pays"
    for run in contract_runs(corpus, assessment.technique, assessment.scope):
        if words := command(run):
            yield Look(asks=pays, command=f"nox -s compare -- {shlex.join(words[1:])}", about="as it was measured last")
            return
    if assessment.scope.startswith(LOCAL):
        subjects = ", ".join(benchmark.subject for benchmark in of_technique(assessment.technique))
        if subjects:
            yield Look(asks=pays, command="nox -s probe -- micro", about=f"measures {subjects}")
        else:
            yield Look(asks=pays, about="no benchmark of one machine can tell")
        return
    # Where the row is about some of its services, one of those is the one to measure.
    decided = [cell.service for cell in assessment.cells if cell.service in services and cell.decision is assessment.decision]
    if service := next(iter(decided or services), ""):
        about = "CANDIDATE is a service or an address that differs in what is under test"
        yield Look(asks=pays, command=f"nox -s compare -- {service} CANDIDATE", about=about)
