"""The page of a contract run: every quantity with its verdict, the noise, and what differs."""

from __future__ import annotations

from datetime import date

from gen.site import pages
from probes.evidence import Run, Validity
from tests.gen import specimens
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
