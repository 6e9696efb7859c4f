"""Which micro-benchmarks there are, what each compares, and which of them a run has time for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BREAK_EVEN = "speculative-break-even"
BREAK_EVEN_BATCHED = "speculative-break-even-batched"
BANDWIDTH = "memory-bandwidth"
PROMPT_LENGTHS = (700, 2640)
TEXTS = ("repetitive", "chat", "random")


class Extent(StrEnum):
    """How much is measured: what decides, with short prompts; what decides; or everything."""

    QUICK = "quick"
    CORE = "core"
    WHOLE = "whole"


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One benchmark: a module of this package, perhaps a test in it, and what it compares.

    `about_s` guesses how long it takes on two cores in each extent that it is part of.
    """

    subject: str
    module: str
    compares: str
    about_s: dict[Extent, int]


def _about(whole: int, core: int | None = None, quick: int | None = None) -> dict[Extent, int]:
    given = {Extent.QUICK: quick, Extent.CORE: core, Extent.WHOLE: whole}
    return {extent: seconds for extent, seconds in given.items() if seconds is not None}


BENCHMARKS = (
    Benchmark(
        subject="prefix-caching",
        module="bench_prefix_caching",
        compares="prefix caching, cold against warm",
        about_s=_about(35, 25, 12),
    ),
    Benchmark(
        subject="continuous-batching",
        module="bench_continuous_batching",
        compares="continuous batching, 1 request against 2, 4 and 8",
        about_s=_about(60, 35, 20),
    ),
    Benchmark(
        subject=BREAK_EVEN,
        module="bench_speculative_break_even",
        compares="speculative decoding, what drafts cost one request",
        about_s=_about(55, 20, 12),
    ),
    Benchmark(
        subject="quantization",
        module="bench_weight_precision",
        compares="weights as shipped and in int8 against f16",
        about_s=_about(40, 30),
    ),
    Benchmark(
        subject=BREAK_EVEN_BATCHED,
        module="bench_speculative_break_even_batched",
        compares="speculative decoding, what drafts cost 4 requests at once",
        about_s=_about(55),
    ),
    *(
        Benchmark(
            subject=f"drafts-{text}",
            module=f"bench_drafts_on_text::test_drafts_on_{text}_text",
            compares=f"prompt lookup and a draft model on {text} text",
            about_s=_about(25),
        )
        for text in TEXTS
    ),
    Benchmark(
        subject="kv-cache",
        module="bench_kv_precision",
        compares="KV cache in u8, u4 and f32 against f16",
        about_s=_about(50),
    ),
    Benchmark(
        subject="split-fuse",
        module="bench_split_fuse",
        compares="what a long prompt does to running requests, split fuse off and on",
        about_s=_about(45),
    ),
    *(
        Benchmark(
            subject=f"sparse-attention-{length}",
            module=f"bench_sparse_attention::test_sparse_attention_{length}",
            compares=f"XATTENTION against dense attention, {length} tokens",
            about_s=_about(seconds),
        )
        for length, seconds in zip(PROMPT_LENGTHS, (25, 75), strict=True)
    ),
    Benchmark(
        subject=BANDWIDTH,
        module="bench_memory_bandwidth",
        compares="memory bandwidth, and how much of it decoding uses",
        about_s=_about(25),
    ),
)
MODULES = {one.subject: one.module for one in BENCHMARKS}


def of_extent(extent: Extent) -> tuple[Benchmark, ...]:
    """Give the benchmarks that a run of some extent is made of, in the order they run."""
    return tuple(one for one in BENCHMARKS if extent in one.about_s)
