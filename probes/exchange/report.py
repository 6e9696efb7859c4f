"""What a result file of another tool holds, in the words of this repository, and the columns it is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.load.kinds import KINDS
from probes.load.series import TokenSource

# The metrics of a load run that a file of another tool may hold, with the definitions of docs/instrument.md.
QUANTITIES: Final = (
    "ttft_s",
    "first_event_s",
    "first_text_s",
    "itl_s",
    "tpot_s",
    "decode_tok_s",
    "latency_s",
    "prompt_tokens",
    "completion_tokens",
    "counted_tokens",
    "aggregate_tok_s",
    "request_rate",
    "goodput",
    "error_rate",
)
_SILENT: Final = "the file does not hold it"
_CHUNK_SHARE_AT_LEAST: Final = 0.9


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run of another tool. `values` has samples per request; `whole` one number for the run; `why` reasons.

    `definitions` says how the tool's numbers were taken for ours, `native` is the tool's own part. `token_source` says
    who counted the tokens of its rates, None where the file leaves that open.
    """

    tool: str
    tool_version: str | Missing
    started_at: datetime
    ended_at: datetime
    model: str | Missing
    url: str | Missing
    schedule: str
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    whole: Mapping[str, float | None] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    invalid: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    native: Mapping[str, JsonValue] = field(default_factory=dict)
    token_source: TokenSource | None = None

    def metrics(self) -> tuple[Metric, ...]:
        """Give every metric as samples or the reason why there are none."""
        return tuple(self._metric(name, *KINDS[name]) for name in QUANTITIES)

    def _metric(self, name: str, unit: str, direction: Direction) -> Metric:
        samples, whole = tuple(self.values.get(name, ())), self.whole.get(name)
        if samples:
            return Metric(name=name, unit=unit, direction=direction, per=Per.REQUEST, samples=samples)
        if whole is not None:
            return Metric(name=name, unit=unit, direction=direction, per=Per.RUN, samples=(whole,))
        missing = Missing(missing=MissingReason.NOT_MEASURED, detail=self.why.get(name, _SILENT))
        return Metric(name=name, unit=unit, direction=direction, per=Per.RUN, missing=missing)


def number(value: JsonValue) -> float | None:
    """Take a finite number; nothing for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def scaled(value: JsonValue, factor: float) -> float | None:
    """Take a number in another unit; a time of 0 or less is none: tools write it for requests without an answer."""
    found = number(value)
    return None if found is None or found <= 0 else found * factor


def known(values: Iterable[float | None]) -> tuple[float, ...]:
    """Leave out what is not known."""
    return tuple(value for value in values if value is not None)


def inverse(values: Iterable[float | None]) -> tuple[float, ...]:
    """Turn times per token into rates."""
    return tuple(1 / value for value in values if value)


def chunks_are_tokens(gaps: int, tokens: float | None) -> bool:
    """Tell whether gaps between chunks are gaps between tokens: about as many chunks as tokens came."""
    return tokens is None or gaps + 1 >= _CHUNK_SHARE_AT_LEAST * tokens


def mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    """Take a JSON object, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listing(value: JsonValue) -> list[JsonValue]:
    """Take a JSON list, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def told(value: JsonValue, why: str) -> str | Missing:
    """Take a text, or say why there is none."""
    return value if isinstance(value, str) and value else Missing(missing=MissingReason.NOT_MEASURED, detail=why)
