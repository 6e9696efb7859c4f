"""Throughput and latency against concurrency: the arms of one run, and loads that differ in nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from gen.charts import Chart, figure, sweep
from gen.history import release
from gen.markdown import NOTHING, Markdown, block, bullets, details, line, paragraphs, span, text
from gen.pages.atlas import Atlas
from gen.pages.marks import dated
from gen.spread import FEWEST_FOR_P95, Spread, percentile, spread
from probes.evidence import Arm, Load, Metric, Missing, Per, Run, RunKind

# Two points are a line whatever was measured.
FEWEST_STEPS = 3
_BY = "requests at once"
_CONTROL = "concurrency"
_MOST_RELEASES = 3
_ONE = ", so no spread is known"
_OF_ARMS = ("aggregate_tok_s", "decode_tok_s", "ttft_s", "latency_s")
_OF_LOADS = ("ttft_s", "latency_s")


def of_arms(run: Run) -> Mapping[str, Chart]:
    """Draw each metric of a run whose arms differ in how many requests they held at once, by its name."""
    at = {arm.name: count for arm in run.arms if (count := count_of(arm))}
    others = {tuple((k, v) for k, v in sorted(arm.settings.items()) if k != _CONTROL) for arm in run.arms}
    if len(set(at.values())) < max(FEWEST_STEPS, len(run.arms)) or len(others) > 1:
        return {}
    drawn = {}
    for name in _OF_ARMS:
        found = [m for m in run.metrics if m.name == name and m.per is Per.REPETITION and m.samples and m.arm in at]
        if len(found) >= FEWEST_STEPS:
            steps = {at[metric.arm]: spread(metric.samples, metric.per) for metric in found}
            drawn[name] = sweep(name, found[0].unit, _BY, {name: steps}, found[0].per.value)
    return drawn


def of_loads(atlas: Atlas, runs: Iterable[Run], here: str) -> Markdown:
    """Draw the newest sweep among some runs, which are the newest first; nothing where no load was repeated at three counts."""
    sweeps: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        if run.kind is RunKind.LOAD and run.validity.valid and isinstance(run.load, Load):
            sweeps.setdefault(_like(run, run.load), []).append(run)
    found = next((some for some in sweeps.values() if len({_at(run) for run in some}) >= FEWEST_STEPS), None)
    if found is None:
        return NOTHING
    releases = dict.fromkeys(release(run) for run in found)
    lines = {name or "release unknown": [run for run in found if release(run) == name] for name in [*releases][:_MOST_RELEASES]}
    newest = next(iter(lines.values()))
    drawn = [_throughput(lines), *(_latency(newest, name) for name in _OF_LOADS)]
    if not any(drawn):
        return NOTHING
    cited = [
        line(text(f"{_at(run)} at once:"), atlas.run(here, run.id, text("run")), dated(run.date, atlas.today)) for run in newest
    ]
    told = "A point is a run, or the median of several with their range. p95 is left out from fewer than 20 requests."
    return paragraphs(
        block(paragraphs(*drawn), "charts"),
        span(text(told), "note"),
        details(text("The runs of these pictures"), bullets(cited), "data"),
    )


def _throughput(lines: Mapping[str, Sequence[Run]]) -> Markdown:
    def value(metric: Metric) -> float | None:
        return metric.samples[0] if metric.per is Per.RUN else None

    found = {name: steps for name, runs in lines.items() if (steps := _steps(runs, "aggregate_tok_s", value))}
    if not found:
        return NOTHING
    return _figure("aggregate_tok_s", "tok/s", found)


def _latency(runs: Sequence[Run], name: str) -> Markdown:
    def tail(metric: Metric) -> float | None:
        return percentile(metric.samples, 0.95) if len(metric.samples) >= FEWEST_FOR_P95 else None

    found = {
        f"{name} {which}": steps
        for which, value in (("p50", lambda metric: percentile(metric.samples, 0.5)), ("p95", tail))
        if (steps := _steps(runs, name, value))
    }
    return _figure(name, "s", found) if found else NOTHING


def _figure(name: str, unit: str, lines: Mapping[str, Mapping[int, Spread]]) -> Markdown:
    chart = sweep(name, unit, _BY, lines, RunKind.LOAD.value)
    sizes = sorted({one.n for steps in lines.values() for one in steps.values()})
    told = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    return figure(chart, text(f"{name} at each number of {_BY}: {told} loads a point{_ONE if sizes == [1] else ''}"))


def _steps(runs: Sequence[Run], name: str, value: Callable[[Metric], float | None]) -> dict[int, Spread]:
    """Give one number of each run by its concurrency; several of one count have a spread."""
    found: dict[int, list[float]] = {}
    for run in runs:
        metric = run.metric(name)
        one = None if metric is None or not metric.samples else value(metric)
        if one is not None:
            found.setdefault(_at(run), []).append(one)
    return {at: spread(values) for at, values in found.items()}


def _like(run: Run, load: Load) -> tuple[object, ...]:
    """Give all that has to be equal for loads to differ in their concurrency alone; releases may differ."""
    count = str(load.concurrency)
    return (
        run.subject.removesuffix(f"-c{count}"),
        run.scope,
        run.client.fingerprint,
        None if isinstance(run.device, Missing) else run.device.name,
        None if isinstance(run.runtime, Missing) else run.runtime.name,
        None if isinstance(run.model, Missing) else (run.model.id, run.model.sha256, run.model.quantization),
        run.serving_sha256,
        load.schedule.replace(f"{count} at a time", "N at a time"),
        load.max_tokens,
        load.prompt_set_sha256,
        load.quick,
    )


def _at(run: Run) -> int:
    return run.load.concurrency if isinstance(run.load, Load) else 0


def count_of(arm: Arm) -> int:
    """Tell how many requests an arm held at once; 0 where it does not say."""
    value = arm.settings.get(_CONTROL)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
