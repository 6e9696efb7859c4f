"""What one line of a configuration declares, and everything that one file brought."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from probes.declared.shape import ModelShape
from probes.evidence import ModelKind, Scalar, Technique
from probes.fleet import ConfigKind
from probes.told import Told


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The value of one control. `where` is the file, with the line or the key where there is one.

    `default_of` names whose default it is where the file leaves the control out; `without_effect` says why the
    value changes nothing.
    """

    technique: Technique
    control: str
    value: Scalar
    where: str
    default_of: str = ""
    without_effect: str = ""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One file read. `facts` bear on no technique; `unread` are options that were seen and not understood, by name.

    `kinds` is what it says that the model is, one entry per place that says so.
    """

    kind: ConfigKind
    entries: tuple[Entry, ...] = ()
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    shape: ModelShape | None = None
    kinds: tuple[Told[ModelKind], ...] = ()


def joined(kind: ConfigKind, readings: Iterable[Reading]) -> Reading:
    """Make one reading of the parts that a file holds or leads to; the first fact of a name stands."""
    entries: tuple[Entry, ...] = ()
    facts: dict[str, JsonValue] = {}
    unread: tuple[str, ...] = ()
    shape: ModelShape | None = None
    kinds: tuple[Told[ModelKind], ...] = ()
    for one in readings:
        entries += one.entries
        facts = {**one.facts, **facts}
        unread += one.unread
        shape = shape or one.shape
        kinds += one.kinds
    return Reading(kind=kind, entries=entries, facts=facts, unread=tuple(dict.fromkeys(unread)), shape=shape, kinds=kinds)


def settled(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Drop each default of a control that is set elsewhere or has a default already."""
    found = tuple(entries)
    explicit = {one.control for one in found if not one.default_of}
    kept: dict[str, Entry] = {}
    for one in found:
        if one.default_of and one.control not in explicit:
            kept.setdefault(one.control, one)
    return tuple(one for one in found if not one.default_of or kept.get(one.control) is one)


def without_effect(entries: Iterable[Entry], controls: frozenset[str], why: str) -> tuple[Entry, ...]:
    """Mark what is set of some controls as changing nothing; a default is set by nobody."""
    return tuple(replace(one, without_effect=why) if one.control in controls and not one.default_of else one for one in entries)
