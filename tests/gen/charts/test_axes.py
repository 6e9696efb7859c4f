"""An axis spans its values, is marked at round ones, and is logarithmic only where it has to be and says so."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.charts.axes import FAR, either, linear, logarithmic, place, steps

ANY = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)
ABOVE_ZERO = st.floats(min_value=1e-9, max_value=1e12, allow_nan=False)


@given(st.lists(ANY, min_size=1, max_size=8), st.booleans())
def test_a_linear_axis_holds_every_value_and_few_marks(values: list[float], zero: bool) -> None:
    axis = linear(values, zero=zero)
    room = 1e-6 * max(1.0, axis.high - axis.low)
    assert axis.low - room <= min(values) <= max(values) <= axis.high + room
    assert 2 <= len(axis.ticks) <= 8
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert not zero or axis.low <= 0 <= axis.high


@given(st.lists(ABOVE_ZERO, min_size=1, max_size=8))
def test_a_logarithmic_axis_holds_every_value_and_says_that_it_is_one(values: list[float]) -> None:
    axis = logarithmic(values).named("t, s")
    assert axis.low < min(values) <= max(values) < axis.high
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)
    assert len(axis.ticks) <= 7
    assert axis.title == "t, s (logarithmic)"


@pytest.mark.parametrize(
    ("values", "log", "from_zero"),
    [
        ((0.1, 0.4), False, True),
        ((5.5, 6.2), False, False),
        ((0.01, 0.01 * FAR * 1.1), True, False),
        ((0.0, 100.0), False, True),
        ((-1.0, 100.0), False, False),
    ],
)
def test_the_data_choose_the_axis(values: tuple[float, ...], log: bool, from_zero: bool) -> None:
    axis = either(values)
    assert axis.log is log
    assert (axis.low == 0) is from_zero


def test_binary_fractions_are_not_shown() -> None:
    assert linear([0, 0.3]).ticks == (0, 0.1, 0.2, 0.3)


@pytest.mark.parametrize("value", [0.0, 7.0, -3.0, 1e300, 5e-324, -1e-300])
def test_a_constant_has_an_axis_around_it(value: float) -> None:
    axis = linear([value])
    assert axis.low < axis.high
    assert all(math.isfinite(one) for one in (axis.low, axis.high, *axis.ticks))


@pytest.mark.parametrize("values", [(1, 2, 4, 8), (1, 4, 8, 16, 32), (1, 2, 3, 4, 5), (3,), (16,)])
def test_steps_that_were_taken_are_the_marks(values: tuple[int, ...]) -> None:
    assert steps(values).ticks == values


@given(st.lists(st.integers(min_value=1, max_value=256), min_size=1, max_size=40, unique=True))
def test_marks_of_steps_stand_apart(values: list[int]) -> None:
    axis = steps(values)
    places = [place(axis, tick) for tick in axis.ticks]
    assert all(later - earlier > 0.08 for earlier, later in itertools.pairwise(places))
    assert set(axis.ticks) <= set(values)
    assert max(values) in axis.ticks
    assert all(0 <= one <= 1 for one in places)
