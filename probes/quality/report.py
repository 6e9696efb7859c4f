"""What a quality run says: a run as evidence, and a few lines for the person who waits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from probes.context import Context
from probes.evidence import (
    Decoding,
    Endpoint,
    EndpointState,
    Load,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    Run,
    RunKind,
    Scope,
)
from probes.quality.agreement import Agreement, with_itself
from probes.quality.result import Marked, Outcome, Quality

_WRONG_SHOWN: Final = 3
_ANSWER_SHOWN: Final = 60


def evidence(
    context: Context,
    quality: Quality,
    started_at: datetime,
    *,
    subject: str,
    scope: Scope,
    url: str,
    model: str,
    concurrency: int,
) -> Run:
    """Give a quality run as evidence: a sample per repetition, and every task with its answer in the native part."""
    answered = [one for one in quality.marked if one.answered]
    asked = _untold("the suites ask for answers only; the endpoint probe asks what runs there")
    return context.run(
        RunKind.QUALITY,
        subject,
        started_at,
        scope=scope,
        invalid=reasons(quality),
        server=asked,
        device=asked,
        runtime=asked,
        model=ModelFacts(id=model),
        endpoint=Endpoint(url=url, state=EndpointState.GENERATING if answered else EndpointState.FAILED),
        serving_sha256=asked,
        load=Load(
            schedule=f"closed loop: {concurrency} at a time",
            concurrency=concurrency,
            requests=quality.requests,
            warmup_requests=0,
            prompt_tokens=tuple(one.prompt_tokens for one in answered if one.prompt_tokens)
            or _untold("the server does not count prompt tokens"),
            max_tokens=quality.max_tokens,
            prompt_set_sha256=quality.tasks_sha256,
        ),
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos=False),
        metrics=quality.metrics(),
        native=native(quality),
    )


def native(quality: Quality) -> dict[str, JsonValue]:
    """Give what stands behind the shares; later repetitions only where they differ from the first."""
    first = {(one.suite, one.task): one for one in quality.marked if one.repetition == 0}
    rows = [one for one in quality.marked if one.repetition == 0 or not _as_before(first[one.suite, one.task], one)]
    return {
        "suites": [json.loads(suite.model_dump_json()) for suite in quality.suites],
        "tasks": [json.loads(one.model_dump_json(exclude={"pieces", "task_sha256"}, exclude_defaults=True)) for one in rows],
        "with_itself": with_itself(quality).document(),
        "thinking_tokens": quality.thinking_tokens,
        "stopped": quality.stopped,
    }


def reasons(quality: Quality) -> tuple[str, ...]:
    """Say why a run may not be used; a suite that the server does not support or the limits do not allow is no reason."""
    found = ["stopped"] if quality.stopped else []
    if any(one.outcome is Outcome.ERROR for one in quality.marked):
        found.append("requests-failed")
    if not any(one.answered for one in quality.marked):
        found.append("nothing-answered")
    return tuple(found)


def lines(quality: Quality, against: Agreement | None = None) -> Iterator[str]:
    """Say in a few lines what each suite scored, what was wrong first, and how repeatable it was."""
    yield f"{'suite':14}{'score':>8}  answers"
    for suite in quality.suites:
        score = f"{sum(suite.shares) / len(suite.shares):.3f}" if suite.shares else "-"
        counted = ", ".join(f"{count} {outcome}" for outcome, count in suite.outcomes.items())
        yield f"{suite.name:14}{score:>8}  {counted}"
        if suite.missing is not None and suite.judged:
            yield f"{'':14}{'':>8}  {suite.missing.missing}: {suite.missing.detail}"
        wrong = [one for one in quality.marked if one.suite == suite.name and one.points == 0 and one.repetition == 0]
        for one in wrong[:_WRONG_SHOWN]:
            yield f"{'':14}{'':>8}  {one.task}: {one.why}; {_brief(one)}"
    for metric in quality.metrics():
        if metric.name == "task_quality":
            yield f"{'task_quality':14}{_value(metric):>8}"
    if quality.repeat_agreement is not None:
        yield f"{quality.repetitions} repetitions: {quality.repeat_agreement:.0%} of the tasks answered alike each time"
        yield f"with itself: {with_itself(quality).words}"
    if against is not None:
        yield f"with the baseline: {against.words}"
    yield f"{quality.requests} requests; tasks {quality.tasks_sha256[:12]}"
    if quality.stopped:
        yield f"stopped: {quality.stopped}"


def _brief(one: Marked) -> str:
    text = " ".join(one.answer.split())
    return f"answer: {text[:_ANSWER_SHOWN]}{'…' if len(text) > _ANSWER_SHOWN else ''}"


def _value(metric: Metric) -> str:
    return f"{sum(metric.samples) / len(metric.samples):.3f}" if metric.samples else "-"


def _as_before(one: Marked, other: Marked) -> bool:
    return (one.outcome, one.answer_sha256) == (other.outcome, other.answer_sha256)


def _untold(why: str) -> Missing:
    return Missing(missing=MissingReason.NOT_MEASURED, detail=why)
