"""The limits of the inventory hold: a contract run is cut down to them, or refused before anything is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.contract.shape import FEWEST_REPETITIONS, ContractShape, fitted, limited
from probes.errors import UsageError
from probes.fleet import ProbeLimits

PLACE = "services.text-8b.probing.requests in fleet.yml"


def test_no_limit_leaves_a_shape_alone() -> None:
    assert fitted(ContractShape(), None, 1, PLACE) == ContractShape()
    roomy = ProbeLimits(concurrency=8, max_tokens=64, requests=1000)
    assert fitted(ContractShape(), roomy, 2, PLACE) == ContractShape()
    assert limited(ContractShape(), ContractShape(), PLACE) == ""


shapes = st.builds(ContractShape, repetitions=st.integers(6, 40), requests=st.integers(1, 60), concurrency=st.integers(1, 16))
bounds = st.builds(ProbeLimits, requests=st.integers(0, 4000), concurrency=st.integers(1, 8), max_tokens=st.just(8))


@given(shapes, bounds, st.integers(1, 2))
def test_no_side_is_ever_sent_more_than_its_limit(shape: ContractShape, limits: ProbeLimits, sides: int) -> None:
    try:
        cut = fitted(shape, limits, sides, PLACE)
    except UsageError:
        return
    assert sides * cut.side_requests <= limits.requests
    assert cut.repetitions >= FEWEST_REPETITIONS
    assert (cut.concurrency <= limits.concurrency, cut.max_tokens, cut.requests >= 1) == (True, 8, True)


def test_the_default_limits_of_an_address_allow_no_contract_run() -> None:
    with pytest.raises(UsageError, match=r"services\.text-8b\.probing\.requests in fleet\.yml: allows 2 requests"):
        fitted(ContractShape(), ProbeLimits(), 1, PLACE)


def test_what_a_limit_cut_is_told() -> None:
    cut = fitted(ContractShape(), ProbeLimits(requests=100), 1, PLACE)
    assert "6 repetitions of 14 requests and 16 tokens each" in limited(ContractShape(), cut, PLACE)


def test_the_shape_says_everything_that_it_takes_to_ask_again() -> None:
    document = ContractShape().document()
    assert set(document) == {name.replace("shared", "shared_prefix") for name in vars(ContractShape())}
