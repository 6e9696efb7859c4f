"""Time travel: each day shows the records that were in force as it ended, whatever was decided later."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.past import Day, Held, days
from gen.records import Record, in_force, open_proposals
from gen.records.record import Move
from gen.site import pages
from gen.words import Status
from probes.evidence import Technique
from tests.gen import ledger, specimens
from tests.gen.ledger import JULY, NOVEMBER, TECHNIQUE
from tests.gen.reading import Reader, read

AUGUST, SEPTEMBER = date(2026, 8, 20), date(2026, 9, 1)
LATER = date(2026, 12, 31)


def moved(status: Status, on: date, by: str = "platform team") -> Move:
    return Move(status=status, date=on, by=by)  # type: ignore[call-arg]


def kept(**changes: Any) -> Record:
    """Accepted in July."""
    return ledger.record(**({"history": (moved(Status.ACCEPTED, JULY),)} | changes))


def replaced() -> tuple[Record, Record]:
    """One in force from July to September, and its successor of August that says off."""
    new = kept(
        name="2026-08-20-automatic-prefix-caching-fleet",
        title="Automatic prefix caching on the fleet: investigate",
        date=AUGUST,
        assessment=ledger.disabled(AUGUST),
        supersedes=("2026-07-10-automatic-prefix-caching-fleet",),
        history=(moved(Status.ACCEPTED, SEPTEMBER),),
    )
    old = kept(
        status=Status.SUPERSEDED,
        superseded_by=new.name,
        history=(moved(Status.ACCEPTED, JULY), moved(Status.SUPERSEDED, SEPTEMBER)),
    )
    return old, new


def row(day: Day, technique: Technique = TECHNIQUE, scope: str = "fleet") -> Held:
    return next(held for held in day.rows[scope] if held.technique is technique)


def test_a_record_is_in_force_on_its_days_though_it_was_superseded_later() -> None:
    old, new = replaced()
    july, august, september = days((new, old), NOVEMBER)
    assert [day.on for day in (july, august, september)] == [JULY, AUGUST, SEPTEMBER]
    assert (row(july).record, row(july).proposals) == (old, ())
    assert (row(august).record, row(august).proposals) == (old, (new,))
    assert (row(september).record, row(september).since, row(september).proposals) == (new, SEPTEMBER, ())
    assert [(step.record.name, step.status) for step in september.steps] == [
        (new.name, Status.ACCEPTED),
        (old.name, Status.SUPERSEDED),
    ]


def test_a_deprecated_record_leaves_no_record_in_force() -> None:
    gone = kept(status=Status.DEPRECATED, history=(moved(Status.ACCEPTED, JULY), moved(Status.DEPRECATED, SEPTEMBER)))
    assert [row(day).record for day in days((gone,), NOVEMBER)] == [gone, None]


def test_what_happens_after_the_day_of_the_build_is_not_told() -> None:
    assert [day.on for day in days(replaced(), AUGUST)] == [JULY, AUGUST]
    assert days(replaced(), JULY - timedelta(days=1)) == ()


def test_every_row_of_the_fleet_is_there_with_or_without_a_record() -> None:
    (day,) = days((kept(),), NOVEMBER)
    assert [held.technique for held in day.rows["fleet"]] == list(Technique)
    assert [held.technique for held in day.rows["fleet"] if held.record] == [TECHNIQUE]


def test_a_machine_is_shown_while_a_record_of_its_own_is_in_force() -> None:
    """Drafts of a machine change no chip: they make no day and no section."""
    local = {"scope": "local-abc123abc123", "assessment": ledger.assessment(scope="local-abc123abc123")}
    draft = ledger.record(name="2026-08-20-x", date=AUGUST, status=Status.PROPOSED, **local)
    accepted = kept(name="2026-08-20-y", date=AUGUST, history=(moved(Status.ACCEPTED, SEPTEMBER),), **local)
    assert [set(day.rows) for day in days((kept(), draft), NOVEMBER)] == [{"fleet"}]
    july, september = days((kept(), draft, accepted), NOVEMBER)
    assert (set(july.rows), set(september.rows)) == ({"fleet"}, {"fleet", "local-abc123abc123"})


def test_records_that_are_no_row_of_a_matrix_make_no_day() -> None:
    of_project = kept(name="2026-08-20-x", date=AUGUST, scope="project", technique=None, decision=None, assessment=None)
    of_service = kept(name="2026-08-20-z", date=AUGUST, scope="fleet/text-8b")
    assert days((of_project, of_service), NOVEMBER) == ()


STATUSES = st.sampled_from(sorted(Status))
OFFSETS = st.integers(min_value=0, max_value=12)


@given(
    st.lists(
        st.tuples(OFFSETS, STATUSES, st.lists(st.tuples(OFFSETS, STATUSES), max_size=3), st.sampled_from(list(Technique)[:2])),
        max_size=8,
    )
)
def test_the_replay_agrees_with_the_rule_of_what_is_in_force(drawn: list[tuple[int, Status, Any, Technique]]) -> None:
    """On every day, not only on those that changed something; whatever histories people wrote."""
    some = tuple(
        ledger.record(
            name=f"{JULY + timedelta(days=day)}-r{number}",
            date=JULY + timedelta(days=day),
            technique=technique,
            status=status,
            history=tuple(moved(became, JULY + timedelta(days=offset)) for offset, became in sorted(history)),
        )
        for number, (day, status, history, technique) in enumerate(drawn)
    )
    told = {day.on: day for day in days(some, LATER)}
    shown: Day | None = None
    for offset in range(14):
        on = JULY + timedelta(days=offset)
        shown = told.get(on, shown)
        for technique in list(Technique)[:2]:
            held = row(shown, technique) if shown else Held(technique=technique)
            assert held.record == in_force(some, technique, "fleet", on)
            assert held.proposals == open_proposals(some, technique, "fleet", on)


# The pages


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return pages(replace(specimens.corpus(), records=replaced()), NOVEMBER)


def page(site: dict[str, str], path: str) -> Reader:
    return read(site[path].split("---\n", 2)[2])


def cells(reader: Reader, title: str = "Automatic prefix caching") -> list[str]:
    return next([" ".join(cell.split()) for cell in row] for row in reader.rows if title in row[0])


def test_a_page_speaks_in_the_words_of_the_records_of_its_day(site: dict[str, str]) -> None:
    _, state, decision, why, changed = cells(page(site, "as-of/2026-07-10.md"))
    assert (state, decision) == ("State enabled", "Decision keep record of 2026-07-10")
    assert (why, changed) == ("Why On, on one text service.", "Changed first record in force")
    _, state, decision, _, changed = cells(page(site, "as-of/2026-08-20.md"))
    assert (state, decision) == ("State enabled", "Decision keep record of 2026-07-10 investigate proposed 2026-08-20")
    assert changed == "Since 2026-07-10 newly proposed"
    _, state, decision, _, changed = cells(page(site, "as-of/2026-09-01.md"))
    assert (state, decision) == ("State disabled", "Decision investigate record of 2026-08-20 in force since 2026-09-01")
    assert "new record: state enabled → disabled, decision keep → investigate" in changed


def test_a_technique_without_a_record_says_so(site: dict[str, str]) -> None:
    _, state, decision, why, changed = cells(page(site, "as-of/2026-09-01.md"), "Quantization")
    assert (state, decision, why) == ("State no record in force", "Decision none", "Why No record spoke of it.")
    assert changed.endswith("as before")


def test_days_lead_to_each_other_and_every_chip_to_its_record(site: dict[str, str]) -> None:
    shown = page(site, "as-of/2026-08-20.md")
    targets = [value for tag, name, value in shown.attributes if (tag, name) == ("a", "href")]
    assert {"2026-07-10.md", "2026-09-01.md", "../index.md", "index.md"} <= set(targets)
    chips = [tag for tag, name, value in shown.attributes if name == "class" and value.startswith("chip")]
    assert set(chips) == {"a"}
    assert "../records/2026-07-10-automatic-prefix-caching-fleet.md" in targets
    index = site["as-of/index.md"]
    assert index.index("2026-09-01.md") < index.index("2026-08-20.md") < index.index("2026-07-10.md")


def test_addresses_hold_on_another_day_and_whatever_is_decided_later(site: dict[str, str]) -> None:
    before = pages(replace(specimens.corpus(), records=(kept(),)), JULY)
    assert {path for path in before if path.startswith("as-of/")} == {"as-of/index.md", "as-of/2026-07-10.md"}
    assert {path for path in before if path.startswith("as-of/")} <= set(site)
    later = pages(replace(specimens.corpus(), records=replaced()), LATER)
    assert {path: site[path] for path in site if path.startswith("as-of/")} == {
        path: later[path] for path in later if path.startswith("as-of/")
    }


def test_a_record_without_a_snapshot_says_what_it_does_not_hold() -> None:
    bare = kept(title=specimens.HOSTILE[0], assessment=None)
    site = pages(replace(specimens.corpus(), records=(bare,)), NOVEMBER)
    shown = page(site, "as-of/2026-07-10.md")
    _, state, decision, why, _ = cells(shown)
    assert (state, decision) == ("State not in the record", "Decision keep record of 2026-07-10")
    assert why == f"Why {specimens.HOSTILE[0]}."
    assert "script" not in shown.tags


def test_without_records_the_index_says_so() -> None:
    site = pages(specimens.corpus(), NOVEMBER)
    assert [path for path in site if path.startswith("as-of/")] == ["as-of/index.md"]
    assert "No record yet" in site["as-of/index.md"]
