"""Which technique bears on which workload, and why: from the kind of each service, never from its name."""

from __future__ import annotations

from dataclasses import dataclass

from gen.knowledge import Knowledge
from gen.words import Applicability
from probes.evidence import Technique
from probes.fleet import Fleet, Service, ServiceKind


@dataclass(frozen=True, kw_only=True)
class Bearing:
    """How a technique bears on something, with the sentence that says why."""

    applicability: Applicability
    why: str


@dataclass(frozen=True, kw_only=True)
class WorkloadCoverage:
    """One row of the coverage page. `summary` says in one sentence what governs the workload."""

    workload: str
    title: str
    services: tuple[str, ...]
    summary: str
    bearings: tuple[tuple[Technique, Bearing], ...]


def bearing_on_kind(kind: ServiceKind, technique: Technique, knowledge: Knowledge) -> Bearing:
    """Say whether a technique bears on what a kind of model does."""
    entry = knowledge.techniques[technique].kinds[kind]
    return Bearing(applicability=entry.applicability, why=entry.why)


def bearing(service: Service, technique: Technique, knowledge: Knowledge) -> Bearing:
    """Say how a technique bears on a service: by its kind, unless its host settles what would apply."""
    by_kind = bearing_on_kind(service.kind, technique, knowledge)
    if not service.settings_live_on_host or by_kind.applicability is Applicability.DOES_NOT_APPLY:
        return by_kind
    gated = ", which is not always available" if service.availability_gated else ""
    why = f"Its settings live on its host{gated}; tune only controls that its runtime has, from measured workloads."
    return Bearing(applicability=Applicability.ON_HOST, why=why)


def coverage(fleet: Fleet, knowledge: Knowledge) -> tuple[WorkloadCoverage, ...]:
    """Work out the coverage table, workloads in the order of the inventory."""
    rows = []
    for name, workload in fleet.workloads.items():
        services = [fleet.services[service] for service in workload.services]
        rows.append(
            WorkloadCoverage(
                workload=name,
                title=workload.title,
                services=workload.services,
                summary=_summary(services, knowledge),
                bearings=tuple((technique, _together(services, technique, knowledge)) for technique in Technique),
            )
        )
    return tuple(rows)


def _together(services: list[Service], technique: Technique, knowledge: Knowledge) -> Bearing:
    """Join the services of a workload; where they differ each speaks for itself."""
    each = [(service, bearing(service, technique, knowledge)) for service in services]
    applicabilities = {one.applicability for _, one in each}
    alike = len(applicabilities) == 1
    reasons: dict[str, list[str]] = {one.why: [] for _, one in each}
    for service, one in each:
        reasons[one.why].append(service.title if alike else f"{service.title} ({one.applicability})")
    why = " ".join(reasons) if len(reasons) == 1 else " ".join(f"{', '.join(who)}: {why}" for why, who in reasons.items())
    return Bearing(applicability=applicabilities.pop() if alike else Applicability.DIFFERENT, why=why)


def _summary(services: list[Service], knowledge: Knowledge) -> str:
    if all(service.settings_live_on_host for service in services):
        return bearing(services[0], Technique.QUANTIZATION, knowledge).why
    general = [knowledge.instead[service.kind] for service in services]
    governed = [f"Governed by: {service.governed_by}." for service in services if service.governed_by]
    return " ".join(dict.fromkeys(general + governed))
