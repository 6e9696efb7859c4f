"""Quantization: keep what is quantized, and change precision only after the task corpus has been asked."""

from __future__ import annotations

from gen.assessment import Assessment, Cell, Fact
from gen.benchmarks import of_technique
from gen.knowledge import Role
from gen.techniques.cells import by_verdict, cells, drifting, most_urgent, nothing_here, of_text, services_of, together
from gen.techniques.grounds import bench_fact, capabilities_told, capability_facts, evidence, prices, setting_facts
from gen.techniques.measured import told_facts
from gen.techniques.wording import amount, capital, spread_out, titles
from gen.view import ServiceView, Sighting, View, shown
from gen.words import Decision, State, Verdict
from probes.evidence import Technique
from probes.fleet import ServiceKind

TECHNIQUE = Technique.QUANTIZATION
(_BENCHMARK,) = (one for one in of_technique(TECHNIQUE) if one.decided_by is not None)
# What the rule makes of a verdict: better, same and not settled all leave the decision where it is.
_TOLD_SLOWER = "; measured: they decode slower than full precision"
_SLOWER, _NOT_SLOWER = "slower", "not shown to be slower"
# Everything else that a runtime calls a precision stores a number in fewer than 16 bits.
_FULL = {"f32", "fp32", "float32", "f16", "fp16", "float16", "bf16", "bfloat16", "none"}


def assess(view: View) -> Assessment:
    """Low precision is kept; full precision, and every change of either, goes through the task corpus first."""
    row = cells(view, TECHNIQUE, _controls, _decide)
    ours = of_text(view, row)
    if not ours:
        return nothing_here(view, TECHNIQUE, row)
    decision = most_urgent(ours)
    told = told_facts(view, TECHNIQUE)
    facts = capability_facts(view, TECHNIQUE) + told
    return Assessment(
        technique=TECHNIQUE,
        scope=view.scope,
        on=view.on,
        state=together(ours),
        state_text=_state_text(view, row),
        decision=decision,
        decision_text=_decision_text(view, ours, decision),
        why=(
            view.knowledge.techniques[TECHNIQUE].about,
            *capabilities_told(view, TECHNIQUE),
            *_measured(ours),
            *(fact.text for fact in told),
        ),
        next_step=_next_step(view, ours, decision),
        would_change=(
            f"A task-corpus evaluation that loses more than {amount(view.gates.quality_points, 'point')}.",
            "A precision that is observed to differ from the declared one.",
        ),
        facts=facts,
        conflicts=prices(view, TECHNIQUE, view.text),
        evidence=evidence(fact for cell in row for fact in cell.facts) + evidence(facts),
        cells=row,
    )


def _controls(view: View, service: ServiceView) -> tuple[str, ...]:
    kv = view.controls(service, Role.KV_PRECISION) if service.kind is ServiceKind.TEXT_GENERATION else ()
    # A service of a runtime whose controls nobody has listed still declares how its weights are stored.
    return (view.controls(service, Role.WEIGHTS) or ("weight_precision",)) + kv


def _decide(view: View, service: ServiceView) -> Cell:
    weights, kv = _weights(view, service), view.setting(service, Role.KV_PRECISION)
    bench = view.bench(service, TECHNIQUE, _BENCHMARK.decides)
    weights_low, kv_low = _is_low(weights), _is_low(kv)
    if weights_low is None:
        state, decision = State.UNKNOWN, Decision.INVESTIGATE if _speaks(view, service) else Decision.NO_CHANGE
    elif not weights_low:
        # Keys and values in fewer bits are a part of it, as weights alone are.
        state, decision = State.PARTLY if kv_low else State.DISABLED, Decision.BENCHMARK_FIRST
    elif kv_low is False:
        state, decision = State.PARTLY, Decision.BENCHMARK_FIRST
    else:
        state, decision = State.ENABLED, Decision.KEEP
    slower = bench is not None and bench.verdict is Verdict.WORSE
    if bench is not None and (slower or bench.verdict is Verdict.BETTER):
        # At the same speed, fewer bits still take less memory.
        decision = by_verdict(bench.verdict, on=state is State.ENABLED)
    facts = setting_facts(view, service, _controls(view, service))
    return Cell(
        technique=TECHNIQUE,
        service=service.name,
        applicability=service.bearing(TECHNIQUE).applicability,
        state=state,
        decision=decision,
        summary=f"{capital(_precision(view, service))}{_TOLD_SLOWER if slower else ''}.",
        facts=facts + (() if bench is None else (bench_fact(service, TECHNIQUE, bench, _SLOWER if slower else _NOT_SLOWER),)),
    )


def _speaks(view: View, service: ServiceView) -> bool:
    return service in view.text


def _weights(view: View, service: ServiceView) -> Sighting | None:
    return view.setting(service, Role.WEIGHTS) or service.setting("weight_precision")


def _is_low(sighting: Sighting | None) -> bool | None:
    return None if sighting is None else str(sighting.value).casefold() not in _FULL


def _precision(view: View, service: ServiceView) -> str:
    """Say in which precision weights and, for text, the KV cache are kept."""
    weights, kv = _weights(view, service), view.setting(service, Role.KV_PRECISION)
    if service.kind is not ServiceKind.TEXT_GENERATION:
        return "weight precision not declared" if weights is None else f"artifact {shown(weights.value)}"
    said = "weights of undeclared precision" if weights is None else f"{shown(weights.value)} weights"
    return f"{said} and {'an undeclared' if kv is None else shown(kv.value)} KV cache"


def _measured(row: tuple[Cell, ...]) -> tuple[str, ...]:
    facts: list[Fact] = [fact for cell in row for fact in cell.facts]
    return tuple(fact.text for fact in facts if fact.id.endswith(f"/measured/{TECHNIQUE}"))


def _state_text(view: View, row: tuple[Cell, ...]) -> str:
    told = capital(f"{spread_out([(service, _precision(view, service)) for service in view.text])}.")
    enabled = {cell.service for cell in row if cell.state is State.ENABLED}
    others = [s for s in view.services if s.name in enabled and s not in view.text and not s.on_host]
    return f"{told} Quantized artifacts also for {titles(others)}." if others else told


def _decision_text(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.KEEP:
        return "Keep. An accuracy-sensitive model change needs a task-corpus evaluation first."
    if decision is Decision.INVESTIGATE:
        slower = any(fact.value == _SLOWER for cell in row for fact in cell.facts)
        asked = f"Find out why {named} decodes slower with its weights than in full precision" if slower else ""
        return drifting(view, row) or f"{asked or f'Find out in which precision {named} is served'}."
    if decision is Decision.BENCHMARK_FIRST:
        return (
            f"Compare a quantized candidate for {named} with what is served, on the task corpus, before anything is replaced."
        )
    return capital(f"{decision}: {named}.")


def _next_step(view: View, row: tuple[Cell, ...], decision: Decision) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.INVESTIGATE:
        return f"Read the precision of {named} from its model folder and its configuration."
    if decision is Decision.BENCHMARK_FIRST:
        return f"Run the task corpus and the measurement contract on {named} in both precisions."
    return "Run the task corpus on baseline and candidate before an accuracy-sensitive model is replaced."
