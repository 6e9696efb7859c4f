"""What a change of settings would do: the same rules, prices and planners on a service that runs with other values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from gen.assess import EMBEDDED, scopes, view
from gen.assessment import Assessment, Conflict
from gen.benchmarks import of_run
from gen.corpus import Corpus
from gen.drift import fleet_view
from gen.knowledge import Control, Role
from gen.knowledge.control import SetBy
from gen.knowledge.schema import ENGINE_TITLES, same_value
from gen.moves import Move, moves
from gen.planners import decode_roofline, kv_capacity, parallelism, speculation
from gen.planners.plan import Plan, Span, Worked
from gen.techniques import RULES
from gen.techniques.grounds import bench_told, prices
from gen.techniques.wording import listing, runtime_title, speaks_for
from gen.verdict import compare
from gen.view import LOCAL, Bench, ServiceView, Sighting, View, shown
from probes.errors import UsageError
from probes.evidence import Arm, ProvenanceKind, Run, Scalar, Technique

SOURCE = "what if"
_WHOLE, _NUMBER = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
_PLANNERS = (kv_capacity.plan, decode_roofline.plan, parallelism.plan, speculation.plan)
_SIZING = {Role.KV_PRECISION, Role.POOL, Role.SEQUENCES}
_DRAFTS = ("EAGLE-3", "EAGLE-3 tree", "draft model", "prompt lookup")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One setting as it would be. `before` is what is best known of it today; `unchecked` says what nobody can check."""

    control: str
    value: Scalar
    known: Control
    before: Sighting | None
    unchecked: str
    not_in_release: str

    @property
    def so_already(self) -> bool:
        """Tell whether it is known to run with this value."""
        return self.before is not None and same_value(self.before.value, self.value)


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """One result of a planner before and after; None where it cannot be worked out."""

    planner: str
    name: str
    before: Span | None
    after: Span | None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What one run showed of a control, and whether it speaks for this service or for another device or runtime."""

    run: str
    day: date
    speaks_for: str
    here: bool
    said: str


@dataclass(frozen=True, kw_only=True)
class Consequence:
    """Everything that is known of a change before anything is touched. `standing` is what bears on it and does not move."""

    scope: str
    service: ServiceView
    changes: tuple[Change, ...]
    moved: tuple[tuple[Technique, Move], ...]
    new_prices: tuple[Conflict, ...]
    gone_prices: tuple[Conflict, ...]
    standing_prices: tuple[Conflict, ...]
    shifted: tuple[Shifted, ...]
    standing: tuple[Worked, ...]
    unknown: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    before: tuple[Assessment, ...]
    after: tuple[Assessment, ...]
    measure: tuple[str, ...]
    apply: tuple[str, ...]
    roll_back: tuple[str, ...]


def whatif(corpus: Corpus, service: str, wanted: Mapping[str, str], on: date) -> Consequence:
    """Answer what would follow if a service ran with other settings; nothing is written.

    Raises:
        UsageError: the service, a control or a value is unknown.
    """
    seen = _view(corpus, service, on)
    asked = next(one for one in seen.services if one.name == service)
    changes = tuple(_change(seen, asked, control, text) for control, text in wanted.items())
    then = supposed(seen, service, changes)
    supposedly = next(one for one in then.services if one.name == service)
    before, after = (tuple(rule(one) for rule in RULES.values()) for one in (seen, then))
    old, new = _prices(seen, asked), _prices(then, supposedly)
    plans = [(plan(seen, asked), plan(then, supposedly)) for plan in _PLANNERS]
    shifted = tuple(_shifted(plans))
    return Consequence(
        scope=seen.scope,
        service=asked,
        changes=changes,
        moved=tuple((one.technique, move) for one, other in zip(before, after, strict=True) for move in moves(one, other)),
        new_prices=tuple(one for key, one in new.items() if key not in old),
        gone_prices=tuple(one for key, one in old.items() if key not in new),
        standing_prices=tuple(one for key, one in new.items() if key in old and key in _of_technique(seen, changes)),
        shifted=shifted,
        standing=tuple(_standing(changes, plans[-1][1], shifted)),
        unknown=tuple(_unknown(changes, plans[0][1], plans[-1][1])),
        evidence=tuple(_evidence(corpus, seen, asked, changes)),
        before=before,
        after=after,
        measure=_measure(corpus, asked, changes, local=seen.local),
        apply=tuple(_apply(asked, changes, local=seen.local)),
        roll_back=tuple(_roll_back(changes)),
    )


def supposed(seen: View, service: str, changes: Iterable[Change]) -> View:
    """See a scope as it would be: whatever is known of the changed controls gives way to the supposed values."""
    values = {change.control: change.value for change in changes}
    told = tuple(
        Sighting(control=control, value=value, kind=ProvenanceKind.DECLARED, date=seen.on, source=SOURCE)
        for control, value in values.items()
    )
    services = tuple(
        replace(one, sightings=tuple(s for s in one.sightings if s.control not in values) + told)
        if one.name == service
        else one
        for one in seen.services
    )
    return replace(seen, services=services)


def scalar(text: str) -> Scalar:
    """Read a value as configuration files do: true, false, a number, or a word."""
    if text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _view(corpus: Corpus, service: str, on: date) -> View:
    if service == EMBEDDED:
        machine = next((scope for scope in scopes(corpus) if scope.startswith(LOCAL)), None)
        if machine is None:
            raise UsageError(f"{EMBEDDED}: no machine has been measured yet; nox -s probe measures this one")
        return view(corpus, machine, on)
    if service not in corpus.fleet.services:
        known = [*corpus.fleet.services, EMBEDDED]
        raise UsageError(f"{service!r} is no service of fleet.yml; expected one of {', '.join(known)}{_meant(service, known)}")
    return fleet_view(corpus, on)


def _change(seen: View, service: ServiceView, control: str, text: str) -> Change:
    knowledge = seen.knowledge
    if service.engine is None:
        runtime = seen.fleet.services[service.name].runtime.value
        raise UsageError(f"{service.name}: its runtime is {runtime!r}, of which no control is known")
    known = knowledge.control(service.engine, control)
    if known is None:
        raise UsageError(_no_such_control(seen, service, control))
    value = scalar(text)
    if known.accepts is not None and (expected := known.accepts.refuses(value)):
        meant = _meant(text, [str(one) for one in known.accepts.one_of])
        raise UsageError(f"{control}: is {text!r}; expected {expected} ({ENGINE_TITLES[service.engine]}){meant}")
    since = "" if known.true_from is None or known.true_from.release is None else f" from {known.true_from.release} on"
    applies = service.version is None or knowledge.applies(known, service.engine, service.version, seen.on)
    return Change(
        control=control,
        value=value,
        known=known,
        before=service.setting(control),
        unchecked="" if known.accepts else (known.values or "no source says which values it takes"),
        not_in_release="" if applies else f"{runtime_title(service)} does not have it: it is known{since}",
    )


def _no_such_control(seen: View, service: ServiceView, control: str) -> str:
    engine = service.engine
    mine = [name for one in seen.knowledge.controls.get(engine, ()) for name in one.settings] if engine else []
    others = [
        ENGINE_TITLES[other]
        for other, controls in seen.knowledge.controls.items()
        if other is not engine and any(control in one.settings for one in controls)
    ]
    title = ENGINE_TITLES[engine] if engine else service.title
    elsewhere = f"; it is a control of {' and '.join(others)}" if others else ""
    known = f"expected one of {', '.join(dict.fromkeys(mine))}" if mine else "no control of it is known"
    return f"{control!r} is no control of {title}{elsewhere}; {known}{_meant(control, mine)}"


def _meant(text: str, known: Iterable[str]) -> str:
    lower = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(text.casefold(), lower, n=3)
    return f"; did you mean {' or '.join(lower[one] for one in close)}?" if close else ""


def _prices(seen: View, service: ServiceView) -> dict[str, Conflict]:
    """Find the prices that this service pays for what it has on.

    A price of a method, such as EAGLE-3, counts as soon as its release could do it: it is what a draft would cost.
    """
    return {one.id: one for technique in Technique for one in prices(seen, technique, [service])}


def _of_technique(seen: View, changes: Iterable[Change]) -> set[str]:
    """Name every price of the techniques that are touched."""
    touched = {change.known.technique for change in changes}
    return {one.id for one in seen.knowledge.conflicts if one.technique in touched}


def _drafts(changes: Iterable[Change]) -> bool:
    return any(change.known.role is Role.DRAFT for change in changes)


def _unknown(changes: Iterable[Change], capacity: Plan, drafting: Plan) -> Iterator[str]:
    """Say what a result about the KV cache or about a draft lacks, where a change bears on it."""
    gaps = capacity.gaps if any(change.known.role in _SIZING for change in changes) else ()
    gaps += drafting.gaps if _drafts(changes) else ()
    ways: dict[str, dict[str, None]] = {}
    for gap in gaps:
        ways.setdefault(gap.fill, {})[gap.name] = None
    yield from (f"{listing(names)}: {fill}" for fill, names in ways.items())


def _shifted(plans: Iterable[tuple[Plan, Plan]]) -> Iterator[Shifted]:
    told: set[str] = set()
    for before, after in plans:
        for name in dict.fromkeys(one.name for plan in (before, after) for one in plan.worked):
            old, new = before.result(name), after.result(name)
            if old != new and name not in told:
                told.add(name)
                yield Shifted(planner=before.planner.value, name=name, before=old, after=new)


def _standing(changes: Iterable[Change], drafting: Plan, shifted: Iterable[Shifted]) -> Iterator[Worked]:
    """Give what a draft rests on, but for what a change moves."""
    moving = {one.name for one in shifted}
    if _drafts(changes):
        yield from (one for one in drafting.worked if one.name not in moving)


def _evidence(corpus: Corpus, seen: View, service: ServiceView, changes: Iterable[Change]) -> Iterator[Evidence]:
    everything = {run.id: run for run in corpus.runs + corpus.local_runs}
    runs = sorted(everything.values(), key=lambda run: (run.started_at, run.id), reverse=True)
    own = {run.id for run in service.runs}
    for change in changes:
        for run in runs:
            if run.validity.valid and run.date <= seen.on:
                said = [*_tried(run, change), *_benched(seen, run, change)]
                yield from (
                    Evidence(run=run.id, day=run.date, speaks_for=speaks_for(run), here=run.id in own, said=one) for one in said
                )


def _tried(run: Run, change: Change) -> Iterator[str]:
    """Tell what came of asking a device for the value itself; of a draft, what came of drafting at all."""
    wanted = shown(change.value).casefold()
    for one in run.capabilities:
        names = one.name.split(" and ")
        asked = re.split(r"[ ,;(]", one.requested)[0].casefold()
        drafts = change.known.role is Role.DRAFT and one.name in _DRAFTS and one.requested.startswith("num_assistant_tokens=3")
        if drafts or (change.control in names and asked == wanted):
            detail = (one.effect or one.words).rstrip(". ")
            beside = f"; documented: {one.documented}" if one.documented else ""
            yield f"{one.name} {one.requested} was {one.state}{f': {detail}' if detail else ''}{beside}."


def _benched(seen: View, run: Run, change: Change) -> Iterator[str]:
    benchmark = of_run(run)
    baseline = next((arm for arm in run.arms if arm.role == "baseline"), None)
    if benchmark is None or baseline is None:
        return
    for arm in run.arms:
        touched = any(
            change.control in one.settings and same_value(one.settings[change.control], change.value) for one in (arm, baseline)
        )
        one, two = run.metric(benchmark.metric, baseline.name), run.metric(benchmark.metric, arm.name)
        if arm.role == "candidate" and touched and one is not None and two is not None and one.samples and two.samples:
            deciding = compare(one, two, seen.gates)
            sides = baseline.name, arm.name
            bench = Bench(run=run, baseline=baseline, candidate=arm, deciding=deciding, vetoes=(), sides=sides)
            yield f"{bench_told(bench)}{_other_way(change, baseline)}"


def _other_way(change: Change, baseline: Arm) -> str:
    return " The value asked about is that of the baseline." if change.control in baseline.settings and same_value(
        baseline.settings[change.control], change.value
    ) else ""  # fmt: skip


def _measure(corpus: Corpus, service: ServiceView, changes: Iterable[Change], *, local: bool) -> tuple[str, ...]:
    stand_in = _pairs(change for change in changes if change.control in corpus.fleet.embedded.settings)
    here = f"nox -s compare -- {EMBEDDED} {EMBEDDED}:{stand_in}"
    if local:
        return (here,) if stand_in else ("nox -s probe -- micro devices",)
    second = (
        f"start a second instance with {_pairs(changes)} beside it, then: nox -s compare -- {service.name} ADDRESS --allow-load"
    )
    return (second, *((f"as a stand-in on this machine, which speaks for itself only: {here}",) if stand_in else ()))


def _pairs(changes: Iterable[Change]) -> str:
    return ",".join(f"{change.control}={shown(change.value)}" for change in changes)


def _apply(service: ServiceView, changes: Iterable[Change], *, local: bool) -> Iterator[str]:
    for change in changes:
        yield f"{change.control}: {shown(change.value)} by {_ways(change.known)} ({change.known.name})"
        if not local:
            yield f"fleet.yml, services.{service.name}.settings: {change.control}: {{value: {shown(change.value)}, as_of: DAY}}"
        else:
            yield f"fleet.yml, embedded.settings: {change.control}: {shown(change.value)}"


def _roll_back(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        if change.before is None:
            # A default of several settings is told in one piece, and which part of it this one has is not known.
            own = change.known.default if len(change.known.settings) == 1 else ""
            default = f", which leaves it at its default ({own})" if own else ""
            yield f"take {change.control} out again{default}"
        else:
            before = change.before
            kind = "the default" if before.default_of else before.kind.value
            yield f"set {change.control} back to {shown(before.value)} ({kind}, {before.date})"


def _ways(known: Control) -> str:
    ways = [way.value for way in known.set_by if way not in {SetBy.INTERNAL, SetBy.READING}]
    return " or ".join(ways) or "no way that is known"
