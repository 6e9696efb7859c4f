"""Whether a record may be accepted, and the texts that accept it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gen.check import check_records
from gen.corpus import Corpus
from gen.findings import Finding, Severity
from gen.records import in_force, parse_record
from gen.records.lifecycle import RecordFile, accept
from gen.records.record import Move, Record
from gen.words import Status
from probes.errors import UsageError

_STANDING = frozenset({Status.ACCEPTED, Status.PROPOSED})


def accepted(corpus: Corpus, files: Mapping[str, RecordFile], name: str, move: Move) -> dict[str, str]:
    """Give the new text of every file that accepting a record changes, in the order to write them.

    The record takes the place of the one in force for its technique and scope, and of those it names.

    Raises:
        UsageError: the move is not a legal one, or the checks would find an error in the outcome.
    """
    target = files[name]
    replaced = {listed for listed in target.record.supersedes if listed in files and files[listed].record.status in _STANDING}
    if target.record.technique is not None:
        holding = in_force(corpus.records + corpus.local_records, target.record.technique, target.record.scope, move.on)
        replaced |= {holding.name} if holding is not None and holding.name != name else set()
    texts = accept(target, [files[other] for other in replaced], move)
    found = _blocking(corpus, texts, name, move)
    if found:
        reasons = "\n".join(f"  {finding}" for finding in found)
        raise UsageError(f"{name} cannot be accepted as it is:\n{reasons}")
    return texts


def _blocking(corpus: Corpus, texts: Mapping[str, str], name: str, move: Move) -> tuple[Finding, ...]:
    """Find the errors of the record itself, and those that accepting it would bring to others."""
    standing = set(check_records(corpus, move.on))
    outcome = check_records(_with(corpus, texts), move.on)
    errors = [finding for finding in outcome if finding.severity is Severity.ERROR]
    return tuple(f for f in errors if f not in standing or f.place.endswith(f"/{name}.md"))


def _with(corpus: Corpus, texts: Mapping[str, str]) -> Corpus:
    def moved(records: tuple[Record, ...]) -> tuple[Record, ...]:
        return tuple(parse_record(r.name, texts[r.name], r.name) if r.name in texts else r for r in records)

    return replace(corpus, records=moved(corpus.records), local_records=moved(corpus.local_records))
