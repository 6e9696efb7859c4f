"""Every fact of the users' fleet, changed one by one: which cells move, and that no other does.

The whole list is kept in golden/mutations.txt; refresh it after a wanted change: pytest tests/gen/test_mutations.py
--refresh-golden
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gen.assess import assess
from gen.assessment import Assessment, Cell
from probes.evidence import Technique
from probes.fleet import Fleet, RuntimeName, ServiceKind, dangling
from tests.gen.ledger import JULY, inventory, knowledge, ledger

GOLDEN = Path(__file__).parent / "golden" / "mutations.txt"
ROW = "row"
Data = Any
Place = tuple[str | int, ...]
# What a reference to something of the inventory is changed to: another of the same kind.
OTHERS: dict[str, tuple[str, ...]] = {
    "kind": tuple(ServiceKind),
    "runtime": (RuntimeName.OVMS, RuntimeName.VLLM),
    "vendor": ("intel", "nvidia"),
    "host": ("cluster", "office-workstation"),
    "device": ("b60", "b580-1"),
    "resource": ("vram", "compute"),
    "technique": tuple(Technique),
    "policy": ("demand", "none"),
    "scope": ("gpu", "service"),
    "KV_CACHE_PRECISION": ("u8", "f16"),
    "weight_precision": ("INT4", "FP16"),
    "runtime_version": ("2026.2", "2026.4.1"),
    "url": ("http://127.0.0.1:8000",),
    "api_key": ("${ANOTHER_KEY}",),
}
# Words for people, addresses, limits of probing and ages: they say something, and decide nothing.
DECIDES_NOTHING = {
    *("title", "name", "role", "note", "source", "url", "api_key", "questions", "what", "cause", "schema"),
    *("workloads", "trackers", "freshness", "embedded"),
}


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One fact changed. Moves are rows and cells with another state or decision, or only with other words."""

    place: Place
    change: str
    decided: frozenset[tuple[Technique, str]]
    reworded: frozenset[tuple[Technique, str]]

    def __str__(self) -> str:
        moved = [f"{technique}: {', '.join(self._of(technique))}" for technique in Technique if self._of(technique)]
        return f"{'.'.join(map(str, self.place))}: {self.change} | {'; '.join(moved) or 'nothing'}"

    def _of(self, technique: Technique) -> list[str]:
        decided = sorted(name.upper() for one, name in self.decided if one is technique)
        return decided + sorted(name for one, name in self.reworded if one is technique)


@cache
def mutations() -> tuple[Mutation, ...]:
    """Change each fact once; a change that the inventory's schema refuses is none."""
    data = inventory().model_dump(mode="json", by_alias=True)
    # A date would move with every other fact; what it moves is tested where dates are.
    before = rows(inventory())
    found = []
    for place, value, other in changes(data, ()):
        if (fleet := changed(data, place, other)) is not None:
            after = rows(fleet)
            decided = frozenset(moved(before, after, deciding))
            reworded = frozenset(moved(before, after, told)) - decided
            found.append(Mutation(place=place, change=f"{shown(value)} -> {shown(other)}", decided=decided, reworded=reworded))
    return tuple(found)


def rows(fleet: Fleet) -> tuple[Assessment, ...]:
    return assess(ledger(fleet=fleet), "fleet", JULY)


def moved(before: tuple[Assessment, ...], after: tuple[Assessment, ...], look: Any) -> Iterator[tuple[Technique, str]]:
    for old, new in zip(before, after, strict=True):
        if look(old) != look(new):
            yield new.technique, ROW
        cells = {cell.service: look(cell) for cell in old.cells}
        mine = {cell.service: look(cell) for cell in new.cells}
        yield from ((new.technique, name) for name in cells | mine if cells.get(name) != mine.get(name))


def deciding(one: Assessment | Cell) -> object:
    applies = one.applicability if isinstance(one, Cell) else None
    return one.state, one.decision, applies


def told(one: Assessment | Cell) -> object:
    if isinstance(one, Cell):
        return one.summary, one.drift
    return one.state_text, one.decision_text, one.why, one.next_step, one.would_change, [c.id for c in one.conflicts]


def changes(data: Data, place: Place) -> Iterator[tuple[Place, Data, Data]]:
    """Give each fact below a place with another value for it; None takes an entry away."""
    name = str(place[-1]) if place else ""
    if isinstance(data, dict) and set(data) != {"unknown", "among"}:
        for key, value in data.items():
            yield from changes(value, (*place, key))
        if place[:1] in (("hosts",), ("devices",), ("services",), ("clients",)) and len(place) == 2:
            yield place, name, None
        return
    if isinstance(data, list):
        for number, value in enumerate(data):
            yield (*place, number), value, None
            yield from (one for one in changes(value, (*place, number)) if isinstance(value, dict))
        return
    yield from ((place, data, other) for other in another(name, data))


def another(name: str, value: Data) -> Iterator[Data]:
    if name in {"as_of", "schema"}:
        return
    if name in OTHERS:
        yield from [one for one in OTHERS[name] if one != value][:1]
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value * 2 or 1
    elif isinstance(value, str):
        yield f"{value} (other)"
    elif isinstance(value, dict):
        yield "some-model"


def changed(data: Data, place: Place, other: Data) -> Fleet | None:
    """Apply one change; None where the inventory would refuse it."""
    try:
        fleet = Fleet.model_validate_json(json.dumps(apply(data, place, other)))
    except ValidationError:
        return None
    return None if next(dangling(fleet), None) else fleet


def apply(data: Data, place: Place, other: Data) -> Data:
    made = copy.deepcopy(data)
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    if other is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = other
    return made


def shown(value: Data) -> str:
    if value is None:
        return "gone"
    if isinstance(value, dict):
        return "unknown" if "unknown" in value else str(next(iter(value.values()), ""))
    return str(value)


def test_what_every_fact_moves_is_what_is_written_down(request: pytest.FixtureRequest) -> None:
    lines = "".join(f"{one}\n" for one in mutations())
    if request.config.getoption("--refresh-golden"):
        GOLDEN.write_text(lines, encoding="utf-8", newline="\n")
    assert lines == GOLDEN.read_text(encoding="utf-8"), "a wanted change is taken over with --refresh-golden"


def test_every_kind_of_fact_is_changed() -> None:
    places = {one.place[0] for one in mutations()}
    assert places >= {"hosts", "devices", "services", "clients", "co_tenants", "operations", "policies", "trackers"}
    assert len(mutations()) > 200


def test_a_setting_moves_its_own_service_and_the_technique_it_belongs_to() -> None:
    controls = {c: control.technique for those in knowledge().controls.values() for control in those for c in control.settings}
    settings = [one for one in mutations() if one.place[0] == "services" and "settings" in one.place]
    assert settings
    for one in settings:
        service, control = str(one.place[1]), str(one.place[-1])
        cells = {(technique, name) for technique, name in one.decided | one.reworded if name != ROW}
        assert {name for _, name in cells} <= {service}, str(one)
        own = controls.get(control)
        assert own is None or all(technique in {own, Technique.KV_CACHE} for technique, _ in cells), str(one)


def test_a_service_moves_its_own_cells_and_no_other_decision() -> None:
    """But for where a benchmark of drafts starts: that is one service, and when it falls out another takes its place."""
    for one in mutations():
        if one.place[0] == "services":
            others = {technique for technique, name in one.decided if name not in {ROW, one.place[1]}}
            assert others <= ({Technique.SPECULATIVE_DECODING} if one.place[1] == "text-8b-b580" else set()), str(one)


def test_words_addresses_and_ages_decide_nothing() -> None:
    idle = [one for one in mutations() if DECIDES_NOTHING & set(map(str, one.place))]
    assert idle
    assert not [str(one) for one in idle if one.decided]


def test_two_facts_together_move_the_cells_that_each_moves_alone() -> None:
    """Of two services; what both say of one row is summed up there, and no cell of a third is touched."""
    data = inventory().model_dump(mode="json", by_alias=True)
    before = rows(inventory())
    fields = {"kind", "runtime", "settings_live_on_host", *("KV_CACHE_PRECISION", "enable_prefix_caching", "max_num_seqs")}
    single = [one for one in mutations() if one.place[0] == "services" and one.place[-1] in fields]
    mine, theirs = ([one for one in single if one.place[1] == name] for name in ("text-30b", "text-4b"))
    assert len(mine) == len(theirs) == len(fields)
    for one, two in itertools.product(mine, theirs):
        edits = {place: other for place, _, other in changes(data, ()) if place in {one.place, two.place}}
        made = data
        for place, other in edits.items():
            made = apply(made, place, other)
        after = rows(Fleet.model_validate_json(json.dumps(made)))
        decided = {(technique, name) for technique, name in moved(before, after, deciding) if name != ROW}
        alone = {(technique, name) for technique, name in one.decided | two.decided if name != ROW}
        assert decided == alone, f"{one.place} and {two.place}"
