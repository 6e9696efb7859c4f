"""One workload in its child process: loaded, asked by turns, and then asked for what an LLM can do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from probes import telemetry
from probes.declared.ir import read_ir
from probes.devices.words import runtime_words
from probes.evidence import Arm, CapabilityState
from probes.micro.bench import within_budget
from probes.workloads.catalogue import of_subject
from probes.workloads.engines import Embedder, Engine, open_network, open_package
from probes.workloads.report import Attempt, Report, Structure, Turn

IR: Final = "openvino_model.xml"
# Four requests in each of six turns are enough for a p95; an arm beside the baseline is compared by its turns.
_REQUESTS: Final = 4


def run_workload(
    *,
    subject: str,
    files: list[str],
    device: str,
    scratch: str,
    repetitions: int,
    budget_s: float,
    quick: bool,
    emit: Callable[[JsonValue], None],
) -> JsonValue:
    """Load and measure a workload (runs in the child).

    Raises:
        RuntimeError: neither OpenVINO nor the package's engine answers, in their words.
    """
    workload = of_subject(subject)
    attempts, model = _load(files)
    if model is None and not workload.engine:
        raise RuntimeError("; ".join(f"{one.file}: {one.words}" for one in attempts))
    engine: Engine
    structure: Structure | None = None
    if model is not None:
        network = open_network(workload, model, device)
        structure, engine = _structure(model, network.compiled, Path(scratch)), network
    else:
        engine = open_package(workload, Path(files[-1]))
    left_out = dict.fromkeys(workload.heavy, "quick") if quick else {}
    arms = [arm for arm in workload.arms if arm.name not in left_out]
    emit("warm-up")
    # The first request compiles for its shape; the second costs what all others will.
    costs = {arm.name: [_timed(engine, arm, 0), _timed(engine, arm, 1)][1] * _requests(arm) for arm in arms}
    fitting = within_budget(costs, repetitions=repetitions, budget_s=budget_s)
    if not fitting.names:
        baseline = {arms[0].name: costs[arms[0].name]}
        fitting = replace(within_budget(baseline, repetitions=repetitions, budget_s=budget_s), words=fitting.words)
    if not fitting.names:
        raise RuntimeError(f"Skipped: budget: {fitting.words}")
    left_out |= {arm.name: f"budget: {fitting.words}" for arm in arms if arm.name not in fitting.names}
    arms = [arm for arm in arms if arm.name in fitting.names]
    turns: list[Turn] = []
    for repetition in range(fitting.repetitions):
        for arm in arms:
            emit(f"[{len(turns) + 1}/{fitting.repetitions * len(arms)}] {arm.name}")
            numbers = range(2 + repetition * _REQUESTS, 2 + repetition * _REQUESTS + _requests(arm))
            turns.append(Turn(arm=arm.name, seconds=tuple(_timed(engine, arm, number) for number in numbers)))
    report = Report(
        attempts=tuple(attempts),
        structure=structure,
        dimensions=engine.dimensions if isinstance(engine, Embedder) else 0,
        turns=tuple(turns),
        left_out=left_out,
        warmup_requests=2 * len(costs),
    )
    value: JsonValue = report.model_dump(mode="json")
    return value


def _requests(arm: Arm) -> int:
    return _REQUESTS if arm.role == "baseline" else 1


def _timed(engine: Engine, arm: Arm, number: int) -> float:
    request = engine.prepare(arm.settings, number)
    started = time.perf_counter()
    engine.answer(request)
    return time.perf_counter() - started


def _load(files: list[str]) -> tuple[list[Attempt], Any]:
    """Ask OpenVINO for each file until it loads one."""
    telemetry.silence()
    import openvino

    attempts: list[Attempt] = []
    for file in files:
        try:
            model = openvino.Core().read_model(file)
        except RuntimeError as exc:
            attempts.append(Attempt(file=Path(file).name, state=CapabilityState.REFUSED, words=runtime_words(str(exc))))
            continue
        effect = f"a network of {len(model.get_ordered_ops())} operations"
        return [*attempts, Attempt(file=Path(file).name, state=CapabilityState.EFFECTIVE, effect=effect)], model
    return attempts, None


def _structure(model: Any, compiled: Any, scratch: Path) -> Structure:
    """Count what the network is made of, by the IR that OpenVINO itself writes of it."""
    import openvino

    openvino.save_model(model, scratch / IR, compress_to_fp16=False)
    ir = read_ir(scratch / IR, IR)
    executes_on = tuple(compiled.get_property("EXECUTION_DEVICES"))
    return Structure(
        kind=ir.network.kind.value,
        why=ir.network.why,
        states=len(compiled.create_infer_request().query_state()),
        precision=ir.precision[0] if ir.precision else "",
        executes_on=executes_on,
        full_device_name=str(openvino.Core().get_property(executes_on[0], "FULL_DEVICE_NAME")),
    )
