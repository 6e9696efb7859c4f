"""Load and cache figures of a running server: what the metrics of any runtime are turned into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from probes.endpoints.metrics import Scrape, ScrapeState, mean, ratio
from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.load.untrusted import MAX_COUNT

_STARTED = "process_start_time_seconds"

Reader = Callable[[Scrape, Scrape | None], float | Missing]

_WHY = {
    ScrapeState.NOT_ENABLED: MissingReason.NOT_CONFIGURED,
    ScrapeState.NOT_ALLOWED: MissingReason.REFUSED,
    ScrapeState.NOT_REACHABLE: MissingReason.NOT_REACHABLE,
    ScrapeState.NOT_METRICS: MissingReason.FAILED,
    ScrapeState.FAILED: MissingReason.FAILED,
}


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One figure that operators of any runtime know, and how one runtime's metrics give it."""

    name: str
    unit: str
    direction: Direction
    read: Reader


def running(read: Reader) -> Quantity:
    """Requests being answered before the probe sent its own."""
    return Quantity(name="requests_running", unit="requests", direction=Direction.NEUTRAL, read=read)


def waiting(read: Reader) -> Quantity:
    """Requests that wait for a place in the batch, before the probe sent its own."""
    return Quantity(name="requests_waiting", unit="requests", direction=Direction.LOWER, read=read)


def cache_usage(read: Reader) -> Quantity:
    """Share of the KV cache in use, 0 to 1, before the probe sent its own requests."""
    return Quantity(name="kv_cache_usage", unit="ratio", direction=Direction.NEUTRAL, read=read)


def prefix_hits(read: Reader) -> Quantity:
    """Share of prompt tokens taken from the prefix cache, while the probe's requests ran."""
    return Quantity(name="prefix_cache_hit_ratio", unit="ratio", direction=Direction.HIGHER, read=read)


def drafted(read: Reader) -> Quantity:
    """Tokens that speculative decoding proposed while the probe's requests ran."""
    return Quantity(name="draft_tokens", unit="tokens", direction=Direction.NEUTRAL, read=read)


def accepted(read: Reader) -> Quantity:
    """Share of the proposed tokens that the target model took. High acceptance is no speed-up by itself."""
    return Quantity(name="draft_acceptance_ratio", unit="ratio", direction=Direction.HIGHER, read=read)


def server_time(read: Reader) -> Quantity:
    """Mean time the server itself took for a request, while the probe's requests ran."""
    return Quantity(name="server_latency_s", unit="s", direction=Direction.LOWER, read=read)


def gauge(*metrics: str, once: Mapping[str, str] | None = None) -> Reader:
    """Read a count as it stood before the probe's own requests; the names are those of newer and older releases.

    `once` names labels under which a server counts the same again, and the value of the sample to take:
    of several ranks that work on one request, the first.
    """

    def read(before: Scrape, _after: Scrape | None) -> float | Missing:
        for metric in metrics:
            values = [s.value for s in before.named(metric) if s.value is not None and _counts(s.labels, once or {})]
            if values:
                value = sum(values)
                return value if 0 <= value <= MAX_COUNT else _senseless(metric, value, "no count")
        return _absent(metrics[0])

    return read


def gauges(*metrics: str) -> Reader:
    """Read the sum of counts that stand beside each other, such as those of graphs and of models."""

    def read(before: Scrape, _after: Scrape | None) -> float | Missing:
        found = [value for value in (gauge(metric)(before, None) for metric in metrics) if not isinstance(value, Missing)]
        return sum(found) if found else gauge(*metrics)(before, None)

    return read


def fraction(*metrics: str, scale: float = 1.0) -> Reader:
    """Read a share from 0 to 1; of several engines or ranks, which are of one size, the mean."""

    def read(before: Scrape, _after: Scrape | None) -> float | Missing:
        for metric in metrics:
            values = [sample.value * scale for sample in before.named(metric) if sample.value is not None]
            if values:
                value = sum(values) / len(values)
                return value if 0 <= value <= 1 else _senseless(metric, value, "no share of 1")
        return _absent(metrics[0])

    return read


def growth(metric: str) -> Reader:
    """Read how far a counter moved while the probe's requests ran; other clients' requests count as well."""
    return lambda before, after: _growth(metric, before, after)


def share(part: str, *rest: str) -> Reader:
    """Read the growth of a counter as a share of its own growth and that of `rest`."""
    return _quotient(part, (part, *rest))


def share_of(part: str, whole: str) -> Reader:
    """Read the growth of a counter as a share of the growth of another that includes it."""
    return _quotient(part, (whole,))


def mean_growth(histogram: str, *, scale: float = 1.0) -> Reader:
    """Read the mean of what a histogram took in while the probe's requests ran; nothing taken in is not 0."""

    def read(before: Scrape, after: Scrape | None) -> float | Missing:
        total, count = _growth(f"{histogram}_sum", before, after), _growth(f"{histogram}_count", before, after)
        if isinstance(total, Missing) or isinstance(count, Missing):
            return total if isinstance(total, Missing) else _absent(histogram)
        value = mean(total, count)
        return _uncounted(histogram) if value is None else value * scale

    return read


def first(*readers: Reader) -> Reader:
    """Read with the first reader that finds its metrics; the names of metrics change from release to release."""

    def read(before: Scrape, after: Scrape | None) -> float | Missing:
        found = [reader(before, after) for reader in readers]
        told = (one for one in found if not isinstance(one, Missing) or one.missing is not MissingReason.UNSUPPORTED)
        return next(told, found[-1])

    return read


def never(why: str) -> Reader:
    """Say why a runtime has no such figure."""
    return lambda _before, _after: Missing(missing=MissingReason.UNSUPPORTED, detail=why)


def nothing(why: str) -> tuple[Quantity, ...]:
    """Say why a runtime has none of the figures."""
    return tuple(quantity(never(why)) for quantity in (running, waiting, cache_usage, prefix_hits, drafted, accepted))


def live_metrics(quantities: Iterable[Quantity], before: Scrape, after: Scrape | None, hint: str) -> tuple[Metric, ...]:
    """Turn two readings of /metrics, round the probe's own requests, into figures or the reasons why there are none.

    `hint` says how the runtime's metrics are switched on.
    """
    return tuple(_metric(quantity, _read(quantity, before, after, hint)) for quantity in quantities)


def _read(quantity: Quantity, before: Scrape, after: Scrape | None, hint: str) -> float | Missing:
    if before.state is ScrapeState.READ:
        return quantity.read(before, after)
    words = f"{before.state}: {before.detail}"
    detail = f"{words}; {hint}" if hint and before.state is ScrapeState.NOT_ENABLED else words
    return Missing(missing=_WHY[before.state], detail=detail)


def _metric(quantity: Quantity, value: float | Missing) -> Metric:
    return Metric(
        name=quantity.name,
        unit=quantity.unit,
        direction=quantity.direction,
        per=Per.RUN,
        samples=() if isinstance(value, Missing) else (float(value),),
        missing=value if isinstance(value, Missing) else None,
    )


def _quotient(part: str, parts: tuple[str, ...]) -> Reader:
    def read(before: Scrape, after: Scrape | None) -> float | Missing:
        grown = _growth(part, before, after)
        wholes = [_growth(metric, before, after) for metric in parts]
        counted = [value for value in wholes if not isinstance(value, Missing)]
        if isinstance(grown, Missing) or len(counted) < len(wholes):
            return next(value for value in (grown, *wholes) if isinstance(value, Missing))
        value = ratio(grown, sum(counted))
        return _uncounted(part) if value is None else value

    return read


def _growth(metric: str, before: Scrape, after: Scrape | None) -> float | Missing:
    if after is None:
        return Missing(missing=MissingReason.NOT_MEASURED, detail="no request was sent that could move a counter")
    if after.state is not ScrapeState.READ:
        return Missing(missing=_WHY[after.state], detail=f"after the requests: {after.detail}")
    earlier, later = before.total(metric), after.total(metric)
    if later is None:
        return _absent(metric)
    if later < (earlier or 0):
        return Missing(missing=MissingReason.FAILED, detail=f"{metric} went back: the server was restarted meanwhile")
    # A counter of a new process may have passed its old value already.
    if before.total(_STARTED) != after.total(_STARTED):
        return Missing(missing=MissingReason.FAILED, detail=f"{_STARTED} moved: the server was restarted meanwhile")
    return later - (earlier or 0)


def _absent(metric: str) -> Missing:
    return Missing(missing=MissingReason.UNSUPPORTED, detail=f"no {metric} in its metrics")


def _counts(labels: Mapping[str, str], once: Mapping[str, str]) -> bool:
    return all(labels.get(name, value) == value for name, value in once.items())


def _senseless(metric: str, value: float, why: str) -> Missing:
    return Missing(missing=MissingReason.FAILED, detail=f"{metric} says {value:g}, which is {why}")


def _uncounted(metric: str) -> Missing:
    return Missing(missing=MissingReason.NOT_MEASURED, detail=f"{metric} counted nothing meanwhile")
