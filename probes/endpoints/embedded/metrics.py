"""Prometheus metrics of the embedded service: the ones OVMS has for a graph, and what only the engine knows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from probes.endpoints.embedded.frames import Stats
from probes.evidence import Scalar

# model_metric_reporter.cpp: 33 buckets of microseconds, each 1.8 times the one before.
_BUCKETS_US: Final = tuple(math.floor(10 * 1.8**step) for step in range(33))
_REST: Final = ("api", "interface", "method", "name")
_PREFIX: Final = "inference_adr_embedded"


class Metrics:
    """Counts requests; the engine's own numbers are taken at each scrape."""

    def __init__(self, model: str, settings: Mapping[str, Scalar]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._model = model
        self._registry = registry = CollectorRegistry()
        self._graphs = Gauge("ovms_current_graphs", "Requests being answered.", ["name"], registry=registry)
        self._accepted = Counter("ovms_requests_accepted", "Requests that were run.", _REST, registry=registry)
        self._rejected = Counter("ovms_requests_rejected", "Requests that could not be run.", _REST, registry=registry)
        self._responses = Counter("ovms_responses", "Answers, or chunks of streamed ones.", _REST, registry=registry)
        self._errors = Counter("ovms_graph_error", "Requests that failed while they ran.", _REST, registry=registry)
        self._times = Histogram(
            "ovms_graph_processing_time_us",
            "Microseconds from a request to the end of its answer.",
            ["method", "name"],
            buckets=_BUCKETS_US,
            registry=registry,
        )
        self._engine = {
            "requests": Gauge(f"{_PREFIX}_requests", "Requests in the batch or waiting for it.", registry=registry),
            "scheduled_requests": Gauge(f"{_PREFIX}_scheduled_requests", "Requests in the last step.", registry=registry),
            "cache_usage_percent": Gauge(f"{_PREFIX}_cache_usage_percent", "KV cache in use, 0 to 100.", registry=registry),
            "max_cache_usage_percent": Gauge(
                f"{_PREFIX}_max_cache_usage_percent", "Most of the KV cache ever in use, 0 to 100.", registry=registry
            ),
            "cache_size_bytes": Gauge(f"{_PREFIX}_cache_size_bytes", "Bytes the KV cache may use.", registry=registry),
        }
        self._prompt = Counter(f"{_PREFIX}_prompt_tokens", "Prompt tokens, cached ones included.", registry=registry)
        self._generated = Counter(f"{_PREFIX}_generated_tokens", "Tokens generated.", registry=registry)
        self._cancelled = Counter(f"{_PREFIX}_cancelled_requests", "Requests whose client left.", registry=registry)
        info = Gauge(f"{_PREFIX}_setting_info", "Settings the engine runs with.", ["setting", "value"], registry=registry)
        for name, value in settings.items():
            info.labels(name, str(value).lower() if isinstance(value, bool) else str(value)).set(1)
        for stream in (False, True):  # a counter that has not counted yet is 0, not absent
            for counter in (self._accepted, self._rejected, self._responses, self._errors):
                counter.labels(*self._rest(stream=stream))
        self._graphs.labels(model)

    def rejected(self, *, stream: bool) -> None:
        """Count a request that was refused before it joined the batch."""
        self._rejected.labels(*self._rest(stream=stream)).inc()

    def began(self, *, stream: bool, prompt_tokens: int) -> None:
        """Count a request that joined the batch."""
        self._accepted.labels(*self._rest(stream=stream)).inc()
        self._graphs.labels(self._model).inc()
        self._prompt.inc(prompt_tokens)

    def responded(self, *, stream: bool) -> None:
        """Count an answer, or one chunk of it."""
        self._responses.labels(*self._rest(stream=stream)).inc()

    def generated(self, tokens: int) -> None:
        """Count tokens."""
        self._generated.inc(tokens)

    def ended(self, *, stream: bool, seconds: float, failed: bool = False, cancelled: bool = False) -> None:
        """Count the end of a request that had joined the batch, however it ended."""
        self._graphs.labels(self._model).dec()
        if failed:
            self._errors.labels(*self._rest(stream=stream)).inc()
        elif cancelled:
            self._cancelled.inc()
        else:
            self._times.labels("Stream" if stream else "Unary", self._model).observe(seconds * 1e6)

    def scrape(self, stats: Stats) -> bytes:
        """Write everything in the Prometheus text format."""
        for name, gauge in self._engine.items():
            gauge.set(getattr(stats, name))
        # OVMS names its counters without the suffix that the Python client adds.
        return re.sub(rb"\b(ovms_\w+?)_total\b", rb"\1", generate_latest(self._registry))

    def _rest(self, *, stream: bool) -> tuple[str, str, str, str]:
        return "V3", "REST", "Stream" if stream else "Unary", self._model
