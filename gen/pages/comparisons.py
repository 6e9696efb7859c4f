"""Every comparison over the whole measurement contract: what was under test, the verdict, and the records that cite it."""

from __future__ import annotations

from collections.abc import Iterator

from gen import paths
from gen.comparability import Side, sides_of
from gen.comparison_text import counts
from gen.judgement import judge
from gen.markdown import NOTHING, Markdown, code, fenced, line, paragraphs, span, text
from gen.pages.atlas import Atlas
from gen.pages.comparison import tested
from gen.pages.marks import chip, dated
from gen.pages.page import Page
from gen.records import Record
from gen.tables import Layout, columns, table
from gen.view import FLEET
from probes.evidence import Run, RunKind

HERE = "comparisons.md"
MOST_SHOWN = 200


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of comparisons."""
    pairs = ((run, sides_of(run)) for run in atlas.runs if run.kind is RunKind.CONTRACT)
    found = [(run, both) for run, both in pairs if both is not None]
    cited: dict[str, list[Record]] = {}
    for record in atlas.records:
        for one in record.evidence:
            cited.setdefault(one.id, []).append(record)
    intro = text(
        "Baseline and candidate over all eight quantities of the measurement contract, the newest first. A verdict that cannot "
        "be given says why on the page of its run, and what would settle it."
    )
    shown = [_row(atlas, run, both, cited.get(run.id, [])) for run, both in found[:MOST_SHOWN]]
    head = columns("Compared", "Under test", "Verdict", "When", "Cited by")
    none = text("None is in this checkout yet.")
    rest = span(text(f"{len(found) - MOST_SHOWN} older ones are listed with the evidence."), "note")
    body = paragraphs(
        intro,
        table(head, shown, Layout.CARDS, "comparisons") if shown else none,
        *([rest] if len(found) > MOST_SHOWN else []),
        text("Two services, two settings of one, or one and the same twice are measured by turns and judged with:"),
        fenced("nox -s compare -- BASELINE CANDIDATE", "sh"),
        line(text("Any two runs that there are, with"), Markdown(f"{code('nox -s compare -- RUN RUN')}.")),
    )
    trail = (("Matrix", "index.md"), ("Evidence", "runs/index.md"))
    yield Page(path=HERE, title="Comparisons", body=body, trail=trail, siblings=True, contents=False)


def _row(atlas: Atlas, run: Run, both: tuple[Side, Side], records: list[Record]) -> tuple[Markdown, ...]:
    freshness = atlas.corpus.fleet.policies.freshness
    judged = judge(*both, atlas.corpus.fleet.policies.gates, interleaved=True)
    path = atlas.run_paths.get(run.id)
    where = line(text(run.client.alias), NOTHING if atlas.scope_of(run) == FLEET else span(text("local"), "badge"))
    if run.validity.valid:
        verdict = line(
            chip(judged.verdict, paths.relative(f"{path}#contract", HERE) if path else ""),
            span(text(counts(judged)), "note"),
            by="<br>",
        )
    else:
        verdict = line(span(text("no verdict"), "bad"), span(text(", ".join(run.validity.reasons)), "detail"))
    return (
        atlas.run(HERE, run.id, text(run.subject)),
        tested(judged),
        verdict,
        line(dated(run.date, atlas.today, freshness.evidence_days), where, by=" <br>"),
        line(*(atlas.record(HERE, record) for record in records), by="<br>") or span(text("no record"), "note"),
    )
