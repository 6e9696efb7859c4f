"""One repetition: a block of requests against one side, and the single number of each quantity it amounts to."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from probes.contract.shape import FEWEST_FOR_P95
from probes.evidence import Direction, Missing, MissingReason
from probes.load.kinds import KINDS, Kind
from probes.load.outcome import Outcome
from probes.load.run import Finding
from probes.load.series import Series, TokenSource
from probes.load.statistics import percentile
from probes.sensors.server import UNITS

_KINDS: Final[Mapping[str, Kind]] = {
    **KINDS,
    "p95_latency_s": KINDS["latency_s"],
    **{name: (unit, Direction.LOWER) for name, unit in UNITS.items()},
}
# What every repetition gives, the contract's quantities first; sensors and server add more.
QUANTITIES: Final[Mapping[str, Kind]] = {
    name: _KINDS[name]
    for name in (
        "ttft_s",
        "decode_tok_s",
        "aggregate_tok_s",
        "p95_latency_s",
        "error_rate",
        "vram_bytes",
        "memory_bytes",
        "power_w",
        "oom_rate",
        "stalled_streams",
        "attempts_per_request",
        "goodput",
        "goodput_share",
        "prompt_tokens",
        "completion_tokens",
        "cached_prompt_tokens",
    )
}
_MEDIANS: Final = ("ttft_s", "decode_tok_s", "prompt_tokens", "completion_tokens", "cached_prompt_tokens")
_COUNTS: Final = ("error_rate", "oom_rate", "stalled_streams")
_OF_SLO: Final = ("goodput", "goodput_share")
# What was still true of a server that stopped answering half-way through a block.
_OF_TROUBLE: Final = frozenset({*_COUNTS, "attempts_per_request"})


@dataclass(frozen=True, kw_only=True)
class Block:
    """What one block brought: a value for each name, with its unit and direction in `kinds`.

    `trouble` says why the service must not be asked on, `unsound` why its numbers cannot be used.
    """

    values: Mapping[str, float | Missing]
    kinds: Mapping[str, Kind]
    measured: int
    warmup: int
    trouble: tuple[str, ...] = ()
    unsound: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    interrupted: bool = False
    instrument: Mapping[str, JsonValue] | None = None
    token_source: TokenSource | None = None
    latencies_s: tuple[float, ...] = ()

    @property
    def whole(self) -> bool:
        """Tell whether its numbers may be used."""
        return not (self.trouble or self.unsound or self.interrupted)


def block_of(finding: Finding, seen: Sequence[Series]) -> Block:
    """Reduce a load run to one number per quantity, or the reason why there is none.

    `seen` are single numbers of the same time that sensors and the server itself gave.
    """
    unsound = finding.soundness.reasons
    interrupted = finding.interrupted
    found = {one.name: one for one in finding.series}
    values: dict[str, float | Missing] = {name: _median(found[name]) for name in _MEDIANS}
    values["aggregate_tok_s"] = _aggregate(finding, found["aggregate_tok_s"])
    values["p95_latency_s"] = _p95(found["latency_s"])
    values |= {name: _single(found[name]) for name in (*_COUNTS, *_OF_SLO)}
    values["attempts_per_request"] = _attempts(finding.measured)
    further = {one.name: one for one in seen if one.name not in values and len(one.samples) < 2}
    values |= {name: _single(one) for name, one in further.items()}
    kinds = {**QUANTITIES, **{name: (one.unit, one.direction) for name, one in further.items()}}
    return Block(
        values={name: values[name] for name in kinds if name in values},
        kinds=kinds,
        measured=len(finding.measured),
        warmup=len(finding.outcomes) - len(finding.measured),
        trouble=tuple(reason for reason in finding.reasons if reason not in unsound and reason != "interrupted"),
        unsound=unsound,
        words=tuple(halt.words for halt in finding.halts) or _first_words(finding),
        interrupted=interrupted,
        instrument=finding.soundness.document(),
        token_source=finding.token_source,
        latencies_s=found["latency_s"].samples,
    )


def of_trouble(block: Block) -> Mapping[str, float | Missing]:
    """Give what a block that came to trouble may still say: how many requests failed, and how."""
    return {name: value for name, value in block.values.items() if name in _OF_TROUBLE}


def _median(one: Series) -> float | Missing:
    return one.missing or percentile(sorted(one.samples), 0.5)


def _single(one: Series) -> float | Missing:
    return one.missing or one.samples[0]


def _aggregate(finding: Finding, one: Series) -> float | Missing:
    """Tokens over the window; chunks are not tokens, so a server that counts none has none."""
    if one.missing is None and finding.tok_s is None:
        return Missing(missing=MissingReason.NOT_MEASURED, detail="the server counts no tokens, and chunks are not tokens")
    return _single(one)


def _p95(latencies: Series) -> float | Missing:
    if latencies.missing is not None:
        return latencies.missing
    n = len(latencies.samples)
    if n < FEWEST_FOR_P95:
        detail = f"{n} of the {FEWEST_FOR_P95} requests that a p95 needs in each repetition"
        return Missing(missing=MissingReason.TOO_FEW_SAMPLES, detail=detail)
    return percentile(sorted(latencies.samples), 0.95)


def _attempts(measured: tuple[Outcome, ...]) -> float | Missing:
    if not measured:
        return Missing(missing=MissingReason.NOT_MEASURED, detail="no request was measured")
    return statistics.fmean(outcome.attempts for outcome in measured)


def _first_words(finding: Finding) -> tuple[str, ...]:
    failed = [outcome for outcome in finding.measured if outcome.failure is not None]
    return (f"{failed[0].failure}: {failed[0].words}",) if failed else ()
