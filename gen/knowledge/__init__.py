"""What is known from outside this fleet: controls, facts, prices and releases, valid by release and by day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from gen.knowledge.claim import Claim, ClaimFile
from gen.knowledge.control import Control, ControlFile, Role
from gen.knowledge.review import ChecklistFile, Item
from gen.knowledge.schema import (
    AnyFact,
    Bound,
    Card,
    CardFile,
    ConflictFile,
    Engine,
    FactFile,
    Known,
    KnownConflict,
    KnownFact,
    Method,
    ModelEntry,
    ModelFile,
    News,
    Release,
    ReleaseFile,
    Source,
    SourceFile,
    TechniqueEntry,
    TechniqueFile,
)
from gen.knowledge.spelling import Dialect, SpellingFile
from gen.versions import Version, known_version, parse_version
from probes import strictyaml
from probes.errors import InputError, Problem
from probes.evidence import ModelKind, Technique
from probes.fleet import ServiceKind
from probes.schema import Model

_FOLDER = Path(__file__).parent
_K = TypeVar("_K", bound=Known)
_F = TypeVar("_F", bound=KnownFact)
_M = TypeVar("_M", bound=Model)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The newest release that something was checked for and where that was seen; None where no source names one."""

    release: str | None
    source: str


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """The whole knowledge base. Lists keep the order of the files.

    A fact *exists* on a day when its release is out and its date has come; it *applies* to a service
    when it exists and the service's release lies in its range. When it was last checked plays no part.
    """

    sources: MappingProxyType[str, Source]
    techniques: MappingProxyType[Technique, TechniqueEntry]
    instead: MappingProxyType[ServiceKind, str]
    models: MappingProxyType[ModelKind, ModelEntry]
    controls: MappingProxyType[Engine, tuple[Control, ...]]
    dialects: MappingProxyType[Engine, Dialect]
    checklist: tuple[Item, ...]
    facts: tuple[AnyFact, ...]
    conflicts: tuple[KnownConflict, ...]
    releases: tuple[Release, ...]
    cards: tuple[Card, ...] = ()
    claims: tuple[Claim, ...] = ()

    def card(self, title: str) -> Card | None:
        """Find what a maker says of a card; '(first)' and the like behind its name are the inventory's own."""
        return next((card for card in self.cards if card.title == title.split(" (", maxsplit=1)[0]), None)

    def control(self, engine: Engine | None, setting: str) -> Control | None:
        """Find the control that a setting of an inventory or of evidence belongs to."""
        return next((c for c in self._of(engine) if setting in c.settings), None)

    def controls_of(self, engine: Engine | None, technique: Technique) -> tuple[Control, ...]:
        """Give the controls that a runtime has for a technique; none for an unknown runtime."""
        return tuple(c for c in self._of(engine) if c.technique is technique and not c.absent)

    def settings_of(self, technique: Technique) -> frozenset[str]:
        """Name every setting of a technique, in any runtime."""
        every = (control for those in self.controls.values() for control in those)
        return frozenset(setting for control in every if control.technique is technique for setting in control.settings)

    def settings_in(self, engine: Engine | None, role: Role, technique: Technique | None = None) -> tuple[str, ...]:
        """Name the settings that play a role in a runtime, for one technique or for any."""
        wanted = [c for c in self._of(engine) if c.role is role and technique in {None, c.technique}]
        return tuple(setting for control in wanted for setting in control.settings)

    def absent(self, engine: Engine | None, technique: Technique, version: str | None, on: date) -> Control | None:
        """Find the statement that a runtime has no control for a technique, if there is one."""
        mine = [c for c in self._of(engine) if c.technique is technique and c.absent]
        return next((c for c in mine if engine and self.applies(c, engine, version, on)), None)

    def facts_for(
        self, kind: type[_F], engine: Engine | None, version: str | None, on: date, technique: Technique
    ) -> tuple[_F, ...]:
        """Give the facts of one kind that apply to a release of a runtime on a day."""
        return tuple(
            fact
            for fact in self.facts
            if isinstance(fact, kind) and fact.technique is technique and self._touches(fact, engine, version, on)
        )

    def conflicts_for(
        self, engine: Engine | None, version: str | None, on: date, technique: Technique
    ) -> tuple[KnownConflict, ...]:
        """Give the prices of a technique in a release of a runtime on a day, due or not."""
        return tuple(c for c in self.conflicts if c.technique is technique and self._touches(c, engine, version, on))

    def newest_release(self, engine: Engine | None, on: date) -> Release | None:
        """Give the highest release of a runtime that is out on a day."""
        out = [release for release in self.releases if release.engine is engine and release.published <= on]
        return max(out, key=lambda release: parse_version(release.version), default=None)

    def source_of(self, known: Known) -> Source:
        """Give the first source of a piece of knowledge."""
        return self.sources[known.source]

    def checked_for(self, known: Known, engine: Engine) -> Checked:
        """Give the newest release of a runtime that something was checked for: one of its sources', or where it begins."""
        begins = known.true_from.release if known.true_from else None
        own = ((self.sources[source].describes.get(engine), source) for source in (known.source, *known.also))
        told = [Checked(release=release, source=source) for release, source in ((begins, known.source), *own)]
        named = [one for one in told if one.release is not None]
        return max(named, key=lambda one: parse_version(one.release or ""), default=told[0])

    def of_engine(self, engine: Engine) -> tuple[Known, ...]:
        """Give everything that is known of a runtime: controls, also those it lacks, facts and prices."""
        said = (one for one in (*self.facts, *self.conflicts) if engine in one.engines)
        return (*self._of(engine), *said)

    def born(self, known: Known, engine: Engine) -> date | None:
        """Date the day from which something is true of a runtime; None when it has no beginning."""
        return None if known.true_from is None else self._day(known.true_from, engine)

    def exists(self, known: Known, engine: Engine, on: date) -> bool:
        """Tell whether something can be known of a runtime on a day."""
        since, until = self.born(known, engine), known.true_until
        return (since is None or since <= on) and (until is None or until.day is None or on < until.day)

    def applies(self, known: Known, engine: Engine, version: str | None, on: date) -> bool:
        """Tell whether something is true of a release of a runtime on a day.

        Of an unknown release only what holds for every release is known to be true.
        """
        if not self.exists(known, engine, on):
            return False
        release = known_version(version)
        since = _release(known.true_from)
        until = _release(known.true_until)
        if release is None:
            return since is None and until is None
        return (since is None or since <= release) and (until is None or release < until)

    def _touches(self, known: KnownFact | KnownConflict, engine: Engine | None, version: str | None, on: date) -> bool:
        return engine is not None and engine in known.engines and self.applies(known, engine, version, on)

    def _of(self, engine: Engine | None) -> tuple[Control, ...]:
        return () if engine is None else self.controls.get(engine, ())

    def _day(self, bound: Bound, engine: Engine) -> date:
        """Date a bound: the day named, or when the first listed release that reaches the named one came out."""
        days = [] if bound.day is None else [bound.day]
        if bound.release is not None:
            wanted = parse_version(bound.release)
            reached = [r.published for r in self.releases if r.engine is engine and parse_version(r.version) >= wanted]
            days.append(min(reached, default=date.max))
        return max(days)


def load_knowledge(folder: Path = _FOLDER) -> Knowledge:
    """Read and check the knowledge base.

    Raises:
        InputError: with file, line, field, value and expectation of every problem.
    """
    knowledge, problems = read_knowledge(folder)
    if problems:
        raise InputError(problems)
    return knowledge


def read_knowledge(folder: Path = _FOLDER) -> tuple[Knowledge, tuple[Problem, ...]]:
    """Read what can be read of the knowledge base, with every problem; a broken file counts as an empty one.

    What rests on a broken knowledge base must not be believed: this is for checking everything else.
    """
    problems: list[Problem] = []

    def part(name: str, model: type[_M], empty: _M) -> _M:
        try:
            return strictyaml.load(folder / name, model, _place(name))
        except InputError as exc:
            problems.extend(exc.problems)
            return empty

    techniques = part("techniques.yaml", TechniqueFile, TechniqueFile(techniques=(), kinds={}))
    names = [f"controls/{path.name}" for path in sorted((folder / "controls").glob("*.yaml"))]
    nothing = ControlFile(engine=Engine.OVMS, controls=())
    controls = [file for name in names if (file := part(name, ControlFile, nothing)) is not nothing]
    sources = part("sources.yaml", SourceFile, SourceFile(sources=())).sources
    dialects = part("spellings.yaml", SpellingFile, SpellingFile(dialects=())).dialects
    models = part("models.yaml", ModelFile, ModelFile(models=())).models
    knowledge = Knowledge(
        sources=MappingProxyType({source.id: source for source in sources}),
        techniques=MappingProxyType({entry.technique: entry for entry in techniques.techniques}),
        instead=MappingProxyType({kind: note.instead for kind, note in techniques.kinds.items()}),
        models=MappingProxyType({entry.model: entry for entry in models}),
        controls=MappingProxyType({file.engine: file.controls for file in controls}),
        dialects=MappingProxyType({dialect.engine: dialect for dialect in dialects}),
        checklist=part("checklist.yaml", ChecklistFile, ChecklistFile(items=())).items,
        facts=part("facts.yaml", FactFile, FactFile(facts=())).facts,
        conflicts=part("conflicts.yaml", ConflictFile, ConflictFile(conflicts=())).conflicts,
        releases=part("releases.yaml", ReleaseFile, ReleaseFile(releases=())).releases,
        cards=part("cards.yaml", CardFile, CardFile(cards=())).cards,
        claims=part("claims.yaml", ClaimFile, ClaimFile(claims=())).claims,
    )
    # What names something in a file that could not be read is not dangling.
    problems += _problems(knowledge, sources, [file.engine for file in controls]) if not problems else ()
    return knowledge, tuple(problems)


def _place(name: str) -> str:
    return f"gen/knowledge/{name}"


def _release(bound: Bound | None) -> Version | None:
    return None if bound is None or bound.release is None else parse_version(bound.release)


def _problems(knowledge: Knowledge, sources: Iterable[Source], engines: list[Engine]) -> Iterator[Problem]:
    """Find what no single entry can see: doubled ids, dangling sources, ranges without a day, gaps."""
    entries: list[tuple[str, Known]] = [("techniques.yaml", entry) for entry in knowledge.techniques.values()]
    entries += [("models.yaml", entry) for entry in knowledge.models.values()]
    entries += [(f"controls/{engine}.yaml", c) for engine, items in knowledge.controls.items() for c in items]
    entries += [("facts.yaml", fact) for fact in knowledge.facts]
    entries += [("conflicts.yaml", conflict) for conflict in knowledge.conflicts]
    entries += [("cards.yaml", card) for card in knowledge.cards]
    entries += [("claims.yaml", claim) for claim in knowledge.claims]
    news = [(news.id, release) for release in knowledge.releases for news in release.brings]
    ids = [entry.id for _, entry in entries] + [name for name, _ in news] + [source.id for source in sources]
    ids += [f"checklist {item.id}" for item in knowledge.checklist]
    for name, times in Counter(ids).items():
        if times > 1:
            yield Problem(place=_place(""), found=f"uses the id {name!r} {times} times", expected="each id once")
    for engine, times in Counter(engines).items():
        if times > 1:
            yield Problem(place=_place("controls/"), found=f"describes {engine} in {times} files", expected="one")
    for file, entry in entries:
        for source in (entry.source, *entry.also):
            if source not in knowledge.sources:
                yield _dangling(file, entry.id, source)
    for release in knowledge.releases:
        if release.source not in knowledge.sources:
            yield _dangling("releases.yaml", f"{release.engine} {release.version}", release.source)
    yield from _misspelt(knowledge)
    for file, ranged, engine in _ranged(knowledge):
        yield from _range_problems(knowledge, file, ranged, engine)
    yield from _beside(knowledge.claims)
    yield from _gaps(knowledge)


def _beside(claims: tuple[Claim, ...]) -> Iterator[Problem]:
    known = {claim.id for claim in claims}
    for claim in claims:
        for other in claim.beside:
            if other not in known:
                place = f"{_place('claims.yaml')}: {claim.id}: beside"
                yield Problem(place=place, found=f"is {other!r}", expected="an id of claims.yaml")


def _misspelt(knowledge: Knowledge) -> Iterator[Problem]:
    for dialect in knowledge.dialects.values():
        if dialect.source not in knowledge.sources:
            yield _dangling("spellings.yaml", str(dialect.engine), dialect.source)
        for one in dialect.spellings:
            if knowledge.control(dialect.engine, one.setting) is None:
                place = f"{_place('spellings.yaml')}: {dialect.engine}"
                yield Problem(
                    place=place, found=f"spells {one.setting!r}", expected=f"a setting of controls/{dialect.engine}.yaml"
                )


def _ranged(knowledge: Knowledge) -> Iterator[tuple[str, Known, Engine]]:
    for engine, items in knowledge.controls.items():
        yield from ((f"controls/{engine}.yaml", control, engine) for control in items)
    for fact in knowledge.facts:
        yield from (("facts.yaml", fact, engine) for engine in fact.engines)
    for conflict in knowledge.conflicts:
        yield from (("conflicts.yaml", conflict, engine) for engine in conflict.engines)


def _range_problems(knowledge: Knowledge, file: str, known: Known, engine: Engine) -> Iterator[Problem]:
    place = f"{_place(file)}: {known.id}"
    since, until = _release(known.true_from), _release(known.true_until)
    if knowledge.born(known, engine) == date.max:
        expected = f"a release of {engine} in releases.yaml that reaches it"
        yield Problem(
            place=f"{place}: true_from", found=f"names release {known.true_from and known.true_from.release}", expected=expected
        )
    if since is not None and until is not None and until <= since:
        yield Problem(place=f"{place}: true_until", found="does not come after true_from", expected="a later release")


def _gaps(knowledge: Knowledge) -> Iterator[Problem]:
    for technique in Technique:
        entry = knowledge.techniques.get(technique)
        if entry is None:
            yield Problem(place=_place("techniques.yaml"), found=f"lacks {technique}", expected="all seven techniques")
            continue
        for kind in ServiceKind:
            if kind not in entry.kinds:
                yield Problem(
                    place=f"{_place('techniques.yaml')}: {entry.id}", found=f"lacks kind {kind!s}", expected="every kind"
                )
    for model in ModelKind:
        if model not in knowledge.models:
            yield Problem(place=_place("models.yaml"), found=f"lacks {model!s}", expected="every kind of model")
    for kind in ServiceKind:
        if kind not in knowledge.instead:
            yield Problem(place=f"{_place('techniques.yaml')}: kinds", found=f"lacks {kind!s}", expected="every kind")


def _dangling(file: str, name: str, source: str) -> Problem:
    return Problem(place=f"{_place(file)}: {name}: source", found=f"is {source!r}", expected="an id of sources.yaml")


__all__ = [
    "Checked",
    "Claim",
    "Control",
    "Dialect",
    "Engine",
    "Knowledge",
    "Method",
    "News",
    "Release",
    "Role",
    "Source",
    "load_knowledge",
    "read_knowledge",
]
