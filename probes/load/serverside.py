"""What the server itself counted while the load was on: its metrics before, after and a few times between."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.detect import Detection, Limits, detect
from probes.endpoints.fault import Fault
from probes.endpoints.metrics import Scrape, ScrapeState
from probes.endpoints.wire import Reply, Wire, tls_context
from probes.evidence import Direction, Missing, MissingReason, Per
from probes.fleet import RuntimeName
from probes.load.run import Gate
from probes.load.series import Series
from probes.load.window import Window

_QUESTION_S: Final = 3.0
_LIMITS: Final = Limits(question_s=_QUESTION_S, all_s=5 * _QUESTION_S)
_FIRST_PAUSE_S: Final = 1.0
_LONGER_EACH_TIME: Final = 1.5
_MAX_COUNTERS: Final = 60
_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL
_GAUGES: Final = frozenset({"requests_running", "requests_waiting", "kv_cache_usage"})
_ACCEPTED: Final = {
    RuntimeName.VLLM: "vllm:spec_decode_num_accepted_tokens_total",
    RuntimeName.LLAMACPP: "llamacpp:spec_decode_num_accepted_tokens_total",
}
_GENERATED: Final = {
    RuntimeName.VLLM: "vllm:generation_tokens_total",
    RuntimeName.LLAMACPP: "llamacpp:tokens_predicted_total",
    RuntimeName.OPENVINO_GENAI_EMBEDDED: "inference_adr_embedded_generated_tokens_total",
}
_PREEMPTED: Final = {RuntimeName.VLLM: "vllm:num_preemptions_total"}
# Every name there is, with unit and direction; an adapter gives those that its runtime has or says why not.
_NAMES: Final = {
    "server_requests_running": ("requests", _NEUTRAL),
    "server_requests_waiting": ("requests", _LOWER),
    "server_kv_cache_usage": ("ratio", _NEUTRAL),
    "server_prefix_cache_hit_ratio": ("ratio", _HIGHER),
    "server_draft_tokens": ("tokens", _NEUTRAL),
    "server_accepted_tokens": ("tokens", _NEUTRAL),
    "server_draft_acceptance_ratio": ("ratio", _HIGHER),
    "server_preemptions": ("preemptions", _LOWER),
    "server_generated_tokens": ("tokens", _NEUTRAL),
    "server_latency_s": ("s", _LOWER),
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the server's metrics say of a run."""

    series: tuple[Series, ...]
    native: dict[str, JsonValue]


def authority(gate: Gate) -> ssl.SSLContext | None:
    """Give what checks the certificate of a service; None where no TLS is spoken."""
    if not gate.address.secure:
        return None
    ca_file = Path(gate.ca_file) if gate.ca_file else None
    return tls_context(f"ca_file {gate.ca_file}", ca_file=ca_file, insecure=gate.insecure)


def identify(gate: Gate, tls: ssl.SSLContext | None, expected: RuntimeName | None = None) -> Detection:
    """Ask an address what runs there: a few questions for documents, none for text."""

    async def ask() -> Detection:
        async with Wire(gate.address, key=gate.key, tls=tls) as wire:
            nowhere = f"/{secrets.token_hex(6)}"
            has_key = gate.key is not None
            return await detect(wire, expected=expected, nowhere=nowhere, limits=_LIMITS, has_key=has_key)

    return asyncio.run(ask())


class Scraper:
    """Reads the metrics of a server whose runtime is known between `with` and its end.

    A runtime that is not known is not asked: TensorRT-LLM empties `/metrics` with each reading. Between the first and
    the last reading there are few, further and further apart, because a reading costs the server time.
    """

    def __init__(self, gate: Gate, tls: ssl.SSLContext | None, detection: Detection, *, during: bool = True) -> None:
        self._gate, self._tls, self._detection = gate, tls, detection
        self._readings: list[tuple[int, Reply | Fault]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._during = during
        adapter = detection.adapter
        self._why: Missing | None = None
        if adapter is None or not adapter.metrics:
            words = "no page of metrics is known of this runtime, and some servers empty theirs when it is read"
            self._why = Missing(missing=MissingReason.UNSUPPORTED, detail=words)

    def __enter__(self) -> Self:
        if self._why is None:
            self._read()
            if self._during:
                self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._why is None:
            self._read()

    def told(self, window: Window) -> Told:
        """Say what was read of the measured window, or why nothing was."""
        adapter, reading = self._detection.adapter, self._detection.reading
        if self._why is None and not window.seconds:
            self._why = Missing(missing=MissingReason.NOT_MEASURED, detail="no request was measured")
        if self._why is not None or adapter is None or reading is None:
            why = self._why or Missing(missing=MissingReason.NOT_MEASURED)
            return Told(series=tuple(_series(name, why) for name in _NAMES), native={})
        scrapes = [(at, adapter.scrape(_inflated(reply))) for at, reply in self._readings]
        return tell(scrapes, window, reading.runtime, adapter.quantities, adapter.metrics_hint)

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._over.wait(pause_s):
            self._read()
            pause_s *= _LONGER_EACH_TIME

    def _read(self) -> None:
        """Keep the bytes, and parse them when the load is over."""
        path = self._detection.adapter.metrics if self._detection.adapter else ""

        async def ask() -> Reply | Fault:
            async with Wire(self._gate.address, key=self._gate.key, tls=self._tls) as wire:
                return await wire.get(path, within_s=_QUESTION_S)

        reply = asyncio.run(ask())
        kept = replace(reply, body=zlib.compress(reply.body, 1)) if isinstance(reply, Reply) else reply
        self._readings.append((time.perf_counter_ns(), kept))


def tell(
    scrapes: Sequence[tuple[int, Scrape]],
    window: Window,
    runtime: RuntimeName,
    quantities: Sequence[live.Quantity],
    hint: str,
) -> Told:
    """Turn readings into figures of the window: gauges by the readings in it, counters by those round it.

    `server_requests_running` is the mean of its readings, waiting requests and KV-cache use the most that was read.
    """
    first = max((n for n, (at, _) in enumerate(scrapes) if at <= window.start_ns), default=0)
    last = min((n for n, (at, _) in enumerate(scrapes) if at >= window.end_ns), default=len(scrapes) - 1)
    before, after = scrapes[first][1], scrapes[last][1]
    inside = [one for at, one in scrapes if window.start_ns <= at <= window.end_ns and one.state is ScrapeState.READ]
    reset = _reset([one for _, one in scrapes[first : last + 1]])
    found: dict[str, float | Missing] = {}
    for quantity in (*quantities, *_more(runtime)):
        name = quantity.name if quantity.name.startswith("server_") else f"server_{quantity.name}"
        if before.state is not ScrapeState.READ:
            found[name] = _unread(before, hint)
        elif quantity.name in _GAUGES:
            found[name] = _gauge(quantity, before, inside)
        else:
            value = quantity.read(before, after)
            found[name] = reset if reset is not None and not isinstance(value, Missing) else value
    silent = Missing(missing=MissingReason.UNSUPPORTED, detail=f"{runtime.value} has no such metric")
    series = tuple(_series(name, found.get(name, silent)) for name in _NAMES)
    return Told(series=series, native=_native(scrapes, first, last, window))


def _more(runtime: RuntimeName) -> Iterator[live.Quantity]:
    """What the survey of an address has no use for, and a load has."""
    counters = {"server_accepted_tokens": _ACCEPTED, "server_generated_tokens": _GENERATED, "server_preemptions": _PREEMPTED}
    for name, metrics in counters.items():
        if runtime in metrics:
            unit, direction = _NAMES[name]
            yield live.Quantity(name=name, unit=unit, direction=direction, read=live.growth(metrics[runtime]))


def _gauge(quantity: live.Quantity, before: Scrape, inside: Sequence[Scrape]) -> float | Missing:
    if isinstance(without := quantity.read(before, None), Missing):
        return without
    values = [value for one in inside if not isinstance(value := quantity.read(one, None), Missing)]
    if not values:
        words = "no reading of its metrics fell into the measured time"
        return Missing(missing=MissingReason.TOO_FEW_SAMPLES, detail=words)
    return sum(values) / len(values) if quantity.name == "requests_running" else max(values)


def _unread(before: Scrape, hint: str) -> Missing:
    reasons = {ScrapeState.NOT_ENABLED: MissingReason.NOT_CONFIGURED, ScrapeState.NOT_ALLOWED: MissingReason.REFUSED}
    words = f"{before.state}: {before.detail}"
    detail = f"{words}; {hint}" if hint and before.state is ScrapeState.NOT_ENABLED else words
    return Missing(missing=reasons.get(before.state, MissingReason.FAILED), detail=detail)


def _reset(scrapes: Sequence[Scrape]) -> Missing | None:
    """Look between all readings: a counter that began anew may have overtaken its old value by the last one."""
    known: dict[str, float] = {}
    for one in scrapes:
        for name, kind in one.kinds.items():
            if kind != "counter" and not name.endswith(("_count", "_bucket")):
                continue
            value = one.total(name)
            if value is None:
                continue
            if value < known.get(name, value):
                words = f"{name} went back from {known[name]:g} to {value:g}: the server was restarted meanwhile"
                return Missing(missing=MissingReason.FAILED, detail=words)
            known[name] = value
    return None


def _native(scrapes: Sequence[tuple[int, Scrape]], first: int, last: int, window: Window) -> dict[str, JsonValue]:
    """Keep by how much the server's own counters grew, under its own names."""
    before, after = scrapes[first][1], scrapes[last][1]
    grown: dict[str, JsonValue] = {}
    failed: list[JsonValue] = [one.detail or one.state.value for _, one in scrapes if one.state is not ScrapeState.READ]
    names = sorted(name for name, kind in after.kinds.items() if kind == "counter" and not name.startswith("python_"))
    for name in names:
        earlier, later = before.total(name) or 0, after.total(name)
        if later is not None and later != earlier and len(grown) < _MAX_COUNTERS:
            grown[name] = later - earlier
    return {
        "readings": len(scrapes),
        "failed": failed[:3],
        # The counters' stretch holds the measured window and up to one pause between readings more on each side.
        "before_window_s": round((window.start_ns - scrapes[first][0]) / 1e9, 3),
        "after_window_s": round((scrapes[last][0] - window.end_ns) / 1e9, 3),
        "counters_grew_by": grown,
    }


def _series(name: str, value: float | Missing) -> Series:
    unit, direction = _NAMES[name]
    return Series(
        name=name,
        unit=unit,
        direction=direction,
        per=Per.RUN,
        samples=() if isinstance(value, Missing) else (float(value),),
        missing=value if isinstance(value, Missing) else None,
        note="by the server's own metrics, other clients' requests included" if not isinstance(value, Missing) else "",
    )


def _inflated(reply: Reply | Fault) -> Reply | Fault:
    return replace(reply, body=zlib.decompress(reply.body)) if isinstance(reply, Reply) else reply
