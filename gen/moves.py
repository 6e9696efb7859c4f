"""What moved between two assessments of one technique in one scope, one line per moved thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gen.assessment import Assessment, Cell
from gen.techniques.wording import amount

# What stands in the row itself; the others are what it rests on.
HEADLINES = ("State", "Decision", "Next step")
# As `Assessment.key` compares them.
_COUNTED: tuple[tuple[str, Callable[[Assessment], Mapping[str, object]]], ...] = (
    ("price", lambda side: {conflict.id: True for conflict in side.conflicts}),
    ("service", lambda side: {cell.service: (_words(cell), sorted(cell.drift)) for cell in side.cells}),
    ("fact", lambda side: {fact.id: fact.value for fact in side.all_facts()}),
)


@dataclass(frozen=True, kw_only=True)
class Move:
    """`what` says which kind of thing moved, `text` from what to what."""

    what: str
    text: str


def moves(before: Assessment, after: Assessment) -> tuple[Move, ...]:
    """List what change detection sees: state, decision, next step, conflicts, cells, facts; empty when the keys are equal."""
    return tuple(_moves(before, after))


def gist(before: Assessment, after: Assessment) -> str:
    """Say in a few words what moved: 'next step, 3 facts'; empty when the keys are equal."""
    told = [
        f"{what} {old.value} → {new.value}"
        for what, old, new in (("state", before.state, after.state), ("decision", before.decision, after.decision))
        if old is not new
    ]
    told += ["next step"] if before.next_step != after.next_step else []
    for unit, parts in _COUNTED:
        old_parts, new_parts = parts(before), parts(after)
        number = sum(old_parts.get(name) != new_parts.get(name) for name in old_parts.keys() | new_parts.keys())
        told += [amount(number, unit)] if number else []
    return ", ".join(told)


def _moves(before: Assessment, after: Assessment) -> Iterator[Move]:
    old_line, new_line = ((side.state.value, side.decision.value, side.next_step or "none") for side in (before, after))
    for what, old, new in zip(HEADLINES, old_line, new_line, strict=True):
        if old != new:
            yield Move(what=what, text=f"{old} → {new}")
    old_prices, new_prices = ({c.id: c.text for c in side.conflicts} for side in (before, after))
    yield from (Move(what="New price", text=text) for key, text in new_prices.items() if key not in old_prices)
    yield from (Move(what="No longer a price", text=text) for key, text in old_prices.items() if key not in new_prices)
    yield from _cells(before, after)
    old_facts, new_facts = ({fact.id: fact for fact in side.all_facts()} for side in (before, after))
    for key, fact in new_facts.items():
        if key not in old_facts:
            yield Move(what="New fact", text=f"{fact.text} ({fact.provenance.value}, {fact.date})")
        elif old_facts[key].value != fact.value:
            text = f"{old_facts[key].text} → {fact.text} ({fact.provenance.value}, {fact.date})"
            yield Move(what="Moved fact", text=text)
    yield from (Move(what="No longer known", text=fact.text) for key, fact in old_facts.items() if key not in new_facts)


def _cells(before: Assessment, after: Assessment) -> Iterator[Move]:
    old, new = ({cell.service: cell for cell in side.cells} for side in (before, after))
    for service, cell in new.items():
        was, now = (_words(old[service]) if service in old else "not assessed"), _words(cell)
        if was != now:
            yield Move(what=f"Service {service}", text=f"{was} → {now}")
        gone, come = ((set(old[service].drift) if service in old else set()), set(cell.drift))
        yield from (Move(what=f"New drift on {service}", text=text) for text in sorted(come - gone))
        yield from (Move(what=f"Drift settled on {service}", text=text) for text in sorted(gone - come))
    yield from (
        Move(what=f"Service {service}", text=f"{_words(old[service])} → not assessed") for service in old if service not in new
    )


def _words(cell: Cell) -> str:
    return f"{cell.applicability.value}, {cell.state.value}, {cell.decision.value}"
