"""What moved since the last record, as drafts; the same inputs give the same drafts on any machine."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta

from gen.assess import assess, scopes
from gen.assessment import Assessment, RefKind
from gen.benchmarks import TOLD
from gen.configuration import configurations, together
from gen.contract import standing
from gen.contract_runs import command, contract_runs
from gen.corpus import Corpus
from gen.draft import CitedSource, Story, body, title
from gen.findings import Rule
from gen.knowledge import Knowledge
from gen.knowledge.schema import ENGINE_TITLES
from gen.measuring import addressed
from gen.proof import newest_proof
from gen.recheck import running_in, unverified
from gen.records import Record, about, in_force, open_proposals, status_on
from gen.records.naming import distinct_name, record_name
from gen.records.record import Confirm, EvidenceRef, Probe
from gen.records.text import render_draft
from gen.techniques.wording import listing
from gen.words import Status
from probes.archive import canonical
from probes.errors import UsageError
from probes.evidence import Run, RunKind, Technique
from probes.fleet import Fleet

LOCAL = "local"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A proposed record that is not written yet; `folder` is where it belongs, below the repository."""

    name: str
    text: str
    technique: Technique
    scope: str
    before: str | None

    @property
    def folder(self) -> str:
        return "adr/local" if self.scope.startswith("local-") else "adr"

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}.md"


def propose(corpus: Corpus, today: date, scope: str | None = None) -> tuple[Draft, ...]:
    """Draft one record for each technique whose assessment no standing record expresses.

    `scope` is one scope, 'local' for every machine with runs or records of its own here, or None for those
    and the fleet. A machine of which only promoted runs are here is a reference to compare with: it is
    decided about where it stands, and drafted only when it is named. What a person has rejected is not
    proposed again while the same record is in force.

    Raises:
        UsageError: nothing is known of the scope.
    """
    found: list[Draft] = []
    for name in _chosen(corpus, scope):
        inputs = _inputs(corpus, name)
        found += compare(inputs, assess(inputs, name, today), today)
    return tuple(found)


def compare(corpus: Corpus, assessments: Iterable[Assessment], today: date) -> tuple[Draft, ...]:
    """Draft a record for each of these assessments that no record of the corpus expresses."""
    return tuple(draft for assessment in assessments if (draft := _draft(corpus, assessment, today)) is not None)


def _chosen(corpus: Corpus, scope: str | None) -> tuple[str, ...]:
    known = scopes(corpus)
    ours = tuple(name for name in known if not _is_reference(corpus, name))
    if scope is None:
        return ours
    if scope == LOCAL:
        return tuple(name for name in ours if name.startswith("local-"))
    if scope not in known:
        raise UsageError(f"--scope {scope}: nothing is known of it; expected one of {', '.join([*known, LOCAL])}")
    return (scope,)


def _is_reference(corpus: Corpus, scope: str) -> bool:
    if not scope.startswith("local-") or any(record.scope == scope for record in corpus.records + corpus.local_records):
        return False
    promoted = {run.id for run in corpus.runs}
    return all(run.id in promoted for run in corpus.scope_runs(scope.removeprefix("local-")))


def _inputs(corpus: Corpus, scope: str) -> Corpus:
    """The fleet is judged by what is committed alone, or each checkout would draft something else."""
    return corpus if scope.startswith("local-") else replace(corpus, local_runs=(), local_records=())


def _draft(corpus: Corpus, assessment: Assessment, today: date) -> Draft | None:
    technique, scope = assessment.technique, assessment.scope
    records = corpus.records + corpus.local_records
    before = in_force(records, technique, scope, today)
    if _answered(about(records, technique, scope), assessment, before, today):
        return None
    day = _newest_change(corpus, assessment, before, today)
    # The day of drafting is no part of what is decided, or each day would write other bytes.
    assessment = assessment.model_copy(update={"on": day})
    name = record_name(day, technique, scope)
    own = corpus.local_records if scope.startswith("local-") else corpus.records
    if not _is_free(name, records, own):
        digest = hashlib.sha256(canonical([assessment.key(), before.name if before else ""])).hexdigest()  # type: ignore[list-item]
        name = distinct_name(name, digest)
    others = tuple(r for r in open_proposals(records, technique, scope, today) if r.name != name)
    record = _record(corpus, assessment, name, before, others)
    return Draft(name=name, text=render_draft(record), technique=technique, scope=scope, before=before.name if before else None)


def _answered(records: tuple[Record, ...], assessment: Assessment, before: Record | None, today: date) -> bool:
    """Tell whether a record says all this already: in force, waiting, or refused in the present state of affairs."""
    for record in records:
        if record.assessment is None or record.assessment.key() != assessment.key():
            continue
        status = status_on(record, today)
        if record is before or status is Status.PROPOSED:
            return True
        if status is Status.REJECTED and (before is None or before.name in record.supersedes):
            return True
    return False


def _is_free(name: str, records: tuple[Record, ...], own: tuple[Record, ...]) -> bool:
    """A name is free while no file has it, or only a draft that nobody has put a hand to."""
    taken = [record for record in records if record.name == name]
    return all(record in own and record.untouched and record.status is Status.PROPOSED for record in taken)


def _newest_change(corpus: Corpus, assessment: Assessment, before: Record | None, today: date) -> date:
    """Date a draft by what moved, between what it builds on and today.

    A first record is no older than the fleet or the machine that it speaks of, and any other no older than
    the record in force: what it changes had not been decided before. A declaration dated ahead counts from today,
    or a draft would lie in wait that no status of today speaks of, and be drafted again each time.
    """
    floor = before.date if before is not None else _beginning(corpus, assessment.scope, today)
    moved = assessment.newest_change(before.assessment if before else None)
    return min(max(floor, moved or floor), today)


def _beginning(corpus: Corpus, scope: str, today: date) -> date:
    runs = corpus.scope_runs(scope.removeprefix("local-")) if scope.startswith("local-") else ()
    return min(runs[0].date if runs else corpus.fleet.as_of, today)


def _record(corpus: Corpus, assessment: Assessment, name: str, before: Record | None, others: tuple[Record, ...]) -> Record:
    runs = _cited(corpus, assessment)
    policies = corpus.fleet.policies
    proof = newest_proof(runs, policies.gates)
    # What one run measured on both sides is not mixed with a later look at one of them. Without such a run, a price of
    # drafts, or an arm that nothing decides by, is no candidate.
    bearing = [run for run in runs if (run.id == proof.run if proof else run.subject not in TOLD)]
    contract = standing(bearing, policies.gates)
    probe, commands = _again(corpus.fleet, assessment, runs)
    confirmed = Confirm(probe=probe, gates=policies.gates) if probe else None
    story = Story(
        name=name,
        assessment=assessment,
        before=before,
        others=others,
        contract=contract,
        proof=proof,
        configurations=together(configurations(corpus, assessment, before.assessment if before else None, runs)),
        sources=_sources(corpus.knowledge, assessment),
        commands=commands,
        confirmed=confirmed,
        unverified=_unverified(corpus, assessment),
        review_by=assessment.on + timedelta(days=policies.freshness.review_days),
    )
    return Record(
        name=name,
        title=title(assessment),
        status=Status.PROPOSED,
        date=assessment.on,
        technique=assessment.technique,
        scope=assessment.scope,
        decision=assessment.decision,
        evidence=tuple(EvidenceRef(id=run.id, sha256=run.content_sha256) for run in runs),
        supersedes=tuple(r.name for r in ((before,) if before else ()) + others),
        review_by=story.review_by,
        confirm=confirmed,
        contract=contract,
        body=body(story),
        assessment=assessment,
    )


def _cited(corpus: Corpus, assessment: Assessment) -> tuple[Run, ...]:
    known = {run.id: run for run in corpus.runs + corpus.local_runs}
    cited = tuple(known[run] for run in assessment.evidence)
    # Whoever changed a setting of the technique and measured both sides gets it into the record.
    compared = contract_runs(corpus, assessment.technique, assessment.scope)
    return cited + tuple(run for run in compared if run not in cited)


def _again(fleet: Fleet, assessment: Assessment, runs: tuple[Run, ...]) -> tuple[Probe | None, tuple[str, ...]]:
    """Find the probe that looks at the same things again, and the commands for it."""
    bearing = addressed(fleet, assessment)
    draft = f"nox -s adr -- propose --scope {assessment.scope}"
    compared = [words for run in runs if run.kind is RunKind.CONTRACT and (words := command(run))]
    if compared:
        return Probe.CONTRACT, (*(f"nox -s compare -- {shlex.join(words[1:])}" for words in compared), draft)
    if assessment.scope.startswith("local-"):
        kinds = {run.kind for run in runs}
        parts = {RunKind.MICRO: Probe.MICRO, RunKind.DEVICES: Probe.DEVICES}
        probe = next((part for kind, part in parts.items() if kind in kinds), Probe.ENDPOINTS)
        return probe, (f"nox -s probe -- {probe.value}", draft)
    if not bearing:
        return None, ()
    services = " ".join(f"--service {service}" for service in bearing)
    return Probe.ENDPOINTS, (f"nox -s probe -- {services}", draft)


def _unverified(corpus: Corpus, assessment: Assessment) -> dict[str, str]:
    """Find which of the facts and prices that an assessment rests on were checked for older releases only than run there."""
    ids = {fact.id for fact in assessment.all_facts()} | {conflict.id for conflict in assessment.conflicts}
    here = running_in(corpus, assessment.scope, assessment.on)
    found: dict[str, dict[str, None]] = {}
    for one in unverified(corpus.knowledge, here, assessment.on):
        if one.id in ids:
            found.setdefault(one.id, {})[f"{ENGINE_TITLES[one.by.engine]} {one.by.version}"] = None
    return {name: f"unverified for {listing(releases)} ({Rule.UNVERIFIED.number})" for name, releases in found.items()}


def _sources(knowledge: Knowledge, assessment: Assessment) -> dict[str, CitedSource]:
    named = {fact.ref.target for fact in assessment.all_facts() if fact.ref.kind is RefKind.SOURCE}
    named |= {conflict.source for conflict in assessment.conflicts}
    # What a technique is stands among the reasons of its rule, and has a source like anything else.
    entry = knowledge.techniques.get(assessment.technique)
    named |= {entry.source} if entry is not None and entry.about in assessment.why else set()
    return {
        source.id: CitedSource(
            title=source.title, where=source.url or source.repository or source.measurement or "", checked=source.checked
        )
        for source in knowledge.sources.values()
        if source.id in named
    }
