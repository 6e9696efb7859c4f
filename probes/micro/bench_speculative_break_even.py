"""What drafting costs one request: how many tokens each step has to bring before it pays.

A head with random weights is never right, so the slowdown that it causes is the price of a head of its
size. What a trained one brings is for the benchmarks of real heads to say, not for this one.
"""

from __future__ import annotations

from probes.micro.bench import Bench
from probes.micro.drafting import compare_drafts


def test_speculative_break_even(bench: Bench) -> None:
    compare_drafts(bench, requests=1, schedule="one request at a time", methods=True)
