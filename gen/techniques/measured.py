"""What micro-benchmarks of a machine have shown about a technique beside the arm that its rule decides by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gen.assessment import Fact, Ref, RefKind
from gen.benchmarks import BREAK_EVEN, Benchmark, of_technique
from gen.spread import quantity, spread
from gen.techniques.grounds import bench_told
from gen.view import Bench, ServiceView, View
from gen.words import Verdict
from probes.evidence import Arm, Missing, ProvenanceKind, Technique

# Beside a verdict on speed: what a cache costs in memory, and how far answers stay the same.
_BESIDE = {"kv_bytes_per_token": "of KV cache per token", "token_agreement": "of the tokens as without it"}


def told_facts(view: View, technique: Technique) -> tuple[Fact, ...]:
    """State each arm that was measured and decides nothing; that it is known is the value, so noise moves no record."""
    if not view.local:
        return ()
    return tuple(
        _fact(benchmark, bench)
        for benchmark in of_technique(technique)
        if benchmark.metric != BREAK_EVEN
        for service in view.services
        for bench in _told(view, service, benchmark)
    )


def _told(view: View, service: ServiceView, benchmark: Benchmark) -> Iterator[Bench]:
    runs = [run for run in service.runs if run.subject == benchmark.subject and run.validity.valid]
    names = dict.fromkeys(
        arm.name for run in runs for arm in run.arms if arm.role == "candidate" and not benchmark.decides(arm)
    )
    for name in names:
        found = view.measured(service, benchmark.subject, (benchmark.metric,), partial(_is_named, name))
        if found is not None and found.verdict is not Verdict.NOT_MEASURED:
            yield found


def _is_named(name: str, arm: Arm) -> bool:
    return arm.name == name


def _fact(benchmark: Benchmark, bench: Bench) -> Fact:
    device = bench.run.subject if isinstance(bench.run.device, Missing) else bench.run.device.name
    beside = "".join(f" {told}" for told in _beside(bench))
    return Fact(
        id=f"{device}/{benchmark.subject}/{bench.candidate.name}",
        value="measured",
        text=f"{device}, {benchmark.about}: {bench_told(bench)}{beside}",
        provenance=ProvenanceKind.MEASURED,
        date=bench.run.date,
        ref=Ref(kind=RefKind.RUN, target=bench.run.id),
    )


def _beside(bench: Bench) -> Iterator[str]:
    for name, words in _BESIDE.items():
        metric = bench.run.metric(name, bench.candidate.name)
        if metric is not None and metric.samples:
            yield f"{quantity(spread(metric.samples, metric.per).median, metric.unit)} {words}."
