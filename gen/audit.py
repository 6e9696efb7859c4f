"""What can be wrong with one record: its evidence, links, history, assessment, contract and dates."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from gen.contract import CHANGES_A_SETTING, UNCOMPARED, ContractMetric, comparisons, unsettled
from gen.corpus import Corpus
from gen.findings import Finding, Rule
from gen.records import Record, status_on
from gen.records.record import LEGAL_MOVES, NAME_PATTERN
from gen.words import Status
from probes.evidence import Missing, MissingReason, Run

_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")
# Reasons that say nothing by themselves.
_NEEDS_DETAIL = frozenset({MissingReason.NOT_MEASURED, MissingReason.SKIPPED, MissingReason.FAILED})
_BACK_OR_ANEW = "bring the file back; a draft can be deleted and drafted anew with nox -s adr -- propose --write"
_CLOSED = frozenset({Status.REJECTED, Status.SUPERSEDED, Status.DEPRECATED})


@dataclass(frozen=True, kw_only=True)
class Books:
    """The corpus as lookups: which record and which run has a name, and where it lies."""

    corpus: Corpus

    @cached_property
    def records(self) -> dict[str, Record]:
        return {record.name: record for record in self.corpus.local_records + self.corpus.records}

    @cached_property
    def runs(self) -> dict[str, Run]:
        return {run.id: run for run in self.corpus.runs}

    @cached_property
    def local_runs(self) -> dict[str, Run]:
        return {run.id: run for run in self.corpus.local_runs}

    @cached_property
    def damaged(self) -> frozenset[str]:
        """The names of files that are there and cannot be read as what they should be."""
        return frozenset(
            posixpath.basename(problem.place.partition(":")[0]).rpartition(".")[0] for problem in self.corpus.problems
        )

    @cached_property
    def shared(self) -> frozenset[str]:
        """The names of records that lie in `adr/` itself."""
        return frozenset(record.name for record in self.corpus.records)

    def place(self, record: Record) -> str:
        """Name a record's file below the repository."""
        return f"{'adr' if record.name in self.shared else 'adr/local'}/{record.name}.md"


def audit(books: Books, record: Record, today: date) -> tuple[Finding, ...]:
    """Check one record against everything it speaks of; what its reviewers acknowledged is left out."""
    found = [
        *_evidence(books, record, today),
        *_links(books, record),
        *_history(books, record),
        *_snapshot(books, record),
        *_contract(books, record),
        *_service(books, record),
        *_review(books, record, today),
        *_acknowledgements(books, record),
    ]
    return tuple(finding for finding in found if not _acknowledged(record, finding))


def _evidence(books: Books, record: Record, today: date) -> Iterator[Finding]:
    place = books.place(record)
    cited: list[Run] = []
    for ref in record.evidence:
        # What a pull request shows must not hang on files that git ignores.
        may_be_local = record.name not in books.shared
        run = books.runs.get(ref.id) or (books.local_runs.get(ref.id) if may_be_local else None)
        if run is None:
            message, fix = _absent(books, ref.id)
            yield Finding(rule=Rule.EVIDENCE_ABSENT, place=place, about=ref.id, message=message, fix=fix)
            continue
        cited.append(run)
        if run.content_sha256 != ref.sha256:
            message = f"cites {ref.id} with hash {ref.sha256[:12]}…, and the file has {run.content_sha256[:12]}…"
            yield Finding(rule=Rule.EVIDENCE_ALTERED, place=place, about=ref.id, message=message, fix=_BACK_OR_ANEW)
        if not run.validity.valid:
            message = f"rests on {run.id}, which is invalid: {', '.join(run.validity.reasons)}"
            fix = f"measure again with nox -s probe, or acknowledge {Rule.EVIDENCE_INVALID.number} about {run.id}"
            yield Finding(rule=Rule.EVIDENCE_INVALID, place=place, about=run.id, message=message, fix=fix)
    limit = books.corpus.fleet.policies.freshness.evidence_days
    old = [run for run in cited if (today - run.date).days > limit]
    if old and status_on(record, today) is Status.ACCEPTED:
        message = f"rests on {len(old)} runs older than {limit} days, the oldest of {min(run.date for run in old)}"
        fix = "measure again with nox -s probe; the record says what"
        yield Finding(rule=Rule.STALE_EVIDENCE, place=place, message=message, fix=fix)


def _absent(books: Books, run: str) -> tuple[str, str]:
    """Say where cited evidence is instead, and how it gets to where it should be; a damaged file is never written over."""
    promotable, promote = run in books.local_runs, f"nox -s adr -- promote {run}"
    if run in books.damaged:
        fix = f"take the damaged file out of adr/evidence, then {promote}" if promotable else _BACK_OR_ANEW
        return f"cites {run}, which is damaged", fix
    if promotable:
        return f"cites {run}, which lies in adr/local only", promote
    return f"cites {run}, which is not there", _BACK_OR_ANEW


def _links(books: Books, record: Record) -> Iterator[Finding]:
    place, known = books.place(record), books.records
    for name in (*record.supersedes, *((record.superseded_by,) if record.superseded_by else ())):
        if name in known and record.name in books.shared and name not in books.shared:
            message = f"names {name}, which lies in adr/local only"
            yield Finding(rule=Rule.LINK_BROKEN, place=place, about=name, message=message, fix=f"nox -s adr -- promote {name}")
        elif name not in known:
            fix = "correct the name, or bring the record back"
            message = f"names {name}, which is not a record here"
            yield Finding(rule=Rule.LINK_BROKEN, place=place, about=name, message=message, fix=fix)
    for message, fix in _one_sided(record, known):
        yield Finding(rule=Rule.LINK_ONE_SIDED, place=place, message=message, fix=fix)
    for label, target in _LINK.findall(record.body):
        path = target.partition("#")[0]
        stem, extension = posixpath.splitext(posixpath.basename(path))
        if extension != ".md" or "://" in path or not re.fullmatch(NAME_PATTERN, stem):
            continue
        if stem not in known:
            message = f"links to {stem}, which is not a record here"
            yield Finding(rule=Rule.LINK_BROKEN, place=place, about=stem, message=message, fix="link the file's name on disk")
        elif re.fullmatch(NAME_PATTERN, label) and label != stem:
            message = f"says {label} and links to {stem}"
            yield Finding(rule=Rule.LINK_TEXT, place=place, message=message, fix="let text and target name one record")


def _one_sided(record: Record, known: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    """Yield what only one side of a supersession tells, with the fix."""
    for name in record.supersedes:
        other = known.get(name)
        if record.status is Status.ACCEPTED and other is not None and other.status not in _CLOSED:
            fix = f"nox -s adr -- supersede {name} {record.name} --by WHO"
            yield f"takes the place of {name}, which is still {other.status.value}", fix
    if (record.status is Status.SUPERSEDED) != (record.superseded_by is not None):
        said = f"is {record.status.value}, with superseded-by {record.superseded_by or 'empty'}"
        yield said, "set both status: superseded and superseded-by, or neither"
    successor = known.get(record.superseded_by or "")
    if successor is None:
        return
    if record.name not in successor.supersedes:
        yield f"is superseded by {successor.name}, which does not say so", f"add {record.name} to supersedes there"
    if successor.status in {Status.PROPOSED, Status.REJECTED}:
        fix = f"finish what was begun: nox -s adr -- accept {successor.name} --by WHO"
        yield f"is superseded by {successor.name}, which is only {successor.status.value}", fix


def _history(books: Books, record: Record) -> Iterator[Finding]:
    place = books.place(record)
    fix = "undo the edit, and move the record with nox -s adr -- accept, reject, supersede or deprecate"
    status, day = Status.PROPOSED, record.date
    for move in record.history:
        if move.status not in LEGAL_MOVES[status] or move.on < day:
            message = f"goes from {status.value} to {move.status.value} on {move.on}"
            yield Finding(rule=Rule.ILLEGAL_HISTORY, place=place, message=message, fix=fix)
        status, day = move.status, move.on
    if record.history and status is not record.status:
        message = f"is {record.status.value}, and its history ends with {status.value}"
        yield Finding(rule=Rule.ILLEGAL_HISTORY, place=place, message=message, fix=fix)


def _snapshot(books: Books, record: Record) -> Iterator[Finding]:
    place, stored = books.place(record), record.assessment
    fix = "undo the edit, the assessment block is the generator's; or delete the draft and nox -s adr -- propose --write"
    if stored is None:
        if record.technique is not None:
            message = "holds no assessment, so that no change can be seen against it"
            yield Finding(rule=Rule.SNAPSHOT, place=place, message=message, fix=fix)
        return
    pairs = {
        "technique": (record.technique, stored.technique),
        "scope": (record.scope, stored.scope),
        "decision": (record.decision, stored.decision),
    }
    for field, (said, snapshot) in pairs.items():
        if said != snapshot:
            message = f"says {field} {said}, and its assessment says {snapshot}"
            yield Finding(rule=Rule.SNAPSHOT, place=place, about=field, message=message, fix=fix)


def _contract(books: Books, record: Record) -> Iterator[Finding]:
    if record.technique is None or record.status in _CLOSED:
        return
    place = books.place(record)
    changed = record.status is Status.ACCEPTED and record.decision in CHANGES_A_SETTING
    compared = comparisons(record.contract)
    if changed and not compared:
        message = f"decides {record.decision}, and no cited run compares baseline with candidate"
        fix = f"measure both, decide to benchmark first, or acknowledge {Rule.CONTRACT_VERDICT.number} about {UNCOMPARED}"
        yield Finding(rule=Rule.CONTRACT_VERDICT, place=place, about=UNCOMPARED, message=message, fix=fix)
    open_questions = unsettled(record.contract) if changed and compared else {}
    for metric in ContractMetric:
        entry = record.contract.get(metric)
        unsaid = isinstance(entry, Missing) and entry.missing in _NEEDS_DETAIL and not entry.detail.strip()
        if entry is None or unsaid:
            lacks = "neither value nor reason" if entry is None else "a reason without detail"
            message, fix = f"contract.{metric.value} has {lacks}", "measure it, or say in detail why not"
            yield Finding(rule=Rule.CONTRACT_GAP, place=place, about=metric.value, message=message, fix=fix)
        elif metric in open_questions:
            message = f"decides {record.decision}, and contract.{metric.value} is {open_questions[metric]}"
            otherwise = "measure it" if isinstance(entry, Missing) else "measure more, decide otherwise"
            fix = f"{otherwise}, or acknowledge {Rule.CONTRACT_VERDICT.number} about {metric.value}"
            yield Finding(rule=Rule.CONTRACT_VERDICT, place=place, about=metric.value, message=message, fix=fix)


def _service(books: Books, record: Record) -> Iterator[Finding]:
    if not record.scope.startswith("fleet"):
        return
    services = books.corpus.fleet.services
    named = {record.scope.removeprefix("fleet/"), record.confirm.service if record.confirm else None} - {"fleet", None}
    for name in sorted(filter(None, named - set(services))):
        message = f"speaks of service {name}, which fleet.yml does not have"
        fix = f"nox -s adr -- deprecate {record.name}, or name one of {', '.join(sorted(services))}"
        yield Finding(rule=Rule.UNKNOWN_SERVICE, place=books.place(record), about=name, message=message, fix=fix)


def _review(books: Books, record: Record, today: date) -> Iterator[Finding]:
    if status_on(record, today) is Status.ACCEPTED and record.review_by < today:
        message = f"was to be reviewed by {record.review_by}"
        fix = "nox -s probe, then nox -s adr -- propose --write; where nothing has moved, give it a new review-by"
        yield Finding(rule=Rule.PAST_REVIEW, place=books.place(record), message=message, fix=fix)


def _acknowledgements(books: Books, record: Record) -> Iterator[Finding]:
    allowed = {rule.number for rule in Rule if rule.may_be_acknowledged}
    for item in record.acknowledgements:
        if item.rule not in allowed:
            message = f"acknowledges {item.rule}, which is not one of {', '.join(sorted(allowed))}"
            fix = "mend what was found"
            yield Finding(rule=Rule.ACKNOWLEDGEMENT, place=books.place(record), message=message, fix=fix)


def _acknowledged(record: Record, finding: Finding) -> bool:
    return finding.rule.may_be_acknowledged and any(
        item.rule == finding.rule.number and item.about == finding.about for item in record.acknowledgements
    )
