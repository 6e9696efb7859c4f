"""Decode speed against the memory bandwidth of a device: how many tokens a second the bytes of a token allow."""

from __future__ import annotations

from collections.abc import Sequence

from probes.devices.dump import Dump
from probes.evidence import Direction, Load, Metric, Per
from probes.micro.metrics import DECODE, Quantity
from probes.schema import Model

FORMULA = (
    "limit in tokens per second = bytes per second read from memory / (bytes of all weights that a token multiplies with"
    " + bytes of KV cache per token x tokens in the cache)"
)
READ = Quantity(name="memory_read_bytes_s", unit="B/s", direction=Direction.HIGHER)
COPY = Quantity(name="memory_copy_bytes_s", unit="B/s", direction=Direction.HIGHER)
BEST = Quantity(name="best_memory_bytes_s", unit="B/s", direction=Direction.HIGHER)
BYTES = Quantity(name="bytes_per_token", unit="B", direction=Direction.LOWER)
LIMIT = Quantity(name="decode_limit_tok_s", unit="tok/s", direction=Direction.HIGHER)
SHARE = Quantity(name="share_of_limit", unit="share", direction=Direction.HIGHER)


class Turn(Model):
    """One repetition: the speeds of memory, and right after them the speed of decoding. A copy counts both ways."""

    read_bytes_s: float | None
    copy_bytes_s: float
    decode_tok_s: float

    @property
    def bytes_s(self) -> float:
        """What the limit is set by: reading, or copying where a device offers nothing else."""
        return self.copy_bytes_s if self.read_bytes_s is None else self.read_bytes_s


class Roofline(Model):
    """What was measured and counted; `context_tokens` is how many tokens the cache held on average."""

    turns: tuple[Turn, ...]
    buffer_bytes: int
    last_cache_bytes: int | None
    threads: int | None
    weight_bytes: int
    kv_bytes_per_token: int
    context_tokens: float
    prompt_tokens: int
    max_tokens: int
    prompt_set_sha256: str
    warmup_requests: int
    quick: bool
    dump: Dump | None

    @property
    def bytes_per_token(self) -> float:
        """What has to be read from memory for one token."""
        return self.weight_bytes + self.kv_bytes_per_token * self.context_tokens


def measured(report: Roofline) -> tuple[Metric, ...]:
    """Give the bandwidth, the limit that it sets and the share of it that decoding reached, turn by turn."""
    limits = [turn.bytes_s / report.bytes_per_token for turn in report.turns]
    reads = [turn.read_bytes_s for turn in report.turns if turn.read_bytes_s is not None]
    return (
        *([_metric(READ, reads)] if reads else []),
        _metric(COPY, [turn.copy_bytes_s for turn in report.turns]),
        _metric(BEST, [max(turn.bytes_s for turn in report.turns)], Per.RUN),
        _metric(DECODE, [turn.decode_tok_s for turn in report.turns]),
        _metric(BYTES, [report.bytes_per_token], Per.RUN),
        _metric(LIMIT, limits),
        _metric(SHARE, [turn.decode_tok_s / limit for turn, limit in zip(report.turns, limits, strict=True)]),
    )


def load(report: Roofline) -> Load:
    """Describe the requests that were timed."""
    return Load(
        schedule="one request at a time, each after memory was read and copied",
        concurrency=1,
        requests=len(report.turns),
        warmup_requests=report.warmup_requests,
        prompt_tokens=(report.prompt_tokens,) * len(report.turns),
        max_tokens=report.max_tokens,
        prompt_set_sha256=report.prompt_set_sha256,
        quick=report.quick,
    )


def _metric(quantity: Quantity, samples: Sequence[float], per: Per = Per.REPETITION) -> Metric:
    return Metric(name=quantity.name, unit=quantity.unit, direction=quantity.direction, per=per, samples=tuple(samples))
