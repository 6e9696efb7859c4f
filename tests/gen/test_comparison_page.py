"""The page of a contract run: every quantity with its verdict, the noise, and what differs."""

from __future__ import annotations

import re
from datetime import date

from gen.contract import ContractMetric
from gen.site import pages
from probes.evidence import Run, Validity
from tests.gen import ledger, specimens
from tests.gen.compared import FASTER, STEADY, one_side, two_sides
from tests.gen.reading import read

TODAY = date(2026, 11, 30)


def page(run: Run) -> str:
    written = pages(specimens.corpus(fleet=specimens.small_fleet(), local_runs=(run,)), TODAY)
    return next(text for path, text in written.items() if path.startswith("runs/") and path != "runs/index.md")


def part(run: Run) -> str:
    """Give what stands under the contract's heading, as it was written."""
    return page(run).partition("Measurement contract")[2].partition("## Results")[0]


def seen(run: Run) -> str:
    """Give the same as a reader sees it."""
    return " ".join(read(part(run)).text.split())


def test_each_quantity_has_a_verdict_an_interval_or_a_reason() -> None:
    shown = seen(two_sides())
    for title in ("Time to first token", "Aggregate throughput", "p95 latency of a request", "Task quality"):
        assert title in shown
    assert part(two_sides()).count("chip-better") == 2, "the quantity and the whole"
    assert "95 % interval 78 to 86, n = 6" in shown
    assert "no sensor" in shown
    assert "Candidate against baseline: 1 better, 6 same, 1 not measured." in shown


def test_what_is_under_test_and_what_differs_is_told() -> None:
    lengths = two_sides(candidate=FASTER | {"completion_tokens": (17.0,) * 6})
    shown = seen(lengths)
    assert "Under test: enable_prefix_caching false against true" in shown
    assert "differs answer-length 32.0 against 17.0" in shown
    assert "chip-not-comparable" in part(lengths)
    assert "chip-better" not in part(lengths)


def test_the_same_thing_twice_is_shown_as_noise() -> None:
    shown = seen(two_sides(STEADY, STEADY, settings=({}, {})))
    assert "this is the noise of the measurement" in shown
    assert "a change by a factor of 1.1" in shown


def test_an_invalid_run_shows_its_numbers_and_no_verdict() -> None:
    stopped = Validity(valid=False, reasons=("interrupted: stopped with Ctrl-C",))
    shown = part(two_sides(validity=stopped))
    assert "no verdict" in shown
    assert "chip-" not in shown


def test_one_side_shows_values_and_reasons() -> None:
    shown = seen(one_side())
    assert "410 ms 95 % interval 402 to 421, n = 6" in shown
    assert "no RAPL here" in shown
    assert "chip-" not in part(one_side())


def test_the_verdict_leads_and_each_quantity_has_an_address() -> None:
    written = part(two_sides())
    places = [written.index(words) for words in ("chip-better", "Under test:", "<strong>better</strong>", "| Quantity")]
    assert places == sorted(places), "the verdict, what was tried, what decides, then the numbers"
    assert "](#quantity-ttft){ .chip" in written, "the chip of the whole leads to the first quantity that has its verdict"
    for metric in ContractMetric:
        assert f'<span id="quantity-{metric.value}"></span>' in written


def test_an_open_comparison_says_what_would_settle_it() -> None:
    noisy = FASTER | {"ttft_s": (0.38, 0.44, 0.4, 0.43, 0.39, 0.42)}
    shown = seen(two_sides(candidate=noisy))
    assert "inconclusive Candidate against baseline" in shown
    assert re.search(r"About (\d+) more repetitions a side would settle it: nox -s compare -- embedded:", shown)
    more = int(re.search(r"About (\d+) more", shown)[1])  # type: ignore[index]
    assert f"--repetitions {6 + more}" in shown


def test_a_verdict_that_cannot_be_given_says_why_and_what_would_help() -> None:
    lengths = seen(two_sides(candidate=FASTER | {"completion_tokens": (17.0,) * 6}))
    assert "No verdict can be given: the sides differ in answer-length: 32 against 17." in lengths
    assert "Measure both sides alike" in lengths
    stopped = seen(two_sides(validity=Validity(valid=False, reasons=("interrupted: stopped with Ctrl-C",))))
    assert "The run is invalid (interrupted: stopped with Ctrl-C)." in stopped
    assert "To get a verdict, measure again once the reason is gone. Again: nox -s compare -- embedded:" in stopped


def test_the_page_of_comparisons_lists_each_with_its_verdict_and_who_cites_it() -> None:
    run = two_sides()
    record = ledger.record(body="# Keep\n\nIt pays.\n", evidence=({"id": run.id, "sha256": run.content_sha256},))
    corpus = specimens.corpus(fleet=specimens.small_fleet(), local_runs=(run, one_side(minute=5)), records=(record,))
    page = pages(corpus, TODAY)["comparisons.md"].split("---\n", 2)[2]
    rows = read(page).rows[1:]
    assert len(rows) == 1, "a run of one side compares nothing"
    assert "enable_prefix_caching false against true" in rows[0][1]
    assert "better" in rows[0][2]
    assert record.title in rows[0][4]
    assert "#contract){ .chip" in page


def test_without_a_comparison_the_page_says_how_to_make_one() -> None:
    page = read(pages(specimens.corpus(local_runs=()), TODAY)["comparisons.md"].split("---\n", 2)[2]).text
    assert "None is in this checkout yet." in page
    assert "nox -s compare -- BASELINE CANDIDATE" in page
