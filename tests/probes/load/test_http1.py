"""An answer is framed by its head alone, whatever the boundaries of the reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.load.http1 import Dechunker, Head, NotHttpError, backoff_s, could_be_http, may_end, read_head

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(*pieces: bytes, trailer: bytes = b"") -> bytes:
    return b"".join(b"%X\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailer + b"\r\n"


def test_head_is_read_once_it_is_whole() -> None:
    for cut in range(len(CHUNKED)):
        assert read_head(CHUNKED[:cut]) is None
    head = read_head(CHUNKED + b"rest")
    assert head == Head(
        status=200, headers={"content-type": "text/event-stream", "transfer-encoding": "chunked"}, size=len(CHUNKED)
    )
    assert (head.chunked, head.length, head.keeps_open) == (True, None, True)


@pytest.mark.parametrize(
    ("headers", "length", "keeps_open"),
    [
        ("Content-Length: 12", 12, True),
        ("content-length:12\r\nConnection: close", 12, False),
        ("Content-Length: 12\r\nTransfer-Encoding: chunked", None, True),
        ("Content-Length: twelve", None, False),
        ("Connection: keep-alive", None, False),
    ],
)
def test_framing_follows_the_head(headers: str, length: int | None, keeps_open: bool) -> None:
    head = read_head(f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode())
    assert head is not None
    assert (head.length, head.keeps_open) == (length, keeps_open)


@pytest.mark.parametrize(
    ("header", "encoding"), [("A: b", ""), ("Content-Encoding: identity", ""), ("content-encoding:  GZip ", "gzip")]
)
def test_compression_is_named(header: str, encoding: str) -> None:
    head = read_head(f"HTTP/1.1 200 OK\r\n{header}\r\n\r\n".encode())
    assert head is not None
    assert head.encoding == encoding


def test_interim_answers_are_passed_over() -> None:
    head = read_head(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 2\r\n\r\n")
    assert head is not None
    assert (head.status, head.headers) == (503, {"retry-after": "2"})


@pytest.mark.parametrize("heard", [b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail ESMTP\r\n", b"\x15\x03\x01", b"HTTP/2 200\r\n\r\n"])
def test_another_protocol_is_told(heard: bytes) -> None:
    with pytest.raises(NotHttpError):
        read_head(heard)


def test_head_without_end_is_given_up() -> None:
    with pytest.raises(NotHttpError):
        read_head(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**17)


def test_first_bytes_decide() -> None:
    assert could_be_http(b"")
    assert could_be_http(b"HT")
    assert not could_be_http(b"HX")


@given(pieces=st.lists(st.binary(min_size=1, max_size=40), max_size=8), size=st.integers(1, 30))
def test_any_cut_gives_the_same_body(pieces: list[bytes], size: int) -> None:
    raw = chunked(*pieces)
    dechunker = Dechunker()
    body = b"".join(dechunker.feed(raw[n : n + size]) for n in range(0, len(raw), size))
    assert (body, dechunker.whole) == (b"".join(pieces), True)


def test_body_may_contain_the_bytes_that_end_one() -> None:
    raw = bytearray(b'15\r\ndata: {"n": 10}0\r\n\r\n')
    dechunker = Dechunker()
    dechunker.feed(bytes(raw))
    assert may_end(raw)
    assert not dechunker.whole


def test_extensions_and_trailers_are_no_body() -> None:
    dechunker = Dechunker()
    assert dechunker.feed(b"5;name=value\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n") == b"hello"
    assert dechunker.whole


@pytest.mark.parametrize("raw", [b"xyz\r\n", b"5\r\nhelloworld\r\n", b"-5\r\n", b"\r\n", b"5" * 70000])
def test_broken_chunks_are_told(raw: bytes) -> None:
    with pytest.raises(NotHttpError):
        Dechunker().feed(raw)


@pytest.mark.parametrize(
    ("asked", "attempts", "seconds"),
    [
        ("3", 1, 3.0),
        ("", 1, 0.5),
        ("", 3, 2.0),
        ("soon", 2, 1.0),
        ("-1", 1, 0.1),
        ("99999", 1, 30.0),
        ("inf", 1, 30.0),
        ("nan", 1, 30.0),
    ],
)
def test_server_that_turns_away_is_asked_again_within_bounds(asked: str, attempts: int, seconds: float) -> None:
    assert backoff_s(Head(status=503, headers={"retry-after": asked}, size=0), attempts) == seconds
