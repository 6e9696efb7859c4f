"""What requests to a service have measured: shares of their time, their tail, their prompts and the speed of prefill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen.planners.plan import Given, Span, derived, of_metric
from gen.spread import FEWEST_FOR_P95, percentile
from gen.view import ServiceView, of_its_release
from probes.evidence import Metric, Missing, Per, ProvenanceKind, Run, RunKind

FAR_TAIL = 3.0
FEWEST_FOR_TAIL = 5 * FEWEST_FOR_P95
_ASKING = {RunKind.LOAD, RunKind.CONTRACT, RunKind.ENDPOINT}


def asking(service: ServiceView) -> tuple[Run, ...]:
    """Give the valid runs of its release that sent requests over the wire, a load before a single look, the newest first."""
    runs = [run for run in service.runs if run.kind in _ASKING and run.validity.valid and of_its_release(run, service)]
    return tuple(sorted(runs, key=lambda run: (run.kind is not RunKind.ENDPOINT, run.started_at, run.id), reverse=True))


def samples(run: Run, name: str) -> Span | None:
    """Give the median of a run's own samples of a metric with their bounds."""
    return next((span for metric in _named(run, name) if (span := of_metric(metric)) is not None), None)


def size(run: Run, name: str) -> int:
    """Count the samples that `samples` summarises."""
    return next((len(metric.samples) for metric in _named(run, name)), 0)


def highest(service: ServiceView, names: Sequence[str]) -> float | None:
    """Give the highest sample of some metrics in the newest run that has any."""
    for run in asking(service):
        found = [value for name in names for metric in _named(run, name) for value in metric.samples]
        if found:
            return max(found)
    return None


def median_of(service: ServiceView, name: str) -> tuple[Run, Span] | None:
    """Find the newest measured samples of a metric with their bounds."""
    found = ((run, samples(run, name)) for run in asking(service))
    return next(((run, span) for run, span in found if span is not None), None)


def tail_ratio(service: ServiceView) -> float | None:
    """Hold the 99th percentile of latency against the median; None from fewer than a hundred requests."""
    for run in asking(service):
        for metric in _named(run, "latency_s"):
            if metric.per is Per.REQUEST and len(metric.samples) >= FEWEST_FOR_TAIL:
                return percentile(metric.samples, 0.99) / percentile(metric.samples, 0.5)
    return None


def most_tok_s(service: ServiceView) -> float | None:
    """Give the highest aggregate throughput that a load reached."""
    found = [value for run in asking(service) for metric in _named(run, "aggregate_tok_s") for value in metric.samples]
    return max(found, default=None)


def prompt_spread(service: ServiceView) -> float | None:
    """Hold the longest prompt of a load against the shortest."""
    for run in asking(service):
        lengths = () if isinstance(run.load, Missing) or isinstance(run.load.prompt_tokens, Missing) else run.load.prompt_tokens
        if run.kind is not RunKind.ENDPOINT and lengths and min(lengths) > 0:
            return max(lengths) / min(lengths)
    return None


def prefill_tok_s(service: ServiceView) -> Given | None:
    """Give the measured speed of prefill: as the server told it, else tokens of a prompt by the time to the first token."""
    told = median_of(service, "prefill_tok_s")
    if told is not None:
        run, span = told
        known, source = ProvenanceKind.MEASURED, "prefill_tok_s"
        return Given(name="prefill speed", span=span, known=known, source=source, run=run.id, samples=size(run, source))
    runs = [
        run
        for run in service.runs
        if run.validity.valid and run.kind is RunKind.MICRO and run.subject == "prefix-caching" and of_its_release(run, service)
    ]
    for run in sorted(runs, key=lambda run: (run.started_at, run.id), reverse=True):
        lengths = () if isinstance(run.load, Missing) or isinstance(run.load.prompt_tokens, Missing) else run.load.prompt_tokens
        cold = next((arm.name for arm in run.arms if arm.role == "baseline"), "")
        metric = run.metric("ttft_s", cold)
        first = of_metric(metric)
        if metric is not None and first is not None and len(set(lengths)) == 1:
            speed = derived("tok/s", lambda seconds, tokens=lengths[0]: tokens / seconds, first)
            source = f"{lengths[0]} tokens by their time to the first token, {cold}"
            known, n = ProvenanceKind.MEASURED, len(metric.samples)
            return Given(name="prefill speed", span=speed, known=known, source=source, run=run.id, samples=n)
    return None


def _named(run: Run, name: str) -> Iterator[Metric]:
    yield from (metric for metric in run.metrics if metric.name == name and metric.samples)
