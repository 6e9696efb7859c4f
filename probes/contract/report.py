"""A contract run as evidence: one sample per repetition and side, and what both sides were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue

from probes.context import Context
from probes.contract.block import QUANTITIES, Block, of_trouble
from probes.contract.course import Course
from probes.contract.opening import Closed, Opened
from probes.contract.quality import Quality, document, metrics
from probes.contract.shape import FEWEST_REPETITIONS, ContractShape
from probes.contract.side import Side, SideKind
from probes.evidence import (
    Arm,
    Endpoint,
    EndpointState,
    FleetScope,
    Metric,
    Missing,
    MissingReason,
    Per,
    Run,
    RunKind,
    Scalar,
    Scope,
    Served,
)
from probes.load.kinds import Kind
from probes.load.series import TokenSource

BASELINE: Final = "baseline"
CANDIDATE: Final = "candidate"
_DIGITS: Final = 7
_MOST_LATENCIES: Final = 20_000
_SHARED: Final = ("server", "device", "runtime", "model")
_DIFFER: Final = Missing(missing=MissingReason.NOT_APPLICABLE, detail="the sides differ; each arm says what it is")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a contract run is told from. `sides` are by name of the arm; one side alone has the name ''."""

    started_at: datetime
    asked: Mapping[str, Side]
    sides: Mapping[str, Opened]
    closed: Mapping[str, Closed]
    shape: ContractShape
    course: Course
    quality: Mapping[str, Quality]
    notes: Sequence[str]


def evidence(context: Context, report: Report) -> Run:
    """Assemble the run; a side that could not be measured leaves its reason in every metric."""
    return context.run(
        RunKind.CONTRACT,
        subject(list(report.asked.values())),
        report.started_at,
        scope=_scope(context, report),
        invalid=doubts(report),
        load=_load(report),
        decoding=report.shape.decoding(ignores_eos=all(one.load.extra for one in report.sides.values())),
        metrics=tuple(_metrics(report)),
        native=_native(report),
        **_conditions(report),
    )


def subject(sides: Sequence[Side]) -> str:
    """Name what is measured: one name for two settings of one thing."""
    return "-vs-".join(dict.fromkeys(side.name for side in sides))


def doubts(report: Report) -> tuple[str, ...]:
    """List why the run must not be used; a course that was carried to its end has no reason."""
    if report.closed:
        return tuple(f"{f'{arm}: ' if arm else ''}{one.why.missing}: {one.why.detail}" for arm, one in report.closed.items())
    found = []
    course, kept = report.course, len(report.course.kept)
    if course.stopped and not course.out_of_budget:
        found.append(course.stopped)
    if kept < FEWEST_REPETITIONS:
        why = f" ({course.stopped})" if course.out_of_budget else ""
        few = f"{kept} repetitions a side; expected {FEWEST_REPETITIONS}"
        found.append(f"{MissingReason.TOO_FEW_SAMPLES}: {few}{why}")
    return tuple(found)


def _metrics(report: Report) -> Iterable[Metric]:
    for arm in report.asked:
        for name, kind in _kinds(report).items():
            yield _metric(report, arm, name, kind)
        yield from metrics(report.quality, arm, _why_unasked(report, arm))


def _why_unasked(report: Report, arm: str) -> Missing:
    """Say why the task suites did not run."""
    if report.closed or report.course.stopped:
        return _why_none(report, arm)
    if report.course.no_time_for_quality:
        return Missing(missing=MissingReason.SKIPPED, detail=f"the budget of {report.shape.budget_s:g} s was used up")
    return _unmeasured("the task suites were left out: --quality-repetitions 0")


def _kinds(report: Report) -> dict[str, Kind]:
    """Name everything that a repetition of any side gave, so that both sides have the same metrics."""
    found: dict[str, Kind] = dict(QUANTITIES)
    for one in report.course.kept:
        for block in one.values():
            found |= block.kinds
    return found


def _metric(report: Report, arm: str, name: str, kind: Kind) -> Metric:
    values = [found[arm].values[name] for found in report.course.kept if name in found[arm].values]
    samples = tuple(round(value, _DIGITS) for value in values if not isinstance(value, Missing))
    missing = None
    if not samples:
        reasons = [value for value in values if isinstance(value, Missing)]
        missing = _quoted(report, arm, next(iter(reasons), _why_none(report, arm)))
    unit, direction = kind
    return Metric(name=name, unit=unit, direction=direction, per=Per.REPETITION, arm=arm, samples=samples, missing=missing)


def _why_none(report: Report, arm: str) -> Missing:
    if arm in report.closed:
        return report.closed[arm].why
    if other := next(iter(report.closed), ""):
        return Missing(missing=MissingReason.SKIPPED, detail=f"{other} could not be measured")
    stopped = report.course.stopped
    reason = MissingReason.SKIPPED if report.course.out_of_budget else MissingReason.FAILED
    return Missing(missing=reason, detail=stopped.removeprefix("skipped: ") or "no repetition was kept")


def _quoted(report: Report, arm: str, missing: Missing) -> Missing:
    side = report.sides.get(arm)
    return missing if side is None else Missing(missing=missing.missing, detail=side.quoter.line(missing.detail))


def _conditions(report: Report) -> dict[str, Any]:
    """Give what the run says of both sides, and the arms with what only one of them is."""
    served = {arm: _served(report, arm) for arm in report.asked}
    first = next(iter(served.values()))
    alike = all(_same(first, one) for one in served.values())
    shared = {name: getattr(first, name) if alike else _DIFFER for name in _SHARED}
    settings = {arm: _settings(report.asked[arm], one) for arm, one in served.items()}
    common = {
        name for name, value in settings[next(iter(settings))].items() if all(s.get(name) == value for s in settings.values())
    }
    fields: dict[str, Any] = shared | {
        "endpoint": first.endpoint if alike else None,
        "serving_sha256": first.serving_sha256 if len({str(one.serving_sha256) for one in served.values()}) == 1 else _DIFFER,
        "settings": tuple(one for one in first.settings if one.control in common) if alike else (),
    }
    if len(served) > 1:
        fields["arms"] = tuple(
            Arm(
                name=arm,
                role=BASELINE if arm == BASELINE else CANDIDATE,
                settings={name: value for name, value in settings[arm].items() if name not in common},
                served=None if alike else one,
            )
            for arm, one in served.items()
        )
    return fields


def _served(report: Report, arm: str) -> Served:
    seen = report.sides[arm].seen if arm in report.sides else report.closed[arm].seen
    if seen is None or seen.endpoint is None:
        why = report.closed[arm].why
        state = EndpointState.NOT_CONFIGURED if why.missing is MissingReason.NOT_CONFIGURED else EndpointState.NOT_REACHABLE
        nowhere = Endpoint(url=why, state=state, detail=why.detail)
        return Served(server=why, device=why, runtime=why, model=why, endpoint=nowhere, serving_sha256=why)
    return Served(
        server=seen.server,
        device=seen.device,
        runtime=seen.runtime,
        model=seen.model,
        endpoint=seen.endpoint,
        serving_sha256=seen.serving_sha256,
        settings=seen.settings,
    )


def _same(one: Served, other: Served) -> bool:
    """Tell whether the fields of a run can speak for both; settings and their hash are told apart anyway."""
    return all(getattr(one, name) == getattr(other, name) for name in (*_SHARED, "endpoint"))


def _settings(side: Side, served: Served) -> dict[str, Scalar]:
    """Give what a side runs with: what it was started with, and over it what it says itself."""
    return dict(side.settings) | {one.control: one.value for one in served.settings}


def _scope(context: Context, report: Report) -> Scope:
    """A comparison speaks for what stands, its baseline."""
    first = next(iter(report.asked.values()))
    return FleetScope(service=first.name) if first.kind is SideKind.SERVICE else context.local


def _load(report: Report) -> Any:
    blocks = [block for found in report.course.kept for block in found.values()]
    counted = sorted({int(value) for block in blocks if not isinstance(value := block.values["prompt_tokens"], Missing)})
    if not blocks:
        return _unmeasured("no repetition was kept")
    return report.shape.load(
        requests=sum(block.measured for block in blocks),
        warmup=sum(block.warmup for block in blocks),
        prompt_tokens=tuple(counted) or _unmeasured("the server does not count prompt tokens"),
    )


def _native(report: Report) -> dict[str, JsonValue]:
    course = report.course
    return {
        "contract": {
            "sides": {arm or "side": side.word for arm, side in report.asked.items()},
            "shape": report.shape.document(),
            "order": "the sides change places from round to round: A B, B A, ...",
            "rounds_kept": len(course.kept),
            "latencies_s": _latencies(report),
            "rounds_left_out": [_left_out(found, report) for found in course.left_out],
            "stopped": course.stopped,
            "notes": list(report.notes),
        },
        "slo": None if isinstance(report.shape.slo, Missing) else report.shape.slo.document(),
        "token_source": {arm or "side": _token_source(report, arm) for arm in report.sides},
        "first_token": {arm or "side": side.load.first_token.value for arm, side in report.sides.items()},
        **({"quality": document(report.quality)} if report.quality else {}),
        "instrument": [{arm or "side": dict(block.instrument or {}) for arm, block in found.items()} for found in course.kept],
    }


def _token_source(report: Report, arm: str) -> str | None:
    """Tell who counted a side's tokens; chunks in any repetition are chunks in all."""
    found = {source for one in report.course.kept if (source := one[arm].token_source) is not None}
    return next((source.value for source in reversed(TokenSource) if source in found), None)


def _latencies(report: Report) -> dict[str, JsonValue]:
    """Keep the latency of every request, repetition by repetition: no percentile of all is made of those of each."""
    kept = {arm: [one[arm].latencies_s for one in report.course.kept] for arm in report.sides}
    if sum(len(block) for blocks in kept.values() for block in blocks) > _MOST_LATENCIES:
        return {}
    return {arm or "side": [[round(value, _DIGITS) for value in block] for block in blocks] for arm, blocks in kept.items()}


def _left_out(found: Mapping[str, Block], report: Report) -> JsonValue:
    return {
        arm or "side": {
            "reasons": [*block.trouble, *block.unsound, *(["interrupted"] if block.interrupted else [])],
            "words": [report.sides[arm].quoter.line(words) for words in block.words],
            **{name: value for name, value in of_trouble(block).items() if not isinstance(value, Missing)},
        }
        for arm, block in found.items()
    }


def _unmeasured(why: str) -> Missing:
    return Missing(missing=MissingReason.NOT_MEASURED, detail=why)
