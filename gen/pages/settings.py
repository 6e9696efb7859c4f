"""The settings of a service, by every way in which each is known, and where those ways disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gen.assess import engine_of, sightings_of
from gen.knowledge import Engine, Role
from gen.markdown import NOTHING, Markdown, code, line, link, paragraphs, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.marks import age_limit, dated, not_measured, scalar, unverified
from gen.tables import Layout, columns, table
from gen.techniques.wording import listing
from gen.view import FLEET, RELEASE, Sighting, agree
from probes.evidence import ProvenanceKind, Run, RunKind

_SEEN = (ProvenanceKind.MEASURED, ProvenanceKind.OBSERVED)
_ABOUT = "Declared: in the inventory. In files: in the configuration files that it names for this service."
_WAYS: Mapping[str, Callable[[Sighting], bool]] = {
    "Declared": lambda one: one.kind is ProvenanceKind.DECLARED and not one.in_file,
    "In files": lambda one: one.in_file,
    "Observed": lambda one: one.kind in _SEEN,
    "Inferred": lambda one: one.kind is ProvenanceKind.INFERRED,
}
_NOT_SO = {
    "Declared": span(text("not declared"), "absent"),
    "In files": span(text("in no file"), "absent"),
    "Observed": not_measured(),
    "Inferred": not_measured(),
}


def settings(atlas: Atlas, spot: Spot, runs: tuple[Run, ...], here: str) -> Markdown:
    """Show each control by every way it is known, with the day and the place of each."""
    service = atlas.service_view(spot)
    found = service.sightings if service else _told(runs)
    engine = service.engine if service else next((engine_of(run, atlas.corpus.fleet) for run in runs if run.settings), None)
    found = tuple(one for one in found if one.kind is not ProvenanceKind.DOCUMENTED)
    names = dict.fromkeys(one.control for one in found)
    declared = {one.control for one in found if one.kind is ProvenanceKind.DECLARED and not one.default_of}
    if not names:
        return text("None is declared, and no run has seen one.")
    shown = {title: way for title, way in _WAYS.items() if any(map(way, found))}
    body = []
    for control in sorted(names, key=lambda control: (control not in declared, control)):
        own = [one for one in found if one.control == control]
        told = [_column(atlas, spot, list(filter(way, own)), here) or _NOT_SO[title] for title, way in shown.items()]
        agreement = [_agreement(control, own)] if len(shown) > 1 else []
        body.append((_name(atlas, spot, engine, control), *told, *agreement))
    head = columns("Control", *shown, *(["Drift"] if len(shown) > 1 else []))
    left = [title.lower() for title in _WAYS if title not in shown]
    said = f" Nothing of it is {', '.join(left[:-1])}{' or ' * (len(left) > 1)}{left[-1]}." if left else ""
    return paragraphs(span(text(f"{_ABOUT}{said}"), "note"), table(head, body, Layout.CARDS, "settings", facets=()))


def drift_line(atlas: Atlas, spot: Spot) -> Markdown:
    """Name the settings of a service on which the sources disagree, or say what there is to compare."""
    if found := _drifting(atlas, spot):
        told = "differs between its sources" if len(found) == 1 else "differ between their sources"
        return span(line(link(text(listing(found)), "#settings"), text(told)), "drift")
    service = atlas.service_view(spot)
    ways = {title for title, way in _WAYS.items() if service and any(map(way, service.sightings))}
    if len(ways) > 1:
        return span(text("none: the sources agree wherever two of them tell"), "ok")
    return span(text("nothing to compare: its settings are known in one way at most"), "note")


def _name(atlas: Atlas, spot: Spot, engine: Engine | None, control: str) -> Markdown:
    """Name a setting, and say so where the knowledge has no such control or had none for a release so new."""
    known = atlas.corpus.knowledge
    found = known.control(engine, control)
    unknown = engine in known.controls and control != RELEASE and found is None
    doubt = unverified(atlas.unverified(found.id, scope=spot.scope, service=spot.name)) if found else NOTHING
    return line(code(control), span(text("unknown control"), "absent") if unknown else NOTHING, doubt)


def _told(runs: tuple[Run, ...]) -> tuple[Sighting, ...]:
    """Give what the newest run of a service says that no scope assesses."""
    run = next((run for run in runs if run.kind is RunKind.ENDPOINT and run.validity.valid), None)
    return () if run is None else sightings_of(run)


def _column(atlas: Atlas, spot: Spot, found: Sequence[Sighting], here: str) -> Markdown:
    return line(*(_sighting(atlas, spot, one, here) for one in found), by="<br>") if found else NOTHING


def _sighting(atlas: Atlas, spot: Spot, one: Sighting, here: str) -> Markdown:
    limit = age_limit(one.kind, atlas.corpus.fleet.policies.freshness)
    when = [dated(one.date, atlas.today, limit)]
    if one.in_file:
        when += [code(one.source), atlas.run(here, one.run, text("run"))]
    else:
        when.append(atlas.run(here, one.run, text("run")) if one.run else text(one.source))
    asides = [f"default of {one.default_of}"] if one.default_of else []
    asides += [f"set, not effective: {one.without_effect}"] if one.without_effect and not one.default_of else []
    asides += ["no fixed size"] if _free(atlas, spot, one) else []
    value = line(scalar(one.value), *([span(text("; ".join(asides)), "detail")] if asides else []))
    return line(value, span(line(*when), "note"), by="<br>")


def _free(atlas: Atlas, spot: Spot, one: Sighting) -> bool:
    """Tell a pool of 0, which is dynamic, from one of no bytes."""
    service = atlas.service_view(spot)
    control = atlas.corpus.knowledge.control(service.engine, one.control) if service else None
    return control is not None and control.role is Role.POOL and one.value == 0


def _agreement(control: str, found: Sequence[Sighting]) -> Markdown:
    if len(found) < 2:
        return span(text("nothing to compare"), "note")
    if all(agree(control, found[0].value, other.value) for other in found[1:]):
        return span(text("agrees"), "ok")
    return span(text("drift"), "drift")


def _drifting(atlas: Atlas, spot: Spot) -> tuple[str, ...]:
    if spot.scope == FLEET:
        return tuple(one.control for one in atlas.drifts if one.service == spot.name)
    service = atlas.service_view(spot)
    controls = dict.fromkeys(one.control for one in service.sightings) if service else ()
    return tuple(control for control in controls if service and service.drift((control,)))
