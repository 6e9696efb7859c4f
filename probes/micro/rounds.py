"""What a benchmark hands to the probe: its arms, and one row per measured round."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from probes.devices.dump import Dump
from probes.devices.engine import Answer
from probes.evidence import Arm, Missing
from probes.schema import Model

# Fewer samples give no 95 % interval of a median.
MIN_REPETITIONS = 6


class Request(Model):
    """One request of a round, timed from the moment it was added.

    Where a request joined a running batch, `token_s` hold when each token of each request came, from the
    moment the round began, and the request that joined has `added_s` above 0.
    """

    prompt_tokens: int
    tokens: tuple[int, ...]
    steps: int
    steps_to_first: int
    ttft_s: float
    latency_s: float
    decode_tok_s: float
    added_s: float = 0.0
    token_s: tuple[float, ...] = ()

    @classmethod
    def of(cls, prompt_tokens: int, answer: Answer, *, timeline: bool = False) -> Self:
        """Take over what the engine answered; each token's time only for a `timeline`."""
        return cls(
            prompt_tokens=prompt_tokens,
            tokens=answer.tokens,
            steps=answer.steps,
            steps_to_first=answer.steps_to_first,
            ttft_s=answer.ttft_s,
            latency_s=answer.latency_s,
            decode_tok_s=answer.decode_tok_s,
            added_s=answer.added_s,
            token_s=answer.token_s if timeline else (),
        )


class Round(Model):
    """One repetition of one arm. `cache_usage_percent` is how full the KV cache was at its end.

    `kv_bytes_per_token` is given where a step filled whole blocks of the cache, so that it is exact.
    """

    arm: str
    requests: tuple[Request, ...]
    cache_usage_percent: float
    kv_bytes_per_token: int | None = None
    power_w: float | Missing


class Skipped(Model):
    """An arm that was not measured, and why; one that the runtime `refused` has its words for a reason."""

    arm: Arm
    reason: str
    refused: bool = False


class Report(Model):
    """Everything a benchmark measured but the time of each round, which pytest-benchmark keeps.

    Rounds alternate between the arms; `dumps` say what each arm's engine really ran with.
    """

    arms: tuple[Arm, ...]
    skipped: tuple[Skipped, ...] = ()
    rounds: tuple[Round, ...]
    dumps: dict[str, Dump]
    schedule: str
    concurrency: int
    warmup_requests: int
    max_tokens: int
    prompt_set_sha256: str
    quick: bool = False

    @model_validator(mode="after")
    def _alternating(self) -> Self:
        names = [arm.name for arm in self.arms]
        if [row.arm for row in self.rounds] != names * (len(self.rounds) // len(names)):
            raise ValueError(f"rounds that alternate between {', '.join(names)}")
        return self
