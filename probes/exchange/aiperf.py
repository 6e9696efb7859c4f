"""Result files of aiperf: profile_export_aiperf.json and, beside it, profile_export.jsonl, as 0.13 writes them.

Definitions are those of aiperf/metrics of 0.13.0. Its inter-token latency is the mean of a request, (latency - TTFT) /
(tokens - 1), which is TPOT here; its inter-chunk latency are the gaps. A request ends with its last chunk of content. The
tokens are counted by its own tokenizer unless it is told to take the server's usage, which stands beside it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from probes.errors import InputError, Problem
from probes.exchange.report import Report, chunks_are_tokens, inverse, known, listing, mapping, number, scaled, told
from probes.load.series import TokenSource

TOOL: Final = "aiperf"
_SCHEMAS: Final = "1."
_LATEST_NS: Final = 2**33 * 10**9
_DEFINITIONS: Final = {
    "ttft_s": "to the first chunk with text, reasoning or a tool call, from just before the request was sent",
    "tpot_s": "the tool's inter_token_latency: (latency - TTFT) / (tokens - 1)",
    "itl_s": "the tool's inter_chunk_latency, the median of each request, where a chunk brings one token",
    "latency_s": "to the last chunk of content, not to the end of the stream",
    "completion_tokens": "the server's usage",
    "counted_tokens": "output_sequence_length, by the tool's own tokenizer unless it was told to take the server's count",
    "error_rate": "an error in a data line of a stream counts as a success in this tool",
}


def recognises(document: Mapping[str, JsonValue]) -> bool:
    """Tell a summary by the version of the tool in it."""
    return "aiperf_version" in document


def recognises_record(document: Mapping[str, JsonValue]) -> bool:
    """Tell a line of the records, which name no version."""
    return "benchmark_phase" in mapping(document.get("metadata")) and isinstance(document.get("metrics"), dict)


def read(document: Mapping[str, JsonValue], records: Sequence[Mapping[str, JsonValue]], place: str) -> list[Report]:
    """Read one run from its summary and its records; either may be empty, not both.

    Raises:
        InputError: the summary is of another version, or nothing tells when the run was.
    """
    if document and not str(document.get("schema_version")).startswith(_SCHEMAS):
        found = f"is {document.get('schema_version')!r} (aiperf {document.get('aiperf_version')})"
        raise InputError([Problem(place=f"{place}: schema_version", found=found, expected="1.x, as aiperf 0.13 writes it")])
    measured = [one for one in records if mapping(one.get("metadata")).get("benchmark_phase") == "profiling"]
    good = [mapping(one.get("metrics")) for one in measured if not one.get("error")]
    started_at, ended_at = _times(document, measured, place)
    tpots = [_value(one, "inter_token_latency", 1e-3) for one in good]
    itls = [_middle_gap(one) for one in good]
    merged = any(value is None for value in itls)
    values = {
        "ttft_s": known(_value(one, "time_to_first_token", 1e-3) for one in good),
        "first_text_s": known(_value(one, "time_to_first_output_token", 1e-3) for one in good),
        "tpot_s": known(tpots),
        "decode_tok_s": inverse(tpots),
        "itl_s": () if merged else known(itls),
        "latency_s": known(_value(one, "request_latency", 1e-3) for one in good),
        "prompt_tokens": known(_value(one, "usage_prompt_tokens", 1.0) for one in good),
        "completion_tokens": known(_value(one, "usage_completion_tokens", 1.0) for one in good),
        "counted_tokens": known(_value(one, "output_sequence_length", 1.0) for one in good),
    }
    whole: dict[str, float | None] = {
        "aggregate_tok_s": scaled(_stat(document, "output_token_throughput", "avg"), 1.0),
        "request_rate": scaled(_stat(document, "request_throughput", "avg"), 1.0),
        "goodput": number(_stat(document, "goodput", "avg")),
        "error_rate": _error_rate(document, measured, len(good)),
    }
    why = {"first_event_s": "aiperf does not tell events from output"}
    if not measured:
        whole |= {
            "ttft_s": scaled(_stat(document, "time_to_first_token", "p50"), 1e-3),
            "first_text_s": scaled(_stat(document, "time_to_first_output_token", "p50"), 1e-3),
            "tpot_s": scaled(_stat(document, "inter_token_latency", "p50"), 1e-3),
            "latency_s": scaled(_stat(document, "request_latency", "p50"), 1e-3),
        }
        rate = inverse((whole["tpot_s"],))
        whole["decode_tok_s"] = rate[0] if rate else None
        why["itl_s"] = "the summary has no gaps by request, and its inter_token_latency is a mean, which is tpot_s"
    elif merged:
        why["itl_s"] = "a chunk brings several tokens, so the gaps between chunks are not those between tokens"
    config = mapping(document.get("input_config"))
    succeeded = bool(good) if measured else bool(number(_stat(document, "request_count", "avg")))
    reasons = (
        *(["nothing-succeeded"] if not succeeded else []),
        *(["interrupted"] if document.get("was_cancelled") else []),
    )
    models = listing(mapping(config.get("models")).get("items"))
    urls = listing(mapping(config.get("endpoint")).get("urls"))
    return [
        Report(
            tool=TOOL,
            tool_version=told(document.get("aiperf_version"), "records name no version"),
            started_at=started_at,
            ended_at=ended_at,
            model=told(mapping(models[0]).get("name") if models else None, "records name no model"),
            url=told(urls[0] if urls else None, "records name no address"),
            schedule=_schedule(config),
            values=values,
            whole=whole,
            why=why,
            invalid=reasons,
            notes=("the file gives its times without a zone; they were taken for UTC",) if not measured else (),
            definitions=_DEFINITIONS,
            token_source=TokenSource.TOKENIZER,
            native=dict(document),
        )
    ]


def _times(
    document: Mapping[str, JsonValue], measured: Sequence[Mapping[str, JsonValue]], place: str
) -> tuple[datetime, datetime]:
    """Take Unix times of the records, or those of the summary, which have no zone."""
    spans = [mapping(one.get("metadata")) for one in measured]
    starts = known(number(one.get("request_start_ns")) for one in spans)
    ends = known(number(one.get("request_end_ns")) for one in spans)
    if starts and ends and 0 <= min(starts) <= max(ends) <= _LATEST_NS:
        return datetime.fromtimestamp(min(starts) / 1e9, UTC), datetime.fromtimestamp(max(ends) / 1e9, UTC)
    try:
        start, end = (datetime.fromisoformat(str(document.get(name))) for name in ("start_time", "end_time"))
    except ValueError:
        found = f"are {document.get('start_time')!r} and {document.get('end_time')!r}"
        raise InputError([Problem(place=f"{place}: start_time and end_time", found=found, expected="two ISO times")]) from None
    return _in_utc(start), _in_utc(end)


def _in_utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _error_rate(document: Mapping[str, JsonValue], measured: Sequence[Mapping[str, JsonValue]], good: int) -> float | None:
    if measured:
        return (len(measured) - good) / len(measured)
    percent = number(_stat(document, "request_error_rate", "avg"))
    return None if percent is None else percent / 100


def _middle_gap(metrics: Mapping[str, JsonValue]) -> float | None:
    """Give the median gap of a request in seconds; None where chunks are not tokens."""
    gaps = known(number(one) for one in listing(mapping(metrics.get("inter_chunk_latency")).get("value")))
    tokens = _value(metrics, "usage_completion_tokens", 1.0) or _value(metrics, "output_sequence_length", 1.0)
    return statistics.median(gaps) / 1e3 if gaps and chunks_are_tokens(len(gaps), tokens) else None


def _schedule(config: Mapping[str, JsonValue]) -> str:
    phases = [mapping(one) for one in listing(config.get("phases"))]
    phase = next((one for one in phases if one.get("kind") == "profiling"), {})
    kind, concurrency, rate = phase.get("type"), phase.get("concurrency"), phase.get("rate")
    if kind == "concurrency":
        return f"closed loop: {concurrency} at a time"
    return f"{kind or 'not told'}{f', {rate} requests/s' if rate is not None else ''}"


def _stat(document: Mapping[str, JsonValue], name: str, stat: str) -> JsonValue:
    return mapping(document.get(name)).get(stat)


def _value(metrics: Mapping[str, JsonValue], name: str, factor: float) -> float | None:
    return scaled(mapping(metrics.get(name)).get("value"), factor)
