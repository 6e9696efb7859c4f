"""Whether a record still holds: what to measure again for it, and what newer runs say against the ones it cites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

from gen.assess import assess
from gen.comparability import Side, sides_of
from gen.contract import QUANTITIES, Compared, ContractMetric
from gen.contract_runs import command
from gen.corpus import Corpus
from gen.findings import Finding, Rule
from gen.judgement import judge
from gen.records import Record, status_on
from gen.records.record import Probe
from gen.view import FLEET
from gen.words import Applicability, Status, Verdict
from probes.errors import UsageError
from probes.evidence import Endpoint, FleetScope, LocalScope, Run, RunKind
from probes.fleet import Gates

_KINDS = {
    Probe.DEVICES: frozenset({RunKind.DEVICES}),
    Probe.ENDPOINTS: frozenset({RunKind.ENDPOINT}),
    Probe.MICRO: frozenset({RunKind.MICRO}),
    Probe.CONTRACT: frozenset({RunKind.CONTRACT}),
}
_GONE = frozenset({Verdict.WORSE, Verdict.SAME})


class Holds(StrEnum):
    """What measuring a record again came to."""

    HOLDS = "holds"
    BROKEN = "no longer holds"
    OPEN = "open"
    NOT_MEASURED = "not measured again"


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """One record held against what was measured after it. `words` say why, one sentence each."""

    record: Record
    outcome: Holds
    runs: tuple[Run, ...] = ()
    words: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def chosen(corpus: Corpus, names: Iterable[str], today: date) -> tuple[Record, ...]:
    """Pick the records to confirm: those named, or all in force that say how.

    Raises:
        UsageError: a name that is no record, or one that does not say how to confirm it.
    """
    known = {record.name: record for record in corpus.local_records + corpus.records}
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise UsageError(f"{name}: is not a record here; expected one of {', '.join(sorted(known)) or 'none'}")
        if known[name].confirm is None:
            raise UsageError(f"{name}: has no confirm block; expected one that names a probe")
    if wanted:
        return tuple(known[name] for name in dict.fromkeys(wanted))
    in_force = [r for r in known.values() if r.confirm is not None and status_on(r, today) is Status.ACCEPTED]
    return tuple(sorted(in_force, key=lambda record: record.name))


def commands(corpus: Corpus, records: Iterable[Record]) -> list[list[str]]:
    """Give what `python -m probes` has to run so that every record can be confirmed, each thing once."""
    parts: list[str] = []
    services: set[str] = set()
    runs: list[list[str]] = []
    for record in records:
        probe = record.confirm.probe if record.confirm else None
        if probe is Probe.CONTRACT:
            runs += [argv for argv in _contract_commands(corpus, record) if argv not in runs]
        elif probe is Probe.ENDPOINTS:
            services |= set(_services(corpus, record)) if record.scope.startswith(FLEET) else {"embedded"}
        elif probe is not None and probe.value not in parts:
            parts.append(probe.value)
    asked = [name for name in ("embedded", *corpus.fleet.services) if name in services]
    named = [["run", *(word for name in asked for word in ("--service", name))]] if asked else []
    return [*(["run", part] for part in parts), *named, *runs]


def confirm(corpus: Corpus, record: Record, today: date) -> Confirmation:
    """Hold a record against the runs that came after the ones it cites; pure, so it says the same on any machine."""
    cited = [run for run in corpus.runs + corpus.local_runs if run.id in {ref.id for ref in record.evidence}]
    fresh = _fresh(corpus, record, cited, today)
    usable = [run for run in fresh if run.validity.valid]
    words = [f"{run.id} is invalid: {', '.join(run.validity.reasons)}" for run in fresh if not run.validity.valid]
    if not usable:
        return Confirmation(
            record=record, outcome=Holds.NOT_MEASURED, runs=tuple(fresh), words=tuple(words or _states(corpus, record))
        )
    rows = list(_compared(record, cited, usable))
    told = [*rows, *_decided(corpus, record, cited, usable, today)]
    broken = [said for outcome, said in told if outcome is Holds.BROKEN]
    still_open = [said for outcome, said in told if outcome is Holds.OPEN]
    outcome = Holds.BROKEN if broken else Holds.OPEN if still_open else Holds.HOLDS
    held = sum(outcome is Holds.HOLDS for outcome, _ in rows)
    words.append(f"{held} quantities keep their gates" if held else "no quantity was compared")
    return Confirmation(
        record=record,
        outcome=outcome,
        runs=tuple(usable),
        words=(*broken, *still_open, *words),
        findings=tuple(_finding(corpus, record, said) for said in broken),
    )


def _fresh(corpus: Corpus, record: Record, cited: list[Run], today: date) -> list[Run]:
    """Take the newest run of each subject that is newer than everything the record cites."""
    kinds = _KINDS[record.confirm.probe] if record.confirm else frozenset()
    since = max((run.started_at for run in cited), default=None)
    found: dict[tuple[RunKind, str], Run] = {}
    wanted = {(run.kind, run.subject) for run in cited if run.kind in kinds}
    for run in sorted(corpus.runs + corpus.local_runs, key=lambda run: (run.started_at, run.id)):
        late = (run.date >= record.date) if since is None else run.started_at > since
        if run.kind in kinds and late and run.date <= today and _speaks(run, record, corpus):
            found[run.kind, run.subject] = run
    return [run for key, run in found.items() if key in wanted or not wanted]


def _speaks(run: Run, record: Record, corpus: Corpus) -> bool:
    """Tell whether a run is about what the record is about."""
    if isinstance(run.scope, LocalScope):
        return record.scope == f"local-{run.scope.fingerprint}"
    return record.scope.startswith(FLEET) and run.scope.service in _services(corpus, record)


def _services(corpus: Corpus, record: Record) -> tuple[str, ...]:
    """Name the services that a record speaks of and that have an address to ask."""
    with_address = [name for name, service in corpus.fleet.services.items() if service.url is not None]
    if record.confirm is not None and record.confirm.service is not None:
        return (record.confirm.service,)
    if record.scope != FLEET:
        return tuple(name for name in with_address if record.scope == f"{FLEET}/{name}")
    cells = record.assessment.cells if record.assessment else ()
    bearing = {cell.service for cell in cells if cell.applicability is not Applicability.DOES_NOT_APPLY}
    return tuple(name for name in with_address if name in bearing)


def _states(corpus: Corpus, record: Record) -> Iterator[str]:
    """Say what the services did when they were last asked; being down or not configured is a state, not a failure."""
    surveys = [run for run in corpus.runs + corpus.local_runs if run.kind is RunKind.SURVEY]
    newest = max(surveys, key=lambda run: (run.started_at, run.id), default=None)
    seen: dict[str, list[str]] = {}
    for name in _services(corpus, record) if record.scope.startswith(FLEET) else ():
        endpoint: Endpoint | None = newest.survey.get(name) if newest else None
        seen.setdefault(endpoint.state.value if endpoint else "not asked", []).append(name)
    for state, names in seen.items():
        yield f"{', '.join(names)}: {state}"
    if not seen:
        yield "no run is newer than the ones it cites"


def _compared(record: Record, cited: list[Run], fresh: list[Run]) -> Iterator[tuple[Holds, str]]:
    """Compare each new run with the cited one of its subject, by the gates that the record names."""
    before = {(run.kind, run.subject): run for run in sorted(cited, key=lambda run: run.started_at) if run.validity.valid}
    for run in fresh:
        old, both = before.get((run.kind, run.subject)), sides_of(run)
        if both is not None:
            yield from _sides(record, old, run, both)
        elif old is not None and not old.arms:
            yield from _once_more(record, old, run)


def _sides(record: Record, old: Run | None, run: Run, both: tuple[Side, Side]) -> Iterator[tuple[Holds, str]]:
    """Within one run the sides share the machine's mood, so its own verdicts count and not its absolute numbers."""
    if record.confirm is None:
        return
    gates = record.confirm.gates
    recorded = _verdicts(record, old, gates)
    for metric, row in judge(*both, gates, interleaved=True).rows.items():
        title, was = QUANTITIES[metric].title, recorded.get(metric)
        if row.verdict is Verdict.WORSE and was is not Verdict.WORSE:
            yield Holds.BROKEN, f"{title}: the candidate is worse in {run.id}{_was(was)}"
        elif was is Verdict.BETTER and row.verdict in _GONE:
            yield Holds.BROKEN, f"{title}: {row.verdict.value} in {run.id}{_was(was)}"
        elif was in {Verdict.BETTER, Verdict.SAME} and row.verdict in {Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE}:
            yield Holds.OPEN, f"{title}: {row.verdict.value} in {run.id}{_was(was)}: {row.reason}"
        elif row.verdict in {Verdict.BETTER, Verdict.SAME}:
            yield Holds.HOLDS, f"{title}: {row.verdict.value}"


def _verdicts(record: Record, old: Run | None, gates: Gates) -> Mapping[ContractMetric, Verdict]:
    """Take what the record says, and where it compares nothing what its evidence says."""
    said = {metric: entry.verdict for metric, entry in record.contract.items() if isinstance(entry, Compared)}
    both = sides_of(old) if old is not None else None
    if said or both is None:
        return said
    return {metric: row.verdict for metric, row in judge(*both, gates, interleaved=True).rows.items()}


def _was(was: Verdict | None) -> str:
    return f", where the record has {was.value}" if was is not None else ""


def _once_more(record: Record, old: Run, run: Run) -> Iterator[tuple[Holds, str]]:
    """Hold one side against itself, then and now; other hosts, versions or prompts are told and break nothing."""
    if record.confirm is None:
        return
    judged = judge(Side(run=old), Side(run=run), record.confirm.gates, interleaved=False)
    moved = [*judged.likeness.apart, *judged.likeness.under_test]
    rows = {metric: row for metric, row in judged.rows.items() if row.baseline is not None}
    if moved and rows:
        yield Holds.OPEN, f"{run.id} is not comparable with {old.id}: {'; '.join(map(str, moved))}"
        return
    for metric, row in rows.items():
        title = QUANTITIES[metric].title
        if row.verdict is Verdict.WORSE:
            yield Holds.BROKEN, f"{title}: worse in {run.id} than in {old.id}"
        elif row.verdict is Verdict.INCONCLUSIVE:
            yield Holds.OPEN, f"{title}: inconclusive against {old.id}: {row.reason}"
        elif row.verdict in {Verdict.BETTER, Verdict.SAME}:
            yield Holds.HOLDS, f"{title}: {row.verdict.value}"


def _decided(corpus: Corpus, record: Record, cited: list[Run], fresh: list[Run], today: date) -> Iterator[tuple[Holds, str]]:
    """Tell whether the new runs alone lead the record's rule to another decision."""
    scope = FLEET if record.scope.startswith(FLEET) else record.scope
    if record.technique is None:
        return
    ids, again = {run.id for run in fresh}, {(run.kind, run.subject) for run in fresh}
    local_fleet = tuple(run for run in corpus.local_runs if run.id in ids and isinstance(run.scope, FleetScope))
    after = replace(corpus, runs=corpus.runs + local_fleet)
    since = max((run.started_at for run in cited), default=None)

    def known_then(runs: tuple[Run, ...]) -> tuple[Run, ...]:
        """Leave out what was measured again, the last time and any time between."""
        newer = {run.id for run in runs if since is not None and run.started_at > since and (run.kind, run.subject) in again}
        return tuple(run for run in runs if run.id not in ids | newer)

    before = replace(corpus, runs=known_then(corpus.runs), local_runs=known_then(corpus.local_runs))
    try:
        decisions = [
            next(one.decision for one in assess(side, scope, today) if one.technique is record.technique)
            for side in (before, after)
        ]
    except UsageError:
        return  # nothing but the new runs is known of this machine
    if decisions[0] is not decisions[1]:
        yield Holds.BROKEN, f"the decision would now be {decisions[1].value} in place of {decisions[0].value}"


def _contract_commands(corpus: Corpus, record: Record) -> list[list[str]]:
    """Write the cited contract runs as commands; a record that cites none has its service measured."""
    ids = {ref.id for ref in record.evidence}
    cited = [run for run in corpus.runs + corpus.local_runs if run.id in ids and run.kind is RunKind.CONTRACT]
    if not cited and record.confirm is not None and record.confirm.service is not None:
        return [["contract", record.confirm.service]]
    return [argv for run in cited if (argv := command(run))]


def _finding(corpus: Corpus, record: Record, said: str) -> Finding:
    shared = record.name in {one.name for one in corpus.records}
    place = f"{'adr' if shared else 'adr/local'}/{record.name}.md"
    fix = f"look at the run, then python -m gen records propose --scope {record.scope.partition('/')[0]} --write"
    return Finding(rule=Rule.CONFIRMATION, place=place, about=record.name, message=said, fix=fix)
