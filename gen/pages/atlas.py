"""What every page looks things up in: assessments, records in force, and the address of each thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TypeVar

from gen import paths
from gen.assess import assess, scopes, view
from gen.assessment import Assessment, Cell, Fact, Ref, RefKind
from gen.check import check
from gen.claims import Answer, answers
from gen.corpus import Corpus
from gen.drift import Drift, drifts, fleet_view
from gen.findings import Finding
from gen.history import History, history, same
from gen.knowledge import Claim, Engine
from gen.markdown import Markdown, code, external, line, link, span, text
from gen.pages import citations
from gen.past import Day, days
from gen.planners import PLANS
from gen.planners.plan import Plan
from gen.recheck import Unverified, running, unverified
from gen.records import Record
from gen.view import FLEET, LOCAL, ServiceView, View
from gen.words import Status
from probes.evidence import Endpoint, FleetScope, LocalScope, Missing, Run, RunKind, Technique, slug

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One device or service as one scope knows it."""

    scope: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Atlas:
    """The corpus on one day, with everything that several kinds of page need worked out once."""

    corpus: Corpus
    today: date

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run, newest first."""
        every = self.corpus.runs + self.corpus.local_runs
        return tuple(sorted(every, key=lambda run: (run.started_at, run.id), reverse=True))

    @cached_property
    def by_id(self) -> Mapping[str, Run]:
        """Every run by its id."""
        return {run.id: run for run in self.runs}

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Every record, newest first."""
        return tuple(sorted(self.corpus.record_by_name.values(), key=lambda record: (record.date, record.name), reverse=True))

    @cached_property
    def _records_by_row(self) -> Mapping[tuple[Technique | None, str], tuple[Record, ...]]:
        found: dict[tuple[Technique | None, str], list[Record]] = {}
        for record in reversed(self.records):
            found.setdefault((record.technique, record.scope), []).append(record)
        return {row: tuple(some) for row, some in found.items()}

    def records_of(self, technique: Technique, scope: str) -> tuple[Record, ...]:
        """Give the records of one row of a matrix, oldest first."""
        return self._records_by_row.get((technique, scope), ())

    @cached_property
    def past(self) -> Mapping[date, Day]:
        """The days on which the matrix changed, oldest first."""
        return {day.on: day for day in days(self.records, self.today)}

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """The fleet, then each measured machine, the one measured last first."""
        return scopes(self.corpus)

    @cached_property
    def assessments(self) -> Mapping[str, tuple[Assessment, ...]]:
        """The matrix of every scope as of today, computed from the facts."""
        return {scope: assess(self.corpus, scope, self.today) for scope in self.scopes}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks of inventory, evidence and records found as of today."""
        return check(self.corpus, self.today)

    @cached_property
    def drifts(self) -> tuple[Drift, ...]:
        """Where declared, observed and inferred differ, by all runs of this checkout."""
        return drifts(self.corpus, self.today)

    @cached_property
    def fleet(self) -> View:
        """The inventory's services as all runs of this checkout show them."""
        return fleet_view(self.corpus, self.today)

    @cached_property
    def everything_unverified(self) -> tuple[Unverified, ...]:
        """What is known of the runtimes that run, and was not checked for the releases that do."""
        return unverified(self.corpus.knowledge, running(self.corpus, self.today), self.today)

    @cached_property
    def _unverified(self) -> Mapping[str, tuple[Unverified, ...]]:
        found: dict[str, tuple[Unverified, ...]] = {}
        for one in self.everything_unverified:
            found[one.id] = (*found.get(one.id, ()), one)
        return found

    def unverified(
        self, id: str, *, scope: str | None = None, service: str | None = None, engine: Engine | None = None
    ) -> tuple[Unverified, ...]:
        """Give the services, of those named or of all, whose release a piece of knowledge was not checked for."""
        return tuple(
            one
            for one in self._unverified.get(id, ())
            if scope in {None, one.by.scope} and service in {None, one.by.service} and engine in {None, one.by.engine}
        )

    @cached_property
    def _views(self) -> Mapping[str, View]:
        return {scope: view(self.corpus, scope, self.today) for scope in self.scopes if scope != FLEET}

    def view(self, scope: str) -> View:
        """Give a scope as the runs of this checkout show it."""
        return self.fleet if scope == FLEET else self._views[scope]

    @cached_property
    def plans(self) -> Mapping[Spot, tuple[Plan, ...]]:
        """What every planner makes of each text service of each scope, in the planners' order."""
        return {
            Spot(scope=scope, name=service.name): tuple(plan(self.view(scope), service) for plan in PLANS.values())
            for scope in self.scopes
            for service in self.view(scope).text
        }

    @cached_property
    def claims(self) -> tuple[tuple[Claim, tuple[Answer, ...]], ...]:
        """Each claim of an article with what every run of this checkout says of it."""
        gates = self.corpus.fleet.policies.gates
        return tuple((claim, answers(claim, self.runs, gates)) for claim in self.corpus.knowledge.claims)

    def service_view(self, spot: Spot) -> ServiceView | None:
        """Give a service as its scope's evidence shows it; None for one that no scope assesses."""
        seen = self.fleet if spot.scope == FLEET else self._views.get(spot.scope)
        return next((one for one in seen.services if one.name == spot.name), None) if seen else None

    def cells(self, spot: Spot) -> tuple[tuple[Assessment, Cell], ...]:
        """Give what the assessments of a scope say about one service, in matrix order."""
        if spot.scope not in self.assessments:
            return ()
        return tuple((one, cell) for one in self.assessments[spot.scope] for cell in one.cells if cell.service == spot.name)

    @cached_property
    def services(self) -> tuple[Spot, ...]:
        """The inventory's services in its order, then what was measured on each local machine."""
        local = {(self.scope_of(run), run.subject) for run in self.runs if run.kind is RunKind.ENDPOINT}
        local |= {(scope, cell.service) for scope, rows in self.assessments.items() for one in rows for cell in one.cells}
        found = sorted(pair for pair in local if pair[0].startswith(LOCAL))
        declared = [Spot(scope=FLEET, name=name) for name in self.corpus.fleet.services]
        return (*declared, *(Spot(scope=scope, name=name) for scope, name in found))

    @cached_property
    def devices(self) -> tuple[Spot, ...]:
        """The inventory's devices in its order, then what each local machine's runtimes listed."""
        local = {(f"{LOCAL}{run.scope.fingerprint}", run.device.name) for run in self.runs
                 if isinstance(run.scope, LocalScope) and not isinstance(run.device, Missing)}  # fmt: skip
        declared = [Spot(scope=FLEET, name=name) for name in self.corpus.fleet.devices]
        return (*declared, *(Spot(scope=scope, name=name) for scope, name in sorted(local)))

    @cached_property
    def service_paths(self) -> Mapping[Spot, str]:
        return _places("services", self.services)

    @cached_property
    def device_paths(self) -> Mapping[Spot, str]:
        return _places("devices", self.devices)

    @cached_property
    def machine_paths(self) -> Mapping[str, str]:
        """Address the page of every local scope, the machine measured last first."""
        found = [f"{LOCAL}{fingerprint}" for fingerprint in self.corpus.fingerprints()]
        files = paths.names(found)
        return {scope: f"machines/{files[scope]}.md" for scope in found}

    @cached_property
    def run_paths(self) -> Mapping[str, str]:
        """Address the page of every run that has one; the name does not hang on which others have."""
        every = paths.names(run.id for run in self.runs)
        return {run_id: f"runs/{every[run_id]}.md" for run_id in every if run_id in self._worth_a_page}

    @cached_property
    def run_files(self) -> Mapping[str, str]:
        """Address the file of every run: its name in the repository, where that is safe for a site."""
        return {run.id: paths.evidence_file(run.id) for run in self.runs}

    @cached_property
    def _last(self) -> tuple[Run, ...]:
        return tuple(citations.newest(self.runs, self._scopes))

    @cached_property
    def current_runs(self) -> frozenset[str]:
        """What stands today rests on these runs, or they are the last of their kind."""
        standing = (record for record in self.records if record.status in {Status.ACCEPTED, Status.PROPOSED})
        return frozenset(
            {
                *citations.of_records(standing),
                *citations.of_assessments(one for some in self.assessments.values() for one in some),
                *(name for scope in self.scopes for name in citations.of_view(self.view(scope))),
                *citations.of_answers(one for _, some in self.claims for one in some),
                *citations.of_plans(one for some in self.plans.values() for one in some),
                *(run.id for run in self._last),
            }
        )

    @cached_property
    def _worth_a_page(self) -> frozenset[str]:
        compared = (found.before.id for run in self._last if (found := self.history(run)) is not None)
        return self.current_runs | {*citations.of_records(self.records), *compared}

    @cached_property
    def record_paths(self) -> Mapping[str, str]:
        return {name: f"records/{file}.md" for name, file in paths.names(record.name for record in self.records).items()}

    def scope_title(self, scope: str) -> Markdown:
        """Name a scope: the fleet by its name, a machine by its own and marked as local."""
        if scope == FLEET:
            return text(self.corpus.fleet.name)
        return line(text(self.client_alias(scope)), span(text("local"), "badge"))

    def scope_of(self, run: Run) -> str:
        """Name the scope that a run speaks for."""
        return FLEET if isinstance(run.scope, FleetScope) else f"{LOCAL}{run.scope.fingerprint}"

    @cached_property
    def _scopes(self) -> Mapping[str, str]:
        return {run.id: self.scope_of(run) for run in self.runs}

    @cached_property
    def _by_scope(self) -> Mapping[str, tuple[Run, ...]]:
        return _grouped((self._scopes[run.id], run) for run in self.runs)

    @cached_property
    def _by_service(self) -> Mapping[Spot, tuple[Run, ...]]:
        return _grouped((self._service_of(run), run) for run in self.runs if run.kind is not RunKind.SURVEY)

    @cached_property
    def _by_device(self) -> Mapping[Spot, tuple[Run, ...]]:
        return _grouped(
            (Spot(scope=self._scopes[run.id], name=run.device.name), run)
            for run in self.runs
            if not isinstance(run.device, Missing)
        )

    def runs_in(self, scope: str) -> tuple[Run, ...]:
        """Give the runs that speak for one scope, newest first."""
        return self._by_scope.get(scope, ())

    def runs_of(self, spot: Spot) -> tuple[Run, ...]:
        """Give the runs against one service, newest first."""
        return self._by_service.get(spot, ())

    def runs_on(self, spot: Spot) -> tuple[Run, ...]:
        """Give the runs on one device of a local machine, newest first."""
        return self._by_device.get(spot, ())

    @cached_property
    def proving_runs(self) -> tuple[Run, ...]:
        """The valid runs that asked a device or an engine for something, newest first."""
        return tuple(run for run in self.runs if run.capabilities and run.validity.valid)

    @cached_property
    def _asked(self) -> Mapping[str, tuple[Run, Endpoint]]:
        return {name: (run, endpoint) for run in reversed(self.runs) for name, endpoint in run.survey.items()}

    def asked(self, service: str) -> tuple[Run, Endpoint] | None:
        """Find what a service of the inventory did when it was last asked."""
        return self._asked.get(service)

    @cached_property
    def _alike(self) -> Mapping[Hashable, tuple[Run, ...]]:
        return _grouped((same(run), run) for run in self.runs if run.validity.valid)

    def alike(self, run: Run) -> tuple[Run, ...]:
        """Give the valid runs that measured what a run did, newest first; itself among them if it is valid."""
        return self._alike.get(same(run), ())

    def history(self, run: Run) -> History | None:
        """Hold a run against the one before it that measured the same thing."""
        return history(run, self.alike(run), self.corpus.fleet.policies.gates)

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {self._scopes[run.id]: run.client.alias for run in reversed(self.runs)}

    def client_alias(self, scope: str) -> str:
        """Name the machine of a local scope as it last named itself."""
        return self._aliases.get(scope, scope)

    def run(self, here: str, run_id: str, label: Markdown | None = None) -> Markdown:
        """Link to a run's page, or to its file where it has none, or name one that is not in this checkout."""
        path = self.run_paths.get(run_id) or self.run_files.get(run_id)
        return link(label or text(run_id), paths.relative(path, here), "run") if path else code(run_id)

    def service(self, here: str, spot: Spot) -> Markdown:
        """Link to a service's page by its title."""
        entry = self.corpus.fleet.services.get(spot.name) if spot.scope == FLEET else None
        label = text(entry.title if entry else spot.name)
        path = self.service_paths.get(spot)
        return link(label, paths.relative(path, here)) if path else label

    def device(self, here: str, spot: Spot) -> Markdown:
        """Link to a device's page by its title."""
        entry = self.corpus.fleet.devices.get(spot.name) if spot.scope == FLEET else None
        label = text(entry.title if entry else spot.name)
        path = self.device_paths.get(spot)
        return link(label, paths.relative(path, here)) if path else label

    def record(self, here: str, record: Record, label: Markdown | None = None) -> Markdown:
        """Link to a record by its title."""
        return link(label or text(record.title), paths.relative(self.record_paths[record.name], here))

    def source(self, here: str, source: str) -> Markdown:
        """Link to a source by its id; an address that the knowledge base does not list stays an outward link."""
        if source in self.corpus.knowledge.sources:
            return link(text(source), paths.relative(f"sources.md#{slug(source)}", here))
        return external(text(source), source)

    def ref(self, here: str, ref: Ref) -> Markdown:
        """Link to where a fact can be looked up."""
        if ref.kind is RefKind.RUN:
            return self.run(here, ref.target, text("the run"))
        if ref.kind is RefKind.SOURCE:
            return self.source(here, ref.target)
        if ref.kind is RefKind.SETTING:
            service, _, control = ref.target.partition("/")
            path = self.service_paths.get(Spot(scope=FLEET, name=service))
            return link(text(control or service), paths.relative(f"{path}#settings", here)) if path else code(ref.target)
        return self._fleet_ref(here, ref.target)

    def looked_at(self, fact: Fact) -> date:
        """Tell when a fact was last looked at: a documented one when its source was, any other when it became known."""
        source = self.corpus.knowledge.sources.get(fact.ref.target) if fact.ref.kind is RefKind.SOURCE else None
        return source.checked if source else fact.date

    def _service_of(self, run: Run) -> Spot:
        name = run.scope.service if isinstance(run.scope, FleetScope) else run.subject
        return Spot(scope=self.scope_of(run), name=name)

    def _fleet_ref(self, here: str, target: str) -> Markdown:
        section, _, rest = target.partition(".")
        name = rest.split(".")[0]
        place = {
            "services": self.service_paths.get(Spot(scope=FLEET, name=name)),
            "devices": self.device_paths.get(Spot(scope=FLEET, name=name)),
        }.get(section)
        return link(text(target), paths.relative(place or "fleet.md", here))


def scope_anchor(scope: str) -> str:
    """Name the place of a scope on a page that speaks of several."""
    return slug(scope)


def _grouped(pairs: Iterable[tuple[K, Run]]) -> dict[K, tuple[Run, ...]]:
    """Put the runs of one key together, in the order in which they come."""
    found: dict[K, list[Run]] = defaultdict(list)
    for key, run in pairs:
        found[key].append(run)
    return {key: tuple(some) for key, some in found.items()}


def _places(folder: str, spots: Iterable[Spot]) -> dict[Spot, str]:
    """Give each spot a page: its name in the fleet, machine and name elsewhere."""
    written = {spot: spot.name if spot.scope == FLEET else f"{spot.scope} {spot.name}" for spot in spots}
    files = paths.names(written.values())
    return {spot: f"{folder}/{files[value]}.md" for spot, value in written.items()}
