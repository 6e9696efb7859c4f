"""Under which conditions a run was made: machine, runtime, model, load, decoding; as names and values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from gen.markdown import NOTHING, Markdown, code, line, sentence, sifted, span, text
from gen.pages.atlas import Atlas
from gen.pages.marks import absent, age_limit, chip, dated, known
from gen.spread import quantity
from gen.tables import Layout, columns, table
from probes.evidence import Host, HostTuning, Missing, Run, Scalar

ENTRY = tuple[str, Markdown]
# The facts of a machine in the order a reader needs them, by the field that holds each.
HOST_FACTS = {
    "cpu": "CPU",
    "isa": "instruction sets",
    "physical_cores": "physical cores",
    "logical_cores": "logical cores",
    "memory_bytes": "memory",
    "os": "operating system",
    "kernel": "kernel",
    "driver": "driver",
    "governor": "CPU governor",
    "huge_pages": "huge pages",
    "transparent_huge_pages": "transparent huge pages",
    "swap_bytes": "swap",
    "numa_nodes": "NUMA nodes",
    "container_cpu_limit": "container CPU limit",
    "container_memory_bytes": "container memory limit",
}


def entries(pairs: Iterable[ENTRY]) -> Markdown:
    """Write names and values as a table of two columns."""
    return table(columns("What", "Value"), [(text(name), value) for name, value in pairs], Layout.GRID, "entries")


def conditions(atlas: Atlas, run: Run) -> Iterator[ENTRY]:
    """List what a run was made with; a value that is not there shows its reason."""
    yield "run", code(run.id)
    yield "content hash", code(run.content_sha256)
    yield "started", text(moment(run.started_at))
    yield "ended", text(moment(run.ended_at))
    yield "scope", text(atlas.scope_of(run))
    device = run.device
    yield "device", absent(device) if isinstance(device, Missing) else text(f"{device.name}: {device.full_name}")
    yield "runtime", runtime(run)
    yield from _model(run)
    for claim in run.kinds:
        limit = age_limit(claim.provenance.kind, atlas.corpus.fleet.policies.freshness)
        told = line(text(claim.kind.value), known(claim.provenance.kind), dated(claim.provenance.date, atlas.today, limit))
        yield "kind of model", line(told, span(text(claim.where), "note"), by="<br>")
    yield from _endpoint(run)
    yield "serving configuration", _value(run.serving_sha256, as_code=True)
    yield from _load(run)
    yield from _instrument(run)
    decoding = run.decoding
    if isinstance(decoding, Missing):
        yield "decoding", absent(decoding)
    else:
        seed = "no seed" if decoding.seed is None else f"seed {decoding.seed}"
        sampling = "sampling" if decoding.do_sample else "greedy"
        stop = "ignoring end of sequence" if decoding.ignore_eos else "stopping at end of sequence"
        yield "decoding", text(f"{sampling}, temperature {decoding.temperature:g}, {seed}, {stop}")
    yield "tool", line(text(f"{run.tool.name} {run.tool.version}, revision"), _value(run.tool.git_revision, as_code=True))


def _model(run: Run) -> Iterator[ENTRY]:
    model = run.model
    if isinstance(model, Missing):
        yield "model", absent(model)
        return
    yield "model", code(model.id)
    yield "model revision", _value(model.revision, as_code=True)
    yield "model weights, SHA-256", _value(model.sha256, as_code=True)
    yield "model quantization", _value(model.quantization)
    yield "model size", absent(model.bytes) if isinstance(model.bytes, Missing) else text(quantity(model.bytes, "bytes"))


def _endpoint(run: Run) -> Iterator[ENTRY]:
    endpoint = run.endpoint
    if endpoint is None:
        return
    yield "address", _value(endpoint.url, as_code=True)
    words = "#native" if run.native else "#conditions"
    yield "state", line(chip(endpoint.state, words), text(endpoint.detail) if endpoint.detail else NOTHING)
    for model in endpoint.models:
        yield "listed model", line(code(model.id), text(f"{model.state} {model.detail}".strip() or "no state given"))


def _load(run: Run) -> Iterator[ENTRY]:
    load = run.load
    if isinstance(load, Missing):
        yield "load", absent(load)
        return
    warm = f"{load.warmup_requests} to warm up"
    yield "load", text(f"{load.schedule}; {load.requests} requests, {warm}, {load.concurrency} at a time")
    prompt = load.prompt_tokens
    yield "prompt tokens", absent(prompt) if isinstance(prompt, Missing) else text(", ".join(str(n) for n in prompt) or "none")
    yield "most output tokens", text(str(load.max_tokens))
    yield "prompt set, SHA-256", code(load.prompt_set_sha256)


def _instrument(run: Run) -> Iterator[ENTRY]:
    """Say how a load took its numbers, where its file tells."""
    slo, source = run.native.get("slo"), run.native.get("token_source")
    if isinstance(slo, dict) and isinstance(bounds := slo.get("bounds"), dict):
        kept = ", ".join(f"{name} {bound}" for name, bound in bounds.items())
        yield "goodput", text(f"against {slo.get('origin')}: {kept}")
    sources = list(source.values()) if isinstance(source, dict) else [source]
    if told := sorted({one for one in sources if isinstance(one, str)}):
        yield "tokens counted by", text(", ".join(told))


@functools.lru_cache(maxsize=256)
def host_entries(host: Host) -> Markdown:
    """List what a machine is and how it is tuned; hundreds of runs are made on a few."""
    return entries(_host_entries(host))


def _host_entries(host: Host) -> Iterator[ENTRY]:
    yield "name", text(host.alias)
    yield "hardware fingerprint", code(host.fingerprint)
    yield from ((label, _host_value(host, name)) for name, label in HOST_FACTS.items())


def host_table(host: Host) -> Markdown:
    """Show each fact of a machine with what it does to inference and how it was read."""
    described = {**Host.model_fields, **HostTuning.model_fields}
    body = [
        (text(label), _host_value(host, name), span(sentence(described[name].description or ""), "note"))
        for name, label in HOST_FACTS.items()
    ]
    return table(columns("What", "Value", "What it does to inference, and how it was read"), body, Layout.CARDS, "host")


def runtime(run: Run) -> Markdown:
    """Name the engine of a run with its version."""
    engine = run.runtime
    if isinstance(engine, Missing):
        return absent(engine)
    version = engine.version
    shown = line(text("version"), absent(version)) if isinstance(version, Missing) else text(version)
    return line(sifted(text(engine.name), facet=engine.name), shown)


def moment(at: datetime) -> str:
    """Write a point in time to the second, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _value(value: Scalar | Missing, *, as_code: bool = False) -> Markdown:
    if isinstance(value, Missing):
        return absent(value)
    return code(str(value)) if as_code else text(str(value))


def _host_value(host: Host, name: str) -> Markdown:
    value = getattr(host.tuning if name in HostTuning.model_fields else host, name)
    if isinstance(value, Missing):
        return absent(value)
    if name == "isa":
        return text(", ".join(value) or "none named")
    return text(quantity(value, "bytes") if name.endswith("_bytes") else f"{value}")
