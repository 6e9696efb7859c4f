"""What drafts brought per step against what they have to bring: a picture of one run, and one of all kinds of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gen.benchmarks import BREAK_EVEN
from gen.charts import Draft, drafts, figure
from gen.markdown import NOTHING, Markdown, text
from gen.spread import spread
from gen.techniques.drafting import HEAD, RANDOM_HEAD, TOKENS_PER_STEP
from probes.evidence import Arm, Run

_TEXT = "text"
_READ = (
    "Tokens per step: the grey bar is what a step has to bring before drafting pays, the diamond what it brought; "
    "each with its median and bounds."
)


def of_run(run: Run) -> Markdown:
    """Draw each draft that a run priced."""
    return _drawn(sorted(_of(run), key=lambda row: row.label))


def by_text(runs: Iterable[Run]) -> Markdown:
    """Draw together what the newest valid run on each kind of text showed; nothing from fewer than two kinds."""
    newest: dict[str, Run] = {}
    for run in runs:
        texts = {str(arm.settings[_TEXT]) for arm in run.arms if _TEXT in arm.settings}
        if run.validity.valid and len(texts) == 1:
            newest.setdefault(texts.pop(), run)
    if len(newest) < 2:
        return NOTHING
    rows = [
        Draft(label=f"{kind}: {row.label}", needed=row.needed, brought=row.brought)
        for kind, run in newest.items()
        for row in _of(run)
    ]
    return _drawn(sorted(rows, key=lambda row: row.label.partition(": ")[2]))


def _drawn(rows: Sequence[Draft]) -> Markdown:
    if not rows:
        return NOTHING
    sizes = sorted({one.n for row in rows for one in (row.needed, row.brought) if one is not None})
    ring = " A head with random weights is never right: the ring is what an ideal one would bring." if any(
        row.most is not None for row in rows
    ) else ""  # fmt: skip
    told = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    return figure(drafts(rows), text(f"{_READ}{ring} {told} repetitions."))


def _of(run: Run) -> Iterator[Draft]:
    for arm in run.arms:
        needed, brought = run.metric(BREAK_EVEN, arm.name), run.metric(TOKENS_PER_STEP, arm.name)
        if needed is not None and needed.samples:
            price = spread(needed.samples, needed.per)
            if arm.settings.get(HEAD) == RANDOM_HEAD:
                yield Draft(label=arm.name, needed=price, most=_ideal(arm))
            elif brought is not None and brought.samples:
                yield Draft(label=arm.name, needed=price, brought=spread(brought.samples, brought.per))
            else:
                yield Draft(label=arm.name, needed=price)


def _ideal(arm: Arm) -> int | None:
    """Count the tokens of a step in which every guess is right: all that were drafted in a row, and the target's own."""
    deep = arm.settings.get("tree_depth", arm.settings.get("num_assistant_tokens"))
    return deep + 1 if isinstance(deep, int) and not isinstance(deep, bool) else None
