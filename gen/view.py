"""What a rule may look at: the services of a scope, what each was declared and seen to do, what is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime

from gen.comparability import Side, likeness, sides_of
from gen.coverage import Bearing
from gen.judgement import judge
from gen.knowledge import Engine, Knowledge, Role
from gen.knowledge.schema import Card, same_value
from gen.modelkind import KnownKind
from gen.verdict import MIN_SAMPLES, Comparison, compare
from gen.versions import known_version
from gen.words import Verdict
from probes.evidence import Arm, Capability, Endpoint, Missing, ProvenanceKind, Run, RunKind, Scalar, Technique
from probes.fleet import Client, Fleet, Gates, ServiceKind

FLEET = "fleet"
LOCAL = "local-"
RELEASE = "runtime_version"
WEIGHTS = "weight_precision"
# What a micro-benchmark may show that undoes any gain; a contract run is judged with vetoes of its own.
_VETOES = ("error_rate", "oom_rate")
# What a control has to do for its technique so that a contract run with it off and on decides about the technique.
_SWITCHES = (Role.SWITCH, Role.SPARSE, Role.DRAFT)
_RANK = {kind: rank for rank, kind in enumerate(ProvenanceKind)}


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A setting as one source gives it. `run` is the evidence it comes from, "" for a declaration of the inventory.

    `default_of` names whose default it is, where a file leaves the control out; `without_effect` says why the value
    changes nothing.
    """

    control: str
    value: Scalar
    kind: ProvenanceKind
    date: date
    source: str
    run: str = ""
    default_of: str = ""
    without_effect: str = ""

    @property
    def in_file(self) -> bool:
        """Whether a configuration file declares it, and not the inventory."""
        return self.kind is ProvenanceKind.DECLARED and bool(self.run)

    def said(self, *, dated: bool = False) -> str:
        """Say the value and how it is known, with the place where that is a file."""
        word = "default" if self.default_of else self.kind.value
        places = [self.source] * self.in_file + [self.date.isoformat()] * dated
        return f"{word} {shown(self.value)}" + (f" ({', '.join(places)})" if places else "")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A technique off against on in one run, on the metric in which the technique pays.

    `vetoes` are the metrics that got worse and undo any gain. `sides` names the two for people: by the arms of a
    micro-benchmark, by the settings in which those of a contract run differ.
    """

    run: Run
    baseline: Arm
    candidate: Arm
    deciding: Comparison
    vetoes: tuple[Comparison, ...]
    sides: tuple[str, str]

    @property
    def verdict(self) -> Verdict:
        """The word that the rules decide by."""
        return Verdict.WORSE if self.vetoes else self.deciding.verdict


@dataclass(frozen=True, kw_only=True)
class ServiceView:
    """One service of the scope. What nobody says is None or empty; `devices` are those it may run on."""

    name: str
    title: str
    kind: ServiceKind
    known: KnownKind
    engine: Engine | None
    version: str | None
    hosts: tuple[str, ...]
    devices: tuple[str, ...]
    model: str | None
    parameters: str | None
    on_host: bool
    clients: tuple[tuple[str, Client], ...]
    sightings: tuple[Sighting, ...]
    endpoint: Endpoint | None
    runs: tuple[Run, ...]
    bearings: tuple[tuple[Technique, Bearing], ...]

    def bearing(self, technique: Technique) -> Bearing:
        """Say how a technique bears on this service."""
        return next(bearing for named, bearing in self.bearings if named is technique)

    def setting(self, *controls: str) -> Sighting | None:
        """Give the best known value of the first of these controls that anything is known of."""
        for control in controls:
            seen = [sighting for sighting in self.sightings if sighting.control == control]
            if seen:
                return min(seen, key=lambda sighting: _RANK[sighting.kind])
        return None

    def claims(self, control: str) -> tuple[Sighting, ...]:
        """Give what is said of a control, from words to deeds. A documented default is no claim about this service."""
        seen = (s for s in self.sightings if s.control == control and s.kind is not ProvenanceKind.DOCUMENTED)
        return tuple(sorted(seen, key=_from_words_to_deeds))

    def drift(self, controls: Iterable[str]) -> tuple[str, ...]:
        """Say where a declaration and what was seen disagree."""
        found = []
        for control in controls:
            seen = self.claims(control)
            if any(not agree(control, seen[0].value, other.value) for other in seen[1:]):
                found.append(f"{control}: {', '.join(one.said() for one in seen)}")
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class View:
    """One scope on one day, as the rules see it."""

    scope: str
    on: date
    fleet: Fleet
    knowledge: Knowledge
    services: tuple[ServiceView, ...]
    capabilities: tuple[tuple[Run, Capability], ...] = ()

    @property
    def local(self) -> bool:
        """Whether this is a machine outside the inventory, which speaks for itself only."""
        return self.scope != FLEET

    @property
    def gates(self) -> Gates:
        """How far a metric may move before it counts."""
        return self.fleet.policies.gates

    @property
    def text(self) -> tuple[ServiceView, ...]:
        """The services that generate text and whose settings are set here: those the matrix speaks of."""
        return tuple(s for s in self.services if s.kind is ServiceKind.TEXT_GENERATION and not s.on_host)

    def cards(self, service: ServiceView) -> tuple[str, ...]:
        """Name the inventory's devices that a service may run on: those left open, or all of its hosts."""
        devices = self.fleet.devices
        named = tuple(device for device in service.devices if device in devices)
        return named or tuple(name for name, device in devices.items() if device.host in service.hosts)

    def cards_known(self, service: ServiceView) -> tuple[Card, ...]:
        """Give what makers say of the cards that a service may run on; nothing while one of them is not known."""
        found = [self.knowledge.card(self.fleet.devices[name].title) for name in self.cards(service)]
        known = tuple(card for card in found if card is not None)
        return known if len(known) == len(found) else ()

    def runs_on(self, service: ServiceView, kinds: Collection[str]) -> bool:
        """Tell whether a service runs, or may run, on one of some kinds of device; none means any."""
        if not kinds or not service.devices:
            return True
        if self.cards(service):
            return "gpu" in kinds
        return any(device.lower().startswith(kind) for device in service.devices for kind in kinds)

    def controls(self, service: ServiceView, role: Role, technique: Technique | None = None) -> tuple[str, ...]:
        """Name the settings that play a role in a service's runtime."""
        return self.knowledge.settings_in(service.engine, role, technique)

    def setting(self, service: ServiceView, role: Role, technique: Technique | None = None) -> Sighting | None:
        """Give the best known setting that plays a role on a service."""
        return service.setting(*self.controls(service, role, technique))

    def is_off(self, service: ServiceView, sighting: Sighting) -> bool:
        """Tell whether a value switches its control off, or could not switch anything on."""
        return bool(sighting.without_effect) or self._off(service, sighting.control, sighting.value)

    def broken(self, service: ServiceView, technique: Technique) -> str:
        """Say why the last measurement of a technique may not be used, or nothing when there was none."""
        subject = self.knowledge.techniques[technique].subject
        invalid = [run for run in service.runs if run.subject == subject and not run.validity.valid]
        return ", ".join(invalid[-1].validity.reasons) if invalid else ""

    def bench(
        self, service: ServiceView, technique: Technique, candidate: Callable[[Arm], bool] = lambda _arm: True
    ) -> Bench | None:
        """Find the measurement that decides about a technique on a service.

        That is a contract run of the service with the technique off and on, which is asked as clients ask it, or the
        micro-benchmark of the technique with the first arm that is a `candidate`.
        """
        entry = self.knowledge.techniques[technique]
        found = [*self._contracts(service, technique)]
        if entry.subject:
            found += self._benches(service, entry.subject, entry.pays_in, candidate)
        return max(found, key=_weight, default=None)

    def measured(
        self, service: ServiceView, subject: str, pays_in: tuple[str, ...], candidate: Callable[[Arm], bool]
    ) -> Bench | None:
        """Find the measurement that says most about one candidate of a subject on a service.

        The newest valid one of the same release, but one that settles nothing, on a busy machine, with too few
        samples or with the short prompts of a quick run, never displaces one that did: noise moves no decision.
        """
        return max(self._benches(service, subject, pays_in, candidate), key=_weight, default=None)

    def _benches(
        self, service: ServiceView, subject: str, pays_in: tuple[str, ...], wanted: Callable[[Arm], bool]
    ) -> Iterator[Bench]:
        for run in service.runs:
            if run.subject != subject or not run.validity.valid or not of_its_release(run, service):
                continue
            baseline = next((arm for arm in run.arms if arm.role == "baseline"), None)
            candidate = next((arm for arm in run.arms if arm.role == "candidate" and wanted(arm)), None)
            if baseline and candidate and (bench := _bench(run, baseline, candidate, pays_in, self.gates)):
                yield bench

    def _contracts(self, service: ServiceView, technique: Technique) -> Iterator[Bench]:
        """Give the contract runs of a service whose sides differ in the technique being off and on, and in nothing else."""
        switches = {control for role in _SWITCHES for control in self.controls(service, role, technique)}
        pays_in = self.knowledge.techniques[technique].pays_in
        for run in service.runs:
            both = sides_of(run) if run.kind is RunKind.CONTRACT else None
            if both is None or not run.validity.valid or not of_its_release(run, service):
                continue
            alike = likeness(*both)
            changed = tuple(one.name for one in alike.under_test)
            if alike.why_not or not changed or not switches.issuperset(changed):
                continue
            if any(name not in side.settings for name in changed for side in both):
                continue  # what a side does not name is at its default, and of that nobody says whether it is off
            off = [all(self._off(service, name, side.settings[name]) for name in changed) for side in both]
            if off[0] is off[1]:
                continue
            # Whichever side was called the baseline: the verdict is about switching on.
            one, two = both if off[0] else both[::-1]
            judged = judge(one, two, self.gates, interleaved=True)
            deciding = next((row for name in pays_in for row in judged.rows.values() if row.metric == name), None)
            if one.arm and two.arm and deciding is not None:
                yield Bench(
                    run=run,
                    baseline=one.arm,
                    candidate=two.arm,
                    deciding=deciding,
                    vetoes=judged.vetoes,
                    sides=(_set_to(one, changed), _set_to(two, changed)),
                )

    def _off(self, service: ServiceView, name: str, value: Scalar) -> bool:
        control = self.knowledge.control(service.engine, name)
        off: tuple[Scalar, ...] = (False, 0, "", "off", "none", "false", "no", *(control.off if control else ()))
        return any(same_value(value, one) for one in off)


def same_release(one: str, other: str) -> bool:
    """Compare two release numbers, or as text where they are none."""
    known = known_version(one), known_version(other)
    return one == other if None in known else known[0] == known[1]


def of_its_release(run: Run, service: ServiceView) -> bool:
    """A measurement speaks for its own release only; a side that does not name one is not held against it."""
    version = None if isinstance(run.runtime, Missing) else run.runtime.version
    if service.version is None or version is None or isinstance(version, Missing):
        return True
    return same_release(version, service.version)


def shown(value: Scalar) -> str:
    """Write a setting as configuration files do."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def agree(control: str, one: Scalar, other: Scalar) -> bool:
    """Tell whether two sources say the same of a control, each in its own spelling."""
    if control == RELEASE:
        return same_release(str(one), str(other))
    return same_value(one, other) or (control == WEIGHTS and _precision(one) == _precision(other))


def _precision(value: Scalar) -> str:
    """Spell a precision in one way: llama.cpp writes 'Q4_K - Medium' where files and people write Q4_K_M."""
    text = re.sub(r"\s*-\s*(small|medium|large)$", lambda size: f"_{size.group(1)[0]}", str(value).strip(), flags=re.IGNORECASE)
    return text.casefold()


def _from_words_to_deeds(sighting: Sighting) -> tuple[int, bool, bool]:
    return -_RANK[sighting.kind], sighting.in_file, not sighting.default_of


def _bench(run: Run, baseline: Arm, candidate: Arm, pays_in: tuple[str, ...], gates: Gates) -> Bench | None:
    def compared(name: str) -> Comparison | None:
        one, two = run.metric(name, baseline.name), run.metric(name, candidate.name)
        return None if one is None and two is None else compare(one, two, gates)

    deciding = next((found for name in pays_in if (found := compared(name)) is not None), None)
    if deciding is None:
        return None
    doubts = (c for name in _VETOES if (c := compared(name)) is not None)
    return Bench(
        run=run,
        baseline=baseline,
        candidate=candidate,
        deciding=deciding,
        vetoes=tuple(one for one in doubts if one.verdict is Verdict.WORSE),
        sides=(baseline.name, candidate.name),
    )


def _set_to(side: Side, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {shown(side.settings[name])}" for name in names)


def _weight(bench: Bench) -> tuple[bool, bool, bool, bool, datetime, str]:
    """Rank what was measured: what settles more, then a contract run, then the newest."""
    return (*_settled(bench), bench.run.kind is RunKind.CONTRACT, bench.run.started_at, bench.run.id)


def _settled(bench: Bench) -> tuple[bool, bool, bool]:
    """Rank a comparison: whether it came to a verdict, had the samples for one, and had the load it was made for."""
    comparison = bench.deciding
    sides = (comparison.baseline, comparison.candidate)
    enough = all(side is not None and side.n >= MIN_SAMPLES for side in sides)
    return comparison.verdict in {Verdict.BETTER, Verdict.WORSE, Verdict.SAME}, enough, not bench.run.quick
