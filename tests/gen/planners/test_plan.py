"""Bounds go through formulas, and a plan without a result says what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.planners.plan import Plan, Planner, Span, between, derived, exactly

SPANS = st.tuples(st.floats(0.1, 1e6), st.floats(0, 1), st.floats(0, 1e6)).map(
    lambda parts: Span(low=parts[0], value=parts[0] + parts[1] * parts[2], high=parts[0] + parts[2], unit="B")
)


@given(SPANS, SPANS)
def test_bounds_hold_every_quotient_of_their_inputs(one: Span, other: Span) -> None:
    found = derived("x", lambda a, b: a / b, one, other)
    for a in (one.low, one.value, one.high):
        for b in (other.low, other.value, other.high):
            assert found.low * (1 - 1e-9) <= a / b <= found.high * (1 + 1e-9)


def test_what_is_exact_is_told_without_bounds() -> None:
    assert exactly(2 * 2**30, "B").said() == "2 GiB"
    assert between(1.0, 3.0, "s").said() == "2 s (1 s to 3 s)"


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="low <= value <= high"):
        Span(low=2, value=1, high=3, unit="s")


def test_a_plan_without_result_and_gap_is_refused() -> None:
    with pytest.raises(ValueError, match="a result, or what is missing"):
        Plan(planner=Planner.KV_CAPACITY, subject="x")
