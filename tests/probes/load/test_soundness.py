"""A run in which the instrument was the bottleneck is invalid, with the reason."""

from __future__ import annotations

from typing import Any

from probes.load.arrivals import Arrivals
from probes.load.outcome import Outcome
from probes.load.soundness import Offer, Soundness, judge
from probes.load.window import Phase, Window
from tests.loading import MS, WHOLE, outcome

CLOSED = Offer(arrivals=Arrivals.CLOSED, concurrency=1, rate=0.0)


def stats(lag_ms: list[float], *, cpu: float = 0.1, waited: float = 0.0) -> dict[str, Any]:
    """Ticks every 20 ms from 0 on, and a reading of the core at both ends."""
    last = 20 * MS * len(lag_ms)
    return {
        "at_ns": [20 * MS * n for n in range(len(lag_ms))],
        "lag_ns": [round(lag * MS) for lag in lag_ms],
        "core": [[0, 0, 0], [last - MS, round(cpu * last), round(waited * last)]],
        "reads": 7,
    }


def judged(
    *workers: dict[str, Any],
    offer: Offer = CLOSED,
    outcomes: list[Outcome] | None = None,
    ttft: float = 0.05,
    itl: float = 0.01,
) -> Soundness:
    every = outcomes or [outcome(WHOLE, due_ns=0, sent_ns=0, last_sent_ns=0, end_ns=2000 * MS, times_ms=[2000])]
    window = Window(phases=(Phase.MEASURED,) * len(every), start_ns=0, end_ns=2000 * MS)
    return judge(every, window, workers, offer=offer, ttft_p50_s=ttft, itl_p50_s=itl)


def test_prompt_instrument_is_sound() -> None:
    found = judged(stats([0.1] * 100))
    assert found.reasons == ()
    assert (found.lag_p50_s, found.lag_p95_s, found.carried, found.reads) == (0.0001, 0.0001, 1.0, 7)


def test_late_stamps_spoil_the_run() -> None:
    assert judged(stats([3.0] * 100)).reasons == ("instrument-late",)
    assert judged(stats([3.0] * 100), ttft=1.0, itl=0.1).reasons == ()


def test_late_tail_spoils_the_run_though_the_middle_is_prompt() -> None:
    assert judged(stats([0.1] * 90 + [40.0] * 10)).reasons == ("instrument-late",)
    assert judged(stats([0.1] * 97 + [40.0] * 3)).reasons == ()


def test_stamps_late_for_the_gaps_spoil_the_run_though_the_first_token_is_slow() -> None:
    assert judged(stats([4.0] * 100), ttft=5.0, itl=0.01).reasons == ("instrument-late",)


def test_long_stall_outside_the_window_is_none_of_its_business() -> None:
    late = stats([0.1] * 100)
    late["at_ns"].append(99_000 * MS)
    late["lag_ns"].append(5_000 * MS)
    assert judged(late).reasons == ()


def test_full_core_of_one_worker_spoils_the_run() -> None:
    found = judged(stats([0.1] * 100, cpu=0.2), stats([0.1] * 100, cpu=0.97))
    assert "instrument-core-full" in found.reasons


def test_closed_loop_that_did_not_keep_its_streams_busy_is_told() -> None:
    half = [outcome(WHOLE, due_ns=0, sent_ns=0, last_sent_ns=0, end_ns=1000 * MS, times_ms=[1000])]
    found = judged(stats([0.1] * 100), outcomes=half)
    assert (found.offered, found.carried, found.reasons) == (1.0, 0.5, ("load-not-carried",))


def test_open_loop_that_fell_behind_its_schedule_is_told() -> None:
    offer = Offer(arrivals=Arrivals.CONSTANT, concurrency=64, rate=10.0)
    late = [
        outcome(WHOLE, due_ns=100 * MS * n, sent_ns=(100 * n + 40 * n) * MS, last_sent_ns=0, times_ms=[2000]) for n in range(10)
    ]
    found = judged(stats([0.1] * 100), offer=offer, outcomes=late)
    assert found.reasons == ("behind-schedule", "load-not-carried")


def test_nothing_known_is_none_and_not_zero() -> None:
    found = judged({})
    assert (found.lag_p50_s, found.cores, found.waited, found.schedule_lag_p95_s) == (None, None, None, 0.0)
    assert found.document()["cores_used"] is None
