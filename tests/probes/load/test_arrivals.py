"""Schedules come from a seed; sharing is spread evenly; no prompt repeats another by accident."""

from __future__ import annotations

import json
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.load.arrivals import Arrivals, due_times, ramp, shares
from probes.load.prompts import PromptKind, PromptSet, templates


def test_constant_arrivals_do_not_drift() -> None:
    times = list(islice(due_times(Arrivals.CONSTANT, rate=3.0, seed=0), 3001))
    assert times[0] == 0.0
    assert times[3000] == 1000.0


def test_poisson_arrivals_keep_their_rate_and_repeat_with_their_seed() -> None:
    times = list(islice(due_times(Arrivals.POISSON, rate=50.0, seed=7), 5001))
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert 0.019 < mean < 0.021
    assert 0.9 < spread / mean < 1.1
    assert times == list(islice(due_times(Arrivals.POISSON, rate=50.0, seed=7), 5001))
    assert times != list(islice(due_times(Arrivals.POISSON, rate=50.0, seed=8), 5001))


def test_closed_loop_has_no_schedule() -> None:
    with pytest.raises(ValueError, match="closed loop"):
        next(due_times(Arrivals.CLOSED, rate=1.0, seed=0))


def test_streams_start_apart_and_one_stream_at_once() -> None:
    assert ramp(1, spacing_s=0.005, seed=3) == [0.0]
    starts = ramp(64, spacing_s=0.005, seed=3)
    assert starts == sorted(starts)
    assert 0 <= starts[0] < starts[-1] <= 0.32


@given(share=st.floats(0, 1), count=st.integers(1, 400))
def test_share_is_kept_at_every_moment(share: float, count: int) -> None:
    sharing = sum(shares(n, share) for n in range(count))
    assert abs(sharing - share * count) <= 1


@pytest.mark.parametrize("kind", list(PromptKind))
def test_prompt_differs_from_its_first_word_on_unless_it_shares(kind: PromptKind) -> None:
    unique, sharing = templates(PromptSet(kind=kind, shared=0.5), run_mark="00c0ffee", model="m", max_tokens=4, usage=True)
    first, second = (json.loads(unique.fill(mark))["messages"][0]["content"] for mark in ("a1", "b2"))
    assert (first[:4], second[:4]) == ("[a1]", "[b2]")
    one, two = (json.loads(sharing.fill(mark))["messages"][0]["content"] for mark in ("a1", "b2"))
    common = next(n for n, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    assert one.startswith("[00c0ffee] ")
    assert common > 0.5 * len(one)


def test_kinds_grow() -> None:
    sizes = {kind: len(PromptSet(kind=kind).unique) for kind in PromptKind}
    order = (PromptKind.SHORT, PromptKind.MEDIUM, PromptKind.RAG, PromptKind.LONG)
    assert sorted(order, key=lambda kind: sizes[kind]) == list(order)


def test_hash_says_what_is_asked_and_not_when() -> None:
    assert PromptSet().sha256 == PromptSet().sha256
    different = {PromptSet(kind=kind, shared=share).sha256 for kind in PromptKind for share in (0.0, 0.5)}
    assert len(different) == 8


def test_body_asks_for_counts_where_the_server_allows_it() -> None:
    with_usage, _ = templates(PromptSet(), run_mark="x", model="m", max_tokens=4, usage=True, extra='{"ignore_eos": true}')
    without, _ = templates(PromptSet(), run_mark="x", model="m", max_tokens=4, usage=False)
    document = json.loads(with_usage.fill("1"))
    assert document["stream_options"] == {"include_usage": True}
    assert (document["ignore_eos"], document["max_tokens"], document["stream"]) == (True, 4, True)
    assert "stream_options" not in json.loads(without.fill("1"))
