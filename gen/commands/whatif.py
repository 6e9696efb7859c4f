"""The command that answers before anything is touched: what would follow if a service ran with other settings."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from gen.assessment import Assessment, Conflict
from gen.commands.call import Call, Outcome
from gen.corpus import read_corpus
from gen.markdown import visible
from gen.planners.plan import Span
from gen.view import shown
from gen.whatif import Change, Consequence, whatif
from gen.words import TECHNIQUE_TITLES
from probes.errors import UsageError


def what_if(call: Call) -> Outcome:
    """Show what a change of settings would move, cost and need; nothing is written."""
    wanted: dict[str, str] = {}
    for word in call.arguments.changes:
        control, equals, value = word.partition("=")
        if not (control and equals and value):
            raise UsageError(f"{word!r}: is no change; expected CONTROL=VALUE, such as max_num_seqs=32")
        if wanted.setdefault(control, value) != value:
            raise UsageError(f"{control}: is given twice, as {wanted[control]!r} and as {value!r}; expected one value")
    corpus = read_corpus(call.root)
    found = whatif(corpus, call.arguments.service, wanted, call.today)
    if call.arguments.json:
        text = json.dumps(document(found), indent=1, ensure_ascii=False)
        return Outcome.of_what_could_be_read((text,), corpus.problems)
    return Outcome.of_what_could_be_read((*_opening(found), _cells(found), *_lines(found)), corpus.problems)


def document(found: Consequence) -> dict[str, JsonValue]:
    """Write a consequence for programs."""
    return {
        "scope": found.scope,
        "service": found.service.name,
        "changes": [_change(one) for one in found.changes],
        "cells": [
            {
                "technique": one.technique.value,
                "before": _cell(one, found.service.name),
                "after": _cell(other, found.service.name),
            }
            for one, other in zip(found.before, found.after, strict=True)
        ],
        "moves": [{"technique": technique.value, "what": move.what, "text": move.text} for technique, move in found.moved],
        "new_prices": [_price(one) for one in found.new_prices],
        "gone_prices": [_price(one) for one in found.gone_prices],
        "standing_prices": [_price(one) for one in found.standing_prices],
        "planners": [
            {"planner": one.planner, "name": one.name, "before": _span(one.before), "after": _span(one.after)}
            for one in found.shifted
        ],
        "standing": [{"name": one.name, "value": _span(one.span), "formula": one.formula} for one in found.standing],
        "missing": list(found.unknown),
        "evidence": [
            {
                "run": one.run,
                "date": one.day.isoformat(),
                "speaks_for": one.speaks_for,
                "this_service": one.here,
                "said": one.said,
            }
            for one in found.evidence
        ],
        "measure": list(found.measure),
        "apply": list(found.apply),
        "roll_back": list(found.roll_back),
    }


def _opening(found: Consequence) -> Iterator[Text]:
    yield Text(visible(f"What if {found.service.title} ran with other settings ({found.scope}); nothing is written"))
    for one in found.changes:
        before = "not known" if one.before is None else one.before.said(dated=True)
        yield Text(visible(f"  {one.control}: {before} -> {shown(one.value)}"))
        if one.so_already:
            yield Text("    It runs so already: nothing would change")
        if one.not_in_release:
            yield Text(visible(f"    Not in this release: {one.not_in_release}"))
        elif one.unchecked:
            yield Text(visible(f"    Whether the value is taken was not checked; documented: {one.unchecked}"))
        else:
            takes = one.known.accepts.said() if one.known.accepts else ""
            yield Text(visible(f"    The runtime takes {takes}"))
        yield from (Text(visible(f"    Known limit: {limit}")) for limit in one.known.limits)


def _cells(found: Consequence) -> Table:
    """Show the cells of this service as they are and as they would be; what would not move stands once."""
    table = Table(title=Text("Cells of this service"), title_justify="left", expand=False)
    for column in ("Technique", "Now", "Then", "Why"):
        table.add_column(column, overflow="fold")
    for one, other in zip(found.before, found.after, strict=True):
        now, then = (next(cell for cell in side.cells if cell.service == found.service.name) for side in (one, other))
        moved = (now.state, now.decision, now.summary) != (then.state, then.decision, then.summary)
        words = f"{then.state.value}, {then.decision.value}" if moved else "the same"
        cells = (
            TECHNIQUE_TITLES[one.technique],
            f"{now.state.value}, {now.decision.value}",
            words,
            then.summary if moved else "",
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _lines(found: Consequence) -> Iterator[Text]:
    rows = [f"{TECHNIQUE_TITLES[technique]}: {move.what}: {move.text}" for technique, move in found.moved if _of_row(move.what)]
    yield from _section("Rows of the matrix", rows, "none moves")
    yield from _section("Prices that would appear", [_told(one) for one in found.new_prices], "none")
    yield from _section("Prices that would go", [_told(one) for one in found.gone_prices], "none")
    yield from _section("Prices of the technique that stand", [_told(one) for one in found.standing_prices], "none")
    shifted = [f"{one.name}: {_said(one.before)} -> {_said(one.after)}" for one in found.shifted]
    standing = [f"{one.name}: {_said(one.span)}" for one in found.standing]
    yield from _section("Planners", [*shifted, *standing, *(f"missing: {one}" for one in found.unknown)], "no result moves")
    yield from _section("Evidence", list(_evidence(found)), "no run of this checkout has tried it")
    yield from _section("Measure it first", found.measure, "")
    yield from _section("Apply it", found.apply, "")
    yield from _section("Roll it back", found.roll_back, "")


def _evidence(found: Consequence) -> Iterator[str]:
    """Tell what runs showed, each run once with whom it speaks for."""
    for run in dict.fromkeys(one.run for one in found.evidence):
        mine = [one for one in found.evidence if one.run == run]
        whom = "this service" if mine[0].here else "elsewhere"
        yield f"{whom}: {mine[0].speaks_for}, {mine[0].day} ({run})"
        yield from (f"  {one.said}" for one in mine)


def _section(title: str, lines: list[str] | tuple[str, ...], nothing: str) -> Iterator[Text]:
    yield Text(f"{title}:" if lines else f"{title}: {nothing}")
    yield from (Text(visible(f"  {one}")) for one in lines)


def _of_row(what: str) -> bool:
    """Tell what moves a row from what moves a cell, which the table shows, and from its prices, which have their own list."""
    return not what.startswith("Service ") and "price" not in what


def _told(price: Conflict) -> str:
    return f"{price.text} ({price.source}, checked {price.checked})"


def _said(span: Span | None) -> str:
    if span is None:
        return "cannot be worked out"
    # Only what is left of something can be below nothing.
    short = ", so it does not fit" if span.high < 0 else ", so it may not fit" if span.low < 0 else ""
    return f"{span.said()}{short}"


def _span(span: Span | None) -> JsonValue:
    return None if span is None else {"low": span.low, "value": span.value, "high": span.high, "unit": span.unit}


def _change(one: Change) -> JsonValue:
    return {
        "control": one.control,
        "before": None if one.before is None else one.before.value,
        "known": None if one.before is None else one.before.kind.value,
        "after": one.value,
        "so_already": one.so_already,
        "checked": not one.unchecked,
        "not_in_release": one.not_in_release or None,
        "limits": list(one.known.limits),
    }


def _cell(one: Assessment, service: str) -> JsonValue:
    cell = next(cell for cell in one.cells if cell.service == service)
    return {"state": cell.state.value, "decision": cell.decision.value, "summary": cell.summary}


def _price(one: Conflict) -> JsonValue:
    return {"id": one.id, "text": one.text, "source": one.source, "checked": one.checked.isoformat()}
