"""What a run measured: pictures, verdicts, every metric with its spread, and every sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from gen.benchmarks import BREAK_EVEN, of_run
from gen.charts import FEWEST_CURVE, MOST_LINES, Chart, ecdf, figure, strips
from gen.comparison_text import gate, ratio
from gen.markdown import (
    NOTHING,
    Markdown,
    block,
    bullets,
    code,
    details,
    heading,
    line,
    link,
    paragraphs,
    sifted,
    span,
    text,
)
from gen.pages import drafts, sweeps
from gen.pages.comparison import contract_part, reason
from gen.pages.marks import absent, chip, scalar
from gen.spread import FEWEST_FOR_P95, percentile, quantity, spread, summary
from gen.tables import Layout, columns, table
from gen.techniques.drafting import HEAD, RANDOM_HEAD, TOKENS_PER_STEP
from gen.verdict import Comparison, compare
from probes.evidence import Arm, Direction, Metric, Per, Run, RunKind
from probes.fleet import Gates

FEWEST_DRAWN = 3
# The one that a benchmark is about comes first; what more there is stands in the table.
MOST_DRAWN = 4
# A table of more rows is no longer read, and makes up most of a page.
MOST_LISTED = 50
NOT_DRAWN = "Pictures are drawn of the last run of its kind, and of those that a record in force or a cell of the matrix cites."
# With more arms than this the caption that repeats every number is longer than the picture.
MOST_CAPTIONED = 3
# A load keeps a dozen quantities of each request; these are the ones that somebody waits for.
_OF_LOAD = ("ttft_s", "itl_s", "decode_tok_s", "latency_s")
_ITL = "A request stands with the median of its gaps."


def results(run: Run, gates: Gates, file: str, *, drawn: bool) -> Markdown:
    """Show all results of a run; nothing for a run that measured none.

    `file` is where its file lies as seen from the page. What is said hangs on these arguments alone, for it is kept. Only
    where `drawn` are there pictures: one costs a hundred times what a table does.
    """
    if not run.metrics:
        return NOTHING
    names = list(dict.fromkeys(metric.name for metric in run.metrics))
    head = heading(2, text("Results"), "results")
    arms = table(
        columns("Arm", "Role", "Settings"),
        [(text(arm.name), text(arm.role), _arm_settings(arm)) for arm in run.arms],
        Layout.CARDS,
    ) if run.arms else NOTHING  # fmt: skip
    charts = _charts(run, names) if drawn else span(text(NOT_DRAWN), "note")
    prices, whole = _prices(run), run.kind is RunKind.CONTRACT
    # A head that is never right tells what drafting costs; a verdict on it would be read as one on EAGLE-3.
    compared = NOTHING if whole or _is_random(run) else _comparison(run, gates)
    contract = contract_part(run, gates, drawn=drawn) if whole else NOTHING
    return paragraphs(contract, head, prices, arms, charts, compared, _metrics(run), _samples(run, names, file))


def _charts(run: Run, names: Sequence[str]) -> Markdown:
    swept = sweeps.of_arms(run)
    ahead = of_run(run)
    first = sorted(names, key=lambda name: ahead is None or name != ahead.metric)
    each = (one for name in first if (one := _swept(swept[name]) if name in swept else _drawn(run, name)))
    drawn = [drafts.of_run(run), *islice(each, MOST_DRAWN)]
    return block(paragraphs(*drawn), "charts") if any(drawn) else NOTHING


def _is_random(run: Run) -> bool:
    return any(arm.settings.get(HEAD) == RANDOM_HEAD for arm in run.arms)


def _prices(run: Run) -> Markdown:
    """Put first what a benchmark of drafts is for: what each step has to bring before drafting pays, and what it brought."""
    priced = [(arm, metric) for arm in run.arms if (metric := run.metric(BREAK_EVEN, arm.name)) is not None]
    body = [
        (text(arm.name), text(summary(needed)), _brought(run.metric(TOKENS_PER_STEP, arm.name)))
        for arm, needed in priced
        if needed.samples
    ]
    if not body:
        return NOTHING
    said = "Drafting pays where a step brings more tokens than plain decoding makes in the same time."
    if _is_random(run):
        said += (
            " The EAGLE-3 head here has random weights and is never right: its arms price a head of that size,"
            " and say nothing about one that was trained."
        )
    rest = len(priced) - len(body)
    left = span(text(f"Arms without a number: {rest}; the table of metrics says why."), "note") if rest else NOTHING
    return paragraphs(text(said), table(columns("Draft", "Has to bring", "Brought"), body, Layout.CARDS, "prices"), left)


def _is_priced(run: Run) -> bool:
    return any(metric.name == TOKENS_PER_STEP for metric in run.metrics)


def _brought(metric: Metric | None) -> Markdown:
    if metric is None:
        return span(text("not measured"), "absent")
    if len(metric.samples) > 1 and len(set(metric.samples)) == 1:
        return text(f"{quantity(metric.samples[0], metric.unit)} in each of {len(metric.samples)} {metric.per}s")
    return text(summary(metric))


def _comparison(run: Run, gates: Gates) -> Markdown:
    """Hold each candidate arm against the baseline, metric by metric, by the rule of comparison."""
    base = next((arm.name for arm in run.arms if arm.role == "baseline"), None)
    if base is None:
        return NOTHING
    # Requests of one run are no independent samples: what is per request is shown above and compared nowhere.
    # What only candidates have, such as the tokens that a draft brings, has nothing to be held against.
    names = list(dict.fromkeys(m.name for m in run.metrics if m.arm == base and m.per is not Per.REQUEST))
    body = [
        (code(name), text(arm.name), chip(one.verdict), _ratio(one), reason(one))
        for arm in run.arms
        if arm.role == "candidate"
        for name in names
        for one in [compare(run.metric(name, base), run.metric(name, arm.name), gates)]
    ]
    intro = line(text("Each candidate against"), code(base), text("by the rule of comparison:"))
    head = columns("Metric", "Candidate", "Verdict", "Ratio", "Why")
    return paragraphs(intro, table(head, body, Layout.CARDS, "comparison")) if body else NOTHING


def _ratio(one: Comparison) -> Markdown:
    if one.baseline is None or not (said := ratio(one)):
        return span(text("not compared"), "absent")
    return text(f"{said}, gate {gate(one)} (n = {one.baseline.n} and {one.candidate.n if one.candidate else 0})")


def _arm_settings(arm: Arm) -> Markdown:
    shown = [line(code(control), text("="), scalar(value)) for control, value in arm.settings.items()]
    return line(*shown, by=", ") or text("none of its own")


def _swept(chart: Chart) -> Markdown:
    return figure(chart, text(chart.alternative))


def _drawn(run: Run, name: str) -> Markdown:
    """Draw the samples of one metric, the baseline first; a few samples or a constant need no picture."""
    if (run.kind is RunKind.LOAD and name not in _OF_LOAD) or (name == BREAK_EVEN and _is_priced(run)):
        return NOTHING
    rank = {arm.name: (arm.role != "baseline", sweeps.count_of(arm), index) for index, arm in enumerate(run.arms)}
    found = sorted((m for m in run.metrics if m.name == name and m.samples), key=lambda m: rank.get(m.arm, (False, -1, -1)))
    values = {value for metric in found for value in metric.samples}
    if len(values) < 2 or max(len(m.samples) for m in found) < FEWEST_DRAWN or found[0].direction is Direction.NEUTRAL:
        return NOTHING
    series = {metric.arm or run.subject: metric.samples for metric in found}
    curved = found[0].per is Per.REQUEST and min(map(len, series.values())) >= FEWEST_CURVE and len(series) <= MOST_LINES
    chart = ecdf(name, found[0].unit, series) if curved else strips(name, found[0].unit, series, found[0].per)
    note = f" {_ITL}" if name == "itl_s" and run.kind is RunKind.LOAD else ""
    if len(series) > MOST_CAPTIONED:
        shown = "the share of requests at or below" if curved else f"every {found[0].per}, median and interval"
        sizes = sorted({len(samples) for samples in series.values()})
        n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
        told = f"{name}: {shown}, of {len(series)} arms, {n} {found[0].per}s each; the numbers are in the table of metrics."
        return figure(chart, text(told))
    return figure(chart, text(f"{chart.alternative}{note}"))


def _metrics(run: Run) -> Markdown:
    body = [
        (
            code(metric.name),
            text(metric.arm or "whole run"),
            _result(metric),
            text(metric.direction.value),
        )
        for metric in run.metrics
    ]
    shown = table(
        columns("Metric", "Arm", "Result", "Better"), body, Layout.CARDS, "metrics", facets=("Metric", "Arm"), searched=False
    )
    few = any(metric.per is Per.REQUEST and 0 < len(metric.samples) < FEWEST_FOR_P95 for metric in run.metrics)
    note = span(text(f"A p95 is given from {FEWEST_FOR_P95} requests on."), "note")
    return paragraphs(shown, note if few else NOTHING)


def _result(metric: Metric) -> Markdown:
    if metric.missing:
        return absent(metric.missing)
    said = line(text(summary(metric)), _p95(metric), by="; ")
    return sifted(said, sort=str(spread(metric.samples).median))


def _p95(metric: Metric) -> Markdown:
    if metric.per is not Per.REQUEST or len(metric.samples) < FEWEST_FOR_P95:
        return NOTHING
    return text(f"p95 {quantity(percentile(metric.samples, 0.95), metric.unit)}")


def _samples(run: Run, names: Sequence[str], file: str) -> Markdown:
    """Fold every sample of a run under one line, the arms of a metric side by side; long series are in its file."""
    groups = [[one for one in run.metrics if one.name == name and one.samples] for name in names]
    found = [group for group in groups if group]
    short = [group for group in found if max(len(one.samples) for one in group) <= MOST_LISTED]
    if not found:
        return NOTHING
    shown = details(
        text(f"All samples of {len(short)} metrics"), paragraphs(*map(_sample_list, short)), "data", searched=False
    ) if short else NOTHING  # fmt: skip
    if len(short) == len(found):
        return shown
    whole = link(text("the file of the run"), file)
    told = (
        line(code(one[0].name), span(text(f"n = {max(len(m.samples) for m in one)}"), "note"))
        for one in found
        if one not in short
    )
    return paragraphs(shown, line(text("Every sample of longer series is in"), Markdown(f"{whole}:"), line(*told, by=", ")))


def _sample_list(found: Sequence[Metric]) -> Markdown:
    """List the samples of a metric, a line for each arm: a table of them would be most of the site."""
    label = line(code(found[0].name), text(f"in {found[0].unit}" if found[0].unit else "without a unit"))
    rows = (
        line(
            text(f"{metric.arm or 'whole run'}:"),
            Markdown(f"<code>{', '.join(f'{one:.12g}' for one in metric.samples)}</code>"),
        )
        for metric in found
    )
    return paragraphs(label, bullets(rows))
