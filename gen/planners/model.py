"""What is known of the model behind a service: the numbers that size its weights and its KV cache."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from gen.benchmarks import of_run
from gen.planners.plan import Given, Span, between, exactly, of_metric
from gen.view import WEIGHTS, ServiceView, of_its_release
from probes.evidence import Missing, ProvenanceKind, Run, RunKind

KV_BYTES = "kv_bytes_per_token"
KV_PRECISION = "KV_CACHE_PRECISION"
_FIELDS = {"layers": "layers", "kv_heads": "heads", "head_size": "numbers", "context_tokens": "tokens"}
_PARAMETERS = re.compile(r"^(\d+(?:\.\d+)?)\s*([BbMm])$")
_SCALE = {"b": 1e9, "m": 1e6}
# Stored bits of a weight, from the numbers alone to the numbers with group scales, zero points and a vocabulary in 8 bits.
_BITS = {"int4": (4.0, 5.0), "u4": (4.0, 5.0), "int8": (8.0, 8.5), "u8": (8.0, 8.5), "fp16": (16.0, 16.0),
         "bf16": (16.0, 16.0), "f16": (16.0, 16.0), "fp32": (32.0, 32.0), "f32": (32.0, 32.0)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The numbers of one model; None is what nobody has told. `measured_kv` is what the runtime itself counted."""

    layers: Given | None = None
    kv_heads: Given | None = None
    head_size: Given | None = None
    context_tokens: Given | None = None
    weight_bytes: Given | None = None
    measured_kv: Mapping[str, Given] | None = None

    def within(self, contexts: Iterable[int]) -> tuple[int, ...]:
        """Keep to the contexts that the model was trained for, as far as that is known."""
        longest = self.context_tokens
        return tuple(one for one in contexts if longest is None or one <= longest.span.value)


def shape_of(service: ServiceView) -> Shape:
    """Gather the shape from the files that the inventory names, and from what was measured of the service."""
    told = _told(service)
    return Shape(
        layers=told.get("layers"),
        kv_heads=told.get("kv_heads"),
        head_size=told.get("head_size"),
        context_tokens=told.get("context_tokens"),
        weight_bytes=_weights(service),
        measured_kv=_measured_kv(service),
    )


def _told(service: ServiceView) -> dict[str, Given]:
    """Read the numbers off the newest valid reading of the service's files."""
    read = [run for run in service.runs if run.kind is RunKind.DECLARED and run.validity.valid and "model" in run.native]
    run = max(read, key=lambda run: (run.started_at, run.id), default=None)
    document = None if run is None else run.native["model"]
    found: dict[str, Given] = {}
    if run is None or not isinstance(document, dict):
        return found
    for name, unit in _FIELDS.items():
        entry = document.get(name)
        value = entry.get("value") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(value, int) and not isinstance(value, bool) and value > 0:
            found[name] = Given(
                name=name,
                span=exactly(value, unit),
                known=ProvenanceKind.DECLARED,
                source=str(entry.get("where", "")),
                run=run.id,
            )
    return found


def _weights(service: ServiceView) -> Given | None:
    """Size the weights: as a benchmark counted them, else as the model's file is long, else from the number of parameters."""
    for run in reversed(_measuring(service)):
        counted = [arm.settings["weight_bytes"] for arm in run.arms if arm.settings.get("as_shipped") is True
                   and "weight_bytes" in arm.settings]  # fmt: skip
        report = run.native.get("report")
        told = report.get("weight_bytes") if isinstance(report, dict) else None
        value = counted[0] if counted else told
        if isinstance(value, int) and not isinstance(value, bool):
            return Given(
                name="weights",
                span=exactly(value, "B"),
                known=ProvenanceKind.MEASURED,
                source="counted in the model",
                run=run.id,
            )
    for run in reversed(_measuring(service)):
        if not isinstance(run.model, Missing) and isinstance(run.model.bytes, int):
            return Given(
                name="weights",
                span=exactly(run.model.bytes, "B"),
                known=ProvenanceKind.OBSERVED,
                source="length of the model's file",
                run=run.id,
            )
    return _from_parameters(service)


def _from_parameters(service: ServiceView) -> Given | None:
    precision = service.setting(WEIGHTS)
    match = _PARAMETERS.match(service.parameters or "")
    bits = None if precision is None else _BITS.get(str(precision.value).casefold())
    if match is None or bits is None or precision is None:
        return None
    count = float(match[1]) * _SCALE[match[2].lower()]
    low, high = (count * bit / 8 for bit in bits)
    source = f"{service.parameters} parameters in {precision.value}, {bits[0]:g} to {bits[1]:g} bits each with their scales"
    return Given(name="weights", span=between(low, high, "B"), known=ProvenanceKind.DECLARED, source=source)


def _measured_kv(service: ServiceView) -> dict[str, Given]:
    """Find what the runtime counted per token, by KV precision; of two runs the newer."""
    found: dict[str, Given] = {}
    for run in sorted(service.runs, key=lambda run: (run.started_at, run.id)):
        if of_its_release(run, service):
            found |= counted_kv(run)
    return found


def counted_kv(run: Run) -> dict[str, Given]:
    """Give what the engine of a valid run counted per token, by the KV precision that it reported itself."""
    if not run.validity.valid:
        return {}
    if run.kind is RunKind.DEVICES:
        return dict(_tried(run))
    return dict(_benched(run)) if of_run(run) is not None else {}


def _tried(run: Run) -> Iterator[tuple[str, Given]]:
    """Read what was counted when a device was asked for each precision, and reported that very one."""
    trials = run.native.get("trials")
    for name, trial in trials.items() if isinstance(trials, dict) else ():
        control, _, precision = name.partition("=")
        seen = trial.get("observation") if isinstance(trial, dict) else None
        counted = seen.get("bytes_per_token") if isinstance(seen, dict) else None
        kept = _reported(seen.get("dump")) if isinstance(seen, dict) else None
        if control == KV_PRECISION and kept == precision and isinstance(counted, int) and counted > 0:
            yield precision.casefold(), _counted(precision, exactly(counted, "B"), name, run)


def _benched(run: Run) -> Iterator[tuple[str, Given]]:
    """Read it off the arms that fill whole blocks from an empty pool: a prefix cache keeps earlier blocks as well."""
    report = run.native.get("report")
    dumps = report.get("dumps") if isinstance(report, dict) else None
    for metric in (one for one in run.metrics if one.name == KV_BYTES):
        arm = next((arm for arm in run.arms if arm.name == metric.arm), None)
        span = of_metric(metric)
        if arm is None or span is None or arm.settings.get("enable_prefix_caching") is True:
            continue
        dumped = _reported(dumps.get(arm.name)) if isinstance(dumps, dict) else None
        precision = str(arm.settings.get(KV_PRECISION) or dumped or "").casefold()
        if precision:
            yield precision, _counted(precision, span, metric.arm, run)


def _counted(precision: str, span: Span, where: str, run: Run) -> Given:
    return Given(
        name=f"KV cache per token in {precision}",
        span=span,
        known=ProvenanceKind.MEASURED,
        source=f"counted by the engine, {where}",
        run=run.id,
    )


def _reported(dump: JsonValue) -> str | None:
    """Find the KV precision in what an engine reported of itself."""
    properties = dump.get("properties") if isinstance(dump, dict) else None
    value = properties.get(KV_PRECISION) if isinstance(properties, dict) else None
    return value if isinstance(value, str) else None


def _measuring(service: ServiceView) -> list[Run]:
    """Give the valid micro-benchmarks of a service, the newest last."""
    return sorted(
        (run for run in service.runs if run.validity.valid and of_run(run) is not None),
        key=lambda run: (run.started_at, run.id),
    )
