"""Whether EAGLE-3, or a draft model, can pay on a device, in plain words, from what was proven and measured there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from probes.drafts.capabilities import Method, broken_chain
from probes.evidence import Metric, Run

_TITLES = {"speculative-break-even": "one request", "speculative-break-even-batched": "several at once"}
_BREAK_EVEN, _REACHED = "break_even_tokens_per_step", "tokens_per_step"


@dataclass(frozen=True, kw_only=True)
class Price:
    """What one length of drafts costs: tokens per step to reach, with the range of the repetitions; `most` is the limit."""

    arm: str
    most: int
    needed: float
    low: float
    high: float
    reached: float
    given: bool

    @property
    def within_reach(self) -> bool:
        """Whether a head that is always right would pay."""
        return self.needed < self.most


def prices(run: Run) -> tuple[Price, ...]:
    """Read the price of each arm of heads or of a given draft model that was measured, the shortest drafts first."""
    found = []
    for arm in run.arms:
        needed, reached = run.metric(_BREAK_EVEN, arm.name), run.metric(_REACHED, arm.name)
        length = arm.settings.get("num_assistant_tokens")
        priced = arm.name.startswith((Method.EAGLE3, Method.DRAFT_MODEL)) and _sampled(needed, reached)
        if not priced or not isinstance(length, int):
            continue
        depth = arm.settings.get("tree_depth", length)
        samples = needed.samples if needed else ()
        found.append(
            Price(
                arm=arm.name,
                # The step that verifies the drafts adds one token of its own.
                most=int(depth) + 1,
                needed=median(samples),
                low=min(samples),
                high=max(samples),
                reached=median(reached.samples if reached else ()),
                given="given" in {arm.settings.get("head"), arm.settings.get("draft")},
            )
        )
    return tuple(sorted(found, key=lambda price: (price.arm.count("tree"), price.arm)))


def lines(proven: Run, measured: Sequence[Run]) -> list[str]:
    """Write the whole answer: is it accepted and lossless, what has to be reached, and so can it pay."""
    return [*_accepted(proven), *(line for run in measured for line in _priced(run)), *conclusion(proven, measured)]


def conclusion(proven: Run, measured: Sequence[Run]) -> list[str]:
    """Answer the question; a head or a draft model that was given is held to its own tokens per step."""
    named = {one.name for one in proven.capabilities}
    method = Method.DRAFT_MODEL if named == {Method.DRAFT_MODEL} else Method.EAGLE3
    asked = f"Can {'a draft model' if method is Method.DRAFT_MODEL else method} pay here"
    if bad := broken_chain(proven.capabilities, method):
        return [f"{asked}? No: {bad.words or bad.effect}"]
    found = []
    for run in measured:
        title, all_prices = _TITLES.get(run.subject, run.subject), prices(run)
        if not all_prices:
            found.append(f"{asked} for {title}? Not measured: {', '.join(run.validity.reasons) or 'no arm ran'}.")
            continue
        found.append(f"{asked} for {title}? {_answer(all_prices)}")
    return found


def _answer(found: Sequence[Price]) -> str:
    if found[0].given:
        best = max(found, key=lambda price: price.reached / price.needed)
        word = "Yes" if best.reached > best.high else "No" if best.reached < best.low else "Within the noise"
        reached = f"{best.reached:.2f} tokens per step"
        return f"{word}: with {best.arm} this {_drafter(best)} reaches {reached} and needs {_range(best)}."
    payable = [price for price in found if price.within_reach]
    if not payable:
        return "No: even a head that is always right would not pay at any length measured."
    easiest = min(payable, key=lambda price: (price.needed - 1) / (price.most - 1))
    return (
        f"Yes, if a head reaches {_range(easiest)} tokens per step with {easiest.arm}, "
        f"of the {easiest.most} that a head which is always right would reach."
    )


def _accepted(proven: Run) -> list[str]:
    found = []
    for one in proven.capabilities:
        told = "; ".join(part for part in (one.words, one.effect) if part)
        found.append(f"{one.name}, {one.requested}: {one.state}{f' ({told})' if told else ''}")
    return found


def _priced(run: Run) -> list[str]:
    found = prices(run)
    if not found:
        return []
    head = f"Tokens per step that a {_drafter(found[0])} has to reach, {_TITLES.get(run.subject, run.subject)}:"
    rows = [
        f"  {price.arm}: {_range(price)}, at most {price.most} can be reached"
        + (f"; this {_drafter(price)} reaches {price.reached:.2f}" if price.given else "")
        for price in found
    ]
    return [head, *rows]


def _drafter(price: Price) -> str:
    return "head" if price.arm.startswith(Method.EAGLE3) else Method.DRAFT_MODEL


def _range(price: Price) -> str:
    return f"{price.needed:.2f} ({price.low:.2f} to {price.high:.2f})"


def _sampled(*metrics: Metric | None) -> bool:
    return all(metric is not None and metric.samples for metric in metrics)
