"""A micro run against the one before it on the same machine: what has moved since, and what else has changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gen.verdict import Comparison, compare
from probes.evidence import Load, Missing, ModelFacts, Per, Run, RunKind
from probes.fleet import Gates

_LOAD_AVERAGE = "load_average_before"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """One metric of one arm, then and now, by the rule of comparison: the earlier run is the baseline."""

    arm: str
    comparison: Comparison


@dataclass(frozen=True, kw_only=True)
class History:
    """A run and the valid one before it; `differences` name what else is not as it was."""

    before: Run
    differences: tuple[str, ...]
    moved: tuple[Moved, ...]

    def of(self, metric: str) -> tuple[Moved, ...]:
        """Give what one metric did in each arm."""
        return tuple(one for one in self.moved if one.comparison.metric == metric)


def history(run: Run, runs: Iterable[Run], gates: Gates) -> History | None:
    """Hold a valid micro run against the newest valid one before it that measured the same thing.

    The same thing is the same subject, machine, device, runtime, model and load. Releases may differ, and are
    named. Two runs do not share the machine's mood as two arms of one run do.
    """
    if run.kind is not RunKind.MICRO or not run.validity.valid:
        return None
    wanted, begun = same(run), (run.started_at, run.id)
    earlier = [
        one
        for one in runs
        if one.subject == run.subject and one.validity.valid and same(one) == wanted and (one.started_at, one.id) < begun
    ]
    before = max(earlier, key=lambda one: (one.started_at, one.id), default=None)
    if before is None:
        return None
    moved = tuple(
        Moved(arm=metric.arm, comparison=compare(then, metric, gates))
        for metric in run.metrics
        if metric.per is Per.REPETITION and metric.samples
        for then in [before.metric(metric.name, metric.arm)]
        if then is not None and then.samples
    )
    return History(before=before, differences=tuple(_differences(before, run)), moved=moved)


def same(run: Run) -> tuple[object, ...]:
    """Give all that has to be equal for two runs to have measured the same thing; it can be a key.

    Of a contract run the same two sides belong to it. Settings of a run without sides do not: what a record changed is
    to be seen over time.
    """
    return (
        run.kind,
        run.subject,
        run.scope,
        run.client.fingerprint,
        None if isinstance(run.device, Missing) else run.device.name,
        None if isinstance(run.runtime, Missing) else run.runtime.name,
        _model(run.model),
        _load(run.load),
        _sides(run) if run.kind is RunKind.CONTRACT else (),
    )


def release(run: Run) -> str:
    """Name the release that ran; '' where the run does not know it."""
    return "" if isinstance(run.runtime, Missing) or isinstance(run.runtime.version, Missing) else run.runtime.version


def _sides(run: Run) -> tuple[object, ...]:
    return tuple((arm.name, arm.role, tuple(sorted(arm.settings.items()))) for arm in run.arms)


def _model(model: ModelFacts | Missing) -> tuple[object, ...]:
    return () if isinstance(model, Missing) else (model.id, model.sha256, model.quantization)


def _load(load: Load | Missing) -> tuple[object, ...]:
    """Leave out how many requests there were: more repetitions of the same load are more samples of it."""
    if isinstance(load, Missing):
        return ()
    prompts = None if isinstance(load.prompt_tokens, Missing) else frozenset(load.prompt_tokens)
    return (load.schedule, load.max_tokens, prompts, load.quick)


def _differences(before: Run, now: Run) -> Iterable[str]:
    pairs = {
        "runtime": (_version(before), _version(now)),
        "tool": (before.tool.version, now.tool.version),
        "revision of this tool": (_text(before.tool.git_revision), _text(now.tool.git_revision)),
        "operating system": (before.client.os, now.client.os),
        "kernel": (before.client.kernel, now.client.kernel),
        "driver": (_text(before.client.driver), _text(now.client.driver)),
        "CPU governor": (_text(before.client.tuning.governor), _text(now.client.tuning.governor)),
        "load average before the run": (_busy(before), _busy(now)),
    }
    return (f"{name}: {then} then, {later} now" for name, (then, later) in pairs.items() if then != later)


def _version(run: Run) -> str:
    return "" if isinstance(run.runtime, Missing) else _text(run.runtime.version)


def _text(value: str | Missing) -> str:
    return value.missing.value if isinstance(value, Missing) else value


def _busy(run: Run) -> str:
    found = run.native.get(_LOAD_AVERAGE)
    return f"{found:.1f}" if isinstance(found, int | float) else "not recorded"
