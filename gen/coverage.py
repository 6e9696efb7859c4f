"""Which technique bears on which workload, and why: from what each model is, never from its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gen.knowledge import Knowledge
from gen.modelkind import KnownKind
from gen.words import Applicability
from probes.evidence import ModelKind, Technique
from probes.fleet import Fleet, Service, ServiceKind

Kinds = Mapping[str, KnownKind]


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


def bearing_on_model(model: ModelKind, technique: Technique, knowledge: Knowledge) -> Bearing:
    """Say whether a technique bears on a kind of model: by the traits it requires, unless more than those decides."""
    entry, required = knowledge.models[model], knowledge.techniques[technique].requires
    if (exception := entry.otherwise.get(technique)) is not None:
        return Bearing(applicability=exception.applicability, why=exception.why)
    lacking = [trait for trait in required if trait in entry.lacks]
    if lacking:
        return Bearing(applicability=Applicability.DOES_NOT_APPLY, why=entry.lacks[lacking[0]])
    # Of services that such models mostly stand behind there is a sentence about this very technique.
    common = knowledge.techniques[technique].kinds[entry.serves[0]]
    applies = common.applicability is Applicability.APPLIES
    return Bearing(applicability=Applicability.APPLIES, why=common.why if applies else entry.has[required[0]])


def bearing_on_kind(kind: ServiceKind, technique: Technique, knowledge: Knowledge) -> Bearing:
    """Say whether a technique bears on what a kind of service does, where nothing is known of its model."""
    entry = knowledge.techniques[technique].kinds[kind]
    return Bearing(applicability=entry.applicability, why=entry.why)


def bearing(service: Service, technique: Technique, knowledge: Knowledge, known: KnownKind | None = None) -> Bearing:
    """Say how a technique bears on a service: by its model as far as it is known, unless its host settles what would apply."""
    model = None if known is None else known.model
    if model is None:
        by_kind = bearing_on_kind(service.kind, technique, knowledge)
    else:
        by_kind = bearing_on_model(model, technique, knowledge)
    if not service.settings_live_on_host or by_kind.applicability is Applicability.DOES_NOT_APPLY:
        return by_kind
    gated = ", which is not always available" if service.availability_gated else ""
    why = f"Its settings live on its host{gated}; tune only controls that its runtime has, from measured workloads."
    return Bearing(applicability=Applicability.ON_HOST, why=why)


def in_doubt(known: KnownKind, technique: Technique, knowledge: Knowledge) -> bool:
    """Tell whether sources disagree on what a model is in a way that matters to a technique."""
    models, word = known.kinds_in_doubt(knowledge)
    found = {bearing_on_model(model, technique, knowledge).applicability for model in models}
    found |= {bearing_on_kind(word, technique, knowledge).applicability} if word is not None else set()
    return bool(known.drift(knowledge)) and len(found) > 1


def coverage(fleet: Fleet, knowledge: Knowledge, kinds: Kinds | None = None) -> tuple[WorkloadCoverage, ...]:
    """Work out the coverage table, workloads in the order of the inventory; `kinds` is what is known of each model."""
    rows = []
    for name, workload in fleet.workloads.items():
        services = [(fleet.services[service], (kinds or {}).get(service)) for service in workload.services]
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


def _together(services: list[tuple[Service, KnownKind | None]], technique: Technique, knowledge: Knowledge) -> Bearing:
    """Join the services of a workload; where they differ each speaks for itself."""
    each = [(service, bearing(service, technique, knowledge, known)) for service, known in services]
    applicabilities = {one.applicability for _, one in each}
    alike = len(applicabilities) == 1
    reasons: dict[str, list[str]] = {one.why: [] for _, one in each}
    for service, one in each:
        reasons[one.why].append(service.title if alike else f"{service.title} ({one.applicability})")
    why = " ".join(reasons) if len(reasons) == 1 else " ".join(f"{', '.join(who)}: {why}" for why, who in reasons.items())
    return Bearing(applicability=applicabilities.pop() if alike else Applicability.DIFFERENT, why=why)


def _summary(services: list[tuple[Service, KnownKind | None]], knowledge: Knowledge) -> str:
    if all(service.settings_live_on_host for service, _ in services):
        return bearing(services[0][0], Technique.QUANTIZATION, knowledge).why
    kinds = [service.kind if known is None else known.service(knowledge) for service, known in services]
    general = [knowledge.instead[kind] for kind in kinds]
    governed = [f"Governed by: {service.governed_by}." for service, _ in services if service.governed_by]
    return " ".join(dict.fromkeys(general + governed))
