"""Flash attention: where the runtime picks the kernel there is nothing to set; sparse attention is tried first."""

from __future__ import annotations

from gen.assessment import Assessment, Cell, Fact
from gen.benchmarks import SPARSE as SPARSE_SUBJECTS
from gen.knowledge import Engine, Role
from gen.knowledge.schema import ENGINE_TITLES, Foreign, Selects, Supports
from gen.techniques.cells import by_verdict, cells, drifting, most_urgent, nothing_here, of_text, services_of, together
from gen.techniques.grounds import (
    absences,
    bench_fact,
    capabilities_told,
    capability_facts,
    evidence,
    known_fact,
    known_facts,
    prices,
    setting_facts,
)
from gen.techniques.measured import told_facts
from gen.techniques.wording import capital, listing, titles
from gen.view import Bench, ServiceView, View, shown
from gen.words import Decision, State, Verdict
from probes.evidence import CapabilityState, Technique
from probes.fleet import ServiceKind

TECHNIQUE = Technique.FLASH_ATTENTION
SPARSE = "use_sparse_attention"
# The most telling first: one request in which a method changed the answer outweighs others in which it did not.
_SAID = {
    CapabilityState.EFFECTIVE: "changes answers to long prompts on this device",
    CapabilityState.INERT: "changes nothing on this device",
    CapabilityState.REFUSED: "is refused by this device",
}


def assess(view: View) -> Assessment:
    """No switch, no change; a sparse kernel changes answers and is benchmarked before it is relied on."""
    row = cells(view, TECHNIQUE, _controls, _decide)
    ours = of_text(view, row)
    if not ours:
        return nothing_here(view, TECHNIQUE, row)
    decision = most_urgent(ours)
    facts = absences(view, TECHNIQUE, view.text) + known_facts(view, Selects, TECHNIQUE) + _foreign(view)
    facts += known_facts(view, Supports, TECHNIQUE)
    told = told_facts(view, TECHNIQUE)
    tried = capability_facts(view, TECHNIQUE) + told
    return Assessment(
        technique=TECHNIQUE,
        scope=view.scope,
        on=view.on,
        state=together(ours),
        state_text=_state_text(view),
        decision=decision,
        decision_text=_decision_text(view, ours, decision),
        why=(
            *(fact.text for fact in facts),
            *capabilities_told(view, TECHNIQUE),
            *(fact.text for fact in told),
        ),
        next_step=_next_step(view, ours, decision),
        would_change=(
            *(
                f"{method} measured on one of the devices in use: faster prefill, unchanged answers."
                for method in _methods(view)
            ),
            "A release that brings a switch or a kernel for these devices.",
        ),
        facts=facts + tried,
        conflicts=prices(view, TECHNIQUE, view.text),
        evidence=evidence(fact for cell in row for fact in cell.facts) + evidence(tried),
        cells=row,
    )


def _controls(view: View, service: ServiceView) -> tuple[str, ...]:
    return view.controls(service, Role.SPARSE) + view.controls(service, Role.KERNEL)


def _decide(view: View, service: ServiceView) -> Cell:
    sparse, kernel = view.setting(service, Role.SPARSE), view.setting(service, Role.KERNEL)
    selected = view.knowledge.facts_for(Selects, service.engine, service.version, view.on, TECHNIQUE)
    on = sparse is not None and not view.is_off(service, sparse)
    bench = view.bench(service, TECHNIQUE) or (_longest(view, service) if on else None)
    if sparse is not None and on:
        state, decision = State.ENABLED, Decision.BENCHMARK_FIRST
        summary = f"Sparse attention is set ({shown(sparse.value)}); it can change answers."
        if bench is not None and bench.verdict not in {Verdict.NOT_MEASURED, Verdict.INCONCLUSIVE}:
            decision = by_verdict(bench.verdict, on=True)
            summary = f"Sparse attention is set ({shown(sparse.value)}); measured on long prompts: {bench.verdict}."
    elif kernel is not None and view.is_off(service, kernel):
        state, decision, summary = State.DISABLED, Decision.BENCHMARK_FIRST, f"{kernel.control} is off."
    elif kernel is not None:
        state, decision, summary = State.ENABLED, Decision.NO_CHANGE, f"{kernel.control} is {shown(kernel.value)}."
    elif selected:
        state, decision, summary = State.ENABLED, Decision.NO_CHANGE, f"The runtime selects the kernel; {_sparse(view)}."
    else:
        state, decision, summary = State.UNKNOWN, Decision.NO_CHANGE, "Which kernel runs is not known."
        if service.kind is not ServiceKind.TEXT_GENERATION:
            summary = service.bearing(TECHNIQUE).why
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


def _longest(view: View, service: ServiceView) -> Bench | None:
    """Find what sparse attention did to the longest prompts that it was measured on, where it has most to gain."""
    found = (view.measured(service, subject, ("ttft_s",), lambda _arm: True) for subject in SPARSE_SUBJECTS)
    return next((bench for bench in found if bench is not None), None)


def _sparse(view: View) -> str:
    """Say what is known here about sparse attention, which is off: what it did when the device was asked for it."""
    asked = [one for _, one in view.capabilities if one.technique is TECHNIQUE and one.name == SPARSE]
    if view.local and asked:
        states: dict[str, set[CapabilityState]] = {}
        for one in asked:
            states.setdefault(one.requested.partition(",")[0], set()).add(one.state)
        told = {method: next((s for s in _SAID if s in seen), None) for method, seen in states.items()}
        if said := [f"{method} {_SAID[state]}" for method, state in told.items() if state is not None]:
            return listing(said)
    methods = listing(_methods(view)) if view.local and not asked and _methods(view) else ""
    return f"{methods} not measured here" if methods else "no sparse attention is declared"


def _foreign(view: View) -> tuple[Fact, ...]:
    """State which foreign switches do nothing, where the services run on devices of that vendor."""
    found: dict[str, Fact] = {}
    for service in view.text:
        vendors = {view.fleet.devices[device].vendor for device in view.cards(service)}
        for fact in view.knowledge.facts_for(Foreign, service.engine, service.version, view.on, TECHNIQUE):
            if service.engine is not None and vendors & set(fact.vendors):
                found.setdefault(fact.id, known_fact(view, service.engine, fact))
    return tuple(found.values())


def _methods(view: View) -> tuple[str, ...]:
    """Name the sparse methods that a runtime in use supports."""
    found = (
        fact.method.value
        for service in view.text
        for fact in view.knowledge.facts_for(Supports, service.engine, service.version, view.on, TECHNIQUE)
        if view.runs_on(service, fact.devices)
    )
    return tuple(dict.fromkeys(found))


def _state_text(view: View) -> str:
    if absent := absences(view, TECHNIQUE, view.text):
        told = " ".join(fact.text for fact in absent)
    else:
        names = {c.name for s in view.text for c in view.knowledge.controls_of(s.engine, TECHNIQUE) if c.role is Role.KERNEL}
        told = f"Controls: {listing(sorted(names))}." if names else "No control is known."
    selected = known_facts(view, Selects, TECHNIQUE)
    sparse = [s for s in view.text if (seen := view.setting(s, Role.SPARSE)) is not None and not view.is_off(s, seen)]
    said = f"Sparse attention is set on {titles(sparse)}." if sparse else "No sparse attention is declared."
    return " ".join((told, *(fact.text for fact in selected), said))


def _decision_text(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.NO_CHANGE:
        tracked = listing((*_methods(view), "kernel releases"))
        return f"No configuration change; track {tracked} of {_runtimes(view)}."
    if decision is Decision.INVESTIGATE:
        return drifting(view, row) or f"Find out why sparse attention does not pay on {named}."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Compare answers and TTFT of {named} with the other attention kernel before relying on either."
    return capital(f"{decision}: {named}.")


def _next_step(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.INVESTIGATE:
        return f"Compare the configuration of {named} with the inventory."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Run long prompts on {named} with both kernels, and compare answers and TTFT."
    tried = f"; try {listing(_methods(view))} on a device before it is set anywhere" if _methods(view) else ""
    return f"Track {listing((*_methods(view), 'kernel releases'))} of {_runtimes(view)}{tried}."


def _runtimes(view: View) -> str:
    """Name the products whose releases carry the kernels: OpenVINO for everything that is built on it."""
    built_on = {Engine.OVMS: Engine.OPENVINO, Engine.OPENVINO_GENAI: Engine.OPENVINO}
    engines = dict.fromkeys(built_on.get(s.engine, s.engine) for s in view.text if s.engine is not None)
    return listing(ENGINE_TITLES[engine] for engine in engines) if engines else "the runtime"
