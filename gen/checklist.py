"""The review of a service, pre-filled: a box is ticked only by a fact with its provenance and its day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date

from gen.assessment import Cell, Fact
from gen.comparability import likeness, sides_of
from gen.contract import CHANGES_A_SETTING, comparisons
from gen.knowledge import Knowledge, Role
from gen.knowledge.review import Check, Item
from gen.records import Record
from gen.spread import FEWEST_FOR_P95, percentile, quantity, spread
from gen.view import ServiceView, shown
from gen.words import State
from probes.evidence import Endpoint, EndpointState, Host, Metric, Missing, Per, ProvenanceKind, Run, Technique
from probes.fleet import Fleet, Service, ServiceKind, Unknown


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A service with everything that may speak for it. `runs` are its own, newest first; `records` those in force.

    `grounds` are the facts that a technique's row rests on beside those of its cells.
    """

    name: str
    kind: ServiceKind
    fleet: Fleet
    knowledge: Knowledge
    today: date
    entry: Service | None
    service: ServiceView | None
    cells: tuple[Cell, ...]
    grounds: Mapping[Technique, tuple[Fact, ...]]
    runs: tuple[Run, ...]
    asked: tuple[Run, Endpoint] | None
    records: tuple[Record, ...]

    @property
    def declared_on(self) -> date:
        """The day of the inventory's words on this service."""
        return self.entry.as_of if self.entry is not None and self.entry.as_of else self.fleet.as_of

    @property
    def usable(self) -> tuple[Run, ...]:
        """The runs that may be used."""
        return tuple(run for run in self.runs if run.validity.valid)


@dataclass(frozen=True, kw_only=True)
class Tick:
    """The fact that ticks a box: what it says, how and when it became known, and where it can be looked up."""

    text: str
    known: ProvenanceKind
    day: date
    run: str = ""
    record: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One box of a service. Without a tick `run` and `fill` say what would fill it."""

    item: Item
    tick: Tick | None
    run: str
    fill: str


def answers(subject: Subject) -> tuple[Answer, ...]:
    """Fill in the review of a service; what does not concern its kind, or only the inventory could answer, is not asked."""
    asked = [
        item
        for item in subject.knowledge.checklist
        if (not item.kinds or subject.kind in item.kinds) and (subject.entry is not None or item.check not in _OF_THE_INVENTORY)
    ]
    return tuple(
        Answer(item=item, tick=_TESTS[item.check](subject, item.of), run=_for(subject, item.run), fill=_for(subject, item.fill))
        for item in asked
    )


def _for(subject: Subject, words: str) -> str:
    return words.replace("{service}", subject.name)


def _model(subject: Subject, _of: str) -> Tick | None:
    for run in subject.usable:
        if not isinstance(run.model, Missing):
            return Tick(text=run.model.id, known=ProvenanceKind.OBSERVED, day=run.date, run=run.id)
    model = subject.entry.model if subject.entry is not None else None
    return None if model is None or isinstance(model.id, Unknown) else _declared(subject, model.id, "model.id")


def _parameters(subject: Subject, _of: str) -> Tick | None:
    model = subject.entry.model if subject.entry is not None else None
    if model is not None and not isinstance(model.parameters, Unknown):
        return _declared(subject, model.parameters, "model.parameters")
    return None


def _role(subject: Subject, of: str) -> Tick | None:
    if subject.service is None:
        return None
    found = subject.service.setting(*subject.knowledge.settings_in(subject.service.engine, Role(of)))
    if found is None:
        return None
    text = f"{found.control} is {shown(found.value)}" + (f", the default of {found.default_of}" if found.default_of else "")
    return Tick(text=text, known=found.kind, day=found.date, run=found.run, source=found.source)


def _device(subject: Subject, _of: str) -> Tick | None:
    for run in subject.usable:
        if not isinstance(run.device, Missing):
            return Tick(text=run.device.full_name, known=ProvenanceKind.OBSERVED, day=run.date, run=run.id)
    if subject.entry is None or isinstance(subject.entry.device, Unknown):
        return None
    return _declared(subject, subject.fleet.devices[subject.entry.device].title, "device")


def _server(subject: Subject, _of: str) -> Tick | None:
    for run in subject.usable:
        if isinstance(run.server, Host) and not isinstance(run.server.memory_bytes, Missing):
            memory = quantity(run.server.memory_bytes, "bytes")
            text = f"{run.server.alias}: {run.server.cpu}, {memory}"
            return Tick(text=text, known=ProvenanceKind.OBSERVED, day=run.date, run=run.id)
    return None


def _runtime(subject: Subject, _of: str) -> Tick | None:
    for run in subject.usable:
        if not isinstance(run.runtime, Missing) and not isinstance(run.runtime.version, Missing):
            text = f"{run.runtime.name} {run.runtime.version}"
            return Tick(text=text, known=ProvenanceKind.OBSERVED, day=run.date, run=run.id)
    if subject.entry is None or isinstance(subject.entry.runtime_version, Unknown):
        return None
    return _declared(subject, f"{subject.entry.runtime.value} {subject.entry.runtime_version}", "runtime_version")


def _metric(subject: Subject, of: str) -> Tick | None:
    for run in subject.usable:
        for metric in run.metrics:
            if metric.name in of.split() and metric.samples:
                return _measured(run, metric)
    return None


def _tail(subject: Subject, _of: str) -> Tick | None:
    """Find a p95 that its tool made of enough requests, or enough requests to make one of."""
    for run in subject.usable:
        enough = not isinstance(run.load, Missing) and run.load.requests >= FEWEST_FOR_P95
        for metric in run.metrics:
            if metric.name == "p95_latency_s" and metric.samples and enough:
                return _measured(run, metric)
            if metric.name == "latency_s" and metric.per is Per.REQUEST and len(metric.samples) >= FEWEST_FOR_P95:
                p95 = quantity(percentile(metric.samples, 0.95), metric.unit)
                text = f"p95 {p95} of {len(metric.samples)} requests"
                return Tick(text=text, known=ProvenanceKind.MEASURED, day=run.date, run=run.id)
    return None


def _concurrency(subject: Subject, _of: str) -> Tick | None:
    for run in subject.usable:
        if not isinstance(run.load, Missing) and run.load.concurrency > 1 and any(metric.samples for metric in run.metrics):
            text = f"{run.load.concurrency} at a time, {run.load.requests} requests"
            return Tick(text=text, known=ProvenanceKind.MEASURED, day=run.date, run=run.id)
    return None


def _technique(subject: Subject, of: str) -> Tick | None:
    cell = next((one for one in subject.cells if one.technique.value == of), None)
    if cell is None or cell.state in {State.UNKNOWN, State.NOT_REACHABLE} or cell.drift:
        return None
    facts = cell.facts or subject.grounds.get(cell.technique, ())
    if not facts:
        return None
    strongest = min(facts, key=lambda fact: list(ProvenanceKind).index(fact.provenance))
    text = f"{cell.state.value}, {cell.decision.value}: {cell.summary}"
    return Tick(text=text, known=strongest.provenance, day=strongest.date, source=strongest.ref.target)


def _compared(subject: Subject, of: str) -> Tick | None:
    """Find a comparison whose sides differ in a setting of the technique, or the fact that a rule made of one."""
    controls = subject.knowledge.settings_of(Technique(of))
    for run in subject.usable:
        both = sides_of(run)
        under_test = [str(one) for one in likeness(*both).under_test if one.name in controls] if both else []
        if under_test:
            return Tick(text="; ".join(under_test), known=ProvenanceKind.MEASURED, day=run.date, run=run.id)
    for fact in (fact for cell in subject.cells if cell.technique.value == of for fact in cell.facts):
        if "/measured/" in fact.id:
            return Tick(text=fact.text, known=fact.provenance, day=fact.date, source=fact.ref.target)
    return None


def _quality_compared(subject: Subject, of: str) -> Tick | None:
    """Find a comparison that scored the answers of both sides: a difference in speed says nothing about quality."""
    controls = subject.knowledge.settings_of(Technique(of))
    for run in subject.usable:
        both = sides_of(run)
        if both is None or not any(one.name in controls for one in likeness(*both).under_test):
            continue
        scores = [metric for side in both if (metric := side.metric("task_quality")) is not None and metric.samples]
        if len(scores) == len(both):
            text = " against ".join(quantity(spread(metric.samples, metric.per).median, metric.unit) for metric in scores)
            return Tick(text=f"task_quality {text}", known=ProvenanceKind.MEASURED, day=run.date, run=run.id)
    return None


def _generating(subject: Subject, _of: str) -> Tick | None:
    own = next(((run, run.endpoint) for run in subject.runs if run.endpoint is not None), None)
    newest = max((pair for pair in (own, subject.asked) if pair), key=lambda pair: pair[0].started_at, default=None)
    if newest is None or newest[1].state is not EndpointState.GENERATING:
        return None
    return Tick(text=newest[1].state.value, known=ProvenanceKind.OBSERVED, day=newest[0].date, run=newest[0].id)


def _no_errors(subject: Subject, _of: str) -> Tick | None:
    for run in subject.usable:
        found = [metric for metric in run.metrics if metric.name == "error_rate" and metric.samples]
        if found:
            clean = all(max(metric.samples) == 0 for metric in found)
            return Tick(text="no error", known=ProvenanceKind.MEASURED, day=run.date, run=run.id) if clean else None
    return None


def _admission(subject: Subject, _of: str) -> Tick | None:
    names = subject.entry.clients if subject.entry is not None else ()
    caps = {name: subject.fleet.clients[name].admission_caps for name in names}
    if not caps or not all(caps.values()):
        return None
    text = "; ".join(f"{subject.fleet.clients[name].title}: {', '.join(some)}" for name, some in caps.items())
    return _operations(subject, text, "clients")


def _headroom(subject: Subject, _of: str) -> Tick | None:
    ours = subject.entry is not None and subject.fleet.operations.reliability_headroom
    return _operations(subject, "reliability headroom on purpose", "operations.reliability_headroom") if ours else None


def _rollback(subject: Subject, _of: str) -> Tick | None:
    changing = [record for record in subject.records if record.decision in CHANGES_A_SETTING]
    silent = [record for record in changing if "## How to roll back" not in record.body]
    if not subject.records or silent:
        return None
    newest = max(subject.records, key=lambda record: (record.date, record.name))
    text = f"{len(changing)} of {len(subject.records)} records change a setting, and each has the section"
    return Tick(text=text, known=ProvenanceKind.DECLARED, day=newest.date, record=newest.name)


def _alert(subject: Subject, of: str) -> Tick | None:
    ours = subject.entry is not None and of in subject.fleet.operations.alerts
    return _operations(subject, f"alert on the {of}", "operations.alerts") if ours else None


def _metrics_page(subject: Subject, _of: str) -> Tick | None:
    for run in subject.usable:
        scraped = run.native.get("metrics_before")
        if isinstance(scraped, dict) and scraped.get("state") == "read" and scraped.get("samples"):
            return Tick(text="its metrics were read", known=ProvenanceKind.OBSERVED, day=run.date, run=run.id)
    return None


def _no_drift(subject: Subject, _of: str) -> Tick | None:
    """Nothing that was seen speaks against a declaration; where nothing was seen there is nothing to agree with."""
    if subject.service is None:
        return None
    controls = {one.control for one in subject.service.sightings}
    held = [c for c in controls if len({one.kind for one in subject.service.claims(c)}) > 1]
    if not held or subject.service.drift(controls):
        return None
    newest = max(
        (one for one in subject.service.sightings if one.run and one.control in held), key=lambda one: one.date, default=None
    )
    if newest is None:
        return None
    return Tick(text=f"{len(held)} settings agree", known=newest.kind, day=newest.date, run=newest.run)


def _fresh(subject: Subject, _of: str) -> Tick | None:
    limit = subject.fleet.policies.freshness.evidence_days
    measured = [run for run in subject.usable if any(metric.samples for metric in run.metrics)]
    if not measured or (subject.today - measured[0].date).days > limit:
        return None
    return Tick(text=f"measured within {limit} days", known=ProvenanceKind.MEASURED, day=measured[0].date, run=measured[0].id)


def _no_incident(subject: Subject, _of: str) -> Tick | None:
    """An incident of a card it may run on leaves the box empty: only people know what keeps it from coming back."""
    if subject.entry is None or isinstance(subject.entry.device, Unknown):
        return None
    own = [one for one in subject.fleet.operations.incidents if subject.entry.device in one.devices]
    return None if own else _operations(subject, f"no incident on {subject.entry.device}", "operations.incidents")


def _compared_changes(subject: Subject, _of: str) -> Tick | None:
    changing = [record for record in subject.records if record.decision in CHANGES_A_SETTING]
    if not subject.records or not all(comparisons(record.contract) for record in changing):
        return None
    newest = max(subject.records, key=lambda record: (record.date, record.name))
    text = f"{len(changing)} of {len(subject.records)} records in force change a setting, each with a comparison"
    return Tick(text=text, known=ProvenanceKind.DECLARED, day=newest.date, record=newest.name)


def _decided(subject: Subject, _of: str) -> Tick | None:
    missing = {*Technique} - {record.technique for record in subject.records}
    if missing:
        return None
    newest = max(subject.records, key=lambda record: (record.date, record.name))
    return Tick(text="seven records in force", known=ProvenanceKind.DECLARED, day=newest.date, record=newest.name)


def _review_date(subject: Subject, _of: str) -> Tick | None:
    first = min(subject.records, key=lambda record: (record.review_by, record.name), default=None)
    if first is None or first.review_by < subject.today:
        return None
    return Tick(text=f"by {first.review_by}", known=ProvenanceKind.DECLARED, day=first.date, record=first.name)


def _signed(subject: Subject, _of: str) -> Tick | None:
    moves = [(move, record) for record in subject.records for move in record.history]
    if not moves or {record.name for _, record in moves} != {record.name for record in subject.records}:
        return None
    move, record = max(moves, key=lambda pair: (pair[0].on, pair[1].name))
    people = ", ".join(dict.fromkeys(move.by for move, _ in moves))
    return Tick(text=f"accepted by {people}", known=ProvenanceKind.DECLARED, day=move.on, record=record.name)


def _declared(subject: Subject, text: str, field: str) -> Tick:
    source = f"fleet.yml, services.{subject.name}.{field}"
    return Tick(text=text, known=ProvenanceKind.DECLARED, day=subject.declared_on, source=source)


def _operations(subject: Subject, text: str, field: str) -> Tick:
    return Tick(text=text, known=ProvenanceKind.DECLARED, day=subject.fleet.as_of, source=f"fleet.yml, {field}")


def _measured(run: Run, metric: Metric) -> Tick:
    one = spread(metric.samples, metric.per)
    arm = f", {metric.arm}" if metric.arm else ""
    text = f"{metric.name} {quantity(one.median, metric.unit)} (n = {one.n}{arm})"
    return Tick(text=text, known=ProvenanceKind.MEASURED, day=run.date, run=run.id)


# A machine outside the inventory has no clients, alerts or incidents that anybody could have written down.
_OF_THE_INVENTORY = frozenset({Check.PARAMETERS, Check.ADMISSION, Check.HEADROOM, Check.ALERT, Check.NO_INCIDENT})
_TESTS: Mapping[Check, Callable[[Subject, str], Tick | None]] = {
    Check.MODEL: _model,
    Check.PARAMETERS: _parameters,
    Check.ROLE: _role,
    Check.DEVICE: _device,
    Check.SERVER: _server,
    Check.RUNTIME: _runtime,
    Check.METRIC: _metric,
    Check.TAIL: _tail,
    Check.CONCURRENCY: _concurrency,
    Check.TECHNIQUE: _technique,
    Check.COMPARED: _compared,
    Check.QUALITY_COMPARED: _quality_compared,
    Check.GENERATING: _generating,
    Check.NO_ERRORS: _no_errors,
    Check.ADMISSION: _admission,
    Check.HEADROOM: _headroom,
    Check.ROLLBACK: _rollback,
    Check.ALERT: _alert,
    Check.METRICS_PAGE: _metrics_page,
    Check.NO_DRIFT: _no_drift,
    Check.FRESH: _fresh,
    Check.NO_INCIDENT: _no_incident,
    Check.COMPARED_CHANGES: _compared_changes,
    Check.DECIDED: _decided,
    Check.REVIEW_DATE: _review_date,
    Check.SIGNED: _signed,
}
