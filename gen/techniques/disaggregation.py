"""Disaggregated prefill/decode: not without two pools of one model, a link, and a runtime that moves a KV cache."""

from __future__ import annotations

from gen.assessment import Assessment, Cell, Conflict, Fact
from gen.knowledge import Control, Role
from gen.knowledge.schema import ENGINE_TITLES
from gen.planners import disaggregation as planner
from gen.techniques.cells import by_verdict, cells, drifting, most_urgent, nothing_here, of_text, services_of, together
from gen.techniques.grounds import absences, absent_controls, bench_fact, evidence, fleet_fact, prices, setting_facts
from gen.techniques.wording import capital, listing, titles
from gen.view import ServiceView, View
from gen.words import Decision, State, Verdict
from probes.evidence import Technique
from probes.fleet import ServiceKind

TECHNIQUE = Technique.DISAGGREGATION


def assess(view: View) -> Assessment:
    """Do not deploy while pools, link or KV path are lacking; benchmark once all of them are declared."""
    row = cells(view, TECHNIQUE, _controls, _decide)
    ours = of_text(view, row)
    if not ours:
        return nothing_here(view, TECHNIQUE, row)
    decision = most_urgent(ours)
    lacking = _lacking(view)
    facts = (*_topology(view), *absences(view, TECHNIQUE, view.text))
    doubts = () if lacking else tuple(map(_doubt, absent_controls(view, TECHNIQUE, view.text).values()))
    return Assessment(
        technique=TECHNIQUE,
        scope=view.scope,
        on=view.on,
        state=_state(view, ours),
        state_text=_state_text(view, ours),
        decision=decision,
        decision_text=_decision_text(view, ours, decision, lacking),
        why=(*((capital(f"{_reason(view, lacking)}."),) if lacking else ()), *(fact.text for fact in facts), *_criteria(view)),
        next_step=_next_step(view, ours, decision),
        would_change=_would_change(view),
        facts=facts,
        conflicts=prices(view, TECHNIQUE, view.text) + doubts,
        evidence=evidence(fact for cell in row for fact in cell.facts),
        cells=row,
    )


def _controls(view: View, service: ServiceView) -> tuple[str, ...]:
    return view.controls(service, Role.SWITCH, TECHNIQUE)


def _decide(view: View, service: ServiceView) -> Cell:
    absent = view.knowledge.absent(service.engine, TECHNIQUE, service.version, view.on)
    switch = view.setting(service, Role.SWITCH, TECHNIQUE)
    bench = view.bench(service, TECHNIQUE)
    ready = not _lacking(view) and service in _pools(view)
    decision = Decision.BENCHMARK_FIRST if ready else Decision.DO_NOT_DEPLOY
    if switch is not None and not view.is_off(service, switch):
        state, summary = State.ENABLED, f"On: {switch.control} is set."
        decision = Decision.KEEP if ready else Decision.INVESTIGATE
    elif absent is not None:
        state, summary = State.UNSUPPORTED, absent.values
    elif view.knowledge.controls_of(service.engine, TECHNIQUE):
        state, summary = State.DISABLED, "Not deployed."
    else:
        state, summary = State.UNKNOWN, "Whether its runtime can do it is not known."
    if bench is not None and bench.verdict not in {Verdict.NOT_MEASURED, Verdict.INCONCLUSIVE}:
        decision = by_verdict(bench.verdict, on=state is State.ENABLED)
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


def _all_text(view: View) -> tuple[ServiceView, ...]:
    """Count every text service, also those whose hosts settle them: any could be half of a pair."""
    return tuple(service for service in view.services if service.kind is ServiceKind.TEXT_GENERATION)


def _pools(view: View) -> list[ServiceView]:
    """Give the services that are declared to be compatible pools."""
    named = {name for pool in view.fleet.topology.compatible_pools for name in pool}
    return [service for service in view.services if service.name in named]


def _lacking(view: View) -> tuple[str, ...]:
    """Name what is missing, in the order in which it would have to be provided."""
    topology, pools = view.fleet.topology, _pools(view)
    if view.local:
        return ("a second pool",)
    lacking = [f"one {what} in both pools" for what, values in _differences(pools) if len(values) > 1]
    if len(pools) < 2:
        lacking.append("a compatible target model in two pools")
    if topology.interconnect_gbit_s is None:
        lacking.append("a link between them")
    if topology.kv_transfer is None:
        lacking.append("a KV-transfer path")
    return tuple(lacking)


def _reason(view: View, lacking: tuple[str, ...]) -> str:
    """Say why not, in one sentence."""
    if view.local:
        return "one machine serves one model, so there is nothing to split"
    apart = [what for what, values in _spread(view) if len(values) > 1] if len(_pools(view)) < 2 else []
    differ = f"the pools are heterogeneous in {listing(apart)}; " if apart else ""
    return f"{differ}{listing(lacking)} {'is' if len(lacking) == 1 else 'are'} lacking"


def _differences(services: list[ServiceView]) -> list[tuple[str, set[str]]]:
    """Compare what is known of pools; what nobody says is held against none of them."""
    known = {
        "runtime": {ENGINE_TITLES[s.engine] for s in services if s.engine},
        "model": {s.model for s in services if s.model} or {s.parameters for s in services if s.parameters},
    }
    return list(known.items())


def _spread(view: View) -> tuple[tuple[str, list[str]], ...]:
    """List the runtimes, models and places of every text service, as far as anybody says."""
    services = _all_text(view)
    runtimes = {ENGINE_TITLES[s.engine] for s in services if s.engine}
    models = {s.model or s.parameters or "" for s in services} - {""}
    places = {view.fleet.hosts[host].title for s in services for host in s.hosts}
    return ("runtime", sorted(runtimes)), ("model", sorted(models)), ("place", sorted(places))


def _topology(view: View) -> tuple[Fact, ...]:
    """State how alike the places are that generate text, and what is declared between them."""
    if view.local:
        return ()
    topology, spread = view.fleet.topology, _spread(view)
    differ = [f"{what} ({listing(values)})" for what, values in spread if len(values) > 1]
    alike = "alike in runtime, model and place, as far as declared"
    text = f"The services that generate text {f'differ in {listing(differ)}' if differ else f'are {alike}'}."
    between = ", ".join(
        (
            f"{len(_pools(view))} pooled services",
            f"{topology.interconnect_gbit_s:g} Gbit/s" if topology.interconnect_gbit_s is not None else "no link",
            topology.kv_transfer or "no KV transfer",
        )
    )
    return (
        fleet_fact(view, "services", "; ".join(f"{what} {', '.join(values)}" for what, values in spread), text),
        fleet_fact(view, "topology", between, f"Declared between pools: {between}."),
    )


def _criteria(view: View) -> tuple[str, ...]:
    """Say where the criteria lead with what is known, for a scope that has more than one service to split."""
    return () if view.local else (f"By the criteria of the planner: {planner.decide(view).said()}",)


def _doubt(absent: Control) -> Conflict:
    """State a declared path as a price while the documents know of none."""
    text = f"The inventory declares a KV-transfer path, but the documents know of none: {absent.values}"
    return Conflict(id=absent.id, text=text, source=absent.source, checked=absent.checked)


def _state(view: View, row: tuple[Cell, ...]) -> State:
    """A fleet deploys a technique across services or does not; one service is what its runtime makes it."""
    state = together(row)
    return State.DISABLED if state is State.UNSUPPORTED and len(row) > 1 and not view.local else state


def _state_text(view: View, row: tuple[Cell, ...]) -> str:
    on = services_of(view, row, Decision.KEEP)
    return f"Deployed on {titles(on)}." if on else "Not deployed."


def _decision_text(view: View, row: tuple[Cell, ...], decision: Decision, lacking: tuple[str, ...]) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.DO_NOT_DEPLOY:
        return f"Do not deploy: {_reason(view, lacking)}." if lacking else "Do not deploy: it was measured and does not pay."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Benchmark {named} as prefill and decode pools first."
    if decision is Decision.INVESTIGATE:
        return drifting(view, row) or f"Find out how {named} came to be split: {_reason(view, lacking)}."
    if decision in {Decision.KEEP, Decision.ENABLE}:
        return f"{capital(decision.value)} on {named}."
    return capital(f"{decision}.")


def _next_step(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.BENCHMARK_FIRST:
        return f"Show that a KV cache moves between {named}, then compare TTFT and inter-token latency with unsplit serving."
    if decision is Decision.INVESTIGATE:
        return f"Compare the configuration of {named} with the declared topology."
    if decision is Decision.DO_NOT_DEPLOY:
        return "None while these hold; look again when what would change the decision comes true."
    return "Watch TTFT and inter-token latency of both pools."


def _would_change(view: View) -> tuple[str, ...]:
    engines = sorted({ENGINE_TITLES[service.engine] for service in view.text if service.engine})
    needs = view.knowledge.techniques[TECHNIQUE].needs
    runtime = (f"A release of {listing(engines)} that hands over a KV cache.",) if engines else ()
    return (*(capital(f"{need}.") for need in needs), *runtime)
