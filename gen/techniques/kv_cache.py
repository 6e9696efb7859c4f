"""KV-cache management: keep bounded pools with headroom; tune from cache and queue measurements."""

from __future__ import annotations

from gen.assessment import Assessment, Cell, Fact
from gen.knowledge import Role
from gen.knowledge.schema import Default
from gen.planners import kv_capacity
from gen.planners.plan import Given
from gen.techniques.cells import cells, drifting, most_urgent, nothing_here, of_text, services_of, together
from gen.techniques.grounds import capabilities_told, capability_facts, evidence, fleet_fact, known_facts, prices, setting_facts
from gen.techniques.measured import told_facts
from gen.techniques.wording import capital, listing, spread_out, titles, where
from gen.view import ServiceView, Sighting, View, shown
from gen.words import Decision, State
from probes.evidence import Capability, CapabilityState, Technique

TECHNIQUE = Technique.KV_CACHE
_CONTEXT = 8192
_UNDECLARED = "no declared pool"
_ALERTS = {"queue": "queue", "kv cache": "KV cache"}
_BROKEN = {CapabilityState.REFUSED, CapabilityState.FAILED}


def assess(view: View) -> Assessment:
    """A static pool with bounded concurrency is kept; a pool without a size, or a refused precision, is not."""
    row = cells(view, TECHNIQUE, _controls, _decide)
    ours = of_text(view, row)
    if not ours:
        return nothing_here(view, TECHNIQUE, row)
    decision = most_urgent(ours)
    told = told_facts(view, TECHNIQUE)
    facts, tried = _operations(view), capability_facts(view, TECHNIQUE) + told
    if any(_pool(view, service) is None for service in view.text):
        facts += known_facts(view, Default, TECHNIQUE)
    return Assessment(
        technique=TECHNIQUE,
        scope=view.scope,
        on=view.on,
        state=together(ours),
        state_text=_state_text(view),
        decision=decision,
        decision_text=_decision_text(view, ours, decision),
        why=(
            view.knowledge.techniques[TECHNIQUE].about,
            *(fact.text for fact in facts),
            *capabilities_told(view, TECHNIQUE),
            *(fact.text for fact in told),
            *_capacity(view),
        ),
        next_step=_next_step(view, ours, decision),
        would_change=(
            "Measured cache use or queueing that shows a pool too small or too large.",
            "A pool or a precision that is observed to differ from the declared one.",
            *_questions(view),
        ),
        facts=facts + tried,
        conflicts=prices(view, TECHNIQUE, view.text),
        evidence=evidence(fact for cell in row for fact in cell.facts) + evidence(tried),
        cells=row,
    )


def _controls(view: View, service: ServiceView) -> tuple[str, ...]:
    return view.controls(service, Role.POOL) + view.controls(service, Role.KV_PRECISION)


def _decide(view: View, service: ServiceView) -> Cell:
    pool, precision = _pool(view, service), view.setting(service, Role.KV_PRECISION)
    bounded = view.setting(service, Role.SEQUENCES) is not None
    tried = None if precision is None else _tried(view, precision)
    broken = tried is not None and tried.state in _BROKEN
    state = State.ENABLED if pool is not None or precision is not None or bounded else State.UNKNOWN
    if broken or state is State.UNKNOWN:
        decision = Decision.INVESTIGATE
    elif pool is not None and view.is_off(service, pool):
        decision = Decision.TUNE
    elif view.local and tried is None:
        decision = Decision.BENCHMARK_FIRST
    else:
        decision = Decision.KEEP
    summary = f"{capital(_pool_text(view, service))}; {_precision_text(precision, tried)}"
    return Cell(
        technique=TECHNIQUE,
        service=service.name,
        applicability=service.bearing(TECHNIQUE).applicability,
        state=state,
        decision=decision,
        summary=f"{summary}; {'concurrency bounded' if bounded else 'no declared bound on concurrency'}.",
        facts=(*setting_facts(view, service, _controls(view, service)), _bounded_fact(view, service, bounded=bounded)),
    )


def _bounded_fact(view: View, service: ServiceView, *, bounded: bool) -> Fact:
    """State that concurrency is bounded, not by how much: the number belongs to batching."""
    day = max((s.date for s in service.sightings), default=view.fleet.as_of)
    bound = view.setting(service, Role.SEQUENCES)
    said = "is bounded" if bounded else "has no declared bound"
    fact = fleet_fact(view, f"services.{service.name}.settings", str(bounded).lower(), f"{service.title}: concurrency {said}.")
    kind = fact.provenance if bound is None else bound.kind
    return fact.model_copy(update={"id": f"{service.name}/bounded", "date": bound.date if bound else day, "provenance": kind})


def _pool(view: View, service: ServiceView) -> Sighting | None:
    return view.setting(service, Role.POOL)


def _pool_text(view: View, service: ServiceView) -> str:
    pool = _pool(view, service)
    if pool is None:
        return _UNDECLARED
    if view.is_off(service, pool):
        return "a pool without a size"
    control = view.knowledge.control(service.engine, pool.control)
    return f"a static pool of {shown(pool.value)} {control.unit if control else ''}".rstrip()


def _precision_text(precision: Sighting | None, tried: Capability | None) -> str:
    if precision is None:
        return "KV precision not declared"
    return f"{shown(precision.value)} KV cache" + ("" if tried is None else f", {tried.state} on this device")


def _tried(view: View, precision: Sighting) -> Capability | None:
    """Find what became of the served precision when this machine's device was asked for it."""
    asked = shown(precision.value).casefold()
    return next((c for _, c in view.capabilities if c.name == precision.control and c.requested.casefold() == asked), None)


def _operations(view: View) -> tuple[Fact, ...]:
    if view.local:
        return ()
    operations = view.fleet.operations
    facts = []
    if operations.alerts:
        alerts = listing(_ALERTS[alert] for alert in operations.alerts)
        facts.append(fleet_fact(view, "operations.alerts", alerts, f"Alerts watch {alerts}."))
    if operations.eviction is not None and operations.eviction.policy != "none":
        policy, scope = operations.eviction.policy, operations.eviction.scope
        facts.append(fleet_fact(view, "operations.eviction", f"{policy} per {scope}", capital(f"{_eviction(view)}.")))
    if operations.reliability_headroom:
        text = "Reliability headroom is kept on purpose."
        facts.append(fleet_fact(view, "operations.reliability_headroom", "true", text))
    return tuple(facts)


def _eviction(view: View) -> str:
    eviction = view.fleet.operations.eviction
    if eviction is None or eviction.policy == "none":
        return ""
    return f"{eviction.policy}-based eviction per {eviction.scope.upper() if eviction.scope == 'gpu' else eviction.scope}"


def _capacity(view: View) -> tuple[str, ...]:
    """Say what each pool of a fixed size holds, and of which nobody can tell."""
    told, dark = [], []
    for service in view.text:
        plan = kv_capacity.plan(view, service)
        tokens, pool = plan.result(kv_capacity.TOKENS), kv_capacity.pool_of(view, service)
        if isinstance(pool, Given) and tokens is None:
            dark.append((service, plan.gaps))
        elif isinstance(pool, Given) and tokens is not None:
            sequences = plan.result(f"sequences of {_CONTEXT} tokens")
            share = "" if sequences is None else f", {sequences.said()} of {_CONTEXT} tokens each"
            told.append(f"{service.title}: {pool.span.said()} hold {tokens.said()}{share}.")
    if dark:
        lacking = listing(dict.fromkeys(gap.name for _, gaps in dark for gap in gaps))
        named = titles([service for service, _ in dark])
        told.append(f"What the pools of {named} hold cannot be worked out: of their models nobody has told {lacking}.")
    return tuple(told)


def _questions(view: View) -> tuple[str, ...]:
    silent = [service for service in view.text if _pool(view, service) is None]
    return (f"The pool size of {titles(silent)}, which nobody has declared.",) if silent else ()


def _state_text(view: View) -> str:
    pools = spread_out([(service, _pool_text(view, service)) for service in view.text], last=_UNDECLARED)
    precisions = [(service, _kept_in(view.setting(service, Role.KV_PRECISION))) for service in view.text]
    bounded = [service for service in view.text if view.setting(service, Role.SEQUENCES) is not None]
    told = [capital(f"{pools}."), capital(f"{spread_out(precisions)}.")]
    if bounded:
        told.append(f"Bounded concurrency on {where(bounded, view.text)}.")
    operations = view.fleet.operations
    if not view.local and (operations.alerts or _eviction(view)):
        alerts = f"alerts on {listing(_ALERTS[alert] for alert in operations.alerts)}" if operations.alerts else ""
        told.append(capital(f"{listing(filter(None, (alerts, _eviction(view))))}."))
    return " ".join(told)


def _kept_in(precision: Sighting | None) -> str:
    return "KV precision not declared" if precision is None else f"KV cache in {shown(precision.value)}"


def _decision_text(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.KEEP:
        full = ", not towards 100 % use" if view.fleet.operations.reliability_headroom or view.local else ""
        return f"Keep. Tune from cache and queue measurements{full}."
    if decision is Decision.TUNE:
        return f"Give the pool of {named} a size; keep the others."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Prove the KV precision of {named} on this device first."
    if decision is Decision.INVESTIGATE:
        return drifting(view, row) or f"Find out how the KV cache of {named} is kept."
    return capital(f"{decision}: {named}.")


def _next_step(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.TUNE:
        return f"Choose a pool for {named} from measured cache use."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Compile and run the device with the KV precision of {named}."
    if decision is Decision.INVESTIGATE:
        return f"Compare the configuration of {named} with the inventory."
    return "Record cache use and queue length under load before a pool is resized."
