"""Speculative decoding: benchmark on one service first, and mind what the draft takes from others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gen.assessment import Assessment, Cell, Fact
from gen.knowledge import Release, Role
from gen.knowledge.schema import ENGINE_TITLES, Example, KnownFact, Method, Silent, Supports
from gen.techniques.cells import by_verdict, cells, drifting, most_urgent, nothing_here, of_text, services_of, together
from gen.techniques.drafting import acceptance_told, price_facts, told
from gen.techniques.grounds import (
    bench_fact,
    capability_facts,
    evidence,
    fleet_fact,
    known_fact,
    prices,
    release_fact,
    setting_facts,
)
from gen.techniques.measured import told_facts
from gen.techniques.wording import capital, family, listing, runtime_title, titles
from gen.versions import known_version
from gen.view import ServiceView, View
from gen.words import Decision, State, Verdict
from probes.evidence import ProvenanceKind, Technique
from probes.fleet import CoTenant

TECHNIQUE = Technique.SPECULATIVE_DECODING
_RESOURCES = {"vram": "VRAM", "memory": "memory", "compute": "compute"}
_DECIDED = {Verdict.BETTER, Verdict.WORSE, Verdict.SAME}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Where a benchmark would start, with what, and what newer release would change about it.

    `silent` is what the documents of the release that runs no longer say.
    """

    service: ServiceView
    cards: tuple[str, ...]
    supported: tuple[Supports, ...]
    example: Example | None
    newer: Release | None
    ahead: tuple[KnownFact, ...]
    silent: tuple[Silent, ...]
    tenants: tuple[CoTenant, ...]

    @property
    def method(self) -> Method | None:
        """The method that the vendor shows, else the last one supported as more than a preview."""
        if self.example is not None:
            return self.example.method
        return next((fact.method for fact in reversed(self.supported) if not fact.preview), None)


def assess(view: View) -> Assessment:
    """Benchmark one supported service first; the measured gain, and nobody's VRAM, decides."""
    trial = _trial(view)
    row = cells(view, TECHNIQUE, _controls, lambda view, service: _decide(view, service, trial))
    ours = of_text(view, row)
    if not ours:
        return nothing_here(view, TECHNIQUE, row)
    decision = most_urgent(ours)
    prices_here, shown_here, told_here = price_facts(view), capability_facts(view, TECHNIQUE), told_facts(view, TECHNIQUE)
    facts = _facts(view, trial)
    return Assessment(
        technique=TECHNIQUE,
        scope=view.scope,
        on=view.on,
        state=together(ours),
        state_text=_state_text(view, trial),
        decision=decision,
        decision_text=_decision_text(view, ours, decision, trial),
        why=(
            *_choice(view, trial),
            *(fact.text for fact in facts),
            *told(view),
            *(fact.text for fact in prices_here),
            *acceptance_told(view),
            *(fact.text for fact in told_here),
            *_measured(ours),
        ),
        next_step=_next_step(view, ours, decision, trial),
        would_change=_would_change(view, trial),
        facts=(*facts, *prices_here, *shown_here, *told_here),
        conflicts=prices(view, TECHNIQUE, view.text, trial.newer if trial else None),
        evidence=evidence((*(fact for cell in row for fact in cell.facts), *prices_here, *shown_here, *told_here)),
        cells=row,
    )


def _controls(view: View, service: ServiceView) -> tuple[str, ...]:
    return view.controls(service, Role.DRAFT)


def _drafting(view: View, service: ServiceView) -> bool:
    seen = (service.setting(control) for control in _controls(view, service))
    return any(sighting is not None and not view.is_off(service, sighting) for sighting in seen)


def _decide(view: View, service: ServiceView, trial: Trial | None) -> Cell:
    bench, on = view.bench(service, TECHNIQUE), _drafting(view, service)
    supported = view.knowledge.facts_for(Supports, service.engine, service.version, view.on, TECHNIQUE)
    known = bool(supported or view.knowledge.controls_of(service.engine, TECHNIQUE))
    state = State.ENABLED if on else State.DISABLED if known else State.UNKNOWN
    if bench is not None and bench.verdict in _DECIDED:
        decision, summary = by_verdict(bench.verdict, on=on), f"Measured against plain decoding: {bench.verdict}."
        if bench.verdict is Verdict.SAME:
            decision = Decision.INVESTIGATE if on else Decision.DO_NOT_DEPLOY
    elif on:
        decision, summary = Decision.BENCHMARK_FIRST, "A draft is set, and no measurement shows that it pays."
    elif trial is not None and service is trial.service:
        decision, summary = Decision.BENCHMARK_FIRST, "Not deployed; the benchmark starts here."
    elif trial is not None:
        decision, summary = Decision.NO_CHANGE, f"Not deployed; the benchmark starts on {trial.service.title}."
    else:
        decision, summary = Decision.NO_CHANGE, "Not deployed; no supported method is known for its runtime and release."
    facts = setting_facts(view, service, _controls(view, service))
    return Cell(
        technique=TECHNIQUE,
        service=service.name,
        applicability=service.bearing(TECHNIQUE).applicability,
        state=state,
        decision=decision,
        summary=summary,
        facts=facts + (() if bench is None else (bench_fact(service, TECHNIQUE, bench),)),
    )


def _trial(view: View) -> Trial | None:
    """Choose where to benchmark, among supported services: where a draft is set already, else where least speaks against it.

    That is a model as large as the vendor's example, on a card without incidents.
    """
    trials = [trial for service in view.text if (trial := _candidate(view, service)).supported]
    hurt = _hurt(view)

    def fitness(trial: Trial) -> tuple[bool, bool, bool, bool]:
        as_shown = trial.example is not None and trial.example.parameters == trial.service.parameters
        return (
            _drafting(view, trial.service),
            as_shown,
            bool(trial.cards) and not hurt & set(trial.cards),
            bool(trial.service.devices),
        )

    return max(trials, key=fitness, default=None)


def _hurt(view: View) -> set[str]:
    return {device for incident in view.fleet.operations.incidents for device in incident.devices}


def _candidate(view: View, service: ServiceView) -> Trial:
    knowledge, engine, version = view.knowledge, service.engine, service.version
    newest = knowledge.newest_release(engine, view.on)
    mine, latest = known_version(version), known_version(newest.version if newest else None)
    newer = newest if mine is not None and latest is not None and latest > mine else None
    here: tuple[KnownFact, ...] = knowledge.facts_for(KnownFact, engine, version, view.on, TECHNIQUE)
    there: tuple[KnownFact, ...] = ()
    if newer is not None:
        there = knowledge.facts_for(KnownFact, engine, newer.version, view.on, TECHNIQUE)
    return Trial(
        service=service,
        cards=tuple(device for device in service.devices if device in view.fleet.devices),
        supported=tuple(fact for fact in here if isinstance(fact, Supports)),
        example=next((fact for fact in here if isinstance(fact, Example)), None),
        newer=newer if set(there) - set(here) else None,
        ahead=tuple(fact for fact in there if fact not in here),
        silent=tuple(fact for fact in here if isinstance(fact, Silent)),
        tenants=_tenants(view, service),
    )


def _tenants(view: View, service: ServiceView) -> tuple[CoTenant, ...]:
    """Find who shares, or may share, the memory of the cards that a service may run on."""
    cards = set(view.cards(service))
    shared = [pair for pair in view.fleet.co_tenants if pair.resource in {"vram", "memory"} and not view.local]
    return tuple(pair for pair in shared if cards & _cards_of(pair))


def _cards_of(pair: CoTenant) -> set[str]:
    return {pair.device} if isinstance(pair.device, str) else set(pair.device.among)


def _facts(view: View, trial: Trial | None) -> tuple[Fact, ...]:
    if trial is None or trial.service.engine is None:
        return ()
    engine = trial.service.engine
    shown = [fact for fact in trial.supported if fact.method is trial.method]
    previews = [fact for fact in trial.supported if fact.preview and fact not in shown]
    known = [*shown, *((trial.example,) if trial.example else ()), *trial.silent, *previews, *trial.ahead]
    facts = [known_fact(view, engine, fact) for fact in known]
    if trial.newer is not None:
        facts.append(release_fact(trial.newer))
    for pair in trial.tenants:
        tenant = view.fleet.services[pair.tenant].title
        shares = "shares" if isinstance(pair.device, str) and trial.cards == (pair.device,) else "may share"
        text = f"{tenant} {shares} the card of {trial.service.title}: its {_RESOURCES[pair.resource]} is a limit."
        facts.append(fleet_fact(view, f"co_tenants.{pair.tenant}", pair.resource, text))
    if (tracker := view.fleet.trackers.get(TECHNIQUE)) and not view.local:
        facts.append(fleet_fact(view, f"trackers.{TECHNIQUE}", tracker, f"The benchmark is tracked in {tracker}."))
    return tuple(facts)


def _choice(view: View, trial: Trial | None) -> tuple[str, ...]:
    """Say why the benchmark starts where it does, and on what its outcome depends."""
    about = view.knowledge.techniques[TECHNIQUE].about
    if trial is None or len(view.text) == 1:
        return (about,)
    reasons = []
    if trial.example is not None and trial.example.parameters == trial.service.parameters:
        reasons.append(f"has the size of the vendor's example ({trial.example.parameters})")
    if trial.cards and not _hurt(view) & set(trial.cards):
        reasons.append("runs on a card without a declared incident")
    return (*((f"{trial.service.title} {listing(reasons)}.",) if reasons else ()), about)


def _measured(row: tuple[Cell, ...]) -> tuple[str, ...]:
    return tuple(fact.text for cell in row for fact in cell.facts if fact.provenance is ProvenanceKind.MEASURED)


def _state_text(view: View, trial: Trial | None) -> str:
    on = [service for service in view.text if _drafting(view, service)]
    told = f"Drafts are set on {titles(on)}." if on else "Not deployed."
    if trial is None:
        return f"{told} No supported method is known."
    methods = listing(dict.fromkeys(fact.method.value for fact in trial.supported))
    return f"{told} Methods of {runtime_title(trial.service)}: {methods}."


def _place(view: View, trial: Trial) -> str:
    """Name the card when its family is known, else the service."""
    card = family(view, trial.cards)
    return f"the {card} ({trial.service.title})" if card else trial.service.title


def _rejected_if(view: View, trial: Trial) -> str:
    """Say what ends the matter: harm to a co-tenant, or a gain inside the gate."""
    tenants = [view.fleet.services[pair.tenant].title for pair in trial.tenants]
    taken = listing(dict.fromkeys(_RESOURCES[pair.resource] for pair in trial.tenants))
    harm = f"the draft's {taken} harms coexistence with {listing(tenants)} or " if tenants else ""
    return f"reject it if {harm}the gain is negligible (below {view.gates.throughput_percent:g} %)"


def _decision_text(view: View, row: tuple[Cell, ...], decision: Decision, trial: Trial | None) -> str:
    named = titles(services_of(view, row, decision))
    if decision is Decision.INVESTIGATE:
        return drifting(view, row) or f"Find out why the draft on {named} does not pay."
    if decision is Decision.BENCHMARK_FIRST and trial is not None:
        tracker = view.fleet.trackers.get(TECHNIQUE)
        tracked = f" (tracked in {tracker})" if tracker and not view.local else ""
        return f"Benchmark on {_place(view, trial)} first{tracked}; {_rejected_if(view, trial)}."
    if decision is Decision.ENABLE and trial is not None:
        return f"Enable it on {named}, where it was measured to pay; {_rejected_if(view, trial)} there."
    if decision is Decision.DO_NOT_DEPLOY:
        return f"Do not deploy on {named}: measured, it does not pay."
    if decision is Decision.NO_CHANGE:
        return "No change: no method is known to work here."
    return f"{capital(decision.value)} on {named}."


def _next_step(view: View, row: tuple[Cell, ...], decision: Decision, trial: Trial | None) -> str:
    if decision is Decision.INVESTIGATE:
        return "Compare the drafts that are declared with what is seen, and measure acceptance."
    if trial is None:
        return "Look again when a release of the runtime supports a method."
    if decision is Decision.ENABLE:
        named = titles(services_of(view, row, decision))
        return f"Set the draft on {named} with its rollback at hand, and watch the whole measurement contract."
    if decision is not Decision.BENCHMARK_FIRST:
        return "None while the measurement stands."
    if trial.newer is not None:
        return _after_update(trial, trial.newer)
    previews = [fact.method for fact in trial.supported if fact.preview]
    methods = dict.fromkeys([*((trial.method,) if trial.method else ()), *previews])
    benchmark = f"{_benchmark(trial, methods)}{_handicap(view, trial)}."
    return f"{test} Then {benchmark}" if (test := _test_first(trial.silent)) else capital(benchmark)


def _benchmark(trial: Trial, methods: Iterable[Method]) -> str:
    named = listing(method.value for method in methods)
    return f"benchmark {named} on {trial.service.title}, baseline against candidate over the whole measurement contract"


def _handicap(view: View, trial: Trial) -> str:
    """Say under which restrictions a benchmark can run at all in this release."""
    conflicts = view.knowledge.conflicts_for(trial.service.engine, trial.service.version, view.on, TECHNIQUE)
    against = dict.fromkeys(c.against for c in conflicts if c.against and c.method is trial.method)
    words = {Technique.PREFIX_CACHING: "without prefix caching", Technique.CONTINUOUS_BATCHING: "one request at a time"}
    limits = [words.get(technique, f"without {technique}") for technique in against]
    return f", {listing(limits)}, which is all that {runtime_title(trial.service)} documents" if limits else ""


def _after_update(trial: Trial, newer: Release) -> str:
    """Say what a newer release changes about the benchmark, and from which of its facts."""
    engine = ENGINE_TITLES[newer.engine]
    supports = [fact for fact in trial.ahead if isinstance(fact, Supports)]
    news = [f"{fact.method} {fact.form}".strip() + (" (preview)" if fact.preview else "") for fact in supports]
    silent = [fact for fact in trial.ahead if isinstance(fact, Silent)]
    methods = dict.fromkeys([*((trial.method,) if trial.method else ()), *(fact.method for fact in supports)])
    release = f"{engine} {newer.version} ({newer.published.isoformat()})"
    first = f"Try {release} for {trial.service.title} beside {trial.service.version}"
    brings = f": it brings {listing(news)}" if news else ""
    test = f" {told}" if (told := _test_first([*trial.silent, *silent])) else ""
    return f"{first}{brings}.{test} Then {_benchmark(trial, methods)}."


def _test_first(silent: Sequence[Silent]) -> str:
    """Ask for a trial of what the documents no longer limit and do not allow either; '' where they are plain."""
    methods = listing(dict.fromkeys(fact.method.value for fact in silent)) if silent else ""
    return (
        f"Test first whether {methods} works with prefix caching and concurrent requests, which its guide no longer says."
        if methods
        else ""
    )


def _would_change(view: View, trial: Trial | None) -> tuple[str, ...]:
    changes = ["A measured gain in decode speed beyond the gate, without errors and with unchanged answers."]
    if price_facts(view):
        changes.append("A head for the model that reaches the tokens per step that were measured to pay.")
    if trial is None or trial.service.engine is None:
        return tuple(changes)
    changes += [f"Measured VRAM that leaves no room for {view.fleet.services[p.tenant].title}." for p in trial.tenants]
    return (*changes, f"A release of {ENGINE_TITLES[trial.service.engine]} that lifts or states the limits.")
