"""A run stops at once when a server gets slow, whichever way; what was measured until then is kept and marked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.instrument import truth_server
from probes.load.arriving import Arriving, Over
from probes.load.guard import RECENT_GAPS, Stop, too_long, watch
from probes.load.request import Request
from probes.load.spool import End
from probes.load.task import Guards
from tests.loading import DONE, STREAM_HEAD, chunked, event, under_load

GUARDS = Guards(timeout_s=60.0, stall_s=10.0, first_byte_s=30.0, itl_s=2.0, latency_s=50.0)
TOKEN = chunked(event({"content": "x"}))
S = 10**9


def after(*reads: tuple[bytes, float], now_s: float, guards: Guards = GUARDS) -> Over | Stop | None:
    """Watch a request that was sent at 0 and whose reads came at these seconds."""
    answer, request = Arriving(), Request(index=0, stream=0, due_ns=0, body=b"", sent_ns=1, last_sent_ns=1)
    for data, at_s in reads:
        answer.take(data, round(at_s * S))
        watch(answer, request, guards, round(at_s * S))
    return watch(answer, request, guards, round(now_s * S))


def steadily(every_s: float, count: int, begin_s: float = 1.0) -> list[tuple[bytes, float]]:
    return [(STREAM_HEAD, 0.5), *((TOKEN, begin_s + every_s * n) for n in range(count))]


def words(found: Over | Stop | None) -> str:
    assert isinstance(found, Stop)
    return f"{found.reason}: {found.words}"


def test_prompt_stream_is_let_alone() -> None:
    assert after(*steadily(0.1, 100), now_s=12.0) is None


def test_answer_that_does_not_begin() -> None:
    assert after(now_s=29.9) is None
    assert words(after(now_s=30.1)) == "latency-guard: no answer began within 30 s"
    assert words(after((STREAM_HEAD, 1.0), now_s=30.1)) == "latency-guard: no answer began within 30 s"


def test_comments_begin_no_answer() -> None:
    """A proxy keeps a connection open with them while nothing comes from the server."""
    comments = [(chunked(b": ping\n\n"), float(at)) for at in range(1, 31)]
    assert words(after((STREAM_HEAD, 0.5), *comments, now_s=30.1)) == "latency-guard: no answer began within 30 s"
    assert after((STREAM_HEAD, 0.5), *comments, (TOKEN, 29.0), now_s=30.1) is None


@pytest.mark.parametrize("body", [b'{"choices": []}', b"<html>", b"event: error\ndata: x\n\n", b"data: x\n\n"])
def test_anything_but_comments_begins_one(body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\n"
    assert after((head + body, 29.0), now_s=31.0) is None


def test_stream_that_stalls() -> None:
    assert words(after(*steadily(0.1, 5), now_s=11.5)) == "stalled-stream: a stream brought nothing for 10 s"


def test_stream_that_crawls_though_it_never_stalls() -> None:
    assert after(*steadily(2.5, RECENT_GAPS), now_s=25.0) is None
    found = words(after(*steadily(2.5, RECENT_GAPS + 2), now_s=25.0))
    assert found == "latency-guard: the last 8 pieces of a stream came 2.5 s apart, and 2 s are allowed"


def test_a_slow_first_token_is_in_no_gap_and_one_pause_is_no_crawl() -> None:
    assert after(*steadily(0.1, 30, begin_s=29.0), now_s=33.0) is None
    pause = [*steadily(0.1, 20), (TOKEN, 12.0), *((TOKEN, 12.1 + 0.1 * n) for n in range(20))]
    assert after(*pause, now_s=15.0) is None


def test_answer_that_takes_too_long_stops_the_run_before_its_own_time_is_up() -> None:
    running = steadily(0.5, 120)
    assert after(*running[:90], now_s=49.0) is None
    assert words(after(*running, now_s=50.5)) == "latency-guard: an answer took more than 50 s"
    assert after(*running, now_s=60.5) == Over(End.TIMED_OUT, "not finished within 60 s", reuse=False)


def test_answer_that_is_over_is_late_no_more() -> None:
    over = [*steadily(0.1, 5), (chunked(DONE), 2.0)]
    assert after(*over, now_s=2.9) is None
    assert after(*over, now_s=55.0) == Over(End.CLOSED, "kept open after its end", reuse=False)


def test_answer_that_ended_between_two_looks_is_held_to_its_time_too() -> None:
    assert too_long(50 * S, GUARDS) is None
    assert too_long(50 * S + 1, GUARDS) == Stop("latency-guard", "an answer took more than 50 s")


@pytest.mark.parametrize(
    ("guards", "said"),
    [
        pytest.param({"itl_s": 0.2}, "pieces of a stream came", id="itl"),
        pytest.param({"latency_s": 1.5}, "an answer took more than 1.5 s", id="latency"),
        pytest.param({"stall_s": 0.2}, "a stream brought nothing for 0.2 s", id="stall"),
    ],
)
def test_server_that_gets_slow_is_asked_no_more_and_read_to_its_end(guards: dict[str, Any], said: str) -> None:
    """By the truth server's own clock: 5 ms from token to token at first, 400 ms after 320 tokens in all."""
    patient = Guards(timeout_s=30.0, stall_s=30.0, first_byte_s=30.0, itl_s=30.0, latency_s=30.0)
    slowing = ("--ttft-ms", "20", "--itl-ms", "5", "--slow-after", "320", "--slow-itl-ms", "400")
    with truth_server(*slowing) as port:
        finding = under_load(port, concurrency=2, requests=500, max_tokens=16, guards=replace(patient, **guards))
    assert finding.reasons[0] == ("stalled-stream" if "stall_s" in guards else "latency-guard")
    assert said in finding.halts[0].words
    assert len(finding.outcomes) < 40
    assert all(one.ok for one in finding.outcomes)  # nothing was cut off
    ttft = next(one for one in finding.series if one.name == "ttft_s")
    assert len(ttft.samples) >= 18
