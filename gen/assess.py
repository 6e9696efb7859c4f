"""From the corpus to assessments: gather what belongs to a scope, then let the seven rules speak."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from gen.assessment import Assessment
from gen.corpus import Corpus
from gen.coverage import Bearing, bearing, bearing_on_kind, bearing_on_model
from gen.knowledge import Engine
from gen.knowledge.schema import ENGINES
from gen.modelkind import KnownKind, known_kind
from gen.techniques import RULES
from gen.view import FLEET, LOCAL, RELEASE, WEIGHTS, ServiceView, Sighting, View
from probes.errors import UsageError
from probes.evidence import Capability, CapabilityState, FleetScope, Missing, ProvenanceKind, Run, RunKind, Technique, newest
from probes.fleet import Fleet, Service, ServiceKind, Unknown

EMBEDDED = "embedded"


def scopes(corpus: Corpus) -> tuple[str, ...]:
    """Name every scope: the fleet, then each measured machine, the one measured last first."""
    return (FLEET, *(f"{LOCAL}{fingerprint}" for fingerprint in corpus.fingerprints()))


def assess(corpus: Corpus, scope: str, on: date) -> tuple[Assessment, ...]:
    """Assess the seven techniques in a scope as of a day, in the order of the matrix.

    Raises:
        UsageError: there is no such scope.
    """
    seen = view(corpus, scope, on)
    return tuple(rule(seen) for rule in RULES.values())


def view(corpus: Corpus, scope: str, on: date) -> View:
    """Gather what the rules may look at: nothing of another scope, and nothing that was found later.

    Raises:
        UsageError: there is no such scope.
    """
    if scope == FLEET:
        return _fleet(corpus, on)
    if scope not in scopes(corpus):
        raise UsageError(f"scope {scope!r} is not one of {', '.join(scopes(corpus))}")
    return _local(corpus, scope, on)


def _fleet(corpus: Corpus, on: date) -> View:
    return View(
        scope=FLEET,
        on=on,
        fleet=corpus.fleet,
        knowledge=corpus.knowledge,
        services=tuple(
            _declared(corpus, name, tuple(run for run in corpus.service_runs(name) if run.date <= on))
            for name in corpus.fleet.services
        ),
    )


def _declared(corpus: Corpus, name: str, runs: tuple[Run, ...]) -> ServiceView:
    fleet, entry = corpus.fleet, corpus.fleet.services[name]
    declared = tuple(
        Sighting(control=control, value=d.value, kind=ProvenanceKind.DECLARED, date=d.as_of, source=d.source or fleet.source)
        for control, d in fleet.declared(name).items()
    )
    files = _files(entry, runs)
    # A file is nearer to what runs than what people remember of it, and they nearer than a default.
    declared = tuple(one for one in files if not one.default_of) + declared + tuple(one for one in files if one.default_of)
    endpoint = newest(runs, RunKind.ENDPOINT, name)
    version = _text(entry.runtime_version)
    if version is not None:
        day = entry.as_of or fleet.as_of
        declared += (Sighting(control=RELEASE, value=version, kind=ProvenanceKind.DECLARED, date=day, source=fleet.source),)
    seen = _seen(runs)
    observed = next((str(sighting.value) for sighting in seen if sighting.control == RELEASE), None)
    known = known_kind(entry.kind, runs, lambda source: _in_config(entry, source))
    return ServiceView(
        name=name,
        title=entry.title,
        kind=known.service(corpus.knowledge),
        known=known,
        engine=ENGINES.get(entry.runtime),
        version=observed or version,
        hosts=_open(entry.host),
        devices=_open(entry.device),
        model=None if entry.model is None else _text(entry.model.id),
        parameters=None if entry.model is None else _text(entry.model.parameters),
        on_host=entry.settings_live_on_host,
        clients=tuple((client, fleet.clients[client]) for client in entry.clients),
        sightings=declared + seen,
        endpoint=endpoint.endpoint if endpoint else None,
        runs=runs,
        bearings=tuple((technique, bearing(entry, technique, corpus.knowledge, known)) for technique in Technique),
    )


def _files(entry: Service, runs: Iterable[Run]) -> tuple[Sighting, ...]:
    """Give what the files say that the inventory names today, as they were read last."""
    read = [run for run in runs if run.kind is RunKind.DECLARED and run.validity.valid] if entry.config else []
    run = max(read, key=lambda run: (run.started_at, run.id), default=None)
    if run is None:
        return ()
    return tuple(
        Sighting(
            control=setting.control,
            value=setting.value,
            kind=setting.provenance.kind,
            date=min(setting.provenance.date, run.date),
            source=setting.provenance.source,
            run=run.id,
            default_of=setting.default_of,
            without_effect=setting.without_effect,
        )
        for setting in run.settings
        if setting.provenance.kind is ProvenanceKind.DECLARED and _in_config(entry, setting.provenance.source)
    )


def _in_config(entry: Service, source: str) -> bool:
    """Tell whether a place is in a file that the inventory names today."""
    return any(_lies_in(source, one if isinstance(one, str) else one.path) for one in entry.config)


def _lies_in(source: str, path: str) -> bool:
    """Tell whether a place is in a file, or in a folder or beside a file that leads to it."""
    folder = path.rstrip("/")
    return source == folder or source.startswith((f"{folder}:", f"{folder}/"))


def _local(corpus: Corpus, scope: str, on: date) -> View:
    runs = tuple(run for run in corpus.scope_runs(scope.removeprefix(LOCAL)) if run.date <= on and not _of_another(run))
    return View(
        scope=scope,
        on=on,
        fleet=corpus.fleet,
        knowledge=corpus.knowledge,
        services=(_embedded(corpus, runs),),
        capabilities=_capabilities(runs),
    )


def _of_another(run: Run) -> bool:
    """Tell a load on some other server of this machine, or another model, which says nothing about the embedded one."""
    return run.kind is RunKind.WORKLOAD or (
        run.kind in {RunKind.LOAD, RunKind.CONTRACT} and not run.subject.startswith(EMBEDDED)
    )


def _embedded(corpus: Corpus, runs: tuple[Run, ...]) -> ServiceView:
    """See the embedded service as this machine ran it; the inventory declares only its settings."""
    fleet = corpus.fleet
    known = known_kind(ServiceKind.TEXT_GENERATION, [run for run in runs if run.subject == EMBEDDED], lambda _: False)
    kind = known.service(corpus.knowledge)
    declared = tuple(
        Sighting(control=control, value=value, kind=ProvenanceKind.DECLARED, date=fleet.as_of, source=fleet.source)
        for control, value in fleet.embedded.settings.items()
    )
    endpoint = newest(runs, RunKind.ENDPOINT, EMBEDDED)
    valid = [run for run in runs if run.validity.valid]
    versions = [run.runtime.version for run in valid if not isinstance(run.runtime, Missing)]
    devices = [run.device.name for run in valid if not isinstance(run.device, Missing) and run.kind is not RunKind.DEVICES]
    models = [run.model.id for run in valid if not isinstance(run.model, Missing)]
    bearings = tuple((technique, _by_kind(corpus, known, technique)) for technique in Technique)
    return ServiceView(
        name=EMBEDDED,
        title=fleet.embedded.title,
        kind=kind,
        known=known,
        engine=Engine.OPENVINO_GENAI,
        version=next((version for version in reversed(versions) if isinstance(version, str)), None),
        hosts=(runs[-1].client.alias,) if runs else (),
        devices=tuple(devices[-1:]),
        model=models[-1] if models else None,
        parameters=None,
        on_host=False,
        clients=(),
        sightings=declared + _seen(runs) + _weights(runs),
        endpoint=endpoint.endpoint if endpoint else None,
        runs=runs,
        bearings=bearings,
    )


def _by_kind(corpus: Corpus, known: KnownKind, technique: Technique) -> Bearing:
    if known.model is None:
        return bearing_on_kind(known.word, technique, corpus.knowledge)
    return bearing_on_model(known.model, technique, corpus.knowledge)


def _seen(runs: Iterable[Run]) -> tuple[Sighting, ...]:
    """Read what the newest runs that reached the service saw: its settings, and its release.

    A runtime may tell one and not the other: OVMS gives its version and no setting.
    """
    reached = sorted(
        (run for run in runs if run.kind is RunKind.ENDPOINT and run.validity.valid),
        key=lambda run: (run.started_at, run.id),
        reverse=True,
    )
    settings = next((_settings_of(run) for run in reached if run.settings), ())
    return (*settings, *next((found for run in reached if (found := _release_of(run))), ()))


def engine_of(run: Run, fleet: Fleet) -> Engine | None:
    """Tell whose settings a run shows: of what answered, else of what the inventory says runs there."""
    names = {name.value: engine for name, engine in ENGINES.items()}
    if not isinstance(run.runtime, Missing):
        return names.get(run.runtime.name)
    entry = fleet.services.get(run.subject) if isinstance(run.scope, FleetScope) else None
    return None if entry is None else names.get(entry.runtime.value)


def sightings_of(run: Run) -> tuple[Sighting, ...]:
    """Give what one run saw of the service it asked; what it was told to expect is no sighting."""
    return _settings_of(run) + _release_of(run)


def _settings_of(run: Run) -> tuple[Sighting, ...]:
    return tuple(
        Sighting(
            control=setting.control,
            value=setting.value,
            kind=setting.provenance.kind,
            date=setting.provenance.date,
            source=setting.provenance.source,
            run=run.id,
        )
        for setting in run.settings
        if setting.provenance.kind is not ProvenanceKind.DECLARED
    )


def _release_of(run: Run) -> tuple[Sighting, ...]:
    if isinstance(run.runtime, Missing) or not isinstance(run.runtime.version, str):
        return ()
    return (_observed(RELEASE, run.runtime.version, run),)


def _weights(runs: tuple[Run, ...]) -> tuple[Sighting, ...]:
    """Read the weight precision off the model that was loaded last, unless a setting tells it already."""
    if any(sighting.control == WEIGHTS for sighting in _seen(runs)):
        return ()
    for run in reversed(runs):
        if run.validity.valid and not isinstance(run.model, Missing) and isinstance(run.model.quantization, str):
            return (_observed(WEIGHTS, run.model.quantization, run),)
    return ()


def _observed(control: str, value: str, run: Run) -> Sighting:
    kind = ProvenanceKind.OBSERVED
    return Sighting(control=control, value=value, kind=kind, date=run.date, source=run.id, run=run.id)


def _capabilities(runs: Iterable[Run]) -> tuple[tuple[Run, Capability], ...]:
    """Collect what each device proved to do, the last answer to each request; a quick run asks fewer of them.

    An answer of another release than the last run's is history, and a request that was skipped has none.
    """
    proven = [run for run in runs if run.kind is RunKind.DEVICES and run.validity.valid]
    found: dict[tuple[str, str, str], tuple[Run, Capability]] = {}
    for run in proven:
        if run.runtime == proven[-1].runtime:
            answered = (one for one in run.capabilities if one.state is not CapabilityState.SKIPPED)
            found |= {(run.subject, one.name, one.requested): (run, one) for one in answered}
    return tuple(found[key] for key in sorted(found))


def _open(value: str | Unknown) -> tuple[str, ...]:
    """Give the answers that are left open: one when it is known, none when nothing is said."""
    return (value,) if isinstance(value, str) else value.among


def _text(value: str | Unknown | Missing) -> str | None:
    return value if isinstance(value, str) else None
