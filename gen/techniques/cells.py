"""The cells of a row: what every rule does alike before and after it decides about one service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gen.assessment import Assessment, Cell, Fact
from gen.coverage import in_doubt
from gen.techniques.grounds import contradicted, fleet_fact, kind_facts, setting_facts
from gen.techniques.wording import capital, listing
from gen.view import RELEASE, ServiceView, View
from gen.words import Applicability, Decision, State, Verdict
from probes.evidence import EndpointState, Technique

Decide = Callable[[View, ServiceView], Cell]
Controls = Callable[[View, ServiceView], tuple[str, ...]]

# What a reader has to see first when the services of a row differ.
_URGENCY = (
    Decision.INVESTIGATE,
    Decision.ENABLE,
    Decision.TUNE,
    Decision.BENCHMARK_FIRST,
    Decision.KEEP,
    Decision.DO_NOT_DEPLOY,
    Decision.NO_CHANGE,
    Decision.NOT_APPLICABLE,
)
_ON = {State.ENABLED, State.PARTLY}
_SILENT = {
    EndpointState.NOT_REACHABLE,
    EndpointState.FAILED,
    EndpointState.HANGS,
    EndpointState.ANSWERS_ERROR,
    EndpointState.LOADING,
    EndpointState.NOT_AN_INFERENCE_SERVER,
}


def cells(view: View, technique: Technique, controls: Controls, decide: Decide) -> tuple[Cell, ...]:
    """Give one cell per service of the scope; only where the technique applies here does the rule decide."""
    return tuple(_cell(view, service, technique, controls(view, service), decide) for service in view.services)


def _cell(view: View, service: ServiceView, technique: Technique, controls: tuple[str, ...], decide: Decide) -> Cell:
    bearing = service.bearing(technique)
    if in_doubt(service.known, technique, view.knowledge):
        return _doubtful(view, service, technique)
    if bearing.applicability is Applicability.DOES_NOT_APPLY:
        state, decision = State.NOT_APPLICABLE, Decision.NOT_APPLICABLE
        return _plain(service, technique, state, decision, bearing.why)
    if bearing.applicability is Applicability.ON_HOST:
        return _on_host(view, service, technique, controls)
    cell = decide(view, service)
    # Another release than the declared one puts every documented fact about the service in doubt.
    controls = (*controls, RELEASE)
    if drift := service.drift(controls):
        return cell.model_copy(
            update={
                "decision": Decision.INVESTIGATE,
                "drift": drift,
                "summary": f"Declared and seen differ: {'; '.join(drift)}.",
                "facts": cell.facts + _release(view, service) + contradicted(view, service, controls),
            }
        )
    if service.engine is None and cell.state is State.UNKNOWN:
        cell = cell.model_copy(update={"summary": "Its runtime is not identified, so its controls are not known."})
    if service.endpoint is not None and service.endpoint.state in _SILENT and cell.state is State.UNKNOWN:
        detail = f" ({service.endpoint.detail})" if service.endpoint.detail else ""
        summary = f"Its address did not answer: {service.endpoint.state}{detail}."
        return cell.model_copy(update={"state": State.NOT_REACHABLE, "decision": Decision.INVESTIGATE, "summary": summary})
    return cell


def _doubtful(view: View, service: ServiceView, technique: Technique) -> Cell:
    """Decide nothing while sources disagree on what the model is in a way that matters here."""
    drift = service.known.drift(view.knowledge)
    summary = f"Sources disagree on what its model is: {'; '.join(drift)}."
    cell = _plain(service, technique, State.UNKNOWN, Decision.INVESTIGATE, summary)
    return cell.model_copy(update={"drift": drift, "facts": kind_facts(view, service)})


def _release(view: View, service: ServiceView) -> tuple[Fact, ...]:
    return setting_facts(view, service, (RELEASE,)) if service.drift((RELEASE,)) else ()


def _on_host(view: View, service: ServiceView, technique: Technique, controls: tuple[str, ...]) -> Cell:
    why = service.bearing(technique).why
    if absent := view.knowledge.absent(service.engine, technique, service.version, view.on):
        return _plain(service, technique, State.UNSUPPORTED, Decision.NO_CHANGE, f"{absent.values} {why}")
    names = [control.name for control in view.knowledge.controls_of(service.engine, technique) if control.role]
    named = f" Controls: {listing(names)}." if names else ""
    sighting = next((seen for control in controls if (seen := service.setting(control))), None)
    state = State.UNKNOWN if sighting is None else State.DISABLED if view.is_off(service, sighting) else State.ENABLED
    cell = _plain(service, technique, state, Decision.NO_CHANGE, f"{why}{named}")
    return cell.model_copy(update={"facts": setting_facts(view, service, controls), "drift": service.drift(controls)})


def _plain(service: ServiceView, technique: Technique, state: State, decision: Decision, summary: str) -> Cell:
    applicability = service.bearing(technique).applicability
    return Cell(
        technique=technique, service=service.name, applicability=applicability, state=state, decision=decision, summary=summary
    )


def nothing_here(view: View, technique: Technique, row: tuple[Cell, ...]) -> Assessment:
    """Assess a scope in which no service generates text under settings of its own."""
    told = "No service here generates text under settings that are set here."
    return Assessment(
        technique=technique,
        scope=view.scope,
        on=view.on,
        state=State.NOT_APPLICABLE,
        state_text=told,
        decision=Decision.NOT_APPLICABLE,
        decision_text=told,
        why=(view.knowledge.techniques[technique].about,),
        next_step="None until such a service exists.",
        would_change=("A text service in this scope.",),
        facts=(fleet_fact(view, "services", "no text service", told),),
        cells=row,
    )


def of_text(view: View, row: Sequence[Cell]) -> tuple[Cell, ...]:
    """Keep the cells that the row speaks of."""
    names = {service.name for service in view.text}
    return tuple(cell for cell in row if cell.service in names)


def together(row: Iterable[Cell]) -> State:
    """Sum up the states of at least one service: alike, or partly on, or off wherever it is known."""
    states = {cell.state for cell in row}
    if len(states) == 1:
        return states.pop()
    if states & _ON:
        return State.PARTLY
    return State.UNKNOWN if State.UNKNOWN in states else State.DISABLED


def most_urgent(row: Iterable[Cell]) -> Decision:
    """Give the decision a reader has to see first."""
    decisions = {cell.decision for cell in row}
    return next(decision for decision in _URGENCY if decision in decisions)


def drifting(view: View, row: Iterable[Cell]) -> str:
    """Tell all drifts of a row in one sentence, or nothing."""
    named = {service.name: service.title for service in view.services}
    found = [f"{named[cell.service]}: {', '.join(cell.drift)}" for cell in row if cell.drift]
    return capital(f"{'; '.join(found)}.") if found else ""


def unmeasured(view: View, service: ServiceView, technique: Technique) -> str:
    """Say that a machine has no measurement to go by, and whether one was tried."""
    reason = view.broken(service, technique)
    return f"its measurement failed: {reason}" if reason else "not measured here"


def by_verdict(verdict: Verdict, *, on: bool) -> Decision:
    """Turn a measured effect into a decision: it overrules what was declared or documented."""
    if verdict is Verdict.BETTER:
        return Decision.KEEP if on else Decision.ENABLE
    if verdict is Verdict.WORSE:
        return Decision.INVESTIGATE if on else Decision.DO_NOT_DEPLOY
    if verdict is Verdict.SAME:
        return Decision.NO_CHANGE
    return Decision.KEEP if on else Decision.BENCHMARK_FIRST


def services_of(view: View, row: Iterable[Cell], *decisions: Decision) -> tuple[ServiceView, ...]:
    """Give the services that a row decides alike about."""
    names = {cell.service for cell in row if cell.decision in decisions}
    return tuple(service for service in view.services if service.name in names)
