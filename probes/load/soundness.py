"""Whether the instrument kept up with the load it put on: a run in which it was the bottleneck is invalid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from probes.load.arrivals import Arrivals
from probes.load.outcome import Outcome
from probes.load.series import coalesced_share
from probes.load.statistics import percentile
from probes.load.window import Phase, Window

# By how much of the median TTFT, or of the median gap, a stamp may be late before nothing is published.
LATE_P50_AT_MOST: Final = 0.05
LATE_P95_AT_MOST: Final = 0.25
LATE_FOR_ITL_AT_MOST: Final = 0.25
CORE_AT_MOST: Final = 0.9
CARRIED_AT_LEAST: Final = 0.95
_FEWEST_TICKS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Soundness:
    """The instrument's own figures over the measured window, and the reason codes that speak against the run.

    `lag_p50_s` and `lag_p95_s` say how late bytes were stamped. `offered` and `carried` are requests in flight in a
    closed loop, requests per second in an open one. `cores` counts processor time of all workers, `waited` the share
    of the window that workers were ready to run and did not.
    """

    lag_p50_s: float | None
    lag_p95_s: float | None
    lag_max_s: float | None
    schedule_lag_p95_s: float | None
    offered: float | None
    carried: float | None
    coalesced: float | None
    cores: float | None
    busiest: float | None
    waited: float | None
    reads: int
    workers: int
    reasons: tuple[str, ...]

    def document(self) -> dict[str, JsonValue]:
        """Give the figures under their names."""
        return {
            "lag_p50_s": self.lag_p50_s,
            "lag_p95_s": self.lag_p95_s,
            "lag_max_s": self.lag_max_s,
            "schedule_lag_p95_s": self.schedule_lag_p95_s,
            "load_offered": self.offered,
            "load_carried": self.carried,
            "coalesced_share": self.coalesced,
            "cores_used": self.cores,
            "busiest_worker_cores": self.busiest,
            "share_waiting_for_a_core": self.waited,
            "reads": self.reads,
            "workers": self.workers,
        }


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The load that was meant: requests in flight of a closed loop, requests per second of an open one."""

    arrivals: Arrivals
    concurrency: int
    rate: float


def judge(
    outcomes: Sequence[Outcome],
    window: Window,
    stats: Sequence[Mapping[str, Any]],
    *,
    offer: Offer,
    ttft_p50_s: float | None,
    itl_p50_s: float | None = None,
) -> Soundness:
    """Hold the instrument's lags against what it measured; with no TTFT there is nothing to hold them against."""
    measured = [o for o, phase in zip(outcomes, window.phases, strict=True) if phase is Phase.MEASURED]
    lags = sorted(lag / 1e9 for one in stats for lag in _inside(one, window))
    cores = [_share(one, window, 1) for one in stats]
    waits = [_share(one, window, 2) for one in stats]
    used = [one for one in cores if one is not None]
    waited = [one for one in waits if one is not None]
    behind = sorted((o.sent_ns - o.due_ns) / 1e9 for o in measured)
    offered, carried = _load(outcomes, measured, window, offer)
    lag_p50, lag_p95 = (percentile(lags, 0.5), percentile(lags, 0.95)) if len(lags) >= _FEWEST_TICKS else (None, None)
    schedule_lag = percentile(behind, 0.95) if behind else None
    reasons: list[str] = []
    if _late(lags, ttft_p50_s, itl_p50_s):
        reasons.append("instrument-late")
    if offer.arrivals is not Arrivals.CLOSED and ttft_p50_s and (schedule_lag or 0) > LATE_P95_AT_MOST * ttft_p50_s:
        reasons.append("behind-schedule")
    if used and max(used) > CORE_AT_MOST:
        reasons.append("instrument-core-full")
    if any(o.ok for o in measured) and offered is not None and carried is not None and carried < CARRIED_AT_LEAST * offered:
        reasons.append("load-not-carried")
    return Soundness(
        lag_p50_s=lag_p50,
        lag_p95_s=lag_p95,
        lag_max_s=lags[-1] if lags else None,
        schedule_lag_p95_s=schedule_lag,
        offered=offered,
        carried=carried,
        coalesced=coalesced_share(measured),
        cores=sum(used) if used else None,
        busiest=max(used, default=None),
        waited=sum(waited) / len(waited) if waited else None,
        reads=sum(int(one.get("reads", 0)) for one in stats),
        workers=len(stats),
        reasons=tuple(reasons),
    )


def _late(lags: Sequence[float], ttft_p50_s: float | None, itl_p50_s: float | None) -> bool:
    """Tell whether stamps were too late for what they measured; of a short run only the middle is known."""
    if not lags or ttft_p50_s is None:
        return False
    middle = percentile(lags, 0.5)
    tail = percentile(lags, 0.95) if len(lags) >= _FEWEST_TICKS else 0.0
    late = middle > LATE_P50_AT_MOST * ttft_p50_s or tail > LATE_P95_AT_MOST * ttft_p50_s
    return late or (itl_p50_s is not None and middle > LATE_FOR_ITL_AT_MOST * itl_p50_s)


def _inside(one: Mapping[str, Any], window: Window) -> list[int]:
    pairs = zip(one.get("at_ns", ()), one.get("lag_ns", ()), strict=True)
    return [lag for at, lag in pairs if window.start_ns <= at <= window.end_ns]


def _share(one: Mapping[str, Any], window: Window, column: int) -> float | None:
    """Give processor or waiting time per second of the window; None where there are no two readings in it."""
    rows = [row for row in one.get("core", ()) if window.start_ns <= row[0] <= window.end_ns and row[column] >= 0]
    if len(rows) < 2 or rows[-1][0] <= rows[0][0]:
        return None
    share: float = (rows[-1][column] - rows[0][column]) / (rows[-1][0] - rows[0][0])
    return share


def _load(
    outcomes: Sequence[Outcome], measured: Sequence[Outcome], window: Window, load: Offer
) -> tuple[float | None, float | None]:
    """Compare the load that was meant with the one that was: requests in flight, or requests sent per second."""
    if not measured or window.seconds <= 0:
        return None, None
    if load.arrivals is Arrivals.CLOSED:
        inside = (min(o.end_ns, window.end_ns) - max(o.sent_ns, window.start_ns) for o in outcomes)
        return float(load.concurrency), sum(max(0, ns) for ns in inside) / 1e9 / window.seconds
    due, sent = sorted(o.due_ns for o in measured), sorted(o.sent_ns for o in measured)
    if len(due) < 2 or due[-1] <= due[0] or sent[-1] <= sent[0]:
        return load.rate, None
    return (len(due) - 1) / ((due[-1] - due[0]) / 1e9), (len(sent) - 1) / ((sent[-1] - sent[0]) / 1e9)
