"""What was measured, as a rule is shown it: runs of this machine and of the fleet, and the rows they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gen.assess import assess
from gen.assessment import Assessment, Cell
from probes.evidence import (
    Arm,
    Capability,
    CapabilityState,
    Device,
    Direction,
    Endpoint,
    EndpointState,
    Metric,
    ModelFacts,
    Per,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Scalar,
    Setting,
    Technique,
)
from tests.gen.ledger import NOVEMBER, inventory, ledger
from tests.gen.specimens import FINGERPRINT, START, run

LOCAL = f"local-{FINGERPRINT}"
GENAI = Runtime(name="openvino-genai", version="2026.4.1.0-3408-ab01d1771e4")
CPU = Device(name="CPU", full_name="Example CPU 3000")
STEADY = (1.0, 1.002, 0.998, 1.001, 0.999, 1.003, 0.997)
Rows = dict[Technique, Assessment]


def local(*runs: Run) -> Rows:
    return {row.technique: row for row in assess(ledger(local_runs=runs), LOCAL, NOVEMBER)}


def fleet(*runs: Run) -> Rows:
    return {row.technique: row for row in assess(ledger(runs=runs), "fleet", NOVEMBER)}


def keys(rows: Rows) -> dict[Technique, dict[str, object]]:
    return {technique: row.key() for technique, row in rows.items()}


def cell(rows: Rows, technique: Technique, service: str = "embedded") -> Cell:
    return next(cell for cell in rows[technique].cells if cell.service == service)


def ab(
    subject: str,
    metric: str,
    direction: Direction,
    factor: float,
    *,
    samples: Sequence[float] = STEADY,
    worse: str = "",
    **fields: Any,
) -> Run:
    """An A/B run whose candidate's samples are the baseline's times a factor; `worse` names a metric that fails."""
    unit = "s" if metric.endswith("_s") and not metric.endswith("tok_s") else "tok/s"

    def of(name: str, arm: str, values: Sequence[float], way: Direction, unit: str) -> Metric:
        return Metric(name=name, unit=unit, direction=way, per=Per.REPETITION, arm=arm, samples=tuple(values))

    metrics = [of(metric, "off", samples, direction, unit), of(metric, "on", [v * factor for v in samples], direction, unit)]
    if worse:
        lower = Direction.LOWER
        metrics += [of(worse, "off", [0.0] * 7, lower, "share"), of(worse, "on", [0.5] * 7, lower, "share")]
    arms = (Arm(name="off", role="baseline"), Arm(name="on", role="candidate"))
    values: dict[str, Any] = {"runtime": GENAI, "device": CPU, "arms": arms, "metrics": tuple(metrics), "minute": 20}
    values |= fields
    return run(values.pop("kind", RunKind.MICRO), subject, **values)


def prefix(factor: float, **fields: Any) -> Run:
    return ab("prefix-caching", "ttft_s", Direction.LOWER, factor, **fields)


def batching(factor: float, **fields: Any) -> Run:
    return ab("continuous-batching", "aggregate_tok_s", Direction.HIGHER, factor, **fields)


def endpoint(seen_settings: dict[str, Scalar], *, subject: str = "embedded", **fields: Any) -> Run:
    seen = Provenance(kind=ProvenanceKind.OBSERVED, date=START.date(), source="the endpoint")
    return run(
        RunKind.ENDPOINT,
        subject,
        **{
            "minute": 10,
            "runtime": GENAI,
            "device": CPU,
            "endpoint": Endpoint(url="http://127.0.0.1:8000", state=EndpointState.GENERATING),
            "settings": tuple(
                Setting(technique=Technique.PREFIX_CACHING, control=control, value=value, provenance=seen)
                for control, value in seen_settings.items()
            ),
            **fields,
        },
    )


def devices(states: dict[str, CapabilityState], *, minute: int = 0, words: str = "") -> Run:
    return run(
        RunKind.DEVICES,
        "cpu",
        minute=minute,
        runtime=GENAI,
        device=CPU,
        capabilities=tuple(
            Capability(name="KV_CACHE_PRECISION", technique=Technique.KV_CACHE, requested=value, state=state, words=words)
            for value, state in states.items()
        ),
    )


DECLARED = dict(inventory().embedded.settings)
EFFECTIVE = {"u8": CapabilityState.EFFECTIVE, "u4": CapabilityState.EFFECTIVE, "bf16": CapabilityState.REFUSED}


def everything(**changes: Any) -> tuple[Run, ...]:
    model = ModelFacts(id="SmolLM2-135M-Instruct", quantization="Q8_0")
    return (devices(EFFECTIVE), endpoint(DECLARED, model=model, **changes), prefix(0.2), batching(2.5))


def moved(after: Rows) -> set[tuple[Technique, str]]:
    found = set()
    for technique, row in fleet().items():
        other = after[technique]
        found |= {(technique, "row")} if row.key() != other.key() else set()
        found |= {(technique, one.service) for one, two in zip(row.cells, other.cells, strict=True) if one != two}
    return found
