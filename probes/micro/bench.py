"""One benchmark while it runs: arms measured in turn, A B A B, so that what disturbs the machine disturbs both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from probes.devices.engine import Answer, Engine
from probes.devices.prompts import prompt_set_sha256
from probes.devices.words import runtime_words
from probes.evidence import Arm, Missing, Scalar
from probes.micro.rounds import MIN_REPETITIONS, Report, Request, Round, Skipped
from probes.sensors.power import Energy, Sensor, average_power_w, read_energy

Prompt = tuple[int, ...]
# A multiple of the blocks that devices keep: 32 tokens on CPU, 16 on GPU.
BLOCK_TOKENS = 32


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How an arm is carried out: settings of its engine and of its requests, and how many of them run at once.

    `ir` takes the place of the benchmark's model folder; `draft` is loaded beside it.
    """

    arm: Arm
    scheduler: Mapping[str, Scalar] = field(default_factory=dict)
    properties: Mapping[str, Scalar] = field(default_factory=dict)
    generation: Mapping[str, Scalar] = field(default_factory=dict)
    ir: Path | None = None
    draft: Path | None = None
    concurrency: int = 1

    def shares_engine(self, other: Variant) -> bool:
        """Tell whether two variants differ only in what a request can ask for."""
        mine, theirs = ((v.scheduler, v.properties, v.ir, v.draft) for v in (self, other))
        return mine == theirs


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """What every arm does once: answer `before` one by one, untimed, then `measured`, timed.

    Prompts that are `late` join the running batch when each of its requests has `late_after` tokens.
    """

    before: tuple[Prompt, ...] = ()
    measured: tuple[Prompt, ...]
    late: tuple[Prompt, ...] = ()
    late_after: int = 1

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """All prompts that are timed, in the order of their answers."""
        return self.measured + self.late


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What a benchmark module gets: pytest-benchmark's fixture, the model, and how much to do.

    `core` measures what decides alone, for a run that has other parts beside it; `quick` does so with shorter
    prompts too. `repetitions` and `budget_s` override what the module was made for. `head` is an EAGLE-3 head
    that the user has, `draft` a draft model in its place; `scratch` is a folder that is gone afterwards.
    """

    benchmark: Any
    ir: Path
    device: str
    quick: bool
    core: bool
    repetitions: int | None
    budget_s: float | None
    head: Path | None
    draft: Path | None
    scratch: Path
    sensor: Sensor | Missing
    progress: Callable[[str], None]

    def chosen(self, variants: Sequence[Variant], core: int) -> tuple[list[Variant], list[Skipped]]:
        """Keep all variants, or the first ones, which decide, where a run has to be short; the others are skipped."""
        if not (self.quick or self.core):
            return [*variants], []
        reason = "quick" if self.quick else "measured when micro is probed without all other parts: nox -s probe -- micro"
        return [*variants[:core]], [Skipped(arm=variant.arm, reason=reason) for variant in variants[core:]]

    def rounds(self, *, usual: int) -> int:
        """Say how often each arm is measured."""
        return self.repetitions or (MIN_REPETITIONS if self.quick or self.core else usual)

    def compare(
        self,
        variants: Sequence[Variant],
        repetitions: Sequence[Repetition],
        *,
        scheduler: Mapping[str, Scalar],
        warmup: Repetition,
        max_tokens: int,
        schedule: str,
        budget_s: float | None = None,
        skipped: Sequence[Skipped] = (),
    ) -> None:
        """Measure every repetition with every variant and leave the report in the benchmark's extra_info.

        Variants whose engines have the same settings share one. Each warms up with requests of the measured
        shape. A candidate that the runtime refuses is left out with its words, and what the warm-up shows not
        to fit into the budget too, the last variant first.

        Raises:
            RuntimeError: the runtime refused the baseline or every candidate, in its words.
        """
        skipped = [*skipped]
        engines: dict[str, Engine] = {}
        costs: dict[str, float] = {}
        refusals: dict[str, RuntimeError] = {}
        for variant in variants:
            self.progress(f"warm-up: {variant.arm.name}")
            twin = next((v.arm.name for v in variants if v.arm.name in engines and v.shares_engine(variant)), None)
            try:
                engine = engines[twin] if twin else self._open(variant, scheduler)
                costs[variant.arm.name] = _seconds(engine, variant, warmup, max_tokens)
            except RuntimeError as exc:
                if variant.arm.role == "baseline":
                    raise
                refusals[variant.arm.name] = exc
                skipped.append(Skipped(arm=variant.arm, reason=runtime_words(str(exc)), refused=True))
            else:
                engines[variant.arm.name] = engine
        variants = [variant for variant in variants if variant.arm.name in engines]
        if len(variants) == 1 and refusals:
            raise next(iter(refusals.values()))
        warmups = 1
        if budget_s is not None:
            fitting = within_budget(costs, repetitions=len(repetitions), budget_s=budget_s)
            if (len(fitting.names), fitting.repetitions) != (len(variants), len(repetitions)):
                # The first requests of an engine compile kernels; the second ones cost what all others will.
                warmups = 2
                costs = {v.arm.name: _seconds(engines[v.arm.name], v, warmup, max_tokens) for v in variants}
                fitting = within_budget(costs, repetitions=len(repetitions), budget_s=budget_s)
            if not fitting.names:
                pytest.skip(f"budget: {fitting.words}")
            left_out = [variant.arm for variant in variants if variant.arm.name not in fitting.names]
            skipped += [Skipped(arm=arm, reason=f"budget: {fitting.words}") for arm in left_out]
            variants = [variant for variant in variants if variant.arm.name in fitting.names]
            repetitions = repetitions[: fitting.repetitions]
        rows: list[Round] = []
        turns = cycle(variants)

        def setup() -> tuple[tuple[Variant, Repetition], dict[str, Any]]:
            variant, repetition = next(turns), repetitions[len(rows) // len(variants)]
            self.progress(f"[{len(rows) + 1}/{len(variants) * len(repetitions)}] {variant.arm.name}")
            _prepare(engines[variant.arm.name], repetition)
            return (variant, repetition), {}

        def measured(variant: Variant, repetition: Repetition) -> None:
            limit = {**scheduler, **variant.scheduler}.get("max_num_batched_tokens", 0)
            rows.append(self._round(variant, engines[variant.arm.name], repetition, max_tokens, int(limit)))

        self.benchmark.pedantic(measured, setup=setup, rounds=len(variants) * len(repetitions), iterations=1)
        report = Report(
            arms=tuple(variant.arm for variant in variants),
            skipped=tuple(skipped),
            rounds=tuple(rows),
            dumps={v.arm.name: dump for v in variants if (dump := engines[v.arm.name].dump) is not None},
            schedule=schedule,
            concurrency=max(variant.concurrency for variant in variants),
            warmup_requests=warmups * len(variants) * (len(warmup.before) + len(warmup.prompts)),
            max_tokens=max_tokens,
            prompt_set_sha256=prompt_set_sha256([p for repetition in repetitions for p in repetition.prompts]),
            quick=self.quick,
        )
        self.benchmark.extra_info["report"] = report.model_dump(mode="json")

    def _open(self, variant: Variant, scheduler: Mapping[str, Scalar]) -> Engine:
        return Engine.open(
            variant.ir or self.ir,
            device=self.device,
            properties=variant.properties,
            scheduler={**scheduler, **variant.scheduler},
            draft=variant.draft,
        )

    def _round(self, variant: Variant, engine: Engine, repetition: Repetition, max_tokens: int, step_tokens: int) -> Round:
        before = _energy(self.sensor)
        answers = _measure(engine, variant, repetition, max_tokens)
        power = _power_w(self.sensor, before, _energy(self.sensor))
        pairs = zip(repetition.prompts, answers, strict=True)
        # The first step of a long prompt takes as many tokens as a step may; of a short one it leaves a block half empty.
        filled = step_tokens if step_tokens % BLOCK_TOKENS == 0 and len(repetition.measured[0]) >= step_tokens else 0
        return Round(
            arm=variant.arm.name,
            requests=tuple(Request.of(len(prompt), answer, timeline=bool(repetition.late)) for prompt, answer in pairs),
            cache_usage_percent=engine.cache_usage_percent,
            kv_bytes_per_token=round(answers[0].chunk_bytes / filled) if filled else None,
            power_w=power,
        )


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """What of a benchmark fits into its budget; without names nothing does. `words` say what it came to."""

    names: tuple[str, ...]
    repetitions: int
    words: str


def within_budget(costs: Mapping[str, float], *, repetitions: int, budget_s: float) -> Fitting:
    """Choose how many variants, the first ones, and how many repetitions of each fit; `costs` are seconds of one.

    Repetitions shrink before variants go, but never below what bounds a median.
    """
    fewest = min(repetitions, MIN_REPETITIONS)
    names = list(costs)
    while len(names) > 2 and fewest * sum(costs[name] for name in names) > budget_s:
        names.pop()
    cycle_s = sum(costs[name] for name in names)
    words = f"{fewest} repetitions of all {len(costs)} arms take about {fewest * sum(costs.values()):.0f} s of {budget_s:g} s"
    affordable = int(budget_s / cycle_s) if cycle_s else repetitions
    if affordable < fewest:
        return Fitting(names=(), repetitions=0, words=words)
    return Fitting(names=tuple(names), repetitions=min(repetitions, affordable), words=words)


def _prepare(engine: Engine, repetition: Repetition) -> None:
    for prompt in repetition.before:
        engine.answer([prompt], max_tokens=1)


def _measure(engine: Engine, variant: Variant, repetition: Repetition, max_tokens: int) -> list[Answer]:
    asked: dict[str, Any] = {"max_tokens": max_tokens, "generation": variant.generation}
    if repetition.late:
        return [*engine.answer(repetition.measured, late=repetition.late, late_after=repetition.late_after, **asked)]
    groups = _groups(repetition.measured, variant.concurrency)
    return [answer for group in groups for answer in engine.answer(group, **asked)]


def _seconds(engine: Engine, variant: Variant, repetition: Repetition, max_tokens: int) -> float:
    _prepare(engine, repetition)
    started = time.perf_counter()
    _measure(engine, variant, repetition, max_tokens)
    return time.perf_counter() - started


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
