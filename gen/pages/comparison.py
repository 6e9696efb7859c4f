"""A contract run: all eight quantities as a table, with verdicts, intervals and noise where there are two sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen.charts import FEWEST_CURVE, MOST_LINES, Row, ecdf, figure, forest
from gen.comparability import Difference, Side, sides_of
from gen.comparison_text import bounds, gate, noise_words, ratio, why
from gen.contract import QUANTITIES, ContractMetric
from gen.contract_runs import latencies
from gen.judgement import Judgement, judge
from gen.markdown import NOTHING, Markdown, block, bullets, code, heading, line, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas
from gen.pages.marks import absent, chip, scalar
from gen.spread import Spread, quantity, spread
from gen.tables import Layout, columns, table
from gen.techniques.wording import listing
from gen.verdict import Comparison
from probes.evidence import Metric, Run


def contract_part(atlas: Atlas, run: Run) -> Markdown:
    """Show the contract of a run: a comparison of its two sides, or what its one side measured."""
    both = sides_of(run)
    if both is None:
        return paragraphs(heading(2, text("Measurement contract"), "contract"), _one_side(Side(run=run)))
    judged = judge(*both, atlas.corpus.fleet.policies.gates, interleaved=True)
    return paragraphs(
        heading(2, text("Measurement contract"), "contract"),
        _verdict(run, judged),
        _pictures(run, judged),
        _table(judged),
        _noise(judged),
        _likeness(judged),
    )


def _verdict(run: Run, judged: Judgement) -> Markdown:
    if not run.validity.valid:
        return line(span(text("no verdict"), "bad"), text("The run is invalid; its numbers are shown and compare nothing."))
    rows = [row.verdict for row in judged.rows.values()]
    counted = ", ".join(f"{rows.count(verdict)} {verdict.value}" for verdict in dict.fromkeys(rows))
    more = f" About {judged.more_runs} more repetitions a side would settle it." if judged.more_runs else ""
    return line(chip(judged.verdict), text(f"Candidate against baseline: {counted}.{more}"))


def _pictures(run: Run, judged: Judgement) -> Markdown:
    """Draw how far each quantity moved against its gate, and how latency is spread over the requests of each side."""
    rows = [Row(title=QUANTITIES[metric].title, direction=QUANTITIES[metric].direction, outcome=row)
            for metric, row in judged.rows.items()]  # fmt: skip
    moved = forest(rows) if run.validity.valid else None
    left = listing(row.title for row in rows if not row.drawn)
    caption = (
        "The mark is the ratio of the medians, the bar its interval, the band the gate: only a bar clear of it is better or "
        "worse. ↓ less is better, ↑ more."
    )
    drawn = [] if moved is None else [figure(moved, text(f"{caption} No ratio: {left}." if left else caption))]
    kept = {side: samples for side, samples in latencies(run).items() if len(samples) >= FEWEST_CURVE}
    if kept and len(kept) <= MOST_LINES:
        chart = ecdf("latency_s", "s", kept)
        drawn.append(figure(chart, text(f"{chart.alternative} Requests of a repetition are not independent.")))
    return block(paragraphs(*drawn), "charts") if drawn else NOTHING


def _table(judged: Judgement) -> Markdown:
    valid = judged.baseline.run.validity.valid
    rows = [(text(QUANTITIES[metric].title), row, (metric,)) for metric, row in judged.rows.items()]
    body = [
        (
            title,
            _value(judged.baseline, row, row.baseline, named),
            _value(judged.candidate, row, row.candidate, named),
            _ratio(row),
            chip(row.verdict) if valid else span(text("none"), "absent"),
            _reason(row),
        )
        for title, row, named in (*rows, *((code(row.metric), row, ()) for row in judged.further))
    ]
    head = columns("Quantity", "Baseline", "Candidate", "Ratio", "Verdict", "Why")
    return table(head, body, Layout.CARDS, "contract")


def _value(side: Side, row: Comparison, found: Spread | None, named: Sequence[ContractMetric]) -> Markdown:
    """Show the side's median and interval, or the reason why it has none."""
    if found is not None:
        return _spread(found, row.unit)
    metric = side.metric(row.metric)
    if metric is not None and metric.missing is not None:
        return absent(metric.missing)
    if metric is not None and metric.samples:
        return _spread(spread(metric.samples, metric.per), metric.unit)
    return span(text(f"no {QUANTITIES[named[0]].title.lower()} here" if named else "none"), "absent")


def _spread(found: Spread, unit: str) -> Markdown:
    kind, interval = "95 % interval" if found.bounds_median else "range", bounds(found, unit)
    size = f"{kind} {interval}, n = {found.n}" if interval else f"n = {found.n}"
    return line(text(quantity(found.median, unit)), span(text(size), "note"))


def _ratio(row: Comparison) -> Markdown:
    said = ratio(row)
    return text(f"{said}, gate {gate(row)}") if said else span(text("not compared"), "absent")


def _reason(row: Comparison) -> Markdown:
    said = why(row)
    return sentence(said) if said else span(text("the whole interval clears the gate or stays inside it"), "note")


def _noise(judged: Judgement) -> Markdown:
    """Say what the run can tell apart; of the same thing twice it is the noise itself."""
    if not judged.noise:
        return NOTHING
    lead = (
        "Nothing is known to differ between the sides: this is the noise of the measurement."
        if judged.likeness.same_thing
        else "How far each quantity moves by itself here, and from which change on a verdict would be certain:"
    )
    body = [
        (text(QUANTITIES[metric].title), *map(text, noise_words(noise, judged.rows[metric].unit)))
        for metric, noise in judged.noise.items()
    ]
    head = columns("Quantity", "Noise of a side", "A verdict takes")
    return paragraphs(heading(3, text("Noise"), "noise"), text(lead), table(head, body, Layout.CARDS, "noise"))


def _likeness(judged: Judgement) -> Markdown:
    alike = judged.likeness
    shown = [line(text("Under test:"), *_difference(one)) for one in alike.under_test]
    shown += [line(span(text("differs"), "bad"), *_difference(one)) for one in alike.apart]
    if alike.unknown:
        shown.append(line(text("Not known of both sides, and so not compared:"), text(", ".join(alike.unknown))))
    return paragraphs(heading(3, text("What differs"), "differs"), bullets(shown)) if shown else NOTHING


def _difference(one: Difference) -> Iterator[Markdown]:
    yield code(one.name)
    yield text("not set") if one.baseline is None else scalar(one.baseline)
    yield text("against")
    yield text("not set") if one.candidate is None else scalar(one.candidate)


def _one_side(side: Side) -> Markdown:
    """Say for each quantity what the run measured of it, or why not."""
    body = []
    for metric in ContractMetric:
        found = [one for name in QUANTITIES[metric].names if (one := side.metric(name)) is not None]
        best = next((one for one in found if one.samples), found[-1] if found else None)
        body.append((text(QUANTITIES[metric].title), _measured(best)))
    return table(columns("Quantity", "Result"), body, Layout.CARDS, "contract")


def _measured(metric: Metric | None) -> Markdown:
    if metric is None:
        return span(text("it is no part of this run"), "absent")
    return absent(metric.missing) if metric.missing else _spread(spread(metric.samples, metric.per), metric.unit)
