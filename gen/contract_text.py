"""A measurement contract in the words of a record: what came of it, what is owed, and every value with its run."""

from __future__ import annotations

from collections.abc import Iterator

from gen.comparison_text import reach, why
from gen.contract import (
    CHANGES_A_SETTING,
    QUANTITIES,
    UNCOMPARED,
    Compared,
    Contract,
    ContractMetric,
    Entry,
    Measured,
    comparisons,
    unsettled,
)
from gen.findings import Rule
from gen.proof import Proof
from gen.prose import prose, table
from gen.spread import quantity
from gen.verdict import Scale
from gen.words import Decision, Verdict
from probes.evidence import Missing

_LEADS = {
    Verdict.BETTER: "Measured better",
    Verdict.SAME: "Measured the same within the gates",
    Verdict.WORSE: "Measured worse",
    Verdict.INCONCLUSIVE: "Measured and open",
    Verdict.NOT_COMPARABLE: "Measured and not comparable",
}


def contract_text(decision: Decision, contract: Contract, proof: Proof | None) -> str:
    """Tell the whole contract, from one run with both sides where there is one, and what is owed before acceptance."""
    changes = decision in CHANGES_A_SETTING
    lead = "This record changes a setting: baseline and candidate count." if changes else "This record changes no setting."
    if changes:
        lead += _owed(contract)
    if proof:
        return f"{lead}\n\n{proof.verdict} All of it is from `{proof.run}`. {proof.numbers}"
    entries = set(map(_entry, contract.values()))
    if len(entries) == 1 and isinstance(next(iter(contract.values())), Missing):
        names = ", ".join(QUANTITIES[metric].title for metric in contract)
        return f"{lead} Of the contract's metrics ({names}) each is {entries.pop()[0]}."
    rows = [(QUANTITIES[metric].title, *_entry(entry)) for metric, entry in contract.items()]
    return f"{lead}\n\n{table(('Metric', 'Value', 'From'), rows)}"


def measured(contract: Contract) -> Iterator[str]:
    """Sort what was compared by what came of it, and name what was not measured."""
    found: dict[Verdict, list[str]] = {}
    for metric, entry in contract.items():
        if isinstance(entry, Compared):
            within = reach(entry.low, entry.high, entry.scale, entry.baseline.unit)
            told = within and entry.verdict is not Verdict.SAME
            found.setdefault(entry.verdict, []).append(f"{QUANTITIES[metric].title}{f' ({within})' if told else ''}")
    for verdict, lead in _LEADS.items():
        if verdict in found:
            yield f"{lead}: {prose('; '.join(found[verdict]))}."
    missing = [QUANTITIES[metric].title for metric, entry in contract.items() if isinstance(entry, Missing)]
    if found and missing:
        yield f"Not measured: {prose('; '.join(missing))}."


def to_settle(contract: Contract) -> Iterator[str]:
    """Estimate with which repetitions a side what is open would be settled; the task suites have a number of their own."""
    for metric, entry in contract.items():
        if isinstance(entry, Compared) and entry.more_runs:
            samples = min(entry.baseline.samples, entry.candidate.samples)
            option = "--quality-repetitions" if metric is ContractMetric.QUALITY else "--repetitions"
            # The second turn shows whether answers repeat word for word; where they do, two are enough.
            total = 2 if metric is ContractMetric.QUALITY and samples < 2 else samples + entry.more_runs
            yield f"`{option} {total}` for {prose(QUANTITIES[metric].title)}"


def _owed(contract: Contract) -> str:
    """Name what a reviewer has to settle or acknowledge before the record can be accepted."""
    rule = Rule.CONTRACT_VERDICT.number
    if not comparisons(contract):
        return f" No cited run has both: measure them before it is accepted, or acknowledge {rule} about {UNCOMPARED}."
    owed = unsettled(contract)
    names = ", ".join(f"{metric.value} ({why.partition(' (')[0]})" for metric, why in owed.items())
    return f" Before it is accepted, measure or acknowledge ({rule}): {names}." if owed else " All of it is settled."


def _entry(entry: Entry) -> tuple[str, str]:
    if isinstance(entry, Missing):
        detail = f": {prose(entry.detail)}" if entry.detail else ""
        return f"*{entry.missing.value}*{detail}", "nothing"
    if isinstance(entry, Measured):
        return prose(quantity(entry.value, entry.unit)), _from(entry)
    return _comparison(entry), f"{_from(entry.baseline)}; {_from(entry.candidate)}"


def _comparison(entry: Compared) -> str:
    sides = f"{quantity(entry.baseline.value, entry.baseline.unit)} → {quantity(entry.candidate.value, entry.candidate.unit)}"
    said = [prose(sides)]
    if entry.low is not None and entry.high is not None:
        kind = "ratio" if entry.scale is Scale.RELATIVE else "difference"
        said.append(f"{kind} {entry.low:.3g} to {entry.high:.3g}")
    doubt = prose(why(entry))
    return f"{', '.join(said)}: **{entry.verdict.value}**" + (f" ({doubt})" if doubt else "")


def _from(side: Measured) -> str:
    arm = f", arm {prose(side.arm)}" if side.arm else ""
    return f"{side.samples} sample{'s' if side.samples > 1 else ''} of `{side.run}`{arm}"
