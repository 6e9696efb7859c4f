"""A service's page answers first what somebody opens it for, and shows each setting by the ways in which it is known."""

from __future__ import annotations

from datetime import date

import pytest

from gen.site import pages
from tests.gen import ledger, specimens
from tests.gen.reading import Reader, read

TODAY = date(2026, 11, 30)
EMBEDDED = "services/local-abc123abc123-embedded.md"


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    fleet = specimens.small_fleet()
    cited = specimens.endpoint_run()
    record = ledger.record(body="# Keep\n\nIt is on.\n", evidence=({"id": cited.id, "sha256": cited.content_sha256},))
    corpus = specimens.corpus(
        fleet=fleet, local_runs=(cited, specimens.micro_run(), specimens.survey_run(fleet)), records=(record,)
    )
    return pages(corpus, TODAY)


def page(site: dict[str, str], path: str) -> Reader:
    return read(site[path].split("---\n", 2)[2])


def rows_of(site: dict[str, str], path: str) -> list[list[str]]:
    return [[" ".join(cell.split()) for cell in row] for row in page(site, path).rows]


def summary(site: dict[str, str], path: str) -> dict[str, str]:
    """Read the table at the top."""
    rows = rows_of(site, path)
    end = next(n for n, row in enumerate(rows) if n and row[0] == "Technique")
    return {row[0]: row[1] for row in rows[1:end]}


def test_what_runs_where_and_whether_it_answers_stands_first(site: dict[str, str]) -> None:
    told = summary(site, "services/text.md")
    assert list(told)[:4] == ["serves", "on", "when last asked", "drift"]
    assert told["serves"] == "text generation · ovms 2026.2 · 8B model: unknown Which model?"
    assert told["on"] == "GPU cluster · card: Intel Arc Pro B60"
    assert told["when last asked"].startswith("not configured")
    assert told["drift"].startswith("nothing to compare")


def test_a_decision_that_waits_stands_apart_from_those_that_hold(site: dict[str, str]) -> None:
    told = summary(site, EMBEDDED)
    assert "Automatic prefix caching" in told["waits for somebody"]
    assert "investigate" in told["waits for somebody"]
    assert "investigate" not in told["decided"]
    assert told["drift"] == "enable_prefix_caching differs between its sources"


def test_only_the_ways_in_which_something_is_known_have_a_column(site: dict[str, str]) -> None:
    declared = next(row for row in rows_of(site, "services/text.md") if row[0] == "Control")
    assert declared == ["Control", "Declared"]
    seen = next(row for row in rows_of(site, EMBEDDED) if row[0] == "Control")
    assert seen == ["Control", "Declared", "Observed", "Drift"]
    assert "Nothing of it is in files, observed or inferred." in page(site, "services/text.md").text


def test_records_that_rest_on_its_runs_are_listed(site: dict[str, str]) -> None:
    assert "## Records { #records }" in site[EMBEDDED]
    assert "2026-07-10-automatic-prefix-caching-fleet.md" in site[EMBEDDED]
    assert "## Records { #records }" not in site["services/text.md"]


def test_commands_measure_this_service_and_no_other(site: dict[str, str]) -> None:
    text = site["services/text.md"].partition("{ #measure }")[2]
    assert "nox -s probe -- --service text\n" in text
    assert "python -m probes contract text\n" in text
    pictures = site["services/pictures.md"].partition("{ #measure }")[2]
    assert "nox -s probe -- --service pictures\n" in pictures
    assert "contract" not in pictures, "the contract's quantities are those of generated text"
