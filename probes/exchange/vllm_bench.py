"""Result files of `vllm bench serve --save-result`, with and without --save-detailed, as 0.32 writes them.

Definitions are those of vllm/benchmarks/serve.py and lib/endpoint_request_func.py of 0.32.0: the first chunk with a choice
ends TTFT, whether it has text or not; ITL are the gaps between chunks, the last one without text included; TPOT is
(latency - TTFT) / (output tokens - 1); latency ends with the last chunk with a choice. Times are wall-clock without a zone.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import JsonValue

from probes.errors import InputError, Problem
from probes.evidence import Missing, MissingReason
from probes.exchange.report import Report, chunks_are_tokens, inverse, known, listing, number, scaled, told

TOOL: Final = "vllm bench serve"
_KEYS: Final = frozenset({"date", "model_id", "completed", "duration", "total_output_tokens", "request_throughput"})
# Long or private: one entry for each request, and what was said.
_LEFT_OUT: Final = frozenset(
    {"input_lens", "output_lens", "ttfts", "itls", "generated_texts", "errors", "start_times", "latencies", "queue_times"}
)
_FIRST_CHUNK: Final = (
    "the tool counts to the first chunk, which may be empty; --first-token event says that the server sends it with its "
    "first token"
)
_DEFINITIONS: Final = {
    "itl_s": "median of each request's gaps between chunks",
    "tpot_s": "(latency - TTFT) / (output tokens - 1)",
    "latency_s": "to the last chunk with a choice, not to the end of the stream",
    "aggregate_tok_s": "output tokens over the whole duration, ramp-up and drain included",
}


def recognises(document: Mapping[str, JsonValue]) -> bool:
    """Tell by its keys; the file names neither its tool nor a version."""
    return document.keys() >= _KEYS


def read(document: Mapping[str, JsonValue], place: str, *, first_event: bool = False) -> list[Report]:
    """Read one result.

    `first_event` says that the server sends its first chunk with its first token.

    Raises:
        InputError: it lacks what every version writes.
    """
    started_at = _date(document.get("date"), place)
    duration_s = number(document.get("duration")) or 0.0
    completed, failed = _count(document.get("completed"), place, "completed"), number(document.get("failed")) or 0.0
    chat = str(document.get("backend") or document.get("endpoint_type") or "").endswith("chat")
    values, why = _columns(document)
    whole = {
        "aggregate_tok_s": scaled(document.get("output_throughput"), 1.0),
        "request_rate": scaled(document.get("request_throughput"), 1.0),
        "goodput": number(document.get("request_goodput")),
        "error_rate": failed / (completed + failed) if completed + failed else None,
    }
    if "ttfts" not in document:
        whole |= {
            "first_event_s": scaled(document.get("median_ttft_ms"), 1e-3),
            "tpot_s": scaled(document.get("median_tpot_ms"), 1e-3),
            "itl_s": None,
        }
        rate = inverse((whole["tpot_s"],))
        whole["decode_tok_s"] = rate[0] if rate else None
        why["itl_s"] = (
            "saved without --save-detailed; the tool's median is of gaps between chunks, which may hold several tokens"
        )
    if not chat or first_event:
        values["ttft_s"], whole["ttft_s"] = values.get("first_event_s", ()), whole.get("first_event_s")
    if not chat:
        values["first_text_s"], whole["first_text_s"] = values.get("first_event_s", ()), whole.get("first_event_s")
    else:
        why |= {"ttft_s": _FIRST_CHUNK, "first_text_s": _FIRST_CHUNK}
    rate_asked = document.get("request_rate")
    most = document.get("max_concurrency")
    schedule = (
        "all at once" if rate_asked == "inf" else f"open loop: {rate_asked} requests/s, burstiness {document.get('burstiness')}"
    )
    return [
        Report(
            tool=TOOL,
            tool_version=Missing(missing=MissingReason.NOT_MEASURED, detail="the file names no version"),
            started_at=started_at,
            ended_at=started_at + timedelta(seconds=duration_s),
            model=told(document.get("model_id"), "the file names no model"),
            url=Missing(missing=MissingReason.NOT_MEASURED, detail="the file names no address"),
            schedule=schedule if most is None else f"{schedule}, at most {most} at a time",
            values=values,
            whole=whole,
            why=why,
            invalid=() if completed else ("nothing-succeeded",),
            notes=("the file gives its time without a zone; it was taken for UTC",),
            definitions=_DEFINITIONS | {"ttft_s": "to the first chunk with a choice, empty or not"},
            native={key: value for key, value in document.items() if key not in _LEFT_OUT},
        )
    ]


def _columns(document: Mapping[str, JsonValue]) -> tuple[dict[str, tuple[float, ...]], dict[str, str]]:
    """Give one sample for each request that succeeded; the tool lists failed ones among them with times of 0."""
    ttfts, latencies = listing(document.get("ttfts")), listing(document.get("latencies"))
    gaps, tokens, prompts = (listing(document.get(name)) for name in ("itls", "output_lens", "input_lens"))
    errors = listing(document.get("errors"))
    failed = {n for n, words in enumerate(errors) if words}
    if not errors and number(document.get("failed")):
        return {}, {"latency_s": "saved without --save-detailed, so failed requests cannot be told from others"}
    good = [n for n in range(max(len(ttfts), len(latencies))) if n not in failed]

    def column(source: list[JsonValue], n: int) -> float | None:
        return scaled(source[n], 1.0) if n < len(source) else None

    tpots: list[float | None] = []
    middles: list[float] = []
    merged = 0
    for n in good:
        first, end, count = column(ttfts, n), column(latencies, n), column(tokens, n)
        if end is None and first is not None and n < len(gaps):
            end = first + sum(known(number(gap) for gap in listing(gaps[n])))
        tpots.append((end - first) / (count - 1) if first and end and count and count > 1 else None)
        if n < len(gaps):
            those = known(number(gap) for gap in listing(gaps[n]))
            if those and chunks_are_tokens(len(those), count):
                middles.append(statistics.median(those))
            else:
                merged += 1
    values = {
        "first_event_s": known(column(ttfts, n) for n in good),
        "tpot_s": known(tpots),
        "decode_tok_s": inverse(tpots),
        "itl_s": () if merged else tuple(middles),
        "latency_s": known(column(latencies, n) for n in good),
        "prompt_tokens": known(column(prompts, n) for n in good),
        "completion_tokens": known(column(tokens, n) for n in good),
    }
    why = {"itl_s": "a chunk brings several tokens, so the gaps between chunks are not those between tokens"} if merged else {}
    return values, why


def _date(value: JsonValue, place: str) -> datetime:
    try:
        return datetime.strptime(str(value), "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise InputError(
            [Problem(place=f"{place}: date", found=f"is {value!r}", expected="a time as 20261130-151405")]
        ) from None


def _count(value: JsonValue, place: str, name: str) -> float:
    found = number(value)
    if found is None or found < 0:
        raise InputError([Problem(place=f"{place}: {name}", found=f"is {value!r}", expected="a number of requests")])
    return found
