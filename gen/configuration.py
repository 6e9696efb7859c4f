"""What carrying out a decision takes: the exact change in the words of the runtime, and the exact way back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gen.assess import scopes, view
from gen.assessment import Assessment, Fact
from gen.comparability import likeness, sides_of
from gen.contract import CHANGES_A_SETTING
from gen.corpus import Corpus
from gen.knowledge import Engine, Role
from gen.knowledge.schema import ENGINE_TITLES
from gen.knowledge.spelling import Fragment, fragments
from gen.records import Record
from gen.view import ServiceView, shown
from gen.words import Decision, Status
from probes.evidence import FleetScope, Run, RunKind, Scalar


@dataclass(frozen=True, kw_only=True)
class Change:
    """One setting that a decision changes. `before` is None where nothing says what it was; `why` where it comes from."""

    control: str
    before: Scalar | None
    after: Scalar
    why: str

    @property
    def told(self) -> str:
        """Say what changes, from what to what."""
        return f"{self.control}: {'not known' if self.before is None else shown(self.before)} → {shown(self.after)}"


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What a decision changes on one service, forth and back. `unspelled` are controls that no file fragment sets."""

    service: str
    engine: Engine
    changes: tuple[Change, ...]
    forth: tuple[Fragment, ...]
    back: tuple[Fragment, ...]
    unspelled: tuple[str, ...]
    where: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name the service with its runtime."""
        return f"{self.service} ({ENGINE_TITLES[self.engine]})"


def configurations(
    corpus: Corpus, assessment: Assessment, before: Assessment | None, runs: Iterable[Run]
) -> tuple[Configuration, ...]:
    """Work out what an assessment changes against the one in force, service by service.

    Three things say what a setting is to become, the strongest first: a cited comparison whose candidate has it, a
    decision to enable what has one switch, and a fact that has moved since the record in force.
    """
    scope = assessment.scope.partition("/")[0]
    runs = tuple(runs)
    # Most records keep what stands: nothing of the scope has to be gathered for them.
    if scope not in scopes(corpus) or not _may_change(assessment, before, runs):
        return ()  # or a machine of which no run is here
    services = {one.name: one for one in view(corpus, scope, assessment.on).services}
    found: dict[str, dict[str, Change]] = {}
    for service, change in (
        *_moved(corpus, assessment, before, services),
        *_enabled(corpus, assessment, services),
        *_compared(corpus, assessment, runs),
    ):
        # A later one is the stronger; what was before is told by whoever knows it.
        known = found.setdefault(service, {}).get(change.control)
        found[service][change.control] = replace(change, before=known.before) if known and change.before is None else change
    return tuple(
        one
        for name, changes in found.items()
        if name in services and (one := _configuration(corpus, services[name], tuple(changes.values()))) is not None
    )


def of_record(corpus: Corpus, record: Record) -> tuple[Configuration, ...]:
    """Work out what a record's decision changes, from its snapshot and the one that it replaces."""
    if record.assessment is None:
        return ()
    known = corpus.record_by_name
    replaced = [known[name] for name in record.supersedes if name in known]
    accepted = [one for one in replaced if any(move.status is Status.ACCEPTED for move in one.history)] or replaced
    before = max(accepted, key=lambda one: (one.date, one.name), default=None)
    runs = [corpus.run_by_id[ref.id] for ref in record.evidence if ref.id in corpus.run_by_id]
    return configurations(corpus, record.assessment, before.assessment if before else None, runs)


def _may_change(assessment: Assessment, before: Assessment | None, runs: Iterable[Run]) -> bool:
    """Tell whether anything is there that `configurations` could read a change from."""
    old = {} if before is None else {fact.id: fact.value for fact in before.all_facts()}
    return (
        any(cell.decision is Decision.ENABLE for cell in assessment.cells)
        or any(old.get(fact.id, fact.value) != fact.value for fact in assessment.all_facts())
        or (assessment.decision in CHANGES_A_SETTING and any(run.kind is RunKind.CONTRACT for run in runs))
    )


def _configuration(corpus: Corpus, service: ServiceView, changes: tuple[Change, ...]) -> Configuration | None:
    dialect = corpus.knowledge.dialects.get(service.engine) if service.engine is not None else None
    if dialect is None or service.engine is None:
        return None
    forth: dict[str, Scalar | None] = {change.control: change.after for change in changes}
    back: dict[str, Scalar | None] = {change.control: change.before for change in changes}
    beside = {
        one.control: one.value
        for one in service.sightings
        if one.control not in forth and not one.default_of and not one.without_effect
    }
    return Configuration(
        service=service.name,
        engine=service.engine,
        changes=changes,
        forth=fragments(dialect, forth, beside),
        back=fragments(dialect, back, beside),
        unspelled=tuple(change.control for change in changes if dialect.spelling(change.control) is None),
        where=tuple(dict.fromkeys(one.source for one in service.sightings if one.control in forth and one.in_file)),
    )


def _enabled(corpus: Corpus, assessment: Assessment, services: Mapping[str, ServiceView]) -> Iterator[tuple[str, Change]]:
    for cell in assessment.cells:
        service = services.get(cell.service)
        if cell.decision is not Decision.ENABLE or service is None:
            continue
        # What takes a path or a method has no one value that means on.
        for control in corpus.knowledge.settings_in(service.engine, Role.SWITCH, assessment.technique)[:1]:
            known = next((_value(fact) for fact in cell.facts if fact.id == f"{cell.service}/{control}"), None)
            if known is None or isinstance(known, bool):
                yield cell.service, Change(control=control, before=known, after=True, why="the decision enables it")


def _moved(
    corpus: Corpus, assessment: Assessment, before: Assessment | None, services: Mapping[str, ServiceView]
) -> Iterator[tuple[str, Change]]:
    """Give the settings whose value is another than in the record in force: what was declared since is the change."""
    old = {} if before is None else {fact.id: fact for fact in before.all_facts()}
    for fact in assessment.all_facts():
        service, _, control = fact.id.partition("/")
        known = services.get(service)
        if known is None or corpus.knowledge.control(known.engine, control) is None:
            continue
        if fact.id in old and old[fact.id].value != fact.value:
            why = f"{fact.provenance.value} since {fact.date}"
            yield service, Change(control=control, before=_value(old[fact.id]), after=_value(fact), why=why)


def _compared(corpus: Corpus, assessment: Assessment, runs: tuple[Run, ...]) -> Iterator[tuple[str, Change]]:
    """Give what the candidate of a cited comparison had, where the decision is to change a setting."""
    if assessment.decision not in CHANGES_A_SETTING:
        return
    controls = corpus.knowledge.settings_of(assessment.technique)
    for run in sorted(runs, key=lambda run: (run.started_at, run.id)):
        both = sides_of(run) if run.kind is RunKind.CONTRACT and run.validity.valid else None
        if both is None:
            continue
        service = run.scope.service if isinstance(run.scope, FleetScope) else run.subject
        for difference in likeness(*both).under_test:
            if difference.name in controls and difference.candidate is not None:
                why = f"the candidate of {run.id} has it"
                change = Change(control=difference.name, before=difference.baseline, after=difference.candidate, why=why)
                yield service, change


def _value(fact: Fact) -> Scalar:
    """Read a fact's value back: facts hold text, as configuration files would write it."""
    if fact.value in {"true", "false"}:
        return fact.value == "true"
    if re.fullmatch(r"-?\d{1,18}", fact.value):
        return int(fact.value)
    return float(fact.value) if re.fullmatch(r"-?\d+\.\d+", fact.value) else fact.value


CARRY_OUT = "## How to carry it out"
WHERE = "Take the form by which the service is started; what a fragment does not name stays as it is."


def together(found: Iterable[Configuration]) -> tuple[Configuration, ...]:
    """Put services that change alike into one, under all of their names."""
    alike: dict[tuple[object, ...], list[Configuration]] = {}
    for one in found:
        alike.setdefault((one.engine, one.changes, one.forth, one.back, one.unspelled), []).append(one)
    return tuple(
        replace(
            some[0],
            service=", ".join(one.service for one in some),
            where=tuple(place for one in some for place in one.where),
        )
        for some in alike.values()
    )


def told(found: Configuration) -> tuple[str, ...]:
    """Say line by line what changes on one service and why."""
    return tuple(f"{one.told} ({one.why})" for one in found.changes)


def by_hand(found: Configuration) -> str:
    """Name what no fragment can set; '' where each control has a spelling."""
    names = ", ".join(found.unspelled)
    return f"{names}: set by hand, for no single value in a file of {ENGINE_TITLES[found.engine]} sets it" if names else ""


def removal(fragment: Fragment) -> str:
    """Say which lines go on the way back, for what is not known to have been set; '' where none does."""
    names = ", ".join(fragment.removed)
    return f"take {names} out again: nothing is known of a former value, so the runtime's default holds" if names else ""
