"""The task suites of a contract run: asked of each side after the load, and never under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from probes.context import Context
from probes.contract.opening import Opened
from probes.contract.shape import ContractShape
from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.fleet import ProbeLimits
from probes.quality.agreement import between, with_itself
from probes.quality.asking import INTERRUPTED, Limits, measure
from probes.quality.chat import HttpChat
from probes.quality.library import suites
from probes.quality.result import TASK_QUALITY, Quality

__all__ = ["INTERRUPTED", "Quality", "ask", "document", "metrics", "unasked"]


def ask(side: Opened, shape: ContractShape, sides: int, context: Context) -> Quality:
    """Ask all suites of one side; it gets no more requests than the limits of its address, shared by `sides`, leave."""
    gate, limits = side.observer.gate, side.limits
    chat = HttpChat(gate.address, model=side.load.model, key=gate.key, tls=side.tls, timeout_s=shape.timeout_s)
    context.say(f"Task suites: {side.side.word}")
    return measure(
        chat,
        suites(),
        limits=_limits(limits, shape, sides),
        repetitions=shape.quality_repetitions,
        quote=side.quoter.text,
        tell=context.say,
    )


def metrics(found: Mapping[str, Quality], arm: str, why_none: Missing) -> Iterator[Metric]:
    """Give a side's shares of right answers, and how far the candidate's answers are those of the baseline."""
    quality = found.get(arm)
    if quality is None:
        yield unasked(arm, why_none)
        return
    first = next(iter(found.values()))
    for metric in quality.metrics(arm):
        if metric.name == TASK_QUALITY and quality.tasks_sha256 != first.tasks_sha256:
            yield unasked(arm, _failed("the sides were scored on different tasks"))
        else:
            yield metric
    yield (with_itself(first) if quality is first else between(first, quality)).metric(arm)


def unasked(arm: str, why: Missing) -> Metric:
    """Say why there is no share of right answers."""
    return Metric(name=TASK_QUALITY, unit="share", direction=Direction.HIGHER, per=Per.REPETITION, arm=arm, missing=why)


def document(found: Mapping[str, Quality]) -> dict[str, JsonValue]:
    """Keep what became of every task, without the texts."""
    return {
        arm or "side": {
            "tasks_sha256": quality.tasks_sha256,
            "repetitions": quality.repetitions,
            "requests": quality.requests,
            "stopped": quality.stopped,
            "suites": {suite.name: dict(suite.outcomes) for suite in quality.suites},
            "answers": [[f"{one.suite}/{one.task}", one.repetition, one.outcome.value, one.points] for one in quality.marked],
        }
        for arm, quality in found.items()
    }


def _limits(limits: ProbeLimits | None, shape: ContractShape, sides: int) -> Limits:
    if limits is None:
        return Limits(concurrency=shape.concurrency)
    left = max(0, limits.requests // sides - shape.side_requests)
    return Limits(requests=left, max_tokens=limits.max_tokens, concurrency=min(shape.concurrency, limits.concurrency))


def _failed(detail: str) -> Missing:
    return Missing(missing=MissingReason.FAILED, detail=detail)
