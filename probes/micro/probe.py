"""The micro-benchmarks as runs: each module in a child of its own, its rounds as metrics per arm."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from probes.child import ChildResult, Outcome, run_child
from probes.context import Context
from probes.devices.dump import Dump, executes_elsewhere
from probes.devices.engine import RUNTIME
from probes.devices.words import runtime_words
from probes.errors import UsageError
from probes.evidence import (
    Decoding,
    Device,
    Load,
    Missing,
    MissingReason,
    ModelFacts,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Scalar,
    Setting,
    Technique,
    run_id,
)
from probes.micro import roofline
from probes.micro.catalogue import MODULES, Extent, of_extent
from probes.micro.metrics import measured, unmeasured
from probes.micro.roofline import Roofline
from probes.micro.rounds import MIN_REPETITIONS, Report
from probes.micro.session import ENVIRONMENT
from probes.model import ModelFiles, genai_version

TIMEOUT_S = 300.0
MEMORY_BYTES = 6 * 2**30
# How pytest begins the words of a test that skipped itself.
SKIPPED = "Skipped: "
_CONTROLS = {
    "enable_prefix_caching": Technique.PREFIX_CACHING,
    "max_num_seqs": Technique.CONTINUOUS_BATCHING,
    "max_num_batched_tokens": Technique.CONTINUOUS_BATCHING,
    "dynamic_split_fuse": Technique.CONTINUOUS_BATCHING,
    "num_kv_blocks": Technique.KV_CACHE,
    "use_cache_eviction": Technique.KV_CACHE,
    "KV_CACHE_PRECISION": Technique.KV_CACHE,
    "use_sparse_attention": Technique.FLASH_ATTENTION,
}


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A report, the time of each of its rounds, and the memory of the process they ran in."""

    report: Report
    seconds: tuple[float, ...]
    peak_rss_bytes: int


def probe_micro(
    context: Context,
    model: ModelFiles,
    *,
    only: Sequence[str] = (),
    device: str = "CPU",
    repetitions: int | None = None,
    budget_s: float | None = None,
    extent: Extent = Extent.WHOLE,
) -> list[Run]:
    """Run the named benchmarks, or all of an extent, one after the other.

    `repetitions` overrides how often each arm runs, `budget_s` how long all of them may take.

    Raises:
        UsageError: a name that is no benchmark.
    """
    unknown = [name for name in only if name not in MODULES]
    if unknown:
        raise UsageError(f"{unknown[0]}: is not a micro-benchmark; expected {', '.join(MODULES)}")
    named = [name for name in MODULES if name in only] or [one.subject for one in of_extent(_extent(context, extent))]
    return [
        benchmark(
            context,
            model.ir,
            model.facts,
            name,
            device=device,
            repetitions=repetitions,
            budget_s=budget_s,
            extent=extent,
        )
        for name in named
    ]


def benchmark(
    context: Context,
    ir: Path,
    facts: ModelFacts,
    subject: str,
    *,
    device: str = "CPU",
    repetitions: int | None = None,
    budget_s: float | None = None,
    head: Path | None = None,
    draft: Path | None = None,
    memory_bytes: int = MEMORY_BYTES,
    extent: Extent = Extent.WHOLE,
) -> Run:
    """Run one benchmark on any model folder; `budget_s` and `repetitions` override what it was made for."""
    started_at = context.clock()
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="inference-adr-") as scratch:
        result = run_child(
            "probes.micro.session:run_benchmark",
            {
                "module": MODULES[subject],
                "ir": str(ir),
                "device": device,
                "extent": _extent(context, extent).value,
                "repetitions": repetitions,
                "budget_s": budget_s,
                "head": None if head is None else str(head),
                "draft": None if draft is None else str(draft),
                "scratch": scratch,
            },
            timeout_s=TIMEOUT_S + 2 * (budget_s or 0.0),
            memory_bytes=memory_bytes,
            env=ENVIRONMENT,
            on_sent=lambda line: context.say(f"{subject}: {line}"),
        )
    common: dict[str, Any] = {
        "server": context.client,
        "runtime": Runtime(name=RUNTIME, version=genai_version()),
        "model": facts,
    }
    if result.outcome is not Outcome.OK:
        why = came_to_nothing(result.outcome, result.words)
        skipped = why.missing is MissingReason.SKIPPED
        return context.run(
            RunKind.MICRO,
            subject,
            started_at,
            invalid=(f"skipped: {why.detail}" if skipped else f"the benchmark {result.outcome}",),
            device=why,
            metrics=unmeasured(why.detail, why.missing),
            native={"outcome": result.outcome.value, "words": result.words, "load_average_before": busy},
            **common,
        )
    source = run_id(started_at, context.client.alias, f"{RunKind.MICRO}-{subject}")
    return context.run(
        RunKind.MICRO,
        subject,
        started_at,
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos=True),
        **_found(result, device, source, started_at, busy),
        **common,
    )


def _found(result: ChildResult, device: str, source: str, at: datetime, busy: float) -> dict[str, Any]:
    """Read what a benchmark left behind, as fields of a run."""
    entry: Any = result.value
    if "roofline" in entry["extra_info"]:
        found = Roofline.model_validate_json(json.dumps(entry["extra_info"]["roofline"]))
        dumps = [found.dump] if found.dump else []
        return {
            "invalid": (*too_few(len(found.turns), "turn"), *_elsewhere(dumps, device)),
            "device": _device(dumps, device),
            "settings": _settings(dumps, source, at),
            "load": roofline.load(found),
            "metrics": roofline.measured(found),
            "native": {
                "formula": roofline.FORMULA,
                "roofline": found.model_dump(mode="json"),
                "load_average_before": busy,
            },
        }
    timed = _timed(result)
    report = timed.report
    return {
        "invalid": doubts(report, device),
        "device": _device([*report.dumps.values()], device),
        "settings": _settings([*report.dumps.values()], source, at),
        "load": load(report),
        "arms": (*report.arms, *(left_out.arm for left_out in report.skipped)),
        "metrics": measured(report, timed.seconds, timed.peak_rss_bytes, device),
        "native": {
            "pytest_benchmark": {"seconds": [*timed.seconds]},
            "report": report.model_dump(mode="json"),
            "load_average_before": busy,
        },
    }


def _extent(context: Context, extent: Extent) -> Extent:
    return Extent.QUICK if context.quick else extent


def came_to_nothing(outcome: Outcome, words: str) -> Missing:
    """Tell a benchmark that left itself out from one that failed."""
    if outcome is Outcome.RAISED and words.startswith(SKIPPED):
        return Missing(missing=MissingReason.SKIPPED, detail=runtime_words(words.removeprefix(SKIPPED)))
    return Missing(missing=MissingReason.FAILED, detail=f"{outcome}: {runtime_words(words)}")


def doubts(report: Report, device: str) -> tuple[str, ...]:
    """List why a report must not be used: too few rounds, another device, an arm that did not run as it says."""
    found = [*too_few(len(report.rounds) // len(report.arms), "repetition of each arm")]
    for arm in report.arms:
        dump = report.dumps.get(arm.name)
        if dump is None:
            continue
        found += _elsewhere([dump], device)
        for control, value in arm.settings.items():
            live = dump.scheduler.get(control, dump.properties.get(control))
            if live is not None and live != written(value):
                found.append(f"{arm.name}: {control} is {live}; expected {written(value)}")
    return tuple(dict.fromkeys(found))


def _elsewhere(dumps: Sequence[Dump], device: str) -> Iterator[str]:
    return (wrong for dump in dumps if (wrong := executes_elsewhere(device, dump)))


def too_few(count: int, what: str) -> Iterator[str]:
    """Doubt fewer repetitions than a verdict needs; `what` is the noun of one of them."""
    if count < MIN_REPETITIONS:
        noun, _, rest = what.partition(" ")
        counted = f"{count} {noun}{'s' * (count != 1)} {rest}".rstrip()
        yield f"{MissingReason.TOO_FEW_SAMPLES}: {counted}; expected {MIN_REPETITIONS}"


def load(report: Report) -> Load:
    """Describe the load; requests are those that were timed, over all arms."""
    first = report.arms[0].name
    requests = [request for row in report.rounds for request in row.requests]
    return Load(
        schedule=report.schedule,
        concurrency=report.concurrency,
        requests=len(requests),
        warmup_requests=report.warmup_requests,
        prompt_tokens=tuple(request.prompt_tokens for row in report.rounds if row.arm == first for request in row.requests),
        max_tokens=report.max_tokens,
        prompt_set_sha256=report.prompt_set_sha256,
        quick=report.quick,
    )


def written(value: Scalar) -> str:
    """Write a setting as the runtime prints it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read(text: str) -> Scalar:
    """Read a setting from what the runtime prints."""
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if text.isdigit() else text


def _timed(result: ChildResult) -> Timed:
    entry: Any = result.value
    return Timed(
        report=Report.model_validate_json(json.dumps(entry["extra_info"]["report"])),
        seconds=tuple(entry["stats"]["data"]),
        peak_rss_bytes=result.peak_rss_bytes,
    )


def _device(dumps: Sequence[Dump], device: str) -> Device | Missing:
    names = [dump.devices for dump in dumps]
    full = next((found[name] for found in names for name in found), None)
    if full is None:
        return Missing(
            missing=MissingReason.NOT_MEASURED, detail=f"{device} was asked for; the engine did not say what executes"
        )
    return Device(name=device, full_name=full)


def _settings(dumps: Sequence[Dump], source: str, at: datetime) -> tuple[Setting, ...]:
    """Take the live settings that all arms share; those in which they differ belong to the arms."""
    provenance = Provenance(kind=ProvenanceKind.OBSERVED, date=at.date(), source=source)
    live = [_controls(dump) for dump in dumps]
    shared = {name: value for name, value in (live[0] if live else {}).items() if all(one.get(name) == value for one in live)}
    return tuple(
        Setting(technique=_CONTROLS[name], control=name, value=read(value), provenance=provenance)
        for name, value in shared.items()
    )


def _controls(dump: Dump) -> dict[str, str]:
    return {name: value for name, value in {**dump.scheduler, **dump.properties}.items() if name in _CONTROLS}
