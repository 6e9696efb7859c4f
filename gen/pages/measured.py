"""What micro-benchmarks of a machine measured: a picture per pair of arms, its verdicts, and the run before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen.benchmarks import BREAK_EVEN, Benchmark, of_run
from gen.charts import Chart, figure, strips
from gen.comparison_text import ratio
from gen.history import Moved
from gen.markdown import NOTHING, Markdown, block, bullets, code, details, heading, line, paragraphs, sentence, span, text
from gen.pages import drafts, sweeps, timelines
from gen.pages.atlas import Atlas
from gen.pages.marks import absent, chip, dated
from gen.spread import summary
from gen.tables import Layout, columns, table
from gen.techniques.wording import capital, listing
from gen.verdict import compare
from probes.evidence import Direction, Metric, Run, Technique

FEWEST_DRAWN = 3
# The formula that the tool writes into the evidence, in the words of the page.
ROOFLINE = (
    "A token multiplies with every weight once and reads the whole KV cache, so memory allows no more tokens per second than"
    " its bytes per second by the bytes of the weights plus those of the cache. A share far below 100 % says that computing,"
    " not memory, sets the pace."
)


def pictures(
    atlas: Atlas, runs: Sequence[Run], benchmarks: Sequence[Benchmark], here: str, *, level: int = 4, prefix: str = ""
) -> Markdown:
    """Show the newest valid run of each benchmark among some runs of one machine, whole before quick, and why there is none.

    `runs` are the newest first; benchmarks that never ran are left out. `prefix` begins the anchors.
    """
    shown = []
    for benchmark in benchmarks:
        of_it = [run for run in runs if run.subject == benchmark.subject]
        title = heading(level, text(capital(benchmark.about)), f"{prefix}measured-{benchmark.subject}")
        if of_it:
            shown.append(_picture(atlas, of_it, benchmark, here, title))
    if any(benchmark.technique is Technique.SPECULATIVE_DECODING for benchmark in benchmarks) and (
        told := drafts.by_text(runs)
    ):
        title = heading(level, text("What a step of a draft brings, by kind of text"), f"{prefix}measured-drafts-by-text")
        shown.append(block(paragraphs(title, told), "pair"))
    return block(paragraphs(*shown), "pairs") if shown else NOTHING


def _picture(atlas: Atlas, runs: Sequence[Run], benchmark: Benchmark, here: str, title: Markdown) -> Markdown:
    run, newest = _speaking(runs), runs[0]
    failed = NOTHING
    if not newest.validity.valid:
        reasons = text(f"{', '.join(newest.validity.reasons)}.")
        failed = line(text("The last attempt may not be used:"), atlas.run(here, newest.id, reasons))
    if run is None:
        return block(paragraphs(title, failed), "pair")
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    meta = line(
        atlas.run(here, run.id, text("every sample")),
        dated(run.date, atlas.today, limit),
        span(text("quick"), "badge") if run.quick else NOTHING,
        line(text("again:"), code(run.tool.command)),
        by=" · ",
    )
    note = span(text(ROOFLINE), "note") if benchmark.technique is None else NOTHING
    records = timelines.records_on(atlas, atlas.scope_of(run), benchmark.technique) if benchmark.technique else []
    course, below = timelines.of_metric(atlas, run, benchmark.metric, here, records)
    drawn = [part for part in (_drawn(run, benchmark), course) if part]
    body = paragraphs(
        title, block(paragraphs(*drawn), "charts") if drawn else NOTHING, bullets(_arms(atlas, run, benchmark)),
        _since(atlas, run, benchmark, here), below, note, span(meta, "meta"), failed,
    )  # fmt: skip
    return block(body, "pair")


def _speaking(runs: Sequence[Run]) -> Run | None:
    """Choose the newest valid run; a quick one only where no whole one speaks of the same runtime and model."""
    valid = [run for run in runs if run.validity.valid]
    if not valid:
        return None
    same = [run for run in valid if (run.runtime, run.model) == (valid[0].runtime, valid[0].model)]
    return next((run for run in same if not run.quick), valid[0])


def _drawn(run: Run, benchmark: Benchmark) -> Markdown:
    """Draw the samples of the metric in which the arms differ; the list below it says the same in words."""
    found = sorted(
        (m for m in run.metrics if m.name == benchmark.metric and m.samples), key=lambda metric: _order(run, metric.arm)
    )
    if not found or max(len(metric.samples) for metric in found) < FEWEST_DRAWN:
        return NOTHING
    way = {Direction.LOWER: "; less is better", Direction.HIGHER: "; more is better"}.get(found[0].direction, "")
    sizes = sorted({len(metric.samples) for metric in found})
    size = f"n = {sizes[0]}{f' to {sizes[-1]}' if len(sizes) > 1 else ''}"
    if (swept := sweeps.of_arms(run).get(benchmark.metric)) is not None:
        return figure(swept, text(f"{benchmark.metric}: the median of each arm and its interval, {size}{way}"))
    if benchmark.metric == BREAK_EVEN:
        return drafts.of_run(run)
    series = {metric.arm or run.subject: metric.samples for metric in found}
    chart: Chart = strips(benchmark.metric, found[0].unit, series, found[0].per)
    return figure(chart, text(f"{benchmark.metric}: a mark per {found[0].per}, the median and its interval, {size}{way}"))


def _arms(atlas: Atlas, run: Run, benchmark: Benchmark) -> Iterator[Markdown]:
    """Say of each arm what was measured, with size and spread, and of each candidate its verdict."""
    if not run.arms:
        yield from (line(code(metric.name), text(summary(metric))) for metric in run.metrics if metric.samples)
        return
    metrics = {metric.arm: metric for metric in run.metrics if metric.name == benchmark.metric}
    base = next((metrics.get(arm.name) for arm in run.arms if arm.role == "baseline"), None)
    for name, metric in sorted(metrics.items(), key=lambda entry: [*_order(run, entry[0])]):
        said = absent(metric.missing) if metric.missing else text(summary(metric))
        named = line(text(f"{name}:"), said)
        compared = base is not None and metric is not base and bool(metric.samples)
        yield line(named, _verdict(atlas, base, metric) if compared else NOTHING, by=" ")


def _order(run: Run, name: str) -> tuple[bool, int]:
    return next(((arm.role != "baseline", index) for index, arm in enumerate(run.arms) if arm.name == name), (False, -1))


def _verdict(atlas: Atlas, base: Metric | None, metric: Metric) -> Markdown:
    one = compare(base, metric, atlas.corpus.fleet.policies.gates)
    return line(chip(one.verdict), text(ratio(one))) if one.low is not None else chip(one.verdict)


def _since(atlas: Atlas, run: Run, benchmark: Benchmark, here: str) -> Markdown:
    """Say in a line what has moved since the run before; its page has the numbers."""
    found = atlas.history(run)
    moved = found.of(benchmark.metric) if found else ()
    if found is None or not moved:
        return NOTHING
    verdicts = dict.fromkeys(one.comparison.verdict for one in moved)
    told = [
        line(chip(verdict), *_of_arms([one.arm for one in moved if one.comparison.verdict is verdict], len(moved)))
        for verdict in verdicts
    ]
    before = atlas.run(here, found.before.id, text(f"the run of {found.before.date.isoformat()}"))
    versions = next((one for one in found.differences if one.startswith("runtime")), "")
    return line(text("Against"), Markdown(f"{before}:"), line(*told, by="; "), text(f"({versions})") if versions else NOTHING)


def _of_arms(arms: Sequence[str], every: int) -> Iterator[Markdown]:
    if every > 1:
        yield text(listing(arms) if len(arms) < every else "in both arms" if every == 2 else f"in all {every} arms")


def since_before(atlas: Atlas, run: Run, here: str) -> Markdown:
    """Hold a run against the valid one before it on the same machine, metric by metric."""
    found, benchmark = atlas.history(run), of_run(run)
    if found is None or benchmark is None:
        return NOTHING
    intro = line(
        text("The same load on the same machine, device, runtime and model was measured before in"),
        Markdown(f"{atlas.run(here, found.before.id)}."),
        text("Two runs do not share the machine's mood as two arms of one run do: a busy hour looks like a slower runtime."),
    )
    changed = bullets(sentence(one) for one in found.differences)
    others = text("Nothing else that is recorded has changed.") if not found.differences else text("What else has changed:")
    first = [one for one in found.moved if one.comparison.metric == benchmark.metric]
    rest = [one for one in found.moved if one.comparison.metric != benchmark.metric]
    folded = (
        details(text(f"{len(rest)} comparisons of other metrics"), _moved_table(rest), "data", searched=False)
        if rest
        else NOTHING
    )
    return paragraphs(
        heading(2, text("Against the run before"), "before"),
        intro,
        _moved_table(first) if first else NOTHING,
        others,
        changed,
        folded,
    )


def _moved_table(moved: Sequence[Moved]) -> Markdown:
    body = [
        (
            code(one.comparison.metric),
            text(one.arm or "whole run"),
            chip(one.comparison.verdict),
            text(ratio(one.comparison) or "not compared"),
            sentence(one.comparison.reason) if one.comparison.reason else span(text("clear of the gate, or inside it"), "note"),
        )
        for one in moved
    ]
    return table(columns("Metric", "Arm", "Now", "Now to then", "Why"), body, Layout.CARDS, "before")
