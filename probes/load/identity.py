"""What the answers of a server say about what runs there, as evidence holds it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date
from typing import Any

from probes.archive import canonical
from probes.endpoints.quoting import Quoter
from probes.endpoints.reading import Reading, Seen
from probes.evidence import Device, Missing, MissingReason, Provenance, ProvenanceKind, Runtime, Setting


def fields(reading: Reading | None, model: str, quoter: Quoter, day: date, source: str) -> Mapping[str, Any]:
    """Give the fields of a run that the server's own answers fill; empty when they tell nothing."""
    if reading is None:
        return {}
    found: dict[str, Any] = {"runtime": Runtime(name=reading.runtime.value, version=_version(reading, quoter))}
    if reading.device is not None:
        name = quoter.line(reading.device, 80)
        found["device"] = Device(name=name, full_name=name)
    facts = reading.facts.get(model)
    if facts is not None:
        quantization = facts.quantization
        kept = quantization if isinstance(quantization, Missing) else quoter.line(quantization, 80)
        found["model"] = facts.model_copy(update={"id": quoter.model(facts.id), "quantization": kept})
    if reading.seen:
        provenance = Provenance(kind=ProvenanceKind.OBSERVED, date=day, source=source)
        found["settings"] = tuple(_setting(one, provenance, quoter) for one in reading.seen)
        shown = {one.control: one.value for one in reading.seen}
        found["serving_sha256"] = hashlib.sha256(canonical(dict(shown))).hexdigest()
    return found


def _version(reading: Reading, quoter: Quoter) -> str | Missing:
    version = reading.version
    if isinstance(version, Missing):
        return Missing(missing=MissingReason.NOT_MEASURED, detail=quoter.line(version.detail))
    return quoter.line(version, 80)


def _setting(seen: Seen, provenance: Provenance, quoter: Quoter) -> Setting:
    value = quoter.line(seen.value, 120) if isinstance(seen.value, str) else seen.value
    return Setting(technique=seen.technique, control=seen.control, value=value, provenance=provenance)
