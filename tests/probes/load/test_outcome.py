"""Bytes off the wire become an answer with its times, or a failure of the right class."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.load import spool
from probes.load.answer import Ending, FirstToken
from probes.load.arriving import looks_answered
from probes.load.outcome import Failure
from probes.load.spool import End
from tests.loading import ANSWER, DONE, MS, STREAM_HEAD, WHOLE, chunked, event, exchange, outcome, stream, usage

FALSY: list[Any] = [None, {}, "", False, 0, []]


def plain(status: str, body: bytes, kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def error(words: str) -> bytes:
    return json.dumps({"error": {"message": words}}).encode()


def test_times_count_from_the_request_and_not_from_its_head() -> None:
    one = outcome(
        STREAM_HEAD, chunked(event({"role": "assistant"})), chunked(event({"content": "a"})), chunked(DONE) + b"0\r\n\r\n"
    )
    assert one.ok
    assert one.answer.t_first_event_s == pytest.approx(0.110)
    assert one.answer.ttft_s(FirstToken.FIRST_OUTPUT) == pytest.approx(0.120)
    assert one.answer.t_end_s == pytest.approx(0.130)
    assert one.end_ns == 230 * MS


def test_open_loop_counts_from_the_time_a_request_was_due() -> None:
    one = outcome(WHOLE, from_due=True)
    assert one.answer.t_first_output_s == pytest.approx(0.2)
    assert outcome(WHOLE).answer.t_first_output_s == pytest.approx(0.1)


@given(size=st.integers(1, 60))
def test_any_cut_of_the_reads_gives_the_same_answer(size: int) -> None:
    pieces = [WHOLE[n : n + size] for n in range(0, len(WHOLE), size)]
    one = outcome(*pieces)
    assert one.ok
    assert (one.tokens, len(one.answer.arrivals_s), one.answer.finish_reason) == (2, 2, "stop")


def test_compressed_stream_is_read_and_marked() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
    one = outcome(head, gzip.compress(ANSWER), end=End.CLOSED)
    assert one.ok
    assert one.compressed
    assert not outcome(WHOLE).compressed


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br"])
def test_compression_that_nobody_here_undoes_is_named(encoding: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
    one = outcome(head, b"\x1b\x10\x00\xf8", end=End.CLOSED)
    assert (one.failure, one.words) == (
        Failure.NOT_AN_ANSWER,
        f"the answer is compressed ({encoding}), which was not asked for",
    )


@pytest.mark.parametrize(
    ("location", "words"),
    [
        (
            "http://user:s3cret@other.example:81/v1?key=s3cret",
            "HTTP 307: redirects to other.example:81/v1, which is not followed",
        ),
        ("/login?next=s3cret", "HTTP 307: redirects to the login page /login"),
        ("http://[::1", "HTTP 307: redirects to an address that is none"),
    ],
)
def test_redirect_says_where_it_leads_and_repeats_no_secret(location: str, words: str) -> None:
    one = outcome(f"HTTP/1.1 307 Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
    assert (one.failure, one.words.startswith(words)) == (Failure.REDIRECT, True)
    assert "s3cret" not in one.words


def test_answer_in_one_piece_has_an_end_and_no_first_token() -> None:
    body = {"choices": [{"message": {"content": "sea"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}
    one = outcome(plain("200 OK", json.dumps(body).encode()))
    assert one.ok
    assert (one.answer.streamed, one.answer.ttft_s(FirstToken.FIRST_OUTPUT), one.tokens) == (False, None, 1)


@pytest.mark.parametrize(
    ("reads", "end", "failure"),
    [
        pytest.param([], End.UNREACHABLE, Failure.UNREACHABLE, id="refused"),
        pytest.param([], End.TLS, Failure.TLS, id="tls"),
        pytest.param([], End.LOST, Failure.LOST, id="closed-without-an-answer"),
        pytest.param([], End.TIMED_OUT, Failure.TIMED_OUT, id="silent"),
        pytest.param([b"SSH-2.0-x\r\n"], End.NOT_HTTP, Failure.NOT_AN_ANSWER, id="another-protocol"),
        pytest.param([plain("401 No", error("bad key"))], End.WHOLE, Failure.KEY, id="key"),
        pytest.param([plain("404 No", error("no such model"))], End.WHOLE, Failure.NOT_FOUND, id="model"),
        pytest.param([plain("400 No", error("bad field"))], End.WHOLE, Failure.REFUSED, id="refused-request"),
        pytest.param([plain("429 No", error("slow down"))], End.WHOLE, Failure.BUSY, id="rate-limit"),
        pytest.param([plain("503 No", b"", "text/plain")], End.WHOLE, Failure.BUSY, id="unavailable"),
        pytest.param([plain("500 No", error("boom"))], End.WHOLE, Failure.SERVER, id="server-error"),
        pytest.param([plain("500 No", error("CUDA out of memory"))], End.WHOLE, Failure.OUT_OF_MEMORY, id="oom"),
        pytest.param([plain("302 Found", b"")], End.WHOLE, Failure.REDIRECT, id="redirect"),
        pytest.param([plain("200 OK", b"<html>login", "text/html")], End.WHOLE, Failure.NOT_AN_ANSWER, id="login-page"),
        pytest.param([plain("200 OK", b'{"hello": 1}')], End.WHOLE, Failure.NOT_AN_ANSWER, id="other-json"),
        pytest.param(stream(event({"content": "a"})), End.CLOSED, Failure.TRUNCATED, id="polite-end-without-done"),
        pytest.param([STREAM_HEAD, chunked(event({"content": "a"}))], End.CLOSED, Failure.LOST, id="cut-in-chunked"),
        pytest.param([STREAM_HEAD, chunked(event({"content": "a"}))], End.TIMED_OUT, Failure.TIMED_OUT, id="stuck"),
        pytest.param([STREAM_HEAD, chunked(event({"content": "a"}))], End.TOO_LARGE, Failure.TOO_LARGE, id="too-large"),
        pytest.param([STREAM_HEAD, b"zz\r\n"], End.WHOLE, Failure.IN_STREAM, id="broken-chunk"),
        pytest.param(
            stream(event({"content": "a"}), b'data: {"error": {"message": "engine died"}}\n\n', DONE),
            End.CLOSED,
            Failure.IN_STREAM,
            id="error-inside-a-200",
        ),
        pytest.param(
            stream(b'data: {"error": {"message": "CL_OUT_OF_RESOURCES"}}\n\n', DONE),
            End.CLOSED,
            Failure.OUT_OF_MEMORY,
            id="oom-inside-a-200",
        ),
    ],
)
def test_failures_have_their_class(reads: list[bytes], end: End, failure: Failure) -> None:
    one = outcome(*reads, end=end)
    assert one.failure is failure
    assert one.answer.ending is not Ending.COMPLETE


@pytest.mark.parametrize(
    ("body", "good"),
    [
        pytest.param(ANSWER, True, id="whole"),
        pytest.param(ANSWER + b": bye\n\n", True, id="comment-at-the-end"),
        *(
            pytest.param(event({"content": "ok"}, error=nothing) + DONE, True, id=f"falsy-{json.dumps(nothing)}")
            for nothing in FALSY
        ),
        pytest.param(event({"content": '{"error": {"message": "x"}}'}) + DONE, True, id="text-about-errors"),
        pytest.param(event({"content": "a"}, error={"message": "x"}) + DONE, False, id="error-in-a-chunk"),
        pytest.param(event({"content": "a"}) + b'data: {"error": "boom"}\n\n' + DONE, False, id="error-as-text"),
        pytest.param(event({"content": "a"}) + b'data: {"object": "error"}\n\n' + DONE, False, id="object-error"),
        pytest.param(event({"content": "a"}) + b"event: error\ndata: busy\n\n" + DONE, False, id="named-error"),
        pytest.param(event({"content": "a"}, "error") + DONE, False, id="given-up"),
        pytest.param(b'data: {"detail": "dead"}\n\n' + DONE, False, id="no-choice"),
        pytest.param(event({"content": "the end is [DONE]"}), False, id="text-like-a-terminator"),
        pytest.param(ANSWER.replace(b"\n", b"\r"), True, id="carriage-returns"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_a_worker_counts_as_failed_in_a_row_what_is_read_as_failed_later(body: bytes, good: bool) -> None:
    raw = STREAM_HEAD.replace(b"Transfer-Encoding: chunked\r\n", b"") + body
    assert looks_answered(raw) is good
    assert outcome(raw, end=End.CLOSED).ok is good


def test_no_depth_of_an_error_ends_a_worker() -> None:
    assert not looks_answered(STREAM_HEAD + chunked(ANSWER + b'data: {"error": ' + b"[" * 100_000 + b"\n\n"))


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream", "text/event-stream;charset=x"])
@pytest.mark.parametrize("before", [b"", b": hello\n\n", b"\xef\xbb\xbf", b"event: message\n"])
def test_stream_is_read_whatever_it_is_called(kind: str, before: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    one = outcome(
        head, *(chunked(piece) for piece in (before + event({"content": "a"}), usage(1) + DONE) if piece), b"0\r\n\r\n"
    )
    assert one.ok
    assert one.tokens == 1
    assert one.answer.t_first_output_s == pytest.approx(0.110)


def test_words_of_the_server_are_kept() -> None:
    assert outcome(plain("404 No", error("model 'x' not found"))).words == "HTTP 404: model 'x' not found"


def test_connection_held_open_after_the_end_fails_nothing() -> None:
    one = outcome(*stream(ANSWER), end=End.CLOSED, words="kept open after its end", end_ns=5000 * MS)
    assert one.ok
    assert one.end_ns == 210 * MS


@given(data=st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for head in (b"", STREAM_HEAD, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"):
        for end in End:
            outcome(head + data, end=end)


def test_spool_gives_back_what_was_put_in(tmp_path: Path) -> None:
    path = tmp_path / "0.spool"
    kept = [exchange(WHOLE, index=1), exchange(index=2, end=End.UNREACHABLE, words="Verbindung verweigert ✗", connect_ns=-1)]
    with path.open("wb") as file:
        for one in kept:
            spool.write(file, one)
    assert list(spool.read(path)) == kept
    for cut in (1, 40, path.stat().st_size // 2):
        path.with_suffix(".cut").write_bytes(path.read_bytes()[:-cut])
        assert list(spool.read(path.with_suffix(".cut"))) in ([], kept[:1])


def test_reads_are_cut_where_they_came(tmp_path: Path) -> None:
    reads: list[Any] = [b"ab", b"c", b"def"]
    assert [piece for piece, _ in exchange(*reads).reads()] == reads
