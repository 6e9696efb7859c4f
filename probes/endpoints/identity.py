"""What the answers of a server say about what runs there, as evidence holds it; every word passes the quoter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from probes.archive import canonical
from probes.endpoints.quoting import Quoter
from probes.endpoints.reading import Reading, Seen
from probes.evidence import Device, Missing, ModelFacts, Provenance, ProvenanceKind, Runtime, Setting


def fields(reading: Reading | None, model: str, quoter: Quoter, day: date, source: str) -> Mapping[str, Any]:
    """Give the fields of a run that the server's own answers fill; empty when they tell nothing."""
    if reading is None:
        return {}
    found: dict[str, Any] = {"runtime": runtime_of(reading, quoter)}
    if (device := device_of(reading, quoter)) is not None:
        found["device"] = device
    if (facts := reading.facts.get(model)) is not None:
        found["model"] = model_of(facts, quoter)
    if reading.seen:
        found["settings"] = settings_of(reading.seen, day, source, quoter)
        found["serving_sha256"] = serving_of(reading.seen)
    return found


def runtime_of(reading: Reading, quoter: Quoter) -> Runtime:
    """Name the engine and its release."""
    version = reading.version
    told = quoted(version, quoter) if isinstance(version, Missing) else quoter.line(version, 80)
    return Runtime(name=reading.runtime.value, version=told)


def device_of(reading: Reading, quoter: Quoter) -> Device | None:
    """Name the device, where an answer does."""
    if reading.device is None:
        return None
    name = quoter.line(reading.device, 80)
    return Device(name=name, full_name=name)


def model_of(facts: ModelFacts, quoter: Quoter) -> ModelFacts:
    """Quote what is known of a model; an id that is a path is kept without its folders."""
    quantization = facts.quantization
    kept = quantization if isinstance(quantization, Missing) else quoter.line(quantization, 80)
    return facts.model_copy(update={"id": quoter.model(facts.id), "quantization": kept})


def settings_of(seen: Iterable[Seen], day: date, source: str, quoter: Quoter) -> tuple[Setting, ...]:
    """Give what a server shows of its settings as observed on a day by a run."""
    provenance = Provenance(kind=ProvenanceKind.OBSERVED, date=day, source=source)
    return tuple(
        Setting(
            technique=one.technique,
            control=one.control,
            value=quoter.line(one.value, 120) if isinstance(one.value, str) else one.value,
            provenance=provenance,
        )
        for one in seen
    )


def serving_of(seen: Sequence[Seen]) -> str:
    """Hash the settings that could be seen; equal hashes say no more than that these are equal."""
    return hashlib.sha256(canonical({one.control: one.value for one in seen})).hexdigest()


def quoted(missing: Missing, quoter: Quoter) -> Missing:
    """Quote the words of a reason."""
    return Missing(missing=missing.missing, detail=quoter.line(missing.detail))
