"""What each micro-benchmark compares, in which metric its arms differ, and which of them a rule decides by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gen.knowledge.schema import same_value
from probes.evidence import Arm, Run, Scalar, Technique


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One subject of a micro run.

    `decided_by` are the settings of the candidate that a rule decides by; the others are told, and of a
    benchmark without such a candidate all are. One arm's verdict says nothing of another's.
    """

    subject: str
    technique: Technique | None
    metric: str
    about: str
    decided_by: Mapping[str, Scalar] | None = None

    def decides(self, arm: Arm) -> bool:
        """Tell whether a rule decides by this candidate."""
        return self.decided_by is not None and matches(arm, self.decided_by)


def matches(arm: Arm, settings: Mapping[str, Scalar]) -> bool:
    """Tell whether an arm has no other value of any of these settings; one that names none of them has none."""
    return all(name not in arm.settings or same_value(arm.settings[name], value) for name, value in settings.items())


BREAK_EVEN = "break_even_tokens_per_step"
SPARSE = tuple(f"sparse-attention-{length}" for length in (2640, 700))
BENCHMARKS = (
    Benchmark(
        subject="quantization",
        technique=Technique.QUANTIZATION,
        metric="decode_tok_s",
        about="weights in fewer bits",
        decided_by={"as_shipped": True},
    ),
    Benchmark(
        subject="prefix-caching",
        technique=Technique.PREFIX_CACHING,
        metric="ttft_s",
        about="a question after a beginning that was sent before",
        decided_by={},
    ),
    *(
        Benchmark(
            subject=subject,
            technique=Technique.FLASH_ATTENTION,
            metric="ttft_s",
            about=f"sparse attention on prompts of {subject.rpartition('-')[2]} tokens",
        )
        for subject in SPARSE
    ),
    Benchmark(
        subject="continuous-batching",
        technique=Technique.CONTINUOUS_BATCHING,
        metric="aggregate_tok_s",
        about="requests at once",
        decided_by={"concurrency": 4},
    ),
    Benchmark(
        subject="split-fuse",
        technique=Technique.CONTINUOUS_BATCHING,
        metric="worst_itl_s",
        about="the longest wait for a token while a long prompt joins",
    ),
    Benchmark(
        subject="kv-cache",
        technique=Technique.KV_CACHE,
        metric="aggregate_tok_s",
        about="keys and values in fewer and more bits",
    ),
    Benchmark(
        subject="speculative-break-even",
        technique=Technique.SPECULATIVE_DECODING,
        metric=BREAK_EVEN,
        about="tokens that each step of a draft has to bring, one request",
    ),
    Benchmark(
        subject="speculative-break-even-batched",
        technique=Technique.SPECULATIVE_DECODING,
        metric=BREAK_EVEN,
        about="tokens that each step of a draft has to bring, several requests at once",
    ),
    *(
        Benchmark(
            subject=f"drafts-{kind}",
            technique=Technique.SPECULATIVE_DECODING,
            metric="decode_tok_s",
            about=f"drafts on {kind} text",
        )
        for kind in ("repetitive", "chat", "random")
    ),
    Benchmark(
        subject="memory-bandwidth",
        technique=None,
        metric="share_of_limit",
        about="decode speed as a share of what the memory's speed allows",
    ),
)
# What these measure changes no setting, so it has no place in a contract of baseline and candidate.
TOLD = frozenset(one.subject for one in BENCHMARKS if one.decided_by is None)


def of_technique(technique: Technique | None) -> tuple[Benchmark, ...]:
    """Give the benchmarks that bear on a technique, or on none."""
    return tuple(one for one in BENCHMARKS if one.technique is technique)


def of_run(run: Run) -> Benchmark | None:
    """Find what a run measured; None for one that is no micro-benchmark known here."""
    return next((one for one in BENCHMARKS if one.subject == run.subject), None)
