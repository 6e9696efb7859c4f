"""How much a contract run asks, and whether the one that is asked may be asked that much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from probes.errors import UsageError
from probes.evidence import Decoding, Load, Missing
from probes.fleet import ProbeLimits
from probes.load.objective import UNSET, Objective
from probes.load.prompts import PromptKind, PromptSet

FEWEST_REPETITIONS: Final = 6
MOST_REPETITIONS: Final = 1000
FEWEST_FOR_P95: Final = 20
# What is asked before the repetitions: two requests of the endpoint probe, one or two to find the way.
FIRST_REQUESTS: Final = 4


@dataclass(frozen=True, kw_only=True)
class ContractShape:
    """The load of every repetition, equal for both sides; a repetition is one block of requests.

    Each block begins with one request a stream to warm up and is kept up until its last measured request has ended.
    The task suites follow after the load, `quality_repetitions` times; from two on it shows whether answers repeat.
    """

    repetitions: int = FEWEST_REPETITIONS
    requests: int = FEWEST_FOR_P95
    concurrency: int = 1
    max_tokens: int = 32
    prompt: PromptKind = PromptKind.SHORT
    shared: float = 0.0
    full_length: bool = True
    timeout_s: float = 60.0
    budget_s: float = 900.0
    quality_repetitions: int = 2
    slo: Objective | Missing = UNSET

    @property
    def block_requests(self) -> int:
        """How many requests one block may send, warm-up and those that keep the load up included."""
        return self.requests + 2 * self.concurrency

    @property
    def side_requests(self) -> int:
        """How many requests a side may get in all."""
        return FIRST_REQUESTS + self.repetitions * self.block_requests

    @property
    def prompts(self) -> PromptSet:
        """What is asked; each block has texts of its own."""
        return PromptSet(kind=self.prompt, shared=self.shared)

    @property
    def words(self) -> str:
        """Name the schedule as evidence does."""
        return f"closed loop: {self.concurrency} at a time, in blocks of {self.requests} requests"

    def document(self) -> dict[str, JsonValue]:
        """Give everything that makes the shape, so that it can be asked for again."""
        return {
            "repetitions": self.repetitions,
            "requests": self.requests,
            "concurrency": self.concurrency,
            "max_tokens": self.max_tokens,
            "prompt": self.prompt.value,
            "shared_prefix": self.shared,
            "full_length": self.full_length,
            "timeout_s": self.timeout_s,
            "budget_s": self.budget_s,
            "quality_repetitions": self.quality_repetitions,
            "slo": None if isinstance(self.slo, Missing) else self.slo.document(),
        }

    def load(self, *, requests: int, warmup: int, prompt_tokens: tuple[int, ...] | Missing) -> Load:
        """Describe the load of a run that measured so many requests."""
        return Load(
            schedule=self.words,
            concurrency=self.concurrency,
            requests=requests,
            warmup_requests=warmup,
            prompt_tokens=prompt_tokens,
            max_tokens=self.max_tokens,
            prompt_set_sha256=self.prompts.sha256,
        )

    def decoding(self, *, ignores_eos: bool) -> Decoding:
        """Say how answers were decoded."""
        return Decoding(temperature=0.0, do_sample=False, ignore_eos=ignores_eos)


def fitted(shape: ContractShape, limits: ProbeLimits | None, sides: int, place: str) -> ContractShape:
    """Cut a shape down to what an address may be asked that stands on `sides` sides; None allows everything.

    Blocks get smaller before there are fewer of them: six repetitions are the least that bounds a median.

    Raises:
        UsageError: not even six blocks of one request are allowed; `place` names the limit.
    """
    if limits is None:
        return shape
    cut = replace(
        shape,
        concurrency=min(shape.concurrency, limits.concurrency),
        max_tokens=min(shape.max_tokens, limits.max_tokens),
        timeout_s=min(shape.timeout_s, limits.timeout_s),
    )
    a_side = limits.requests // sides - FIRST_REQUESTS
    if cut.side_requests - FIRST_REQUESTS > a_side:
        cut = replace(cut, repetitions=max(FEWEST_REPETITIONS, min(cut.repetitions, a_side // cut.block_requests)))
        cut = replace(cut, requests=a_side // cut.repetitions - 2 * cut.concurrency)
    if cut.requests < 1:
        least = sides * (FIRST_REQUESTS + FEWEST_REPETITIONS * (1 + 2 * cut.concurrency))
        raise UsageError(
            f"{place}: allows {limits.requests} requests, and {FEWEST_REPETITIONS} repetitions"
            f"{' of both sides' if sides > 1 else ''} take {least}; expected a limit that allows them"
        )
    return cut


def limited(asked: ContractShape, cut: ContractShape, place: str) -> str:
    """Say what a limit made of a shape; '' when it left it alone."""
    if asked == cut:
        return ""
    return (
        f"limited by {place} to {cut.concurrency} at a time, {cut.repetitions} repetitions of {cut.requests} requests "
        f"and {cut.max_tokens} tokens each"
    )
