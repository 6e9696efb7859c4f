"""The limit that memory sets on decoding, and the share of it that was reached."""

from __future__ import annotations

import pytest

from probes.evidence import Metric
from probes.micro.roofline import Roofline, Turn, load, measured


def roofline(*turns: Turn) -> Roofline:
    return Roofline(
        turns=turns,
        buffer_bytes=2**28,
        last_cache_bytes=2**25,
        threads=2,
        weight_bytes=90_000_000,
        kv_bytes_per_token=10_000,
        context_tokens=1000.0,
        prompt_tokens=256,
        max_tokens=16,
        prompt_set_sha256="0" * 64,
        warmup_requests=1,
        quick=True,
        dump=None,
    )


def of(metrics: tuple[Metric, ...], name: str) -> tuple[float, ...]:
    return next(metric.samples for metric in metrics if metric.name == name)


def test_a_token_reads_all_weights_and_the_whole_cache() -> None:
    turns = [
        Turn(read_bytes_s=1e10, copy_bytes_s=2e10, decode_tok_s=25.0),
        Turn(read_bytes_s=5e9, copy_bytes_s=1e10, decode_tok_s=25),
    ]
    metrics = measured(roofline(*turns))
    assert of(metrics, "bytes_per_token") == (100_000_000.0,)
    assert of(metrics, "decode_limit_tok_s") == (100.0, 50.0)
    assert of(metrics, "share_of_limit") == pytest.approx((0.25, 0.5))
    assert of(metrics, "best_memory_bytes_s") == (1e10,)


def test_a_device_that_only_copies_is_held_against_its_copy() -> None:
    metrics = measured(roofline(Turn(read_bytes_s=None, copy_bytes_s=2e10, decode_tok_s=50.0)))
    assert of(metrics, "share_of_limit") == (0.25,)
    assert "memory_read_bytes_s" not in {metric.name for metric in metrics}


def test_the_load_names_what_was_timed() -> None:
    found = load(roofline(Turn(read_bytes_s=None, copy_bytes_s=2e10, decode_tok_s=50.0)))
    assert (found.requests, found.prompt_tokens, found.quick) == (1, (256,), True)
