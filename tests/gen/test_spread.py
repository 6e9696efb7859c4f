"""A summary never leaves the data, never claims more than the samples bear, and always names unit, size and spread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.spread import percentile, quantity, spread, summary
from probes.evidence import Direction, Metric, Missing, MissingReason, Per

SAMPLES = st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=1, max_size=60)


@given(SAMPLES)
def test_bounds_lie_in_the_data_and_around_the_median(samples: list[float]) -> None:
    one = spread(samples)
    assert one.low in samples
    assert one.high in samples
    assert one.low <= one.median <= one.high
    assert one.n == len(samples)


@given(SAMPLES, st.floats(min_value=0, max_value=1))
def test_a_percentile_is_one_of_the_samples(samples: list[float], share: float) -> None:
    found = percentile(samples, share)
    assert found in samples
    assert sum(sample <= found for sample in samples) >= share * len(samples) - 1e-9


@pytest.mark.parametrize(("n", "tight", "low", "high"), [(5, False, 1, 5), (6, True, 1, 6), (9, True, 2, 8), (20, True, 6, 15)])
def test_the_95_percent_interval_is_the_one_of_the_tables(n: int, tight: bool, low: int, high: int) -> None:
    """Conover, Practical Nonparametric Statistics: order statistics that bound a median."""
    one = spread([float(value) for value in range(1, n + 1)])
    assert (one.bounds_median, one.low, one.high) == (tight, low, high)


def test_requests_of_one_run_get_their_range() -> None:
    one = spread([float(value) for value in range(40)], Per.REQUEST)
    assert (one.bounds_median, one.low, one.high) == (False, 0, 39)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0412, "s", "41.2 ms"),
        (0.0000412, "s", "41.2 µs"),
        (1.5, "s", "1.5 s"),
        (0.0, "s", "0 s"),
        (12884901888.0, "bytes", "12 GiB"),
        (1023.0, "bytes", "1023 bytes"),
        (2.1e10, "B/s", "21 GB/s"),
        (950e6, "B/s", "950 MB/s"),
        (36.26, "tok/s", "36.3 tok/s"),
        (12345.678, "tok/s", "12346 tok/s"),
        (0.0, "1", "0"),
        (-2.5, "points", "-2.5 points"),
        (1e-12, "W", "1e-12 W"),
    ],
)
def test_quantities_read_well(value: float, unit: str, shown: str) -> None:
    assert quantity(value, unit) == shown


def metric(**changes: object) -> Metric:
    values = {"name": "ttft_s", "unit": "s", "direction": Direction.LOWER, "per": Per.REPETITION}
    return Metric.model_validate(values | changes)


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (metric(samples=(0.4, 0.41, 0.42, 0.43, 0.44, 0.45)), "median 425 ms (95 % interval 400 to 450; n = 6 repetitions)"),
        (metric(samples=(0.4, 0.5), per=Per.REQUEST), "median 450 ms (range 400 to 500; n = 2 requests)"),
        (metric(samples=(0.4,), per=Per.RUN), "400 ms (one run, no spread)"),
        (metric(samples=(0.4,)), "400 ms (one repetition, no spread)"),
        (metric(samples=(0.4,), per=Per.REQUEST), "400 ms (one request, no spread)"),
        (metric(samples=(0.0, 0.0), unit="1"), "median 0 (range 0 to 0; n = 2 repetitions)"),
        (metric(missing=Missing(missing=MissingReason.NO_SENSOR, detail="no RAPL")), "no sensor: no RAPL"),
        (metric(missing=Missing(missing=MissingReason.NOT_MEASURED)), "not measured"),
    ],
)
def test_a_number_comes_with_size_and_spread_or_a_reason(one: Metric, shown: str) -> None:
    assert summary(one) == shown


def test_one_thing_is_written_as_one() -> None:
    assert [quantity(value, "requests") for value in (0, 1, 2)] == ["0 requests", "1 request", "2 requests"]
    assert quantity(1, "s") == "1 s"
    assert quantity(1, "tokens/s") == "1 tokens/s"
