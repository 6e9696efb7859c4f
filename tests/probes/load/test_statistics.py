"""Percentiles are samples, and a number that cannot be is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.spread import FEWEST_FOR_P95
from gen.spread import percentile as judged_percentile
from probes.load.statistics import fewest, percentile, percentiles, tpot_s

SAMPLES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("samples", "share", "right"),
    [
        pytest.param([45.4, 75.8], 0.95, 75.8, id="nearest-rank-interpolates-nothing"),
        pytest.param([10.0, 20.0], 0.94, 20.0, id="never-above-the-maximum"),
        pytest.param([10.0, 20.0, 30.0], 0.99, 30.0, id="last-rank-of-three"),
        pytest.param([10.0, 20.0, 30.0], 0.5, 20.0, id="middle-of-three"),
        pytest.param([float(n) for n in range(1, 21)], 0.95, 19.0, id="rank-19-of-20"),
        pytest.param([float(n) for n in range(1, 101)], 0.99, 99.0, id="rank-99-of-100"),
        pytest.param([float(n) for n in range(1, 101)], 0.07, 7.0, id="rank-is-decimal"),
        pytest.param([30.0, 50.0, 52.0], 0.05, 30.0, id="slow-tail-of-a-rate-is-low"),
    ],
)
def test_percentile_is_an_observed_value(samples: list[float], share: float, right: float) -> None:
    assert percentile(samples, share) == right


def test_too_few_samples_have_no_tail() -> None:
    short, long = percentiles([1.0] * 19), percentiles([1.0] * 20)
    assert (short["p50"], short["p90"], short["p95"], short["p5"]) == (1.0, 1.0, None, None)
    assert (long["p95"], long["p5"], long["p99"], long["p1"]) == (1.0, 1.0, None, None)
    assert percentiles([1.0] * 100)["p99"] == 1.0
    assert set(percentiles([]).values()) == {None}


@given(samples=SAMPLES, share=st.floats(0.001, 1))
def test_percentile_is_one_of_the_samples(samples: list[float], share: float) -> None:
    assert percentile(sorted(samples), share) in samples


@given(samples=SAMPLES)
def test_enough_samples_lie_at_or_below_a_percentile(samples: list[float]) -> None:
    ordered = sorted(samples)
    for share in (0.5, 0.9, 0.95, 0.99):
        value = percentile(ordered, share)
        assert sum(one <= value for one in ordered) >= share * len(ordered) - 1e-6
        assert sum(one < value for one in ordered) < share * len(ordered) + 1e-6


@given(samples=SAMPLES)
def test_what_is_printed_while_measuring_is_what_is_judged_later(samples: list[float]) -> None:
    assert percentile(sorted(samples), 0.95) == judged_percentile(samples, 0.95)
    assert fewest(0.95) == FEWEST_FOR_P95


@pytest.mark.parametrize(
    ("span_s", "tokens", "in_first", "right"),
    [
        pytest.param(0.7, 10, 3, 0.1, id="tokens-of-the-first-chunk-are-not-in-the-span"),
        pytest.param(0.63, 64, 1, 0.01, id="one-token-a-chunk"),
        pytest.param(1.0, 34, 1, 1 / 33, id="ten-chunks-of-34-tokens"),
        pytest.param(0.0, 10, 1, None, id="no-time-passed"),
        pytest.param(0.5, 1, 1, None, id="one-token-only"),
    ],
)
def test_time_per_token(span_s: float, tokens: int, in_first: int, right: float | None) -> None:
    value = tpot_s(span_s, tokens, in_first)
    assert value == right or (value is not None and right is not None and math.isclose(value, right))
