"""Evidence: the index of runs, and everything that one run holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from gen import paths
from gen.charts import figure, strips
from gen.markdown import NOTHING, Markdown, block, code, details, fenced, heading, line, link, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas, Spot
from gen.pages.capabilities import capability_table
from gen.pages.feed import evidence_path
from gen.pages.marks import absent, chip, dated, known, scalar
from gen.pages.page import Page
from gen.spread import FEWEST_FOR_P95, percentile, quantity, summary
from gen.tables import Layout, columns, pivot, table
from gen.verdict import Comparison, Scale, compare
from gen.view import FLEET
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Arm, Host, HostTuning, Metric, Missing, Per, Run, Scalar

INDEX = "runs/index.md"
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


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the index and a page per run."""
    intro = text("Every run that this checkout holds, the newest first. Local runs speak for their machine only.")
    yield Page(
        path=INDEX,
        title="Evidence",
        body=paragraphs(intro, run_table(atlas, atlas.runs, INDEX)),
        trail=(("Matrix", "index.md"),),
        siblings=True,
        contents=False,
    )
    for run in atlas.runs:
        yield _page(atlas, run)


def run_table(atlas: Atlas, runs: Sequence[Run], here: str) -> Markdown:
    """List runs with what they were about and whether they may be used."""
    if not runs:
        return text("No run yet.")
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    body = [
        (
            dated(run.date, atlas.today, limit),
            atlas.run(here, run.id, text(f"{run.kind} · {run.subject}")),
            line(text(run.client.alias), NOTHING if atlas.scope_of(run) == FLEET else span(text("local"), "badge")),
            _runtime(run),
            validity(run),
        )
        for run in runs
    ]
    return table(columns("Date", "Run", "Machine", "Runtime", "Valid"), body, Layout.CARDS, "runs")


def validity(run: Run) -> Markdown:
    """Say whether a run may be used, with the reasons if it may not."""
    if run.validity.valid:
        return span(text("valid"), "ok")
    return line(span(text("invalid"), "bad"), span(text(", ".join(run.validity.reasons)), "detail"))


def _page(atlas: Atlas, run: Run) -> Page:
    here = atlas.run_paths[run.id]
    local = NOTHING if atlas.scope_of(run) == FLEET else span(text("local"), "badge")
    meta = [
        dated(run.date, atlas.today, atlas.corpus.fleet.policies.freshness.evidence_days),
        line(text(run.client.alias), local),
        validity(run),
        link(text("raw JSON"), paths.relative(evidence_path(run), here)),
    ]
    body = paragraphs(
        Markdown(span(line(*meta, by=" · "), "meta")),
        _results(atlas, run),
        _capabilities(run),
        _settings(atlas, run, here),
        _survey(atlas, run, here),
        heading(2, text("Conditions"), "conditions"),
        entries(_conditions(atlas, run)),
        heading(3, text("The machine that asked"), "client"),
        entries(host_entries(run.client)),
        heading(3, text("The machine that served"), "server"),
        entries(host_entries(run.server)) if isinstance(run.server, Host) else absent(run.server),
        heading(2, text("Measure it again"), "again"),
        fenced(run.tool.command, "sh"),
        _native(run),
    )
    trail = (("Matrix", "index.md"), ("Evidence", INDEX))
    return Page(path=here, title=f"{run.kind} · {run.subject} · {_moment(run.started_at)}", body=body, trail=trail)


def entries(pairs: Iterable[ENTRY]) -> Markdown:
    """Write names and values as a table of two columns."""
    return table(columns("What", "Value"), [(text(name), value) for name, value in pairs], Layout.GRID, "entries")


def _results(atlas: Atlas, run: Run) -> Markdown:
    if not run.metrics:
        return NOTHING
    names = list(dict.fromkeys(metric.name for metric in run.metrics))
    head = heading(2, text("Results"), "results")
    arms = table(
        columns("Arm", "Role", "Settings"),
        [(text(arm.name), text(arm.role), _arm_settings(arm)) for arm in run.arms],
        Layout.CARDS,
    ) if run.arms else NOTHING  # fmt: skip
    drawn = [_drawn(run, name) for name in names]
    charts = block(paragraphs(*drawn), "charts") if any(drawn) else NOTHING
    return paragraphs(head, arms, charts, _comparison(atlas, run), _metrics(run), *(_samples(run, name) for name in names))


def _comparison(atlas: Atlas, run: Run) -> Markdown:
    """Hold each candidate arm against the baseline, metric by metric, by the rule of comparison."""
    base = next((arm.name for arm in run.arms if arm.role == "baseline"), None)
    if base is None:
        return NOTHING
    names = list(dict.fromkeys(metric.name for metric in run.metrics if metric.arm))
    body = [
        (code(name), text(arm.name), chip(one.verdict), _ratio(one), _reason(one))
        for arm in run.arms
        if arm.role == "candidate"
        for name in names
        for one in [compare(run.metric(name, base), run.metric(name, arm.name), atlas.corpus.fleet.policies.gates)]
    ]
    intro = line(text("Each candidate against"), code(base), text("by the rule of comparison:"))
    head = columns("Metric", "Candidate", "Verdict", "Candidate to baseline", "Why")
    return paragraphs(intro, table(head, body, Layout.CARDS, "comparison")) if body else NOTHING


def _ratio(one: Comparison) -> Markdown:
    if one.low is None or one.high is None or one.baseline is None:
        return span(text("not compared"), "absent")
    sizes = f"n = {one.baseline.n} and {one.candidate.n if one.candidate else 0}"
    if one.gate.scale is Scale.RELATIVE:
        return text(f"{one.low:.3g} to {one.high:.3g} times, gate {one.gate.width:.0%} ({sizes})")
    return text(f"{one.low:+.3g} to {one.high:+.3g} {one.unit}, gate {one.gate.width:g} ({sizes})")


def _reason(one: Comparison) -> Markdown:
    more = f"about {one.more_runs} more repetitions a side would settle it" if one.more_runs else ""
    said = "; ".join(part for part in (one.reason, more) if part)
    return sentence(said) if said else span(text("the whole interval clears the gate or stays inside it"), "note")


def _arm_settings(arm: Arm) -> Markdown:
    shown = [line(code(control), text("="), scalar(value)) for control, value in arm.settings.items()]
    return line(*shown, by=", ") or text("none of its own")


def _drawn(run: Run, name: str) -> Markdown:
    """Draw the samples of one metric, the baseline first; a single sample needs no picture."""
    rank = {arm.name: (arm.role != "baseline", index) for index, arm in enumerate(run.arms)}
    found = sorted((m for m in run.metrics if m.name == name and m.samples), key=lambda m: rank.get(m.arm, (False, -1)))
    if not found or max(len(metric.samples) for metric in found) < 2:
        return NOTHING
    series = {metric.arm or run.subject: metric.samples for metric in found}
    chart = strips(name, found[0].unit, series, found[0].per)
    return figure(chart, text(chart.alternative))


def _metrics(run: Run) -> Markdown:
    body = [
        (
            code(metric.name),
            text(metric.arm or "whole run"),
            absent(metric.missing) if metric.missing else text(summary(metric)),
            _p95(metric),
            text(metric.direction.value),
        )
        for metric in run.metrics
    ]
    return table(columns("Metric", "Arm", "Result", "p95", "Better"), body, Layout.CARDS, "metrics")


def _p95(metric: Metric) -> Markdown:
    if metric.per is not Per.REQUEST:
        return span(text("of requests only"), "note")
    if len(metric.samples) < FEWEST_FOR_P95:
        return span(text(f"not from {len(metric.samples)} requests"), "note")
    return text(quantity(percentile(metric.samples, 0.95), metric.unit))


def _samples(run: Run, name: str) -> Markdown:
    """Fold the samples of one metric under a line; arms stand side by side."""
    found = [metric for metric in run.metrics if metric.name == name and metric.samples]
    if not found:
        return NOTHING
    titles = [metric.arm or name for metric in found]
    rows = [
        (text(str(position)), *(span(text("no sample"), "absent") if v is None else text(f"{v:.12g}") for v in values))
        for position, values in pivot([metric.samples for metric in found])
    ]
    head = columns(found[0].per.value, *(text(title) for title in titles), numeric=[found[0].per.value, *map(text, titles)])
    unit = found[0].unit or "no unit"
    label = line(text("All samples of"), code(name), text(f"in {unit}"))
    return details(label, table(head, rows, Layout.GRID, "samples"), "data")


def _capabilities(run: Run) -> Markdown:
    if not run.capabilities:
        return NOTHING
    return paragraphs(heading(2, text("Capabilities"), "capabilities"), capability_table(run.capabilities))


def _settings(atlas: Atlas, run: Run, here: str) -> Markdown:
    if not run.settings:
        return NOTHING
    body = [
        (
            code(setting.control),
            scalar(setting.value),
            known(setting.provenance.kind),
            dated(setting.provenance.date, atlas.today),
            link(text(TECHNIQUE_TITLES[setting.technique]), paths.relative(f"techniques/{setting.technique.value}.md", here)),
            text(setting.provenance.source),
        )
        for setting in run.settings
    ]
    head = columns("Control", "Value", "Known", "Since", "Technique", "Where")
    return paragraphs(heading(2, text("Settings it saw"), "settings"), table(head, body, Layout.CARDS, "settings"))


def _survey(atlas: Atlas, run: Run, here: str) -> Markdown:
    if not run.survey:
        return NOTHING
    body = [
        (
            atlas.service(here, Spot(scope=FLEET, name=name)),
            chip(endpoint.state),
            text(endpoint.detail) if endpoint.detail else span(text("nothing more was said"), "note"),
        )
        for name, endpoint in run.survey.items()
    ]
    head = columns("Service", "When asked", "In its words")
    return paragraphs(heading(2, text("What each address did"), "survey"), table(head, body, Layout.CARDS, "survey"))


def _conditions(atlas: Atlas, run: Run) -> Iterator[ENTRY]:
    yield "run", code(run.id)
    yield "content hash", code(run.content_sha256)
    yield "started", text(_moment(run.started_at))
    yield "ended", text(_moment(run.ended_at))
    yield "scope", text(atlas.scope_of(run))
    device = run.device
    yield "device", absent(device) if isinstance(device, Missing) else text(f"{device.name}: {device.full_name}")
    yield "runtime", _runtime(run)
    yield from _model(run)
    yield from _endpoint(run)
    yield "serving configuration", _value(run.serving_sha256, as_code=True)
    yield from _load(run)
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
    yield "state", line(chip(endpoint.state), text(endpoint.detail) if endpoint.detail else NOTHING)
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


def host_entries(host: Host) -> Iterator[ENTRY]:
    """List what a machine is and how it is tuned."""
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


def _host_value(host: Host, name: str) -> Markdown:
    value = getattr(host.tuning if name in HostTuning.model_fields else host, name)
    if isinstance(value, Missing):
        return absent(value)
    if name == "isa":
        return text(", ".join(value) or "none named")
    return text(quantity(value, "bytes") if name.endswith("_bytes") else f"{value}")


def _native(run: Run) -> Markdown:
    if not run.native:
        return NOTHING
    parts = [
        details(code(name), fenced(_native_text(value), "text" if isinstance(value, str) else "json"), "data")
        for name, value in run.native.items()
    ]
    return paragraphs(heading(2, text("In the runtime's own words"), "native"), *parts)


def _native_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)


def _runtime(run: Run) -> Markdown:
    runtime = run.runtime
    if isinstance(runtime, Missing):
        return absent(runtime)
    version = runtime.version
    shown = line(text("version"), absent(version)) if isinstance(version, Missing) else text(version)
    return line(text(runtime.name), shown)


def _value(value: Scalar | Missing, *, as_code: bool = False) -> Markdown:
    if isinstance(value, Missing):
        return absent(value)
    return code(str(value)) if as_code else text(str(value))


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
