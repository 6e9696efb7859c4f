"""A run has a page where something rests on it or it is the last of its kind; all others are summed up and kept as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from gen.corpus import Corpus
from gen.pages.atlas import Atlas
from gen.site import pages
from probes.archive import content_hash
from probes.evidence import Run, RunKind, Validity
from tests.gen import ledger, specimens
from tests.gen.reading import read

TODAY = date(2026, 11, 30)
BROKEN = Validity(valid=False, reasons=("host busy",))


def series(subject: str, count: int, **fields: Any) -> Iterator[Run]:
    """Runs of the same, an hour apart, the oldest first."""
    for number in range(count):
        yield specimens.run(RunKind.ENDPOINT, subject, minute=60 * number, id=f"{subject}-{number}", **fields)


def with_pages(corpus: Corpus) -> set[str]:
    return set(Atlas(corpus=corpus, today=TODAY).run_paths)


def of(*runs: Run, **changes: Any) -> Corpus:
    return specimens.corpus(fleet=specimens.small_fleet(), runs=(), local_runs=runs, **changes)


def test_of_the_same_only_the_last_run_has_a_page() -> None:
    assert with_pages(of(*series("a", 5), *series("b", 2))) == {"a-4", "b-1"}


def test_the_last_run_that_may_be_used_keeps_its_page_beside_a_newer_invalid_one() -> None:
    *older, last = series("a", 4)
    broken = last.model_copy(update={"validity": BROKEN})
    assert with_pages(of(*older, broken)) == {"a-2", "a-3"}


@pytest.mark.parametrize("how", ["evidence", "body"])
def test_what_a_record_cites_has_a_page_whatever_came_after_it(how: str) -> None:
    runs = tuple(series("a", 5))
    cites: dict[str, dict[str, Any]] = {
        "evidence": {"evidence": ({"id": "a-1", "sha256": runs[1].content_sha256},)},
        "body": {"body": "# Keep it\n\nSee [the run](evidence/a-1.json)."},
    }
    assert with_pages(of(*runs, records=(ledger.record(**cites[how]),))) == {"a-1", "a-4"}


def test_a_page_keeps_its_address_while_others_come() -> None:
    """The name of a page hangs on the run alone, also where another of the same slug has none."""
    one, two = specimens.run(RunKind.ENDPOINT, "a", id="A-1"), specimens.run(RunKind.ENDPOINT, "a", minute=5, id="a-1")
    later = specimens.run(RunKind.ENDPOINT, "a", minute=9, id="b")
    record = ledger.record(evidence=({"id": "A-1", "sha256": one.content_sha256},))
    before = Atlas(corpus=of(one, two, records=(record,)), today=TODAY).run_paths["A-1"]
    assert Atlas(corpus=of(one, two, later, records=(record,)), today=TODAY).run_paths["A-1"] == before


def test_the_run_before_the_last_of_a_benchmark_has_a_page_for_it_is_compared_with() -> None:
    first = specimens.micro_run()
    runs = [first.model_copy(update={"id": f"m-{n}", "started_at": specimens.START.replace(hour=8 + n)}) for n in range(3)]
    runs = [run.model_copy(update={"ended_at": run.started_at}) for run in runs]
    assert with_pages(of(*runs)) == {"m-1", "m-2"}


def test_the_rest_is_summed_up_with_a_way_to_every_file() -> None:
    *older, last = series("a", 6)
    runs = (older[0].model_copy(update={"validity": BROKEN}), *older[1:], last)
    site = pages(of(*runs), TODAY)
    index = read(site["runs/index.md"].split("---\n", 2)[2])
    (row,) = [row for row in index.rows if "newest file" in row[-1]]
    said = [" ".join(cell.split()) for cell in row]
    assert said[0].endswith("endpoint · a")
    assert said[2:5] == ["Runs 5", "From and to 2026-11-28 to 2026-11-28", "Valid 4"]
    assert "../evidence/a-4.json" in {value for tag, name, value in index.attributes if (tag, name) == ("a", "href")}
    listed = {entry["id"]: entry["file"] for entry in json.loads(site["evidence/index.json"])["runs"]}
    assert set(listed) == {run.id for run in runs}
    assert all(json.loads(site[path])["id"] == name for name, path in listed.items())
    assert {path for path in site if path.startswith("runs/")} == {"runs/index.md", "runs/a-5.md"}


def test_nothing_is_said_of_a_rest_where_there_is_none() -> None:
    assert "kept as data" not in pages(of(*series("a", 1)), TODAY)["runs/index.md"]


def test_a_link_to_a_run_without_a_page_leads_to_its_file() -> None:
    atlas = Atlas(corpus=of(*series("a", 3)), today=TODAY)
    assert atlas.run("services/x.md", "a-2").endswith("(../runs/a-2.md){ .run }")
    assert atlas.run("services/x.md", "a-0").endswith("(../evidence/a-0.json){ .run }")
    assert "](" not in atlas.run("services/x.md", "gone")


def test_evidence_is_published_word_for_word() -> None:
    """Another layout of the same JSON has the same hash; a reader who compares files sees no difference either."""
    (run,) = series("a", 1)
    text = json.dumps(json.loads(run.model_dump_json()))
    corpus = replace(of(run), texts={run.id: text})
    assert pages(corpus, TODAY)["evidence/a-0.json"] == text
    assert content_hash(json.loads(text)) == run.content_sha256
