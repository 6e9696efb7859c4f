"""The first page answers what is on, what was decided and what needs somebody, and every part of the answer leads on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from gen.assess import assess
from gen.corpus import Corpus
from gen.reason import reason
from gen.records import Record
from gen.site import pages
from gen.words import Decision, State, Status
from probes.evidence import LocalScope, RunKind, Technique
from tests.gen import ledger, specimens
from tests.gen.ledger import JULY, NOVEMBER
from tests.gen.reading import Reader, read
from tests.gen.test_site import small, small_with

DECEMBER = date(2026, 12, 31)
HOSTILE_LINES = [words for words in specimens.HOSTILE if "\n" not in words]
NEEDS = ("changed", "drift", "due", "findings")


def front(corpus: Corpus, today: date = NOVEMBER) -> Reader:
    return read(pages(corpus, today)["index.md"].split("---\n", 2)[2])


def said(reader: Reader) -> str:
    return " ".join(reader.text.split())


def summary(reader: Reader) -> str:
    """The line above the matrix."""
    return said(reader).partition("Technique State")[0].partition("fleet ")[2].strip()


def targets(reader: Reader) -> list[str]:
    return [value for tag, name, value in reader.attributes if (tag, name) == ("a", "href")]


def draft(**changes: Any) -> Record:
    values: dict[str, Any] = {
        "name": "2026-11-30-automatic-prefix-caching-fleet",
        "title": "Automatic prefix caching on the fleet: investigate",
        "status": Status.PROPOSED,
        "date": NOVEMBER,
        "assessment": ledger.disabled(),
    }
    return ledger.record(**(values | changes))


# The sentence


@pytest.mark.parametrize(
    ("technique", "sentence"),
    [
        (Technique.QUANTIZATION, "INT4 weights and u8 KV cache on all six OVMS text services."),
        (Technique.PREFIX_CACHING, "Enabled on all six OVMS text services."),
        (
            Technique.DISAGGREGATION,
            "The pools are heterogeneous in runtime, model and place; a compatible target model in two pools, a link between "
            "them and a KV-transfer path are lacking.",
        ),
        (Technique.FLASH_ATTENTION, "OVMS has no switch for dense attention kernels."),
        (
            Technique.CONTINUOUS_BATCHING,
            "Active: at most 16 sequences and 2048 tokens per batch on all six OVMS text services.",
        ),
        (
            Technique.SPECULATIVE_DECODING,
            "Benchmark on the Intel Arc B580 (8B text on B580) first (tracked in #2244); reject it if the draft's VRAM harms "
            "coexistence with Jellyfin or the gain is negligible (below 5 %).",
        ),
    ],
)
def test_the_reason_of_each_row_of_the_users_fleet_is_one_sentence(technique: Technique, sentence: str) -> None:
    rows = {row.technique: row for row in assess(ledger.ledger(), "fleet", JULY)}
    assert reason(rows[technique]) == sentence


@pytest.mark.parametrize(
    ("decision", "text", "sentence"),
    [
        (Decision.DO_NOT_DEPLOY, "Do not deploy: it was measured. It does not pay.", "It was measured."),
        (Decision.INVESTIGATE, "OVMS 2026.2: 8.5 here, e.g. by hand.", "OVMS 2026.2: 8.5 here, e.g. by hand."),
        (Decision.KEEP, "Keep. Tune from measurements only.", "On, on one text service"),
        (Decision.ENABLE, "", ""),
    ],
)  # fmt: skip
def test_the_reason_is_the_state_where_it_stays_and_else_what_is_to_be_done(
    decision: Decision, text: str, sentence: str
) -> None:
    assert reason(ledger.assessment(decision=decision, decision_text=text)) == sentence


# The summary


def test_the_first_line_sums_up_and_each_part_leads_to_its_place() -> None:
    shown = front(small_with(ledger.record(), draft()))
    words = summary(shown)
    assert re.match(
        r"\d of 7 on · 1 decision to review and 7 changes without a draft · drift not comparable yet · \d+ items? due · checks "
        "clean",
        words,
    )
    anchors = {value for _, name, value in shown.attributes if name == "id"}
    assert {"matrix", *NEEDS} <= anchors
    assert {"#matrix", *(f"#{name}" for name in NEEDS)} <= set(targets(shown))


def test_the_number_of_what_is_on_is_that_of_the_chips() -> None:
    shown = front(small())
    states = [" ".join(row[1].split()) for row in shown.rows[1:8]]
    on = sum(state.removeprefix("State ") in {State.ENABLED, State.PARTLY} for state in states)
    assert summary(shown).startswith(f"{on} of 7 on")


@pytest.mark.parametrize("today", [JULY, NOVEMBER, DECEMBER])
def test_anchors_hold_on_any_day_whether_there_is_something_or_not(today: date) -> None:
    for corpus in (small(), specimens.corpus(local_runs=()), small_with(ledger.record(), draft(date=JULY))):
        shown = front(corpus, today)
        anchors = [value for _, name, value in shown.attributes if name == "id"]
        assert all(anchors.count(name) == 1 for name in ("matrix", "needs", "machines", *NEEDS))


def test_nothing_is_said_in_a_line() -> None:
    """Everything in force, looked at today, and nothing open."""
    corpus = ledger.ledger()
    accepted = tuple(
        ledger.record(
            name=f"2026-07-10-{row.technique.value}-fleet",
            title=f"{row.technique.value} on the fleet",
            technique=row.technique,
            assessment=row,
        )
        for row in assess(corpus, "fleet", JULY)
    )
    shown = front(replace(corpus, records=accepted), JULY)
    assert summary(shown).startswith("5 of 7 on · no decision to review · drift not comparable yet")


# Rows


def row(reader: Reader, title: str = "Automatic prefix caching") -> list[str]:
    return next([" ".join(cell.split()) for cell in row] for row in reader.rows if title in row[0])


def test_a_row_shows_the_strongest_knowledge_and_the_oldest_and_nothing_between() -> None:
    known = row(front(specimens.corpus()))[4]
    assert known.startswith("Known declared 2026-07-10")
    assert len(re.findall(r"measured|observed|inferred|declared|documented", known)) <= 2


def test_what_was_turned_down_is_not_called_undrafted() -> None:
    """The facts of today lead elsewhere, and somebody has said no to that."""
    held = ledger.record()
    open_ = small_with(held)
    assert "newer facts, no draft yet" in row(front(open_))[2]
    today = next(one for one in assess(open_, "fleet", NOVEMBER) if one.technique is ledger.TECHNIQUE)
    refused = draft(status=Status.REJECTED, assessment=today, supersedes=(held.name,))
    told = row(front(small_with(held, refused)))[2]
    assert "newer facts, turned down 2026-11-30" in told
    assert "no draft yet" not in told
    elsewhere = draft(status=Status.REJECTED, assessment=today, supersedes=())
    assert "no draft yet" in row(front(small_with(held, elsewhere)))[2]


def test_every_chip_of_the_first_page_is_a_link() -> None:
    shown = front(small_with(ledger.record(), draft()))
    chips = [tag for tag, name, value in shown.attributes if name == "class" and value.startswith("chip")]
    assert len(chips) >= 14
    assert set(chips) == {"a"}


# What needs somebody


def drafts(number: int) -> Iterable[Record]:
    day = NOVEMBER - timedelta(days=number)
    return (
        draft(name=f"{day + timedelta(days=n)}-draft-{n}", date=day + timedelta(days=n), title=HOSTILE_LINES[n])
        for n in range(number)
    )


def test_many_drafts_are_folded_and_hostile_titles_stay_text() -> None:
    shown = front(small_with(ledger.record(), *drafts(6)))
    assert summary(shown).startswith(f"{summary(shown)[0]} of 7 on · 6 decisions to review")
    assert "3 more" in said(shown)
    assert not {"script", "img", "style"} & set(shown.tags)
    assert all(" ".join(words.split()) in said(shown) for words in HOSTILE_LINES[:6])


def test_a_machine_has_one_line_and_its_own_page_the_matrix() -> None:
    site = pages(small(), NOVEMBER)
    first = read(site["index.md"].split("---\n", 2)[2])
    assert sum(row[0].strip() == "Technique" for row in first.rows) == 1
    told = said(first).partition("Measured machines")[2]
    assert "7 times: an assessment that no record expresses" in told
    assert re.search(r"bench local · Example CPU 3000 · measured 2026-11-28 · \d enabled", told)
    own = read(site["machines/local-abc123abc123.md"].split("---\n", 2)[2])
    assert sum("Disaggregated" in row[0] for row in own.rows) == 2, "in brief, and folded with what was measured"


def test_more_machines_than_fit_are_one_link() -> None:
    runs = tuple(
        specimens.run(
            RunKind.MICRO,
            "prefix-caching",
            minute=n,
            id=f"run-{n}",
            scope=LocalScope(fingerprint=f"abc123abc{n:03}"),
        )
        for n in range(5)
    )
    shown = front(specimens.corpus(local_runs=runs))
    assert "2 more" in said(shown)
    assert "machines/index.md" in targets(shown)
