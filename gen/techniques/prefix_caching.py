"""Automatic prefix caching: keep where it is on, enable where prompts repeat, and let a measurement overrule both."""

from __future__ import annotations

from gen.assessment import Assessment, Cell, Fact
from gen.knowledge import Role
from gen.knowledge.schema import Default
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
from gen.techniques.grounds import bench_fact, capability_facts, evidence, fleet_fact, known_facts, prices, setting_facts
from gen.techniques.wording import capital, listing, spell, spread_out, titles, where
from gen.view import Bench, ServiceView, View
from gen.words import Decision, State, Verdict
from probes.evidence import RunKind, Technique

TECHNIQUE = Technique.PREFIX_CACHING
STABLE_FIRST = "Put stable instructions before per-run content when prompts are written."


def assess(view: View) -> Assessment:
    """On is kept; off is enabled where clients repeat a prefix; a measured effect on TTFT overrules both."""
    row = cells(view, TECHNIQUE, _controls, _decide)
    ours = of_text(view, row)
    if not ours:
        return nothing_here(view, TECHNIQUE, row)
    decision = most_urgent(ours)
    facts = _clients(view) + capability_facts(view, TECHNIQUE)
    if any(cell.state is State.UNKNOWN for cell in ours):
        facts += known_facts(view, Default, TECHNIQUE)
    return Assessment(
        technique=TECHNIQUE,
        scope=view.scope,
        on=view.on,
        state=together(ours),
        state_text=_state_text(view, ours),
        decision=decision,
        decision_text=_decision_text(view, ours, decision),
        why=_why(view, ours, facts),
        next_step=_next_step(view, ours, decision),
        would_change=_would_change(view),
        facts=facts,
        conflicts=prices(view, TECHNIQUE, view.text),
        evidence=evidence(fact for cell in row for fact in cell.facts) + evidence(facts),
        cells=row,
    )


def _controls(view: View, service: ServiceView) -> tuple[str, ...]:
    return view.controls(service, Role.SWITCH, TECHNIQUE)


def _decide(view: View, service: ServiceView) -> Cell:
    switch = view.setting(service, Role.SWITCH, TECHNIQUE)
    bench = view.bench(service, TECHNIQUE)
    state = State.UNKNOWN if switch is None else State.DISABLED if view.is_off(service, switch) else State.ENABLED
    if bench is not None and bench.verdict is not Verdict.NOT_MEASURED:
        decision, summary = by_verdict(bench.verdict, on=state is State.ENABLED), _measured(bench, state)
    elif switch is not None and switch.without_effect:
        decision, summary = Decision.INVESTIGATE, f"Set, not effective ({switch.without_effect})."
    elif state is State.UNKNOWN:
        decision, summary = Decision.INVESTIGATE, "Not declared, and the default depends on how the server is started."
    elif state is State.ENABLED:
        decision, summary = Decision.KEEP, "On."
        if view.local:
            decision, summary = Decision.BENCHMARK_FIRST, f"On; {unmeasured(view, service, TECHNIQUE)}."
    elif repeats := _repeating(service):
        decision, summary = Decision.ENABLE, f"Off, although {listing(repeats)} repeat large stable prefixes."
    else:
        decision, summary = Decision.BENCHMARK_FIRST, "Off; whether prompts repeat is not declared."
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


def _measured(bench: Bench, state: State) -> str:
    effect = {
        Verdict.BETTER: "a warm prefix answers sooner than a cold one",
        Verdict.WORSE: "a warm prefix does not pay: it answers later, or fails more often",
        Verdict.SAME: "a warm prefix answers no sooner than a cold one",
    }.get(bench.verdict, "whether a warm prefix answers sooner is not settled")
    on = {State.ENABLED: "On", State.DISABLED: "Off"}.get(state, "Not declared")
    return f"{on}; measured: {effect}."


def _repeating(service: ServiceView) -> tuple[str, ...]:
    return tuple(client.title for _, client in service.clients if client.stable_prefix)


def _clients(view: View) -> tuple[Fact, ...]:
    repeating = {name: client for s in view.text for name, client in s.clients if client.stable_prefix}
    return tuple(
        fleet_fact(view, f"clients.{name}.stable_prefix", "true", f"{client.title} reuse large stable instruction prefixes.")
        for name, client in repeating.items()
    )


def _state_text(view: View, row: tuple[Cell, ...]) -> str:
    words = {State.DISABLED: "off"}
    by_name = {cell.service: words.get(cell.state, cell.state.value) for cell in row}
    return capital(f"{spread_out([(service, by_name[service.name]) for service in view.text])}.")


def _decision_text(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.INVESTIGATE:
        return drifting(view, row) or f"Find out why on {named}: {_summaries(row, decision)}"
    if decision is Decision.ENABLE:
        others = len(row) - len(services_of(view, row, decision))
        return f"Enable it on {named}{f'; keep it on the other {spell(others)}' if others else ''}. {STABLE_FIRST}"
    if decision is Decision.BENCHMARK_FIRST:
        return f"Measure cold against warm prompts on {named} first."
    if decision is Decision.KEEP:
        return f"Keep. {STABLE_FIRST}"
    return capital(f"{decision}: {_summaries(row, decision)}")


def _summaries(row: tuple[Cell, ...], decision: Decision) -> str:
    return " ".join(dict.fromkeys(cell.summary for cell in row if cell.decision is decision))


def _why(view: View, row: tuple[Cell, ...], facts: tuple[Fact, ...]) -> tuple[str, ...]:
    measured = [fact for cell in row for fact in cell.facts if fact.id.endswith(f"/measured/{TECHNIQUE}")]
    about = view.knowledge.techniques[TECHNIQUE].about
    return (about, *(fact.text for fact in (*facts, *measured)))


def _next_step(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    undecided = services_of(view, row, decision)
    if decision is Decision.ENABLE:
        if all(bench and bench.run.kind is RunKind.CONTRACT for bench in (view.bench(one, TECHNIQUE) for one in undecided)):
            return f"Switch it on for {titles(undecided)}, and measure the same again: nox -s confirm."
        return f"Switch it on for {titles(undecided)} and compare cold with warm TTFT before and after."
    if decision is Decision.INVESTIGATE and drifting(view, row):
        named = where(undecided, view.text)
        return f"Send the same long prompt twice to {named}: the TTFT tells whether inventory or service is to be corrected."
    if decision in {Decision.INVESTIGATE, Decision.BENCHMARK_FIRST}:
        return f"Send the same long prompt twice to {where(undecided, view.text)} and compare the TTFT."
    return STABLE_FIRST


def _would_change(view: View) -> tuple[str, ...]:
    methods = {
        conflict.id: f"A wish for drafts that do not run beside it: {conflict.text}"
        for service in view.text
        for conflict in view.knowledge.conflicts_for(service.engine, service.version, view.on, Technique.SPECULATIVE_DECODING)
        if conflict.against is TECHNIQUE
    }
    return ("A measured TTFT that is no better on a warm prefix than on a cold one.", *methods.values())
