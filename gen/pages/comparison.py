"""A contract run: all eight quantities as a table, with verdicts, intervals and noise where there are two sides."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gen.charts import FEWEST_CURVE, MOST_LINES, Row, ecdf, figure, forest
from gen.comparability import Difference, Side, sides_of
from gen.comparison_text import bounds, counts, gate, noise_words, ratio, why
from gen.contract import QUANTITIES, ContractMetric
from gen.contract_runs import command, latencies
from gen.judgement import Judgement, judge
from gen.markdown import NOTHING, Markdown, anchor, block, bullets, code, heading, line, link, paragraphs, sentence, span, text
from gen.pages.marks import absent, chip, scalar
from gen.spread import Spread, quantity, spread
from gen.tables import Layout, columns, table
from gen.techniques.wording import listing
from gen.verdict import Comparison
from gen.words import Verdict
from probes.evidence import Metric, Run
from probes.fleet import Gates

# What forbids or undoes a change stands before what speaks for it.
_ORDER = (
    Verdict.NOT_COMPARABLE,
    Verdict.WORSE,
    Verdict.BETTER,
    Verdict.INCONCLUSIVE,
    Verdict.SAME,
    Verdict.NOT_MEASURED,
)

_PLAIN = {
    Verdict.BETTER: "even the most cautious ratio clears the gate",
    Verdict.WORSE: "even the most cautious ratio clears the gate",
    Verdict.SAME: "every ratio stays inside the gate",
}


def contract_part(run: Run, gates: Gates, *, drawn: bool) -> Markdown:
    """Show the contract of a run: a comparison of its two sides, or what its one side measured."""
    both = sides_of(run)
    if both is None:
        title = heading(2, text("Measurement contract"), "contract")
        return paragraphs(title, _pictures(_latencies(run)) if drawn else NOTHING, _one_side(Side(run=run)))
    judged = judge(*both, gates, interleaved=True)
    return paragraphs(
        heading(2, text("Measurement contract"), "contract"),
        _verdict(run, judged),
        line(text("Under test:"), tested(judged)),
        bullets(_counted(judged)) if run.validity.valid else NOTHING,
        _settled_by(run, judged),
        _pictures(_ratios(run, judged), _latencies(run)) if drawn else NOTHING,
        _table(judged),
        _noise(judged),
        _likeness(judged),
    )


def tested(judged: Judgement) -> Markdown:
    """Say what differs between the sides on purpose."""
    found = [line(*_difference(one)) for one in judged.likeness.under_test]
    return line(*found, by="; ") or text("nothing: the same thing twice, which shows the noise")


def _verdict(run: Run, judged: Judgement) -> Markdown:
    if not run.validity.valid:
        why_not = sentence(f"The run is invalid ({', '.join(run.validity.reasons)})")
        return line(span(text("no verdict"), "bad"), why_not, text("Its numbers are shown and compare nothing."))
    rows = {metric: row.verdict for metric, row in judged.rows.items()}
    first = next((metric for metric, verdict in rows.items() if verdict is judged.verdict), None)
    return line(
        chip(judged.verdict, f"#{_mark(first)}" if first else "#contract"),
        text(f"Candidate against baseline: {counts(judged)}."),
    )


def _counted(judged: Judgement) -> Iterator[Markdown]:
    """Name the quantities of each verdict with how far they moved, what decides first."""
    for verdict in _ORDER:
        named = [_moved(metric, row) for metric, row in judged.rows.items() if row.verdict is verdict]
        named += [line(code(row.metric), _aside(row)) for row in judged.further if row.verdict is verdict is Verdict.WORSE]
        if named:
            yield line(Markdown(f"<strong>{text(verdict.value)}</strong>:"), line(*named, by="; "))


def _moved(metric: ContractMetric, row: Comparison) -> Markdown:
    return line(link(text(QUANTITIES[metric].title), f"#{_mark(metric)}"), _aside(row))


def _aside(row: Comparison) -> Markdown:
    return span(text(f"({ratio(row)})"), "note") if ratio(row) else NOTHING


def _settled_by(run: Run, judged: Judgement) -> Markdown:
    """Say what would turn a comparison without a verdict into one with one."""
    again = line(text("Again:"), code(_again(run, 0)))
    if not run.validity.valid:
        return line(text("To get a verdict, measure again once the reason is gone."), again)
    if judged.verdict is Verdict.NOT_COMPARABLE:
        apart = listing(str(one) for one in judged.likeness.apart)
        because = f"the sides differ in {apart}" if judged.likeness.apart else "a row below says why"
        told = f"No verdict can be given: {because}. Measure both sides alike, or have a reviewer acknowledge it in the record."
        return line(text(told), again)
    if judged.verdict is not Verdict.INCONCLUSIVE:
        return NOTHING
    if judged.more_runs:
        told = f"About {judged.more_runs} more repetitions a side would settle it:"
        return line(text(told), code(_again(run, judged.more_runs)))
    return text("No affordable number of repetitions would settle all of it at this noise; a quieter machine may.")


def _again(run: Run, more: int) -> str:
    """Write the command that measures the same, with more repetitions where that helps."""
    words = command(run)[1:]
    if not words:
        return run.tool.command
    if more and "--repetitions" in words:
        place = words.index("--repetitions") + 1
        words[place] = str(int(float(words[place])) + more)
    return shlex.join(["nox", "-s", "compare", "--", *words])


def _title(metric: ContractMetric) -> Markdown:
    return line(anchor(_mark(metric)), text(QUANTITIES[metric].title), by="")


def _mark(metric: ContractMetric) -> str:
    return f"quantity-{metric.value}"


def _pictures(*drawn: Markdown) -> Markdown:
    return block(paragraphs(*drawn), "charts") if any(drawn) else NOTHING


def _ratios(run: Run, judged: Judgement) -> Markdown:
    """Draw how far each quantity moved against its gate; nothing of an invalid run."""
    rows = [Row(title=QUANTITIES[metric].title, direction=QUANTITIES[metric].direction, outcome=row)
            for metric, row in judged.rows.items()]  # fmt: skip
    chart = forest(rows) if run.validity.valid else None
    if chart is None:
        return NOTHING
    sides = [side for row in rows if row.drawn for side in (row.outcome.baseline, row.outcome.candidate) if side]
    sizes = sorted({side.n for side in sides})
    n = f"n = {sizes[0]}{f' to {sizes[-1]}' if len(sizes) > 1 else ''} repetitions a side"
    left = listing(row.title for row in rows if not row.drawn)
    caption = (
        "The mark is the ratio of the medians, the bar its interval, the band the gate: only a bar clear of it is better or "
        f"worse. ↓ less is better, ↑ more. {n}.{f' No ratio: {left}.' if left != 'none' else ''}"
    )
    return figure(chart, text(caption))


def _latencies(run: Run) -> Markdown:
    """Draw how latency is spread over the requests of each side, as far as the run kept them."""
    kept = {side: samples for side, samples in latencies(run).items() if len(samples) >= FEWEST_CURVE}
    if not kept or len(kept) > MOST_LINES:
        return NOTHING
    chart = ecdf("latency_s", "s", kept)
    return figure(chart, text(f"{chart.alternative} Requests of one repetition share its mood."))


def _table(judged: Judgement) -> Markdown:
    valid = judged.baseline.run.validity.valid
    rows = [(_title(metric), row, (metric,)) for metric, row in judged.rows.items()]
    body = [
        (
            title,
            _value(judged.baseline, row, row.baseline, named),
            _value(judged.candidate, row, row.candidate, named),
            _ratio(row),
            chip(row.verdict) if valid else span(text("none"), "absent"),
            reason(row),
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


def reason(row: Comparison) -> Markdown:
    """Say why a verdict is what it is, and what would settle one that is none."""
    said = why(row)
    return sentence(said) if said else span(text(_PLAIN.get(row.verdict, "nothing more to say")), "note")


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
