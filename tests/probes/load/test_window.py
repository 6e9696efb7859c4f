"""Only requests that lie wholly in the steady part of a run count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.load.window import Phase, Progress, Rule, choose

WARM, MEASURED, COOL = Phase.WARM_UP, Phase.MEASURED, Phase.COOL_DOWN
SPANS = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 50)).map(lambda s: (s[0], s[0] + s[1])), max_size=30)


def phases(spans: list[tuple[int, int]], **rule: int | None) -> list[Phase]:
    return list(choose(spans, Rule(**({"warmup": 0, "requests": None} | rule))).phases)  # type: ignore[arg-type]


def test_request_that_began_in_the_warm_up_is_warm_up_though_it_ended_later() -> None:
    """The first of two streams has finished its warm-up request while the other one is still at it."""
    spans = [(0, 10), (0, 30), (10, 40), (30, 50), (40, 60)]
    assert phases(spans, warmup=2) == [WARM, WARM, WARM, MEASURED, MEASURED]


def test_warm_up_by_time_leaves_out_what_overlaps_it() -> None:
    assert phases([(0, 5), (5, 15), (10, 20)], warm_until_ns=10) == [WARM, WARM, MEASURED]


def test_cool_down_leaves_out_what_overlaps_it() -> None:
    assert phases([(0, 5), (5, 15), (8, 21)], cool_from_ns=20) == [MEASURED, MEASURED, COOL]


def test_first_so_many_to_begin_are_measured_and_not_the_first_to_end() -> None:
    """Taking those that end first would prefer short answers."""
    assert phases([(0, 90), (1, 5), (2, 6)], requests=2) == [MEASURED, MEASURED, COOL]


def test_window_spans_the_measured_requests() -> None:
    window = choose([(0, 10), (10, 30), (12, 25), (30, 99)], Rule(warmup=1, requests=2))
    assert (window.start_ns, window.end_ns, window.seconds) == (10, 30, 20e-9)


def test_run_without_measured_requests_has_an_empty_window() -> None:
    window = choose([(0, 10)], Rule(warmup=1, requests=5))
    assert (window.phases, window.seconds) == ((WARM,), 0.0)


@given(spans=SPANS, warmup=st.integers(0, 5), requests=st.integers(1, 10))
def test_progress_has_enough_exactly_when_the_measured_ones_have_ended(
    spans: list[tuple[int, int]], warmup: int, requests: int
) -> None:
    progress = Progress(Rule(warmup=warmup, requests=requests))
    events = [(start, 1, n) for n, (start, _) in enumerate(spans)] + [(end, 0, n) for n, (_, end) in enumerate(spans)]
    for at, kind, n in sorted(events):
        if kind:
            progress.start(n, at)
        elif progress.end(n, at):
            seen = [span for span in spans if span[0] <= at]
            found = choose(seen, Rule(warmup=warmup, requests=requests))
            measured = [span for span, phase in zip(seen, found.phases, strict=True) if phase is MEASURED]
            assert len(measured) == requests
            return
    found = choose(spans, Rule(warmup=warmup, requests=requests))
    assert sum(phase is MEASURED for phase in found.phases) < requests
