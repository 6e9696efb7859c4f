"""One benchmark while it runs: arms measured in turn, A B A B, so that what disturbs the machine disturbs both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from probes.devices.engine import Answer, Engine
from probes.devices.prompts import prompt_set_sha256
from probes.evidence import Arm, Missing, Scalar
from probes.micro.rounds import Report, Request, Round
from probes.sensors.power import Energy, Sensor, average_power_w, read_energy

Prompt = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How an arm is carried out: scheduler settings of its own, and how many requests run at once."""

    arm: Arm
    scheduler: Mapping[str, Scalar] = field(default_factory=dict)
    concurrency: int = 1


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """What every arm does once: answer `before` one by one, untimed, then `measured`, timed."""

    before: tuple[Prompt, ...] = ()
    measured: tuple[Prompt, ...]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What a benchmark module gets: pytest-benchmark's fixture, the model, and how much to do.

    `repetitions` overrides what the module was made for.
    """

    benchmark: Any
    ir: Path
    device: str
    quick: bool
    repetitions: int | None
    sensor: Sensor | Missing
    progress: Callable[[str], None]

    def compare(
        self,
        variants: Sequence[Variant],
        repetitions: Sequence[Repetition],
        *,
        scheduler: Mapping[str, Scalar],
        warmup: Repetition,
        max_tokens: int,
        schedule: str,
    ) -> None:
        """Measure every repetition with every variant and leave the report in the benchmark's extra_info.

        Variants whose scheduler settings are the same share an engine. Each warms up with requests of
        the measured shape.
        """
        engines: dict[str, Engine] = {}
        for variant in variants:
            self.progress(f"warm-up: {variant.arm.name}")
            twin = next((v.arm.name for v in variants if v.arm.name in engines and v.scheduler == variant.scheduler), None)
            engines[variant.arm.name] = engines[twin] if twin else self._open({**scheduler, **variant.scheduler})
            _prepare(engines[variant.arm.name], warmup)
            _measure(engines[variant.arm.name], variant, warmup, max_tokens)
        rows: list[Round] = []
        turns = cycle(variants)

        def setup() -> tuple[tuple[Variant, Repetition], dict[str, Any]]:
            variant, repetition = next(turns), repetitions[len(rows) // len(variants)]
            self.progress(f"[{len(rows) + 1}/{len(variants) * len(repetitions)}] {variant.arm.name}")
            _prepare(engines[variant.arm.name], repetition)
            return (variant, repetition), {}

        def measured(variant: Variant, repetition: Repetition) -> None:
            rows.append(self._round(variant, engines[variant.arm.name], repetition, max_tokens))

        self.benchmark.pedantic(measured, setup=setup, rounds=len(variants) * len(repetitions), iterations=1)
        report = Report(
            arms=tuple(variant.arm for variant in variants),
            rounds=tuple(rows),
            dumps={name: engine.dump for name, engine in engines.items() if engine.dump is not None},
            schedule=schedule,
            concurrency=max(variant.concurrency for variant in variants),
            warmup_requests=len(variants) * (len(warmup.before) + len(warmup.measured)),
            max_tokens=max_tokens,
            prompt_set_sha256=prompt_set_sha256([p for repetition in repetitions for p in repetition.measured]),
        )
        self.benchmark.extra_info["report"] = report.model_dump(mode="json")

    def _open(self, scheduler: Mapping[str, Scalar]) -> Engine:
        return Engine.open(self.ir, device=self.device, properties={}, scheduler=scheduler)

    def _round(self, variant: Variant, engine: Engine, repetition: Repetition, max_tokens: int) -> Round:
        before = _energy(self.sensor)
        answers = _measure(engine, variant, repetition, max_tokens)
        power = _power_w(self.sensor, before, _energy(self.sensor))
        pairs = zip(repetition.measured, answers, strict=True)
        return Round(
            arm=variant.arm.name,
            requests=tuple(Request.of(len(prompt), answer) for prompt, answer in pairs),
            cache_usage_percent=engine.cache_usage_percent,
            power_w=power,
        )


def _prepare(engine: Engine, repetition: Repetition) -> None:
    for prompt in repetition.before:
        engine.answer([prompt], max_tokens=1)


def _measure(engine: Engine, variant: Variant, repetition: Repetition, max_tokens: int) -> list[Answer]:
    groups = _groups(repetition.measured, variant.concurrency)
    return [answer for group in groups for answer in engine.answer(group, max_tokens=max_tokens)]


def _groups(prompts: Sequence[Prompt], size: int) -> Iterator[Sequence[Prompt]]:
    for start in range(0, len(prompts), size):
        yield prompts[start : start + size]


def _energy(sensor: Sensor | Missing) -> Energy | Missing:
    return sensor if isinstance(sensor, Missing) else read_energy(sensor)


def _power_w(sensor: Sensor | Missing, before: Energy | Missing, after: Energy | Missing) -> float | Missing:
    if isinstance(sensor, Missing):
        return sensor
    if isinstance(before, Missing):
        return before
    return after if isinstance(after, Missing) else average_power_w(sensor, before, after)
