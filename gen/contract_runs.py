"""Contract runs: which of them speak about a technique, and how one is asked for again."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pydantic import JsonValue

from gen.comparability import likeness, sides_of
from gen.corpus import Corpus
from gen.view import FLEET
from probes.evidence import LocalScope, Run, RunKind, Technique

_OPTIONS = (
    "repetitions",
    "requests",
    "concurrency",
    "max_tokens",
    "prompt",
    "shared_prefix",
    "timeout_s",
    "budget_s",
    "quality_repetitions",
)


def contract_runs(corpus: Corpus, technique: Technique, scope: str) -> tuple[Run, ...]:
    """Find the newest valid contract run of a scope whose sides differ in a setting of the technique; none or one."""
    controls = corpus.knowledge.settings_of(technique)
    found = [
        run
        for run in corpus.runs + corpus.local_runs
        if run.kind is RunKind.CONTRACT and run.validity.valid and _within(run, scope) and _changes(run) & controls
    ]
    return tuple(sorted(found, key=lambda run: (run.started_at, run.id))[-1:])


def command(run: Run) -> list[str]:
    """Write a contract run as the words of `python -m probes`; empty for one that does not say how it was asked for."""
    told = run.native.get("contract")
    sides = told.get("sides") if isinstance(told, dict) else None
    words = [word for word in sides.values() if isinstance(word, str)] if isinstance(sides, dict) else []
    return ["contract", *words, *_options(told.get("shape") if isinstance(told, dict) else None)] if words else []


def latencies(run: Run) -> dict[str, tuple[float, ...]]:
    """Give the latency of every request of each side, in seconds; empty for a run that kept none."""
    told = run.native.get("contract")
    kept = told.get("latencies_s") if isinstance(told, dict) else None
    found = {}
    for side, blocks in kept.items() if isinstance(kept, dict) else ():
        every = [value for block in blocks if isinstance(block, list) for value in block] if isinstance(blocks, list) else []
        numbers = tuple(float(value) for value in every if isinstance(value, int | float) and math.isfinite(value))
        if numbers:
            found[side] = numbers
    return found


def _within(run: Run, scope: str) -> bool:
    if isinstance(run.scope, LocalScope):
        return scope == f"local-{run.scope.fingerprint}"
    return scope in {FLEET, f"{FLEET}/{run.scope.service}"}


def _changes(run: Run) -> set[str]:
    both = sides_of(run)
    return {one.name for one in likeness(*both).under_test} if both else set()


def _options(shape: JsonValue) -> Iterator[str]:
    if not isinstance(shape, dict):
        return
    for name in _OPTIONS:
        if isinstance(value := shape.get(name), int | float | str):
            yield from (f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value))
    if shape.get("full_length") is False:
        yield "--natural-length"
    slo = shape.get("slo")
    bounds = slo.get("bounds") if isinstance(slo, dict) else None
    if isinstance(bounds, dict) and bounds:
        # Whoever set them then: a workload of the inventory may have others by now.
        yield from ("--slo", ",".join(f"{name}={value}" for name, value in bounds.items()))
