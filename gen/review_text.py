"""A review as Markdown that a pull request's summary shows: tables first, folded details below, commands at the end."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gen.arrival import clock_remarks, host_facts
from gen.comparability import likeness, sides_of
from gen.comparison_text import bounds, reach, why
from gen.contract import QUANTITIES, Compared, Contract, ContractMetric, Measured
from gen.findings import Finding, Severity
from gen.prose import bullets, prose, sentence, table
from gen.records import Record
from gen.review import RecordChange, Review
from gen.spread import quantity, spread
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Missing, Run, RunKind

# A job summary holds 1 MiB; a change with more rows than this is read in the files themselves.
MOST_ROWS = 80
_ABSENT = "*not there*"


def as_markdown(found: Review, base: str, runs: Mapping[str, Run], notes: Sequence[str] = ()) -> str:
    """Write the whole summary; `base` names what was compared with, `runs` are those of the checkout."""
    parts = [
        "# Review summary",
        _lead(found, base, notes),
        _section("Matrix cells that moved", _cells(found)),
        _section("Records", _records(found)),
        *(_contract(change, found, runs) for change in found.records if _has_contract(change)),
        _section("Evidence", _evidence(found)),
        _section("Findings", _findings(found)),
        _section("To reproduce this", _commands(found, base, runs)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _lead(found: Review, base: str, notes: Sequence[str]) -> str:
    counts = (
        (len(found.cells), "cell moves", "cells move"),
        (sum(one.before is None for one in found.records), "record is added", "records are added"),
        (sum(one.before is not None for one in found.records), "record changes", "records change"),
        (len(found.added_runs), "evidence file is added", "evidence files are added"),
        (len(found.new), "finding is new", "findings are new"),
        (len(found.fixed), "finding is gone", "findings are gone"),
    )
    told = [f"{count} {one if count == 1 else many}" for count, one, many in counts]
    lines = [
        f"Against {prose(base)}, both judged on {found.today}: {', '.join(told)}.",
        *(sentence(note) for note in notes),
        *(f"**{sentence(fault)}**" for fault in _faults(found)),
    ]
    return "\n\n".join(lines)


def _faults(found: Review) -> Iterator[str]:
    """Say first what a reviewer must not overlook."""
    for change in found.records:
        if change.fault:
            yield f"{change.name}: {change.fault}"
    for what, runs in (("altered", found.altered_runs), ("taken away", found.lost_runs)):
        for run in runs:
            yield f"evidence {run.id} was {what}"
    errors = sum(finding.severity is Severity.ERROR for finding in found.new)
    if errors:
        yield f"{errors} of the new findings {'is an error' if errors == 1 else 'are errors'}"


def _cells(found: Review) -> str:
    if not found.cells and not found.rows:
        return "No cell of any scope moves."
    rows = [
        (prose(one.scope), TECHNIQUE_TITLES[one.technique], prose(one.service), one.before or _ABSENT, one.after or _ABSENT)
        for one in found.cells
    ]
    behind = [
        f"{prose(row.scope)}, {TECHNIQUE_TITLES[row.technique]}: **{prose(move.what)}**: {prose(move.text)}"
        for row in found.rows
        for move in row.moves
    ]
    return "\n\n".join(
        filter(
            None,
            (
                _table(("Scope", "Technique", "Service", "Before", "After"), rows) if rows else "No state or decision moves.",
                _fold(f"What lies behind ({len(behind)})", _list(behind)) if behind else "",
            ),
        )
    )


def _records(found: Review) -> str:
    if not found.records:
        return "No record is added or changed."
    rows = [
        (
            f"`{change.name}`",
            "added" if change.before is None else "taken away" if change.after is None else "changed",
            _status(change),
            prose(change.fault) or "legal",
            ", ".join(change.fields) or "-",
            _decision(change.after or change.before),
        )
        for change in found.records
    ]
    return _table(("Record", "Change", "Status", "Move", "Also differs in", "Decides"), rows)


def _status(change: RecordChange) -> str:
    was, now = (one.status.value if one is not None else "" for one in (change.before, change.after))
    return now or was if not was or not now or was == now else f"{was} → {now}"


def _decision(record: Record | None) -> str:
    if record is None or record.technique is None or record.decision is None:
        return "about the project"
    return f"{TECHNIQUE_TITLES[record.technique]}, {prose(record.scope)}: {record.decision.value}"


def _has_contract(change: RecordChange) -> bool:
    new = change.after is not None and change.after.technique is not None
    return new and (change.before is None or "contract" in change.fields)


def _contract(change: RecordChange, found: Review, runs: Mapping[str, Run]) -> str:
    """Show the contract of one record: what was compared, what is missing and why, what else differed."""
    record = change.after
    if record is None:
        return ""
    parts = [f"### Contract of `{record.name}`"]
    if settings := found.settings.get(record.name):
        parts.append(f"What it would change:\n\n{_list(map(prose, settings))}")
    rows = list(_rows(record.contract, runs))
    if rows:
        parts.append(_table(("Quantity", "Baseline", "Candidate", "n", "Interval", "Verdict", "Why"), rows))
    if missing := _missing(record.contract):
        parts.append(missing)
    differences = list(_differences(record, runs))
    if differences:
        parts.append(f"Comparability:\n\n{_list(differences)}")
    if record.acknowledgements:
        told = [
            f"{one.rule} about {prose(one.about)}, by {prose(one.by)}: {sentence(one.reason)}"
            for one in record.acknowledgements
        ]
        parts.append(f"Acknowledged:\n\n{_list(told)}")
    return "\n\n".join(parts)


def _missing(contract: Contract) -> str:
    """Say what is missing and why; eight times the same reason is one sentence."""
    reasons = {
        metric: f"*{entry.missing.value}*" + (f", {sentence(entry.detail)}" if entry.detail else "")
        for metric, entry in contract.items()
        if isinstance(entry, Missing)
    }
    reasons |= {metric: "**no value and no reason**" for metric in ContractMetric if metric not in contract}
    if len(reasons) == len(ContractMetric) and len(set(reasons.values())) == 1:
        return f"All {len(reasons)} quantities are missing: {reasons[ContractMetric.TTFT]}"
    told = [f"{QUANTITIES[metric].title}: {reasons[metric]}" for metric in ContractMetric if metric in reasons]
    return f"Missing, with the reason:\n\n{_list(told)}" if told else ""


def _rows(contract: Contract, runs: Mapping[str, Run]) -> Iterator[tuple[str, ...]]:
    for metric in ContractMetric:
        entry, title = contract.get(metric), QUANTITIES[metric].title
        if isinstance(entry, Measured):
            yield title, "-", _side(metric, entry, runs), str(entry.samples), "-", "one side only", f"`{entry.run}`"
        elif isinstance(entry, Compared):
            sides = (entry.baseline, entry.candidate)
            sizes = " and ".join(dict.fromkeys(str(side.samples) for side in sides))
            told = [_side(metric, side, runs) for side in sides]
            within = reach(entry.low, entry.high, entry.scale, entry.baseline.unit)
            yield title, *told, sizes, prose(within) or "-", f"**{entry.verdict.value}**", prose(why(entry)) or "-"


def _side(metric: ContractMetric, side: Measured, runs: Mapping[str, Run]) -> str:
    """Write one side with the interval of its median, where the run is here and the value is a median."""
    told = prose(quantity(side.value, side.unit))
    run = runs.get(side.run)
    if run is None:
        return told
    found = next((one for name in QUANTITIES[metric].names if (one := run.metric(name, side.arm)) and one.samples), None)
    # The p95 of a run's own requests is no median, and the interval of their median says nothing about it.
    if found is None or found.name == "latency_s":
        return told
    middle = spread(found.samples, found.per)
    within = bounds(middle, found.unit) if middle.bounds_median else ""
    return f"{told} ({within})" if within else told


def _differences(record: Record, runs: Mapping[str, Run]) -> Iterator[str]:
    for ref in record.evidence:
        run = runs.get(ref.id)
        both = sides_of(run) if run is not None else None
        if both is None:
            continue
        found = likeness(*both)
        yield from (f"`{ref.id}`: under test: {prose(str(one))}" for one in found.under_test)
        yield from (f"`{ref.id}`: **differs, and must not**: {prose(str(one))}" for one in found.apart)
        if not found.apart:
            yield f"`{ref.id}`: nothing else is known to differ"
        if found.unknown:
            yield f"`{ref.id}`: not known of both sides: {', '.join(found.unknown)}"


def _evidence(found: Review) -> str:
    changed = [*found.added_runs, *found.altered_runs]
    if not changed:
        return "No evidence file is added."
    rows = [
        (
            f"`{run.id}`",
            f"{run.kind.value} {prose(run.subject)}",
            prose(host_facts(run.client)),
            _server(run),
            _clock(run, found),
            f"`{run.content_sha256[:12]}`",
            "valid" if run.validity.valid else f"**invalid**: {prose(', '.join(run.validity.reasons))}",
        )
        for run in changed
    ]
    return _table(("Run", "What", "Asked from", "Server", "Clock", "Hash", "Validity"), rows)


def _server(run: Run) -> str:
    if isinstance(run.server, Missing):
        return f"*{run.server.missing.value}*"
    return "the same machine" if run.server == run.client else prose(host_facts(run.server))


def _clock(run: Run, found: Review) -> str:
    seconds = (run.ended_at - run.started_at).total_seconds()
    told = f"{run.started_at.isoformat()}, {seconds:.0f} s"
    remarks = clock_remarks(run, found.today)
    return f"{told}; **{prose('; '.join(remarks))}**" if remarks else told


def _findings(found: Review) -> str:
    parts = []
    for title, some in (("New in this change", found.new), ("Fixed by it", found.fixed)):
        if some:
            parts.append(f"{title}:\n\n{_table(('Rule', 'Severity', 'Where', 'What', 'Fix'), [_finding(one) for one in some])}")
    return "\n\n".join(parts) or "No finding is new, and none is gone."


def _finding(one: Finding) -> tuple[str, ...]:
    return one.rule.number, one.severity.value, prose(one.place), prose(one.message), prose(one.fix)


def _commands(found: Review, base: str, runs: Mapping[str, Run]) -> str:
    lines = [f"nox -s review -- {shlex.quote(base)}", "nox -s check"]
    for change in found.records:
        record = change.after
        if record is None or record.technique is None:
            continue
        lines += [
            f"nox -s compare -- {ref.id}"
            for ref in record.evidence
            if ref.id in runs and runs[ref.id].kind is RunKind.CONTRACT and sides_of(runs[ref.id]) is not None
        ]
        if record.confirm is not None:
            lines.append(f"nox -s confirm -- {record.name}")
    return "```sh\n" + "\n".join(dict.fromkeys(lines)) + "\n```"


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    shown = table(head, rows[:MOST_ROWS])
    return f"{shown}\n\nAnd {len(rows) - MOST_ROWS} more." if len(rows) > MOST_ROWS else shown


def _list(items: Iterable[str]) -> str:
    every = list(items)
    more = [f"and {len(every) - MOST_ROWS} more"] if len(every) > MOST_ROWS else []
    return bullets([*every[:MOST_ROWS], *more])


def _fold(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"
