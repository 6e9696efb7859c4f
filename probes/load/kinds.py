"""The unit of every metric of a load, and which way is better: one table for all that measure, print and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from probes.evidence import Direction

Kind = tuple[str, Direction]

_LOWER, _HIGHER, _NEUTRAL = Direction.LOWER, Direction.HIGHER, Direction.NEUTRAL

KINDS: Final[Mapping[str, Kind]] = {
    "ttft_s": ("s", _LOWER),
    "first_event_s": ("s", _LOWER),
    "first_text_s": ("s", _LOWER),
    "itl_s": ("s", _LOWER),
    "tpot_s": ("s", _LOWER),
    "decode_tok_s": ("tok/s", _HIGHER),
    "latency_s": ("s", _LOWER),
    "connect_s": ("s", _LOWER),
    "schedule_lag_s": ("s", _LOWER),
    "prompt_tokens": ("tokens", _NEUTRAL),
    "completion_tokens": ("tokens", _NEUTRAL),
    "cached_prompt_tokens": ("tokens", _NEUTRAL),
    "counted_tokens": ("tokens", _NEUTRAL),
    "token_disagreement": ("ratio", _NEUTRAL),
    "chunks": ("chunks", _NEUTRAL),
    "tokens_per_chunk": ("tokens", _NEUTRAL),
    "attempts_per_request": ("attempts", _LOWER),
    "aggregate_tok_s": ("tok/s", _HIGHER),
    "request_rate": ("requests/s", _HIGHER),
    "goodput": ("requests/s", _HIGHER),
    "goodput_share": ("ratio", _HIGHER),
    "error_rate": ("ratio", _LOWER),
    "oom_rate": ("ratio", _LOWER),
    "stalled_streams": ("requests", _LOWER),
}
