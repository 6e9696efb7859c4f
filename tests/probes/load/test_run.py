"""Load on real sockets: what servers do, right and wrong, ends as data, and every stream is read to its end."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import socket
import ssl
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from probes.endpoints.address import parse_address
from probes.errors import ProbeError
from probes.load.arrivals import Arrivals
from probes.load.outcome import Failure
from probes.load.prompts import PromptSet
from probes.load.run import Finding, Gate, doors
from probes.load.task import Guards
from probes.load.window import Phase
from tests.loading import ANSWER, DONE, STREAM_HEAD, WHOLE, answering, chunked, event, under_load
from tests.servers import free_port, greeting, hear, http, saying, silent, talking

PATIENT = Guards(timeout_s=20.0, stall_s=20.0, first_byte_s=20.0)


def failures(finding: Finding) -> set[Failure | None]:
    return {one.failure for one in finding.outcomes}


def test_closed_loop_measures_what_was_asked_and_keeps_the_load_up_until_then() -> None:
    with talking(answering(WHOLE)) as port:
        finding = under_load(port, concurrency=2, requests=6, warmup=2)
    assert finding.halts == ()
    assert len(finding.measured) == 6
    assert finding.window.phases.count(Phase.WARM_UP) >= 2
    assert failures(finding) == {None}
    assert {one.tokens for one in finding.measured} == {2}
    assert len({one.index for one in finding.outcomes}) == len(finding.outcomes)


def test_connections_are_used_again_and_connecting_is_timed_apart() -> None:
    with talking(answering(WHOLE)) as port:
        finding = under_load(port, requests=5)
    connected = [one.connect_s is not None for one in sorted(finding.outcomes, key=lambda one: one.index)]
    assert connected[0]
    assert not any(connected[1:])


def test_no_pool_bounds_how_many_are_asked_at_a_time() -> None:
    """A server that answers nobody until all 110 have asked: a client with 100 connections would wait for ever."""
    everybody = threading.Barrier(110, timeout=15.0)

    def together(connection: socket.socket) -> None:
        hear(connection)
        everybody.wait()
        connection.sendall(WHOLE)
        answering(WHOLE)(connection)

    with talking(together) as port:
        finding = under_load(port, concurrency=110, requests=110, warmup=0)
    assert len(finding.measured) == 110
    assert failures(finding) == {None}


def test_several_workers_share_the_load() -> None:
    with talking(answering(WHOLE)) as port:
        finding = under_load(port, concurrency=4, requests=12, workers=2)
    assert finding.soundness.workers == 2
    assert {one.index % 2 for one in finding.outcomes} == {0, 1}
    assert len(finding.measured) == 12


@pytest.mark.parametrize("arrivals", [Arrivals.CONSTANT, Arrivals.POISSON])
def test_open_loop_sends_when_requests_are_due(arrivals: Arrivals) -> None:
    with talking(answering(WHOLE)) as port:
        finding = under_load(port, arrivals=arrivals, rate=100.0, concurrency=8, requests=20, seed=5)
    due = sorted(one.due_ns for one in finding.outcomes)
    assert len(finding.measured) == 20
    assert all(one.sent_ns >= one.due_ns for one in finding.outcomes)
    assert all(one.start_ns == one.due_ns for one in finding.outcomes)
    if arrivals is Arrivals.CONSTANT:
        assert {later - earlier for earlier, later in itertools.pairwise(due)} == {10_000_000}


def test_open_loop_counts_the_wait_for_a_free_stream() -> None:
    """One stream, answers of 50 ms, a request every 25 ms: the third is due long before it can be sent."""

    def slow(connection: socket.socket) -> None:
        while True:
            hear(connection)
            time.sleep(0.05)
            connection.sendall(WHOLE)

    guards = Guards(timeout_s=20.0, stall_s=20.0, first_byte_s=20.0, backlog=100)
    with talking(slow) as port:
        finding = under_load(port, arrivals=Arrivals.CONSTANT, rate=40.0, concurrency=1, requests=8, guards=guards)
    last = max(finding.measured, key=lambda one: one.due_ns)
    assert last.sent_ns - last.due_ns > 100_000_000
    latency = last.answer.t_end_s
    assert latency is not None
    assert latency > 0.15
    assert "behind-schedule" in finding.reasons


def test_growing_queue_stops_an_open_loop() -> None:
    guards = Guards(timeout_s=3.0, stall_s=20.0, first_byte_s=20.0, backlog=3)
    with talking(silent) as port:
        finding = under_load(port, arrivals=Arrivals.CONSTANT, rate=100.0, concurrency=1, requests=50, guards=guards)
    assert "growing-queue" in finding.reasons
    assert len(finding.outcomes) == 1


def test_every_prompt_is_new_and_sharing_is_by_share() -> None:
    heard: list[str] = []

    def note(connection: socket.socket) -> None:
        while True:
            request = hear(connection)
            heard.append(json.loads(request.partition(b"\r\n\r\n")[2])["messages"][0]["content"])
            connection.sendall(WHOLE)

    with talking(note) as port:
        under_load(port, requests=6, at_most=8, prompts=PromptSet(shared=0.5))
    firsts = [prompt[:19] for prompt in heard]
    assert len(set(heard)) == len(heard)
    shared = [first for first in firsts if re.match(r"\[[0-9a-f]{8}\] ", first)]
    assert len(set(shared)) == 1
    assert abs(len(shared) - len(heard) / 2) <= 1


def test_key_travels_in_its_header() -> None:
    heard: list[bytes] = []

    def note(connection: socket.socket) -> None:
        heard.append(hear(connection))
        connection.sendall(WHOLE)

    with talking(note) as port:
        finding = under_load(port, requests=1, at_most=1, key="canary-key-1234")
    assert b"\r\nAuthorization: Bearer canary-key-1234\r\n" in heard[0]
    assert "canary" not in repr(finding)


@pytest.mark.parametrize(
    ("answer", "then", "failure"),
    [
        pytest.param(http("401 No", b'{"error": {"message": "bad key"}}'), "close", Failure.KEY, id="key"),
        pytest.param(http("302 Found", b"", "Location: http://elsewhere.invalid/"), "close", Failure.REDIRECT, id="redirect"),
        pytest.param(STREAM_HEAD + chunked(event({"content": "a"})), "close", Failure.LOST, id="cut"),
        pytest.param(STREAM_HEAD + chunked(event({"content": "a"})), "reset", Failure.LOST, id="reset"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + event({"content": "a"}), "close", Failure.TRUNCATED, id="no-done"),
        pytest.param(b"", "close", Failure.LOST, id="nothing"),
        pytest.param(b"220 mail ESMTP\r\n", "hold", Failure.NOT_AN_ANSWER, id="another-protocol"),
        pytest.param(
            STREAM_HEAD + chunked(event(None, error={"message": "boom"}), DONE), "close", Failure.IN_STREAM, id="error"
        ),
    ],
)
def test_run_of_errors_stops_the_load(answer: bytes, then: str, failure: Failure) -> None:
    guards = Guards(errors_in_a_row=2, timeout_s=20.0, stall_s=20.0, first_byte_s=20.0)
    with talking(saying(answer, then=then)) as port:
        finding = under_load(port, requests=50, guards=guards)
    assert failures(finding) == {failure}
    assert len(finding.outcomes) == 2
    assert finding.reasons[:1] == ("run-of-errors",)
    assert "nothing-succeeded" in finding.reasons


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_followed_nowhere_and_takes_no_key_along(status: int) -> None:
    heard: list[bytes] = []

    def elsewhere(connection: socket.socket) -> None:
        heard.append(hear(connection))
        connection.sendall(WHOLE)

    with talking(elsewhere) as other:
        moved = http(f"{status} Moved", b"", f"Location: http://127.0.0.1:{other}/v1/chat/completions?key=s3cret")
        with talking(answering(moved)) as port:
            finding = under_load(port, requests=1, at_most=1, key="s3cret-key")
    assert failures(finding) == {Failure.REDIRECT}
    assert heard == []
    assert "s3cret" not in finding.outcomes[0].words


def test_no_compression_is_asked_for() -> None:
    heard: list[bytes] = []

    def listening(connection: socket.socket) -> None:
        while True:
            heard.append(hear(connection))
            connection.sendall(WHOLE)

    with talking(listening) as port:
        under_load(port, requests=1, at_most=1)
    assert b"\r\nAccept-Encoding: identity\r\n" in heard[0]


def test_nobody_listening_is_unreachable() -> None:
    finding = under_load(free_port(), requests=50)
    assert failures(finding) == {Failure.UNREACHABLE}
    assert len(finding.outcomes) == 5


def test_unknown_name_is_told() -> None:
    with pytest.raises(ProbeError, match=r"nowhere\.invalid is not resolved"):
        doors(Gate(address=parse_address("http://nowhere.invalid:8000", "test")))


def test_head_and_chunks_may_come_in_any_pieces() -> None:
    def drip(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            hear(connection)
            for cut in range(0, len(WHOLE), 7):
                connection.sendall(WHOLE[cut : cut + 7])

    with talking(drip) as port:
        finding = under_load(port, requests=3)
    assert failures(finding) == {None}


def test_answer_that_ends_with_the_connection_is_whole() -> None:
    with talking(saying(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + ANSWER)) as port:
        finding = under_load(port, requests=3)
    assert failures(finding) == {None}
    assert all(one.connect_s is not None for one in finding.outcomes)


def test_connection_held_open_after_the_terminator_costs_no_request() -> None:
    with talking(saying(STREAM_HEAD + chunked(ANSWER), then="hold")) as port:
        finding = under_load(port, requests=1, at_most=1)
    assert failures(finding) == {None}


def test_connection_held_open_after_the_terminator_makes_no_answer_late() -> None:
    with talking(saying(STREAM_HEAD + chunked(ANSWER), then="hold")) as port:
        finding = under_load(port, requests=1, at_most=1, guards=replace(PATIENT, latency_s=0.9))
    assert finding.halts == ()


def test_answers_that_come_compressed_are_no_run_of_errors() -> None:
    head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    with talking(answering(head + chunked(gzip.compress(ANSWER)) + b"0\r\n\r\n")) as port:
        finding = under_load(port, requests=8)
    assert finding.halts == ()
    assert failures(finding) == {None}


def test_idle_connection_that_died_is_replaced_and_the_attempt_counted() -> None:
    """The server leaves without a word after one answer, at the very moment the next request is on its way."""
    left = threading.Event()

    def once(connection: socket.socket) -> None:
        hear(connection)
        connection.sendall(WHOLE)
        if not left.is_set():
            left.set()
            hear(connection)
            connection.close()
            return
        answering(WHOLE)(connection)

    with talking(once) as port:
        finding = under_load(port, requests=4)
    assert failures(finding) == {None}
    assert sorted(one.attempts for one in finding.measured) == [1, 1, 1, 2]


def test_server_that_turns_away_is_asked_again_and_the_latency_counts_from_the_first_time() -> None:
    busy = http("503 Busy", b"", "Retry-After: 0.2")
    with talking(answering(busy, WHOLE)) as port:
        finding = under_load(port, requests=1, at_most=1, retries=2)
        alone = under_load(port, requests=1, at_most=1)
    (one,) = finding.outcomes
    assert (one.failure, one.attempts) == (None, 2)
    latency = one.answer.t_end_s
    assert latency is not None
    assert latency > 0.2
    assert failures(alone) == {Failure.BUSY}


def test_stalled_stream_stops_the_run_and_is_read_to_its_deadline() -> None:
    guards = Guards(timeout_s=2.0, stall_s=0.5, first_byte_s=20.0)
    with talking(saying(STREAM_HEAD + chunked(event({"content": "a"})), then="hold")) as port:
        finding = under_load(port, requests=50, guards=guards)
    assert finding.reasons[0] == "stalled-stream"
    assert [(one.failure, one.stalled) for one in finding.outcomes] == [(Failure.TIMED_OUT, True)]


def test_answer_that_does_not_begin_stops_the_run() -> None:
    guards = Guards(timeout_s=2.0, stall_s=20.0, first_byte_s=0.5)
    with talking(silent) as port:
        finding = under_load(port, requests=50, guards=guards)
    assert finding.reasons[0] == "latency-guard"
    assert failures(finding) == {Failure.TIMED_OUT}


def test_service_that_dies_keeps_what_was_measured() -> None:
    gone = threading.Event()
    count = [0]

    def mortal(connection: socket.socket) -> None:
        while not gone.is_set():
            hear(connection)
            count[0] += 1
            if count[0] > 6:
                gone.set()
                connection.sendall(STREAM_HEAD + chunked(event({"content": "a"})))
                break
            connection.sendall(WHOLE)
        connection.close()

    with talking(mortal) as port:
        finding = under_load(port, requests=500)
    assert "run-of-errors" in finding.reasons
    assert sum(one.ok for one in finding.measured) == 6
    ttft = next(one for one in finding.series if one.name == "ttft_s")
    assert len(ttft.samples) == 6


def test_time_ends_a_run_and_what_overlaps_its_edges_is_left_out() -> None:
    with talking(answering(WHOLE)) as port:
        finding = under_load(port, requests=None, duration_s=1.2, warmup_s=0.4, cooldown_s=0.4)
    assert finding.halts == ()
    began, stopped = finding.course.began_ns, finding.course.stopped_ns
    assert finding.measured
    assert all(one.start_ns >= began + 400_000_000 for one in finding.measured)
    assert all(one.end_ns <= stopped - 400_000_000 for one in finding.measured)
    assert {Phase.WARM_UP, Phase.COOL_DOWN} <= set(finding.window.phases)


def test_tls_is_spoken_and_its_certificate_checked(certificate: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with talking(answering(WHOLE), tls=server) as port:
        trusted = under_load(port, scheme="https", ca_file=str(certificate), requests=4)
        untrusted = under_load(port, scheme="https", requests=4)
    assert failures(trusted) == {None}
    assert len(trusted.measured) == 4
    assert failures(untrusted) == {Failure.TLS}


def test_plain_http_on_a_tls_port_is_told() -> None:
    with talking(greeting(http("400 Bad Request"))) as port:
        finding = under_load(port, scheme="https", requests=4)
    assert failures(finding) == {Failure.TLS}
    assert finding.reasons == ("nothing-succeeded",)
