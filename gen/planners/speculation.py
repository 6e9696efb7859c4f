"""When a draft pays: the tokens per step it must bring, as a random head measured them, and what a right guess is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gen.benchmarks import BREAK_EVEN
from gen.planners.card_memory import LEFT, room
from gen.planners.plan import Gap, Given, Plan, Planner, Span, Worked, derived, of_metric
from gen.view import ServiceView, View, of_its_release
from probes.evidence import Arm, Metric, Missing, ProvenanceKind, Run

HEAD = "EAGLE-3"
CHAIN = 3
ALONE = "speculative-break-even"
ACCEPTANCES = (0.5, 0.6, 0.7, 0.8, 0.9)
FORMULA = "expected tokens per step = (1 - a^(k+1)) / (1 - a), for k drafted tokens each right with probability a"
SPEED_UP = "speed-up = expected tokens per step / tokens per step that break even"
PAYS_FROM = "probability of a right guess from which it pays"
_CO_TENANT_MEMORY = {"vram", "memory"}


def expected_tokens(acceptance: float, drafted: int) -> float:
    """Give the expected tokens per step when each drafted token is right with one probability, independently.

    Leviathan, Kalman and Matias, Fast inference from transformers via speculative decoding, equation 1.
    """
    if not 0 <= acceptance <= 1:
        raise ValueError(f"a probability, not {acceptance}")
    return float(sum(acceptance**power for power in range(drafted + 1)))


def needed_acceptance(break_even: float, drafted: int) -> float | None:
    """Find the probability at which the expected tokens per step reach a break-even; None where not even 1 does."""
    if break_even > expected_tokens(1.0, drafted):
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if expected_tokens(middle, drafted) < break_even:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a draft of so many tokens costs on one device, in tokens per step."""

    run: Run
    arm: Arm
    needed: Metric
    drafted: int


def prices(service: ServiceView, subject: str) -> Mapping[str, Price]:
    """Find the newest valid measurement of this release by device, of the chain that rules speak of."""
    found: dict[str, Price] = {}
    runs = [run for run in service.runs if run.subject == subject and run.validity.valid]
    for run in sorted(runs, key=lambda run: (run.started_at, run.id)):
        if isinstance(run.device, Missing) or not of_its_release(run, service):
            continue
        for arm in run.arms:
            needed = run.metric(BREAK_EVEN, arm.name)
            if needed is not None and needed.samples and _is_chain(arm):
                found[run.device.name] = Price(run=run, arm=arm, needed=needed, drafted=CHAIN)
    return found


def plan(view: View, service: ServiceView) -> Plan:
    """Say from which acceptance a draft pays on a service's device, and what memory is left for it."""
    given: list[Given] = []
    gaps: list[Gap] = []
    worked: list[Worked] = []
    for device, price in sorted(prices(service, ALONE).items()):
        span = of_metric(price.needed)
        if span is None:
            continue
        source = f"{price.arm.name} on {device}"
        given.append(
            Given(name="tokens per step that break even", span=span, known=ProvenanceKind.MEASURED, source=source,
                  run=price.run.id, samples=len(price.needed.samples))
        )  # fmt: skip
        worked += _gains(span, price.drafted)
    if not given:
        fill = "nox -s probe -- micro on that host measures it with a head of random weights: no draft has to be downloaded"
        gaps.append(Gap(name="tokens per step that break even", fill=fill))
    gaps.append(Gap(name="acceptance", fill="tokens per step of a real head for this model, on its own text"))
    if view.local:
        sources: tuple[str, ...] = ()
    else:
        found = room(view, service)
        given += found.given
        worked += found.worked
        gaps += (*found.gaps, *_others(view, service))
        sources = found.sources
    return Plan(
        planner=Planner.SPECULATION,
        subject=service.name,
        lead=PAYS_FROM if any(one.name == PAYS_FROM for one in worked) else LEFT,
        given=tuple(given),
        worked=tuple(worked),
        gaps=tuple(gaps),
        sources=("speculative-decoding-leviathan", *sources),
        notes=("Real guesses are not independent, so the formula is a guide: tokens per step of a real head decide.",),
    )


def _gains(break_even: Span, drafted: int) -> list[Worked]:
    bounds = [needed_acceptance(one, drafted) for one in (break_even.low, break_even.value, break_even.high)]
    worked = []
    low, value, high = bounds
    if low is not None and value is not None and high is not None:
        span = Span(low=low, value=value, high=high, unit="share")
        worked.append(Worked(name=PAYS_FROM, span=span, formula=f"{FORMULA}, solved for a at k = {drafted}"))
    for acceptance in ACCEPTANCES:
        tokens = expected_tokens(acceptance, drafted)
        gain = derived("x", lambda needed, reached=tokens: reached / needed, break_even)
        worked.append(Worked(name=f"speed-up at a = {acceptance:g}, k = {drafted}", span=gain, formula=SPEED_UP))
    return worked


def _others(view: View, service: ServiceView) -> tuple[Gap, ...]:
    """Say who else needs the memory, which no planner knows by itself."""
    mine = set(view.cards(service))
    gaps = [Gap(name="memory of the draft", fill="bytes of its weights, and its own KV cache")]
    for pair in view.fleet.co_tenants:
        theirs = {pair.device} if isinstance(pair.device, str) else set(pair.device.among)
        if pair.resource in _CO_TENANT_MEMORY and mine & theirs:
            tenant = view.fleet.services[pair.tenant].title
            may = "takes" if len(mine) == 1 and mine == theirs else "takes, if it shares this card"
            gaps.append(Gap(name=f"memory that {tenant} {may}", fill="its VRAM while it transcodes: xpu-smi on that host"))
    return tuple(gaps)


def _is_chain(arm: Arm) -> bool:
    return arm.name.startswith(HEAD) and arm.settings.get("num_assistant_tokens") == CHAIN
