"""What a machine has shown about drafts: which are accepted and lossless, and what a head has to reach to pay."""

from __future__ import annotations

from collections.abc import Iterable

from gen.assessment import Fact, Ref, RefKind
from gen.spread import spread
from gen.view import View, same_release
from probes.evidence import Arm, CapabilityState, Metric, Missing, ProvenanceKind, Run

# A head with random weights is measured, which no rule may read as a verdict on EAGLE-3.
PRICED = frozenset({"speculative-break-even", "speculative-break-even-batched"})
BREAK_EVEN, TOKENS_PER_STEP = "break_even_tokens_per_step", "tokens_per_step"
HEAD, RANDOM_HEAD = "head", "random weights"
_CHAIN = 3
_NAME = "EAGLE-3"


def told(view: View) -> tuple[str, ...]:
    """Say in one sentence per device whether EAGLE-3 is accepted and leaves answers as they are."""
    found: dict[str, list[CapabilityState]] = {}
    for run, capability in view.capabilities:
        device = run.subject if isinstance(run.device, Missing) else run.device.name
        if capability.name == _NAME and capability.requested.startswith(f"num_assistant_tokens={_CHAIN};"):
            found.setdefault(device, []).append(capability.state)
    return tuple(f"{_NAME} {_word(states)} on {device}." for device, states in sorted(found.items()))


def price_facts(view: View) -> tuple[Fact, ...]:
    """State what a head has to reach, from the newest valid measurement of this release; that it is known is the value."""
    facts = []
    for subject in sorted(PRICED):
        for device, (run, arm, needed) in sorted(_newest(view, subject).items()):
            one = spread(needed.samples, needed.per)
            kind = "95 % interval" if one.bounds_median else "range"
            most = int(arm.settings["num_assistant_tokens"]) + 1
            facts.append(
                Fact(
                    id=f"{device}/{subject}",
                    value="measured",
                    text=(
                        f"{device}, {_load(arm)}: an {_NAME} head must reach {one.median:.2f} tokens per step "
                        f"({kind} {one.low:.2f} to {one.high:.2f}, n = {one.n} {needed.per}s) at k={_CHAIN} to pay; "
                        f"one that is always right would reach {most}."
                    ),
                    provenance=ProvenanceKind.MEASURED,
                    date=run.date,
                    ref=Ref(kind=RefKind.RUN, target=run.id),
                )
            )
    return tuple(facts)


def _newest(view: View, subject: str) -> dict[str, tuple[Run, Arm, Metric]]:
    found: dict[str, tuple[Run, Arm, Metric]] = {}
    for service in view.services if view.local else ():
        runs = [run for run in service.runs if run.subject == subject and run.validity.valid]
        for run in sorted(runs, key=lambda run: (run.started_at, run.id)):
            if isinstance(run.device, Missing) or not _of_release(run, service.version):
                continue
            for arm in run.arms:
                needed = run.metric(BREAK_EVEN, arm.name)
                if needed is not None and needed.samples and _is_chain(arm):
                    found[run.device.name] = (run, arm, needed)
    return found


def _is_chain(arm: Arm) -> bool:
    return arm.name.startswith(_NAME) and arm.settings.get("num_assistant_tokens") == _CHAIN


def _load(arm: Arm) -> str:
    """Say how many requests shared the batch; a run that does not say had one."""
    requests = int(arm.settings.get("concurrency", 1))
    return "one request" if requests == 1 else f"{requests} requests at once"


def _of_release(run: Run, version: str | None) -> bool:
    ran = None if isinstance(run.runtime, Missing) else run.runtime.version
    return version is None or not isinstance(ran, str) or same_release(ran, version)


def _word(states: Iterable[CapabilityState]) -> str:
    kinds = set(states)
    if CapabilityState.REFUSED in kinds:
        return "is refused"
    if CapabilityState.FAILED in kinds:
        return "was not shown to work"
    return "is accepted and lossless under an exact cache"
