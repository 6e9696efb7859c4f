"""How a quantity went over time, in comparable runs: a picture with the records that were decided on its time axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date

from gen.charts import MOST_LINES, Decided, Moment, figure, timeline, within
from gen.history import release
from gen.markdown import NOTHING, Markdown, block, bullets, details, line, paragraphs, span, text
from gen.pages import sweeps
from gen.pages.atlas import Atlas
from gen.pages.marks import chip, dated
from gen.records import Record
from gen.spread import spread, summary
from gen.tables import Layout, columns, table
from gen.view import FLEET
from gen.words import Status
from probes.evidence import Run, RunKind, Technique

FEWEST_RUNS = 3
# More points than this touch each other on a picture of this width.
MOST_RUNS = 60
MOST_DAYS = 12
_MOST_PICTURES = 4
_SHOWN = {
    RunKind.CONTRACT: ("aggregate_tok_s", "ttft_s"),
    RunKind.LOAD: ("aggregate_tok_s", "ttft_s"),
    RunKind.ENDPOINT: ("decode_tok_s",),
}
_DECIDED = (Status.ACCEPTED, Status.SUPERSEDED, Status.DEPRECATED)


def of_metric(atlas: Atlas, run: Run, metric: str, here: str, records: Iterable[Record]) -> tuple[Markdown, Markdown]:
    """Draw one metric over the valid runs that measured what a run did, and give what belongs below the picture.

    With two runs there is no picture, and words that say so.
    """
    runs = [one for one in atlas.alike(run) if any(m.name == metric and m.samples for m in one.metrics)]
    if len(runs) < FEWEST_RUNS:
        told = f"{metric} over time: 2 comparable runs so far; a picture takes {FEWEST_RUNS}."
        return NOTHING, span(text(told), "note") if len(runs) == FEWEST_RUNS - 1 else NOTHING
    shown = runs[:MOST_RUNS]
    lines = _lines(shown, metric)
    unit = next(m.unit for m in shown[0].metrics if m.name == metric and m.samples)
    decided = _decided(records)
    chart = timeline(metric, unit, lines, [Decided(day=day, label=day.isoformat()) for day in decided])
    left = f" Of {len(runs)} runs the newest {MOST_RUNS} are drawn." if len(runs) > MOST_RUNS else ""
    first, last = shown[-1].date.isoformat(), shown[0].date.isoformat()
    days = f"on {first}" if first == last else f"from {first} to {last}"
    caption = (
        f"{metric} in {len(shown)} comparable runs {days}: medians with their bounds. {_sizes(lines)} "
        f"A line breaks where the release changed.{left}"
    )
    seen = within(
        [Decided(day=day, label=day.isoformat()) for day in decided], [moment.at for some in lines.values() for moment in some]
    )
    items = [
        line(text(f"{number}:"), dated(one.day, atlas.today), *_moves(atlas, decided[one.day], here))
        for number, one in list(enumerate(seen, start=1))[-MOST_DAYS:]
    ]
    if len(seen) > MOST_DAYS:
        items.insert(0, text(f"{len(seen) - MOST_DAYS} earlier days are marked, too."))
    data = details(text("The runs of this picture"), _table(atlas, shown, metric, list(lines), here), "data")
    return figure(chart, text(caption)), paragraphs(bullets(items) if items else NOTHING, data)


def of_runs(atlas: Atlas, runs: Iterable[Run], here: str, records: Sequence[Record]) -> Markdown:
    """Draw what loads, contracts and looks at a service showed over time, the newest first; `runs` are the newest first."""
    drawn: list[Markdown] = []
    notes: list[Markdown] = []
    seen: set[str] = set()
    for run in runs:
        if run.id in seen or run.kind not in _SHOWN or not run.validity.valid:
            continue
        seen |= {one.id for one in atlas.alike(run)}
        for metric in _SHOWN[run.kind]:
            picture, below = of_metric(atlas, run, metric, here, records)
            (drawn if picture else notes).append(paragraphs(picture, below))
        if len(drawn) >= _MOST_PICTURES:
            break
    told = [block(part, "pair") for part in drawn[:_MOST_PICTURES]] or [part for part in notes if part.strip()][:1]
    return block(paragraphs(*told), "pairs") if told else NOTHING


def records_on(atlas: Atlas, scope: str, technique: Technique | None = None, service: str = "") -> list[Record]:
    """Pick the records of a scope that may have moved a quantity: of one technique or of all, and of one service."""
    scopes = {scope, f"{scope}/{service}"} if scope == FLEET and service else {scope}
    return [one for one in atlas.records if one.technique is not None and one.scope in scopes
            and (technique is None or one.technique is technique)]  # fmt: skip


def _lines(runs: Sequence[Run], metric: str) -> dict[str, list[Moment]]:
    """Follow each arm that the newest run measured, the baseline first, through the earlier ones."""
    rank = {arm.name: (arm.role != "baseline", sweeps.count_of(arm), index) for index, arm in enumerate(runs[0].arms)}
    arms = [m.arm for m in runs[0].metrics if m.name == metric and m.samples]
    lines: dict[str, list[Moment]] = {}
    for arm in sorted(arms, key=lambda name: rank.get(name, (False, -1, -1)))[:MOST_LINES]:
        lines[arm or metric] = [
            Moment(at=run.started_at, spread=spread(found.samples, found.per), release=release(run))
            for run in reversed(runs)
            if (found := run.metric(metric, arm)) is not None and found.samples
        ]
    return lines


def _table(atlas: Atlas, runs: Sequence[Run], metric: str, arms: Sequence[str], here: str) -> Markdown:
    """List what the picture shows, a run to a row, the newest first."""
    body = [
        (
            atlas.run(here, run.id, text(f"{run.started_at.astimezone(UTC):%Y-%m-%d %H:%M}")),
            text(release(run)) if release(run) else span(text("unknown"), "absent"),
            *(
                span(text("not measured"), "absent") if found is None else text(summary(found))
                for arm in arms
                for found in [run.metric(metric, arm) or run.metric(metric)]
            ),
        )
        for run in runs
    ]
    return table(columns("Run, UTC", "Release", *map(text, arms)), body, Layout.CARDS, "runs")


def _sizes(lines: dict[str, list[Moment]]) -> str:
    sizes = sorted({moment.spread.n for line in lines.values() for moment in line})
    if sizes == [1]:
        return "Each run gave one number, so no spread is known."
    return f"n = {sizes[0]} a point." if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]} a point."


def _decided(records: Iterable[Record]) -> dict[date, list[tuple[Status, Record]]]:
    """Gather by day what was accepted, replaced or withdrawn; a record without a history was accepted on its date."""
    found: dict[date, list[tuple[Status, Record]]] = {}
    for record in records:
        moves = [(move.on, move.status) for move in record.history] or [(record.date, record.status)]
        for day, status in moves:
            if status in _DECIDED:
                found.setdefault(day, []).append((status, record))
    return found


def _moves(atlas: Atlas, moves: Sequence[tuple[Status, Record]], here: str) -> Iterator[Markdown]:
    for status, record in sorted(moves, key=lambda move: (_DECIDED.index(move[0]), move[1].name)):
        yield line(chip(status), atlas.record(here, record))
