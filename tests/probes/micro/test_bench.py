"""What of a benchmark fits into its budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.micro.bench import within_budget
from probes.micro.rounds import MIN_REPETITIONS


def test_everything_fits_into_enough() -> None:
    fitting = within_budget({"plain": 1.0, "a": 1.0}, repetitions=9, budget_s=18.0)
    assert (fitting.names, fitting.repetitions) == (("plain", "a"), 9)


def test_repetitions_shrink_before_arms_go() -> None:
    costs = {"plain": 1.0, "a": 1.0, "b": 2.0}
    assert within_budget(costs, repetitions=9, budget_s=28.0).repetitions == 7
    fitting = within_budget(costs, repetitions=9, budget_s=20.0)
    assert (fitting.names, fitting.repetitions) == (("plain", "a"), 9)
    assert fitting.words == "6 repetitions of all 3 arms take about 24 s of 20 s"


def test_less_than_two_arms_and_six_repetitions_is_nothing() -> None:
    fitting = within_budget({"plain": 3.0, "a": 3.0}, repetitions=9, budget_s=30.0)
    assert (fitting.names, fitting.repetitions) == ((), 0)


@given(
    st.lists(st.floats(0.01, 100), min_size=2, max_size=9),
    st.integers(1, 12),
    st.floats(0.1, 1000),
)
def test_what_is_chosen_fits_and_bounds_a_median(seconds: list[float], repetitions: int, budget_s: float) -> None:
    costs = {str(number): cost for number, cost in enumerate(seconds)}
    fitting = within_budget(costs, repetitions=repetitions, budget_s=budget_s)
    assert fitting.names == tuple(costs)[: len(fitting.names)]
    if fitting.names:
        assert len(fitting.names) >= 2
        assert min(repetitions, MIN_REPETITIONS) <= fitting.repetitions <= repetitions
        assert fitting.repetitions * sum(costs[name] for name in fitting.names) <= budget_s * 1.000001
