"""What a machine has shown about drafts: which are accepted and lossless, and what a head has to reach to pay."""

from __future__ import annotations

from collections.abc import Iterable

from gen.assessment import Fact, Ref, RefKind
from gen.planners import speculation
from gen.planners.speculation import CHAIN, Price, expected_tokens, needed_acceptance
from gen.planners.speculation import HEAD as HEAD_NAME
from gen.spread import quantity, spread
from gen.view import View
from probes.evidence import Arm, CapabilityState, Missing, ProvenanceKind

# A head with random weights is measured, which no rule may read as a verdict on EAGLE-3.
PRICED = frozenset({"speculative-break-even", "speculative-break-even-batched"})
TOKENS_PER_STEP = "tokens_per_step"
HEAD, RANDOM_HEAD = "head", "random weights"
_LIKELY = 0.7


def told(view: View) -> tuple[str, ...]:
    """Say in one sentence per device whether EAGLE-3 is accepted and leaves answers as they are."""
    found: dict[str, list[CapabilityState]] = {}
    for run, capability in view.capabilities:
        device = run.subject if isinstance(run.device, Missing) else run.device.name
        if capability.name == HEAD_NAME and capability.requested.startswith(f"num_assistant_tokens={CHAIN};"):
            found.setdefault(device, []).append(capability.state)
    return tuple(f"{HEAD_NAME} {_word(states)} on {device}." for device, states in sorted(found.items()))


def price_facts(view: View) -> tuple[Fact, ...]:
    """State what a head has to reach, from the newest valid measurement of this release; that it is known is the value."""
    facts = []
    for subject in sorted(PRICED):
        for device, price in _prices(view, subject):
            one = spread(price.needed.samples, price.needed.per)
            kind, k = "95 % interval" if one.bounds_median else "range", price.drafted
            facts.append(
                Fact(
                    id=f"{device}/{subject}",
                    value="measured",
                    text=(
                        f"{device}, {_load(price.arm)}: an {HEAD_NAME} head must reach {one.median:.2f} tokens per step "
                        f"({kind} {one.low:.2f} to {one.high:.2f}, n = {one.n} {price.needed.per}s) at k={k} to pay; "
                        f"one that is always right would reach {k + 1}."
                    ),
                    provenance=ProvenanceKind.MEASURED,
                    date=price.run.date,
                    ref=Ref(kind=RefKind.RUN, target=price.run.id),
                )
            )
    return tuple(facts)


def acceptance_told(view: View) -> tuple[str, ...]:
    """Say how often a guess has to be right for a head to pay with one request, and what a likely one would gain."""
    told = []
    for device, price in _prices(view, speculation.ALONE):
        one = spread(price.needed.samples, price.needed.per)
        low, high = (needed_acceptance(bound, price.drafted) for bound in (one.low, one.high))
        if low is None:
            told.append(f"{device}: not even a head that is always right pays at k={price.drafted}.")
            continue
        if high is None:
            told.append(f"{device}: it is open whether a head that is always right pays at k={price.drafted}.")
            continue
        needed, likely = f"{quantity(low, 'share')} to {quantity(high, 'share')}", expected_tokens(_LIKELY, price.drafted)
        told.append(
            f"{device}: by (1 - a^(k+1)) / (1 - a) a draft pays from {needed} right guesses on; with "
            f"{quantity(_LIKELY, 'share')} it would be {likely / one.median:.2f} times as fast as plain decoding."
        )
    return tuple(told)


def _prices(view: View, subject: str) -> list[tuple[str, Price]]:
    found: dict[str, Price] = {}
    for service in view.services if view.local else ():
        found |= speculation.prices(service, subject)
    return sorted(found.items(), key=lambda item: item[0])


def _load(arm: Arm) -> str:
    """Say how many requests shared the batch; a run that does not say had one."""
    requests = int(arm.settings.get("concurrency", 1))
    return "one request" if requests == 1 else f"{requests} requests at once"


def _word(states: Iterable[CapabilityState]) -> str:
    kinds = set(states)
    if CapabilityState.REFUSED in kinds:
        return "is refused"
    if CapabilityState.FAILED in kinds:
        return "was not shown to work"
    return "is accepted and lossless under an exact cache"
