"""Models that write no text, as a machine ran them: what each is and brings, and how each technique bears on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gen import paths
from gen.coverage import Bearing
from gen.markdown import NOTHING, Markdown, code, details, line, link, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas
from gen.pages.capabilities import capability_place
from gen.pages.marks import absent, age_limit, chip, dated, known, not_measured
from gen.spread import FEWEST_FOR_P95, percentile, quantity, summary
from gen.tables import Layout, columns, table
from gen.words import TECHNIQUE_TITLES, Applicability
from gen.workloads import MeasuredWorkload
from probes.evidence import Capability, Metric, Per, Run, Technique

_COLUMNS = {
    "Applies": Applicability.APPLIES,
    "In another form": Applicability.DIFFERENT,
    "Does not apply": Applicability.DOES_NOT_APPLY,
}


def measured_table(atlas: Atlas, workloads: Sequence[MeasuredWorkload], here: str) -> Markdown:
    """Show what each model brings, with size and spread of every number and the command that measures it again."""
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    body = [
        (
            atlas.run(here, (one.usable or one.last).id, text(_title(one))),
            line(_what_it_is(atlas, one), span(text(f"run by {one.engine}"), "note") if one.engine else NOTHING, by="<br>"),
            line(*(_headline(metric) for metric in one.headlines()), by="<br>") or _why_not(one.last),
            line(dated((one.usable or one.last).date, atlas.today, limit), _failed_since(atlas, one, here), by=" <br>"),
            code(one.last.tool.command),
        )
        for one in workloads
    ]
    return table(columns("Model", "What it is", "Measured", "When", "Again"), body, Layout.CARDS, "workloads")


def technique_tables(atlas: Atlas, workloads: Sequence[MeasuredWorkload], here: str) -> Markdown:
    """Show of each model how the techniques bear on it and, folded under it, why, and what running it showed."""
    body = [
        (
            atlas.run(here, (one.usable or one.last).id, text(_title(one))),
            _what_it_is(atlas, one),
            *(_bearing_so(atlas, one, wanted, here) for wanted in _COLUMNS.values()),
        )
        for one in workloads
    ]
    overview = table(columns("Model", "What it is", *_COLUMNS), body, Layout.CARDS, "coverage")
    return paragraphs(overview, *(_whys(atlas, one, here) for one in workloads if one.claim))


def _bearing_so(atlas: Atlas, one: MeasuredWorkload, wanted: Applicability, here: str) -> Markdown:
    if one.claim is None:
        return not_measured()
    bearings = ((technique, one.bearing(technique, atlas.corpus.knowledge)) for technique in Technique)
    found = [technique for technique, bearing in bearings if bearing and bearing.applicability is wanted]
    return line(*(_technique(technique, here) for technique in found), by=", ") or span(text("none"), "note")


def _whys(atlas: Atlas, one: MeasuredWorkload, here: str) -> Markdown:
    found = [(technique, one.bearing(technique, atlas.corpus.knowledge)) for technique in Technique]
    body = [
        (
            _technique(technique, here, "technique"),
            chip(bearing.applicability),
            _why(one, bearing),
            line(
                *(_shown(atlas, one.usable or one.last, capability, here) for capability in one.shown(technique)),
                *_precisions(one, technique),
                by="<br>",
            )
            or span(text("nothing to ask the runtime for"), "note"),
        )
        for technique, bearing in found
        if bearing is not None
    ]
    head = columns("Technique", "Bearing", "Why", "Shown by running it")
    label = text(f"{_title(one)}: why, technique by technique, and what running it showed")
    return details(label, table(head, body, Layout.CARDS, "bearing"), "data")


def _technique(technique: Technique, here: str, *classes: str) -> Markdown:
    return link(text(TECHNIQUE_TITLES[technique]), paths.relative(f"techniques/{technique.value}.md", here), *classes)


def _title(one: MeasuredWorkload) -> str:
    """Name a workload for people."""
    return one.subject.replace("-", " ").capitalize()


def _what_it_is(atlas: Atlas, one: MeasuredWorkload) -> Markdown:
    """Say what a model is and what told it."""
    if one.claim is None:
        return not_measured("no run saw its network")
    how = one.claim.provenance
    limit = age_limit(how.kind, atlas.corpus.fleet.policies.freshness)
    told = line(text(one.claim.kind.value), known(how.kind), dated(how.date, atlas.today, limit))
    return line(told, span(text(one.claim.where), "note"), by=" <br>")


def _why(one: MeasuredWorkload, bearing: Bearing) -> Markdown:
    kind = one.claim.kind.value if one.claim else "model"
    return line(sentence(bearing.why), span(text(f"known as {kind}"), "note"), by="<br>")


def _headline(metric: Metric) -> Markdown:
    arm = span(text(metric.arm), "note") if metric.arm else NOTHING
    if metric.missing:
        return line(code(metric.name), arm, absent(metric.missing))
    enough = metric.per is Per.REQUEST and len(metric.samples) >= FEWEST_FOR_P95
    p95 = text(f"; p95 {quantity(percentile(metric.samples, 0.95), metric.unit)}") if enough else NOTHING
    return line(code(metric.name), arm, Markdown(f"{text(summary(metric))}{p95}"))


def _why_not(run: Run) -> Markdown:
    metric = next((one for one in run.metrics if one.missing is not None), None)
    if metric is not None and metric.missing is not None:
        return absent(metric.missing)
    return not_measured(", ".join(run.validity.reasons))


def _failed_since(atlas: Atlas, one: MeasuredWorkload, here: str) -> Markdown:
    """Link the last attempt where it may not be used and an older one is shown."""
    if one.usable is None or one.last.validity.valid:
        return NOTHING
    reasons = text(f"{', '.join(one.last.validity.reasons)}.")
    return line(span(text("the last attempt may not be used:"), "note"), atlas.run(here, one.last.id, reasons))


def _precisions(one: MeasuredWorkload, technique: Technique) -> Iterator[Markdown]:
    """Tell what the precision of the weights does to the speed, where more than one was measured."""
    found = one.weights() if technique is Technique.QUANTIZATION else ()
    for precision, metric in found if len(found) > 1 else ():
        yield line(code(f"{precision} weights"), text(f"{metric.name} {summary(metric)}"))


def _shown(atlas: Atlas, run: Run, one: Capability, here: str) -> Markdown:
    words = one.effect or one.words
    said = span(text(words), "detail") if words else NOTHING
    return line(chip(one.state, capability_place(atlas, run, one, here)), code(one.requested), said)
