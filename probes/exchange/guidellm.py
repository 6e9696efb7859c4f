"""Result files of guidellm, `--output kind=json`, as 0.8 writes them: one report, several benchmarks.

Definitions are those of guidellm/schemas/base/request_stats.py of 0.8.1. Its inter-token latency is the mean of a request,
(last token - first token) / (tokens - 1), which is TPOT here. Its "time per output token" counts from the request and so
includes TTFT; nothing here is called that. Requests end with their stream. Times are Unix times of the wall clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from probes.errors import InputError, Problem
from probes.exchange.report import Report, inverse, known, listing, mapping, number, scaled, told
from probes.load.series import TokenSource

TOOL: Final = "guidellm"
_VERSION: Final = 2
_LATEST_S: Final = 2**33
_DEFINITIONS: Final = {
    "ttft_s": "to the first text, reasoning or tool call, from when the request's head was written",
    "tpot_s": "the tool's inter_token_latency_ms: (last token - first token) / (tokens - 1)",
    "latency_s": "to the end of the stream",
    "aggregate_tok_s": "output tokens of successful requests over the measured time",
}
_WHY: Final = {
    "itl_s": "guidellm keeps no gaps; its inter_token_latency_ms is a mean for each request, which is tpot_s",
    "first_event_s": "guidellm does not tell events from output",
}


def recognises(document: Mapping[str, JsonValue]) -> bool:
    """Tell by the version it writes into its metadata."""
    return "guidellm_version" in mapping(document.get("metadata"))


def read(document: Mapping[str, JsonValue], place: str) -> list[Report]:
    """Read every benchmark of a report.

    Raises:
        InputError: it is of another version, or has no benchmark.
    """
    metadata = mapping(document.get("metadata"))
    if metadata.get("version") != _VERSION:
        found = f"is {metadata.get('version')!r} (guidellm {metadata.get('guidellm_version')})"
        raise InputError(
            [Problem(place=f"{place}: metadata.version", found=found, expected=f"{_VERSION}, as guidellm 0.8 writes it")]
        )
    benchmarks = [mapping(one) for one in listing(document.get("benchmarks"))]
    if not benchmarks:
        raise InputError([Problem(place=f"{place}: benchmarks", found="is empty", expected="at least one benchmark")])
    return [_read(one, metadata, f"{place}: benchmarks.{n}") for n, one in enumerate(benchmarks)]


def _read(benchmark: Mapping[str, JsonValue], metadata: Mapping[str, JsonValue], place: str) -> Report:
    start, end = number(benchmark.get("start_time")), number(benchmark.get("end_time"))
    if start is None or end is None or not 0 <= start <= end <= _LATEST_S:
        found = f"are {benchmark.get('start_time')!r} and {benchmark.get('end_time')!r}"
        raise InputError([Problem(place=f"{place}: start_time and end_time", found=found, expected="two Unix times")])
    config, metrics = mapping(benchmark.get("config")), mapping(benchmark.get("metrics"))
    backend, strategy = mapping(config.get("backend")), mapping(config.get("strategy"))
    good = [mapping(one) for one in listing(mapping(benchmark.get("requests")).get("successful"))]
    tpots = [scaled(one.get("inter_token_latency_ms"), 1e-3) for one in good]
    totals = mapping(metrics.get("request_totals"))
    succeeded, failed = (number(totals.get(name)) or 0.0 for name in ("successful", "errored"))
    values = {
        "ttft_s": known(scaled(one.get("time_to_first_token_ms"), 1e-3) for one in good),
        "first_text_s": known(scaled(one.get("time_to_first_output_token_ms"), 1e-3) for one in good),
        "tpot_s": known(tpots),
        "decode_tok_s": inverse(tpots),
        "latency_s": known(scaled(one.get("request_latency"), 1.0) for one in good),
        "prompt_tokens": known(scaled(one.get("prompt_tokens"), 1.0) for one in good),
        "completion_tokens": known(scaled(one.get("output_tokens"), 1.0) for one in good),
    }
    whole = {
        "aggregate_tok_s": _mean(metrics, "output_tokens_per_second"),
        "request_rate": _mean(metrics, "requests_per_second"),
        "error_rate": failed / (succeeded + failed) if succeeded + failed else None,
    }
    if not good:
        # Reports may be written without their requests.
        whole |= {
            "ttft_s": _middle(metrics, "time_to_first_token_ms", 1e-3),
            "tpot_s": _middle(metrics, "inter_token_latency_ms", 1e-3),
            "latency_s": _middle(metrics, "request_latency", 1.0),
        }
    warnings = [str(mapping(one).get("message")) for one in listing(benchmark.get("warnings"))]
    return Report(
        tool=TOOL,
        tool_version=told(metadata.get("guidellm_version"), "the file names no version"),
        started_at=datetime.fromtimestamp(start, UTC),
        ended_at=datetime.fromtimestamp(end, UTC),
        model=told(backend.get("model"), "the file names no model"),
        url=told(backend.get("target"), "the file names no address"),
        schedule=_schedule(strategy),
        values=values,
        whole=whole,
        why=_WHY,
        invalid=() if succeeded else ("nothing-succeeded",),
        notes=tuple(f"guidellm warns: {words}" for words in warnings),
        definitions=_DEFINITIONS,
        token_source=TokenSource.USAGE,
        native={
            "metadata": dict(metadata),
            "config": dict(config),
            "scheduler_metrics": benchmark.get("scheduler_metrics"),
            "warnings": benchmark.get("warnings"),
            "metrics": {name: mapping(value).get("successful") for name, value in metrics.items() if isinstance(value, dict)},
            "request_totals": dict(totals),
        },
    )


def _schedule(strategy: Mapping[str, JsonValue]) -> str:
    kind, streams, rate = strategy.get("type_"), strategy.get("streams"), strategy.get("rate")
    if kind in {"concurrent", "synchronous"}:
        return f"closed loop: {streams or 1} at a time"
    return f"{kind}{f', {rate} requests/s' if rate is not None else ''}"


def _mean(metrics: Mapping[str, JsonValue], name: str) -> float | None:
    return scaled(mapping(mapping(metrics.get(name)).get("successful")).get("mean"), 1.0)


def _middle(metrics: Mapping[str, JsonValue], name: str, factor: float) -> float | None:
    return scaled(mapping(mapping(metrics.get(name)).get("successful")).get("median"), factor)
