"""What the model behind a service is: everything that says so, and where two of them disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

from gen.knowledge import Knowledge
from probes.evidence import ModelKind, ProvenanceKind, Run, RunKind, leaves_open, same_kind
from probes.fleet import ServiceKind

_RANK = {kind: rank for rank, kind in enumerate(ProvenanceKind)}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement of what a model is. `where` is the file and field, or the answer; `run` the evidence that holds it."""

    kind: ModelKind
    where: str
    provenance: ProvenanceKind
    date: date
    run: str


@dataclass(frozen=True, kw_only=True)
class KnownKind:
    """What a service's model is known to be, the strongest claim first; without claims only the inventory's word is there."""

    word: ServiceKind
    claims: tuple[Claim, ...] = ()

    @property
    def strongest(self) -> Claim | None:
        """The claim that counts: the strongest, or a weaker one that agrees with it and says more."""
        if not self.claims:
            return None
        first = self.claims[0]
        if not leaves_open(first.kind):
            return first
        return next((one for one in self.claims if same_kind(first.kind, one.kind) and not leaves_open(one.kind)), first)

    @property
    def model(self) -> ModelKind | None:
        """The kind of model, None where nothing but the inventory's word is known."""
        return None if self.strongest is None else self.strongest.kind

    def service(self, knowledge: Knowledge) -> ServiceKind:
        """Give the kind of service: the inventory's word unless the model cannot stand behind such a service."""
        if self.model is None or self.word in knowledge.models[self.model].serves:
            return self.word
        return knowledge.models[self.model].serves[0]

    def drift(self, knowledge: Knowledge) -> tuple[str, ...]:
        """Say which statements cannot all be right, the inventory's word first."""
        strongest = self.strongest
        if strongest is None:
            return ()
        told = [f"inventory {self.word}"] if self._misnamed(knowledge) else []
        against = [one for one in self.claims if not same_kind(one.kind, strongest.kind)]
        if not told and not against:
            return ()
        said = (f"{one.provenance} {one.kind} ({one.where})" for one in (*reversed(against), strongest))
        return (f"what it is: {', '.join((*told, *said))}",)

    def kinds_in_doubt(self, knowledge: Knowledge) -> tuple[tuple[ModelKind, ...], ServiceKind | None]:
        """Give every kind that something says it is, and the inventory's word where no claim fits it."""
        return tuple(dict.fromkeys(one.kind for one in self.claims)), self.word if self._misnamed(knowledge) else None

    def _misnamed(self, knowledge: Knowledge) -> bool:
        return self.model is not None and self.word not in knowledge.models[self.model].serves


def known_kind(word: ServiceKind, runs: Iterable[Run], in_files: Callable[[str], bool]) -> KnownKind:
    """Collect what the newest valid run of each sort says; of files only those that the inventory still names."""
    valid = [run for run in runs if run.validity.valid]
    found: list[Claim] = []
    for kind in (RunKind.ENDPOINT, RunKind.DECLARED):
        of_kind = [run for run in valid if run.kind is kind and (run.kinds or kind is RunKind.DECLARED)]
        if not of_kind:
            continue
        newest = max(of_kind, key=lambda run: (run.started_at, run.id))
        found += (
            Claim(
                kind=one.kind,
                where=one.where,
                provenance=one.provenance.kind,
                date=min(one.provenance.date, newest.date),
                run=newest.id,
            )
            for one in newest.kinds
            if kind is RunKind.ENDPOINT or in_files(one.provenance.source)
        )
    return KnownKind(word=word, claims=tuple(sorted(found, key=lambda one: _RANK[one.provenance])))
