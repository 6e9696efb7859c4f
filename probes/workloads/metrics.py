"""From turns to metrics: what the workload brings per second, in the place of tokens."""

from __future__ import annotations

from collections.abc import Iterator

from probes.evidence import Arm, Metric, Missing, MissingReason, Per
from probes.micro.metrics import LATENCY, MEMORY, P95_LATENCY, metric_of, missing_of, p95_latency
from probes.workloads.catalogue import BATCH, REAL_TIME, Workload
from probes.workloads.report import Report, Turn


def measured(workload: Workload, report: Report, peak_rss_bytes: int) -> tuple[Metric, ...]:
    """Give one sample per turn and arm, and each request's latency; the arms share one process and so its memory."""
    found = [metric_of(MEMORY, "", Per.RUN, (float(peak_rss_bytes),))]
    for arm in workload.arms:
        turns = [turn for turn in report.turns if turn.arm == arm.name]
        if turns:
            found += _of_arm(workload, arm, turns)
        else:
            why = report.left_out.get(arm.name, "no turn was measured")
            found += [missing_of(one, arm.name, MissingReason.SKIPPED, why) for one in (workload.rate, LATENCY, P95_LATENCY)]
    return tuple(found)


def unmeasured(workload: Workload, missing: Missing) -> tuple[Metric, ...]:
    """Say of all that would have been measured why it was not."""
    quantities = (MEMORY, workload.rate, LATENCY, P95_LATENCY)
    return tuple(missing_of(one, "", missing.missing, missing.detail) for one in quantities)


def _of_arm(workload: Workload, arm: Arm, turns: list[Turn]) -> Iterator[Metric]:
    batch = int(arm.settings[BATCH])
    yield metric_of(workload.rate, arm.name, Per.REPETITION, tuple(_rate(workload, batch, turn) for turn in turns))
    latencies = tuple(second for turn in turns for second in turn.seconds)
    yield metric_of(LATENCY, arm.name, Per.REQUEST, latencies)
    yield p95_latency(arm.name, latencies)


def _rate(workload: Workload, batch: int, turn: Turn) -> float:
    """Give inputs per second, or seconds of work per second of sound: streams that run together share the work."""
    done, spent = len(turn.seconds) * batch, sum(turn.seconds)
    return spent / (done * workload.seconds) if workload.rate is REAL_TIME else done / spent
