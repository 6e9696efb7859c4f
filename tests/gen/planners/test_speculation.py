"""What a guess is worth, by the published formula, and from where on a draft pays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.assess import view
from gen.corpus import read_corpus
from gen.planners import speculation
from gen.planners.speculation import expected_tokens, needed_acceptance
from tests.gen.ledger import NOVEMBER, ledger
from tests.gen.specimens import ROOT


def test_expected_tokens_by_hand() -> None:
    assert expected_tokens(0.0, 5) == 1.0
    assert expected_tokens(0.5, 3) == 1.875  # (1 - 1/16) / (1/2)
    assert expected_tokens(1.0, 3) == 4.0
    assert expected_tokens(0.8, 4) == pytest.approx((1 - 0.8**5) / 0.2)


@given(st.floats(0, 1), st.integers(1, 16))
def test_the_needed_acceptance_undoes_the_expectation(acceptance: float, drafted: int) -> None:
    needed = needed_acceptance(expected_tokens(acceptance, drafted), drafted)
    assert needed is not None
    assert needed == pytest.approx(acceptance, abs=1e-6)


def test_a_price_above_a_perfect_draft_pays_never() -> None:
    assert needed_acceptance(4.01, 3) is None
    assert needed_acceptance(0.9, 3) == pytest.approx(0, abs=1e-9)


def test_the_measured_price_of_the_shipped_run_becomes_a_probability() -> None:
    corpus = read_corpus(ROOT)
    one = view(corpus, f"local-{corpus.fingerprints()[0]}", NOVEMBER)
    plan = speculation.plan(one, one.services[0])
    price, pays = plan.given[0].span, plan.result(speculation.PAYS_FROM)
    assert pays is not None
    assert expected_tokens(pays.low, 3) == pytest.approx(price.low)
    assert expected_tokens(pays.high, 3) == pytest.approx(price.high)
    gain = plan.result("speed-up at a = 0.8, k = 3")
    assert gain is not None
    assert gain.value == pytest.approx(2.952 / price.value)


def test_beside_jellyfin_the_memory_left_is_worked_out_and_what_jellyfin_takes_is_asked() -> None:
    """12 GiB less 2 GiB of pool and 4 to 5 GB of weights."""
    one = view(ledger(), "fleet", NOVEMBER)
    plan = speculation.plan(one, next(item for item in one.services if item.name == "text-8b-b580"))
    left = plan.result("memory left on Intel Arc B580")
    assert left is not None
    assert (left.low, left.high) == (10 * 2**30 - 5e9, 10 * 2**30 - 4e9)
    assert any("Jellyfin" in gap.name for gap in plan.gaps)
    assert "tokens per step that break even" in {gap.name for gap in plan.gaps}


def test_where_two_cards_are_open_each_is_told_by_itself() -> None:
    one = view(ledger(), "fleet", NOVEMBER)
    plan = speculation.plan(one, next(item for item in one.services if item.name == "text-30b"))
    small, large = plan.result("memory left on Intel Arc B580"), plan.result("memory left on Intel Arc Pro B60")
    assert small is not None
    assert large is not None
    assert small.high < 0 < large.low
