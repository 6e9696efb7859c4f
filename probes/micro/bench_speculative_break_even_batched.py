"""What drafting costs when several requests run at once and the batch fills what drafts would use."""

from __future__ import annotations

from probes.micro.bench import Bench
from probes.micro.drafting import compare_drafts

REQUESTS = 4


def test_speculative_break_even_batched(bench: Bench) -> None:
    compare_drafts(bench, requests=REQUESTS, schedule=f"closed loop of {REQUESTS} requests, all at once", methods=False)
