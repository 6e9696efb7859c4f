"""Continuous batching: keep the bounds, set missing ones, and raise them from measurements only."""

from __future__ import annotations

from gen.assessment import Assessment, Cell, Fact
from gen.benchmarks import of_technique
from gen.knowledge import Role
from gen.knowledge.schema import Default, Selects, same_value
from gen.techniques.cells import (
    by_verdict,
    cells,
    drifting,
    most_urgent,
    nothing_here,
    of_text,
    services_of,
    together,
    unmeasured,
)
from gen.techniques.grounds import (
    bench_fact,
    capabilities_told,
    capability_facts,
    evidence,
    fleet_fact,
    known_facts,
    prices,
    setting_facts,
)
from gen.techniques.measured import told_facts
from gen.techniques.wording import capital, listing, spread_out, titles
from gen.view import ServiceView, View, shown
from gen.words import Decision, State, Verdict
from probes.evidence import Technique

TECHNIQUE = Technique.CONTINUOUS_BATCHING
(_BENCHMARK,) = (one for one in of_technique(TECHNIQUE) if one.decided_by is not None)
_BOUNDS = (Role.SEQUENCES, Role.TOKENS)


def assess(view: View) -> Assessment:
    """A bounded batch is kept, an unbounded one gets bounds; only a measurement moves them."""
    row = cells(view, TECHNIQUE, _controls, _decide)
    ours = of_text(view, row)
    if not ours:
        return nothing_here(view, TECHNIQUE, row)
    decision = most_urgent(ours)
    facts = known_facts(view, Selects, TECHNIQUE) + _caps(view) + _incidents(view)
    tried = capability_facts(view, TECHNIQUE) + told_facts(view, TECHNIQUE)
    if decision is Decision.TUNE:
        facts += known_facts(view, Default, TECHNIQUE)
    return Assessment(
        technique=TECHNIQUE,
        scope=view.scope,
        on=view.on,
        state=together(ours),
        state_text=_state_text(view, ours),
        decision=decision,
        decision_text=_decision_text(view, ours, decision),
        why=(
            *(fact.text for fact in (*facts, *_measured_facts(ours))),
            *capabilities_told(view, TECHNIQUE),
            *(fact.text for fact in told_facts(view, TECHNIQUE)),
        ),
        next_step=_next_step(view, ours, decision),
        would_change=(
            "Measured throughput and p95 latency over several loads that favour other bounds, without errors.",
            "A bound that is observed to differ from the declared one.",
        ),
        facts=facts + tried,
        conflicts=prices(view, TECHNIQUE, view.text),
        evidence=evidence(fact for cell in row for fact in cell.facts) + evidence(tried),
        cells=row,
    )


def _controls(view: View, service: ServiceView) -> tuple[str, ...]:
    roles = (Role.SWITCH, *_BOUNDS)
    return tuple(control for role in roles for control in view.controls(service, role, TECHNIQUE))


def _decide(view: View, service: ServiceView) -> Cell:
    bench = view.bench(service, TECHNIQUE, _BENCHMARK.decides)
    state = _state(view, service)
    unbounded = [role.value for role in _BOUNDS if view.setting(service, role) is None]
    if bench is not None and bench.verdict is not Verdict.NOT_MEASURED:
        decision, summary = by_verdict(bench.verdict, on=state is State.ENABLED), _effect(bench.verdict)
    elif state is State.DISABLED:
        decision, summary = Decision.BENCHMARK_FIRST, "Off: one request at a time."
    elif state is State.UNKNOWN:
        decision, summary = Decision.INVESTIGATE, "Neither a setting nor a document says how requests are batched."
    elif view.local:
        decision, summary = Decision.BENCHMARK_FIRST, f"On, {_bounds(view, service)}; {unmeasured(view, service, TECHNIQUE)}."
    elif unbounded:
        decision, summary = Decision.TUNE, f"On, but nothing declared for {listing(unbounded)}."
    else:
        decision, summary = Decision.KEEP, f"On, {_bounds(view, service)}."
    facts = setting_facts(view, service, _controls(view, service))
    return Cell(
        technique=TECHNIQUE,
        service=service.name,
        applicability=service.bearing(TECHNIQUE).applicability,
        state=state,
        decision=decision,
        summary=summary,
        facts=facts + (() if bench is None else (bench_fact(service, TECHNIQUE, bench),)),
    )


def _state(view: View, service: ServiceView) -> State:
    """A switch speaks first, then a bound above one, then what the runtime does by itself."""
    switch = view.setting(service, Role.SWITCH, TECHNIQUE)
    if switch is not None:
        return State.DISABLED if view.is_off(service, switch) else State.ENABLED
    sequences = view.setting(service, Role.SEQUENCES)
    if sequences is not None and isinstance(sequences.value, int):
        return State.ENABLED if sequences.value > 1 else State.DISABLED
    by_itself = view.knowledge.facts_for(Selects, service.engine, service.version, view.on, TECHNIQUE)
    return State.ENABLED if by_itself else State.UNKNOWN


def _bounds(view: View, service: ServiceView) -> str:
    words = {Role.SEQUENCES: "sequence", Role.TOKENS: "token"}
    known = {role: sighting.value for role in _BOUNDS if (sighting := view.setting(service, role)) is not None}
    told = [f"{shown(value)} {words[role]}{'' if same_value(value, 1) else 's'}" for role, value in known.items()]
    lacking = [f"{words[role]}s" for role in _BOUNDS if role not in known]
    said = [f"at most {listing(told)} per batch"] if told else []
    said += [f"no declared bound on {listing(lacking)}"] if lacking else []
    return ", ".join(said)


def _effect(verdict: Verdict) -> str:
    effect = {
        Verdict.BETTER: "requests at once produce more tokens per second than one after the other",
        Verdict.WORSE: "requests at once produce fewer tokens per second, or fail more often",
        Verdict.SAME: "requests at once produce no more tokens per second than one after the other",
    }.get(verdict, "whether requests at once pay is not settled")
    return f"Measured: {effect}."


def _measured_facts(row: tuple[Cell, ...]) -> tuple[Fact, ...]:
    return tuple(fact for cell in row for fact in cell.facts if fact.id.endswith(f"/measured/{TECHNIQUE}"))


def _caps(view: View) -> tuple[Fact, ...]:
    capped = {name: client for s in view.text for name, client in s.clients if client.admission_caps}
    return tuple(
        fleet_fact(
            view,
            f"clients.{name}.admission_caps",
            ", ".join(client.admission_caps),
            f"{client.title} add admission caps ({listing(client.admission_caps)})"
            + (f", which protect {listing(client.protects)}." if client.protects else "."),
        )
        for name, client in capped.items()
    )


def _incidents(view: View) -> tuple[Fact, ...]:
    if view.local:
        return ()
    return tuple(
        fleet_fact(
            view,
            f"operations.incidents.{number}",
            incident.what,
            f"{capital(incident.cause)} once contributed to {incident.what}"
            + (f" on {listing(view.fleet.devices[d].title for d in incident.devices)}." if incident.devices else "."),
        )
        for number, incident in enumerate(view.fleet.operations.incidents)
        if incident.technique is TECHNIQUE
    )


def _state_text(view: View, row: tuple[Cell, ...]) -> str:
    words = {State.ENABLED: "Active", State.PARTLY: "Active in part", State.DISABLED: "Off"}
    bounds = spread_out([(service, _bounds(view, service)) for service in view.text])
    caps = [client.title for name, client in {n: c for s in view.text for n, c in s.clients}.items() if client.admission_caps]
    capped = f" {listing(caps)} add admission caps." if caps else ""
    return f"{words.get(together(row), capital(together(row).value))}: {bounds}.{capped}"


def _decision_text(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.KEEP:
        return "Keep. Tune from measurements only."
    if decision is Decision.INVESTIGATE:
        return drifting(view, row) or f"Find out how {named} batch requests."
    if decision is Decision.TUNE:
        return f"Set the missing bounds on {named}; keep the others and tune from measurements only."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Measure one request against several at once on {named} first."
    return capital(f"{decision}: {' '.join(dict.fromkeys(cell.summary for cell in row if cell.decision is decision))}")


def _next_step(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.TUNE:
        return f"Declare and set both bounds on {named}."
    if decision is Decision.INVESTIGATE:
        return f"Compare the configuration of {named} with the inventory."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Measure throughput, TTFT and errors on {named} at several concurrencies, within its probing limits."
    return "Before a bound is raised, measure throughput, p95 latency and errors at several concurrencies."
