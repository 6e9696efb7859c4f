"""Claims against measurements: what was measured here of each hypothesis, and whether it agrees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gen.knowledge.claim import Arithmetic, Claim
from gen.knowledge.schema import ENGINES, Engine, same_value
from gen.planners.kv_capacity import GIB, bytes_per_token
from gen.planners.model import KV_BYTES, counted_kv
from gen.planners.plan import Span, derived, exactly, of_metric
from gen.techniques.wording import speaks_for
from gen.verdict import compare
from probes.evidence import Arm, Direction, Metric, Missing, Run, RunKind, Scalar
from probes.fleet import Gates

# A service names its runtime as the inventory does, a benchmark the engine that it loads.
_ENGINES = {engine.value: engine for engine in Engine} | {name.value: engine for name, engine in ENGINES.items()}


class Relation(StrEnum):
    """How a measurement stands to a claim."""

    AGREES = "agrees"
    EXCEEDS = "better than claimed"
    DISAGREES = "disagrees"
    OTHER_CONDITIONS = "other conditions"
    NOT_MEASURED = "not measured here"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one run says of a claim. `samples` is the smaller side; `run` is "" for what arithmetic says."""

    relation: Relation
    span: Span
    what: str
    speaks_for: str = ""
    run: str = ""
    samples: int = 0
    apart: tuple[str, ...] = ()


def answers(claim: Claim, runs: Iterable[Run], gates: Gates) -> tuple[Answer, ...]:
    """Hold a claim against every valid run that speaks to it, the newest of each device and runtime."""
    if claim.arithmetic is not None:
        return tuple(_worked_out(claim, claim.arithmetic))
    found: dict[tuple[str, str], Answer] = {}
    speaking = (run for run in runs if run.validity.valid and _may_speak(claim, run))
    for run in sorted(speaking, key=lambda run: (run.started_at, run.id)):
        found |= {(answer.speaks_for, answer.what): answer for answer in _of_run(claim, run, gates)}
    return tuple(found.values())


def side(claim: Claim, answer: Answer) -> str:
    """Say on which side of the claimed range a measurement lies; nothing where they meet or cannot be held together."""
    if answer.relation not in {Relation.DISAGREES, Relation.EXCEEDS}:
        return ""
    return "below the claim" if answer.span.high < claim.figure.low else "above the claim"


def relation(found: Iterable[Answer]) -> Relation:
    """Sum up: a run under the same conditions speaks before others, and disagreement before agreement."""
    seen = {answer.relation for answer in found}
    order = (Relation.DISAGREES, Relation.EXCEEDS, Relation.AGREES, Relation.OTHER_CONDITIONS)
    return next((one for one in order if one in seen), Relation.NOT_MEASURED)


def _worked_out(claim: Claim, shape: Arithmetic) -> Iterator[Answer]:
    """Size the cache of a published shape; nothing where the layout of its precision is not known."""
    token = bytes_per_token(shape.layers, shape.kv_heads, shape.head_size, shape.precision, "gpu")
    if token is None:
        return
    span = derived("GiB", lambda size: size * shape.sequences * shape.context_tokens / GIB, token)
    what = (
        f"2 x {shape.layers} layers x {shape.kv_heads} KV heads x {shape.head_size} x {shape.precision}, "
        f"{shape.sequences} x {shape.context_tokens} tokens"
    )
    yield Answer(relation=_held(claim, span, Direction.NEUTRAL), span=span, what=what)


def _may_speak(claim: Claim, run: Run) -> bool:
    """Tell at a glance whether a run can answer: by its subject, or as one in which an engine counted its cache."""
    answered = claim.answered
    if answered is None:
        return False
    return run.subject == answered.subject or (answered.metric == KV_BYTES and run.kind in {RunKind.DEVICES, RunKind.MICRO})


def _of_run(claim: Claim, run: Run, gates: Gates) -> Iterator[Answer]:
    answered = claim.answered
    if answered is None:
        return
    apart = tuple(_apart(claim, run))
    if answered.metric == KV_BYTES and answered.baseline:
        counted = counted_kv(run)
        wanted = str(answered.candidate.get("KV_CACHE_PRECISION", "")).casefold()
        if wanted in counted and answered.baseline in counted:
            times = exactly(counted[answered.baseline].span.value / counted[wanted].span.value, "times")
            yield _answer(claim, run, times, f"{answered.baseline} to {wanted}, counted by the engine", apart=apart)
        return
    baseline = next((arm for arm in run.arms if arm.role == "baseline"), None)
    for arm in run.arms:
        if arm.role == "candidate" and baseline is not None and _is_meant(arm, answered.candidate):
            one, two = run.metric(answered.metric, baseline.name), run.metric(answered.metric, arm.name)
            span = of_metric(two) if answered.reads == "value" else _improvement(one, two, gates)
            if span is not None and two is not None:
                what = arm.name if answered.reads == "value" else f"{arm.name} against {baseline.name}"
                better = two.direction if answered.reads == "value" else Direction.HIGHER
                size = _fewest(one, two)
                yield _answer(claim, run, span, f"{answered.metric}, {what}", apart=apart, samples=size, better=better)


def _answer(
    claim: Claim,
    run: Run,
    span: Span,
    what: str,
    *,
    apart: tuple[str, ...],
    samples: int = 1,
    better: Direction = Direction.HIGHER,
) -> Answer:
    return Answer(
        relation=Relation.OTHER_CONDITIONS if apart else _held(claim, span, better),
        span=span,
        what=what,
        speaks_for=speaks_for(run),
        run=run.id,
        samples=samples,
        apart=apart,
    )


def _held(claim: Claim, span: Span, better: Direction) -> Relation:
    """A claim stands while its range and the measured interval have a value in common.

    Beyond it on the better side a thing keeps more than was promised; a size that is merely another one does not.
    """
    high = claim.figure.high
    below, above = span.high < claim.figure.low, high is not None and span.low > high
    if not below and not above:
        return Relation.AGREES
    return Relation.EXCEEDS if better is (Direction.HIGHER if above else Direction.LOWER) else Relation.DISAGREES


def _apart(claim: Claim, run: Run) -> Iterator[str]:
    """Name what differs between the conditions of a claim and those of a run."""
    said = claim.conditions
    device = "" if isinstance(run.device, Missing) else run.device.name.casefold()
    if said.devices and not any(device.startswith(kind) for kind in said.devices):
        yield "device"
    engine = None if isinstance(run.runtime, Missing) else _ENGINES.get(run.runtime.name)
    if said.engines and engine not in said.engines:
        yield "runtime"
    model = "" if isinstance(run.model, Missing) else run.model.id
    if said.model and said.model.casefold() not in model.casefold():
        yield "model"


def _is_meant(arm: Arm, settings: Mapping[str, Scalar]) -> bool:
    return all(name in arm.settings and same_value(arm.settings[name], value) for name, value in settings.items())


def _improvement(baseline: Metric | None, candidate: Metric | None, gates: Gates) -> Span | None:
    """Say how many times better the candidate is, whichever way the metric improves."""
    if baseline is None or candidate is None or not baseline.samples or not candidate.samples:
        return None
    one = compare(baseline, candidate, gates)
    if one.low is None or one.high is None or one.low <= 0 or one.baseline is None or one.candidate is None:
        return None
    middle = one.candidate.median / one.baseline.median
    if candidate.direction is Direction.LOWER:
        return Span(low=1 / one.high, value=1 / middle, high=1 / one.low, unit="times")
    return Span(low=one.low, value=middle, high=one.high, unit="times")


def _fewest(*metrics: Metric | None) -> int:
    return min((len(metric.samples) for metric in metrics if metric is not None and metric.samples), default=0)
