"""What a rule rested on, as facts and prices that can be looked up."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from gen.assessment import Conflict, Fact, Ref, RefKind
from gen.knowledge import Control, Engine, Release, Role
from gen.knowledge.schema import ENGINE_TITLES, Condition, Known, KnownConflict, KnownFact, Supports, same_value
from gen.modelkind import Claim
from gen.spread import quantity
from gen.techniques.wording import capital, listing
from gen.verdict import Comparison
from gen.view import Bench, ServiceView, Sighting, View, shown
from gen.words import Verdict
from probes.evidence import Capability, CapabilityState, Missing, ProvenanceKind, Run, RunKind, Technique


def setting_fact(view: View, service: ServiceView, sighting: Sighting) -> Fact:
    """State the value of one control on one service."""
    control = view.knowledge.control(service.engine, sighting.control)
    # A pool of 0 is none of 0 GiB: it grows as requests need it.
    free = control is not None and control.role is Role.POOL and same_value(sighting.value, 0)
    unit = " (no fixed size)" if free else f" {control.unit}" if control and control.unit else ""
    seen = bool(sighting.run)
    return Fact(
        id=f"{service.name}/{sighting.control}",
        value=shown(sighting.value),
        text=f"{service.title}: {sighting.control} is {shown(sighting.value)}{unit}{_aside(sighting)}.",
        provenance=sighting.kind,
        date=sighting.date,
        ref=Ref(kind=RefKind.RUN, target=sighting.run)
        if seen
        else Ref(kind=RefKind.SETTING, target=f"{service.name}/{sighting.control}"),
    )


def _aside(sighting: Sighting) -> str:
    """Say what a value is worth: that nobody set it, or that it changes nothing."""
    said = [f"the default of {sighting.default_of}"] if sighting.default_of else []
    said += [f"set, not effective: {sighting.without_effect}"] if sighting.without_effect else []
    return f" ({'; '.join(said)})" if said else ""


def setting_facts(view: View, service: ServiceView, controls: Iterable[str]) -> tuple[Fact, ...]:
    """State what is known of several controls on one service."""
    found = (service.setting(control) for control in controls)
    return tuple(setting_fact(view, service, sighting) for sighting in found if sighting is not None)


def contradicted(view: View, service: ServiceView, controls: Iterable[str]) -> tuple[Fact, ...]:
    """State the weaker sightings of controls that drift, beside the strongest that `setting_facts` states."""
    drifting = [control for control in controls if service.drift((control,))]
    weaker = [s for s in service.sightings if s.control in drifting and s != service.setting(s.control)]
    found: dict[str, Fact] = {}
    for sighting in weaker:
        fact = setting_fact(view, service, sighting)
        # Two files may say it: each is told by its own place.
        where = f"/{sighting.source}" if sighting.in_file else ""
        found.setdefault(f"{fact.id}/{fact.provenance}{where}", fact)
    return tuple(fact.model_copy(update={"id": key}) for key, fact in found.items())


def kind_facts(view: View, service: ServiceView) -> tuple[Fact, ...]:
    """State what each source says that the model of a service is."""
    word = service.known.word
    told = fleet_fact(view, f"services/{service.name}/kind", word.value, f"{service.title}: declared for {word}.")
    return (told, *(_kind_fact(service, number, claim) for number, claim in enumerate(service.known.claims, 1)))


def _kind_fact(service: ServiceView, number: int, claim: Claim) -> Fact:
    return Fact(
        id=f"{service.name}/model-kind/{number}",
        value=claim.kind.value,
        text=f"{service.title}: {claim.where} says {claim.kind}.",
        provenance=claim.provenance,
        date=claim.date,
        ref=Ref(kind=RefKind.RUN, target=claim.run),
    )


def fleet_fact(view: View, path: str, value: str, text: str) -> Fact:
    """State something the inventory declares outside the settings; `path` is a path in fleet.yml."""
    return Fact(
        id=f"fleet/{path}",
        value=value,
        text=text,
        provenance=ProvenanceKind.DECLARED,
        date=view.fleet.as_of,
        ref=Ref(kind=RefKind.FLEET, target=path),
    )


def known_fact(view: View, engine: Engine, known: KnownFact | Control) -> Fact:
    """State something from the knowledge base, dated by the day it became true."""
    return Fact(
        id=known.id,
        value="true",
        text=known.values if isinstance(known, Control) else known.text,
        provenance=ProvenanceKind.DOCUMENTED,
        date=_day(view, engine, known),
        ref=Ref(kind=RefKind.SOURCE, target=known.source),
    )


def release_fact(release: Release) -> Fact:
    """State which release of a runtime is the newest on the day of the assessment."""
    engine = ENGINE_TITLES[release.engine]
    return Fact(
        id=f"releases/{release.engine}",
        value=release.version,
        text=f"{engine} {release.version} was published on {release.published.isoformat()}.",
        provenance=ProvenanceKind.DOCUMENTED,
        date=release.published,
        ref=Ref(kind=RefKind.SOURCE, target=release.source),
    )


def known_facts(view: View, kind: type[KnownFact], technique: Technique) -> tuple[Fact, ...]:
    """State the facts of a kind that apply to any service the matrix speaks of, each once."""
    found: dict[str, Fact] = {}
    for service in view.text:
        for fact in view.knowledge.facts_for(kind, service.engine, service.version, view.on, technique):
            if service.engine is not None and (not isinstance(fact, Supports) or view.runs_on(service, fact.devices)):
                found.setdefault(fact.id, known_fact(view, service.engine, fact))
    return tuple(found.values())


def absent_controls(view: View, technique: Technique, services: Iterable[ServiceView]) -> dict[Engine, Control]:
    """Find which runtimes of some services are known to have no control for a technique."""
    found: dict[Engine, Control] = {}
    for service in services:
        control = view.knowledge.absent(service.engine, technique, service.version, view.on)
        if control is not None and service.engine is not None:
            found.setdefault(service.engine, control)
    return found


def absences(view: View, technique: Technique, services: Iterable[ServiceView]) -> tuple[Fact, ...]:
    """State that the runtimes of some services have no control for a technique, where that is known."""
    return tuple(known_fact(view, engine, control) for engine, control in absent_controls(view, technique, services).items())


def prices(
    view: View, technique: Technique, services: Iterable[ServiceView], newer: Release | None = None
) -> tuple[Conflict, ...]:
    """State the prices of a technique that are due on any of some services, in the order of the knowledge base.

    `newer` adds those that a release not yet installed would bring for the services of its engine.
    """
    due: set[str] = set()
    for service in services:
        ahead = (newer.version,) if newer is not None and newer.engine is service.engine else ()
        for version in (service.version, *ahead):
            found = view.knowledge.conflicts_for(service.engine, version, view.on, technique)
            due |= {conflict.id for conflict in found if _is_due(view, service, conflict)}
    return tuple(
        Conflict(id=conflict.id, text=conflict.text, source=conflict.source, checked=conflict.checked)
        for conflict in view.knowledge.conflicts
        if conflict.id in due
    )


def bench_fact(service: ServiceView, technique: Technique, bench: Bench, value: str = "") -> Fact:
    """State a verdict with its numbers; the value that is compared later is the word alone, or what a rule makes of it."""
    return Fact(
        id=f"{service.name}/measured/{technique}",
        value=value or bench.verdict.value,
        text=f"{service.title}: {bench_told(bench)}",
        provenance=ProvenanceKind.MEASURED,
        date=bench.run.date,
        ref=Ref(kind=RefKind.RUN, target=bench.run.id),
    )


def bench_told(bench: Bench) -> str:
    """Say which arms were compared and what came of it, with its numbers."""
    baseline, candidate = bench.sides
    # The name of a control is written as it is set, and never begins a sentence.
    arms = f"{'with ' if bench.run.kind is RunKind.CONTRACT else ''}{candidate} against {baseline}"
    told = [f"{bench.deciding.metric} {_numbers(bench.deciding)}"]
    told += [f"{veto.metric} {_numbers(veto)}" for veto in bench.vetoes]
    return capital(f"{arms}: {'; '.join(told)}.")


def capability_fact(run: Run, capability: Capability) -> Fact:
    """State what became of one request made of a device or engine."""
    device = "" if isinstance(run.device, Missing) else run.device.name
    details = (capability.effect or capability.words).rstrip(". ")
    asked = f"{capability.name} {capability.requested}".strip()
    return Fact(
        id=f"{run.subject}/{capability.name}/{capability.requested}",
        value=capability.state.value,
        text=f"{device or run.subject}: {asked} was {capability.state}{f' ({details})' if details else ''}.",
        provenance=ProvenanceKind.MEASURED,
        date=run.date,
        ref=Ref(kind=RefKind.RUN, target=run.id),
    )


def capability_facts(view: View, technique: Technique) -> tuple[Fact, ...]:
    """State what became of each request that bears on a technique."""
    return tuple(capability_fact(run, one) for run, one in view.capabilities if one.technique is technique)


def capabilities_told(view: View, technique: Technique) -> tuple[str, ...]:
    """Sum up, in a sentence per device and setting, what came of the values that were asked for."""
    told: dict[tuple[str, str], dict[CapabilityState, list[str]]] = {}
    for run, one in view.capabilities:
        if one.technique is technique:
            device = run.subject if isinstance(run.device, Missing) else run.device.name
            told.setdefault((device, one.name), {}).setdefault(one.state, []).append(one.requested)
    return tuple(
        f"{device}: {name} was " + "; ".join(f"{state} for {listing(asked)}" for state, asked in sorted(states.items())) + "."
        for (device, name), states in told.items()
    )


def evidence(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Name the runs that facts rest on, each once."""
    return tuple(dict.fromkeys(fact.ref.target for fact in facts if fact.ref.kind is RefKind.RUN))


def _numbers(comparison: Comparison) -> str:
    one, two = comparison.baseline, comparison.candidate
    if one is None or two is None or comparison.low is None or comparison.high is None:
        return f"{comparison.verdict} ({comparison.reason})"
    unit = comparison.unit
    sides = f"median {quantity(two.median, unit)} (n = {two.n}) against {quantity(one.median, unit)} (n = {one.n})"
    more = f"; about {comparison.more_runs} more a side would settle it" if comparison.more_runs else ""
    doubt = f", {comparison.reason}{more}" if comparison.verdict is Verdict.INCONCLUSIVE else ""
    return f"{comparison.verdict}, {sides}, ratio {comparison.low:.2f} to {comparison.high:.2f}{doubt}"


def _day(view: View, engine: Engine, known: Known) -> date:
    """Date knowledge by when it became true; what has no beginning is dated by its source, never after today's view."""
    born = view.knowledge.born(known, engine)
    source = view.knowledge.source_of(known)
    return min(born or source.published or known.checked, view.on)


def _is_due(view: View, service: ServiceView, conflict: KnownConflict) -> bool:
    """Tell whether a service's device and settings make a price due."""
    if not view.runs_on(service, conflict.devices):
        return False
    return (conflict.when is None or _holds(service, conflict.when)) and not (
        conflict.unless is not None and _holds(service, conflict.unless)
    )


def _holds(service: ServiceView, condition: Condition) -> bool:
    sighting = service.setting(condition.setting)
    return condition.holds(None if sighting is None else sighting.value)
