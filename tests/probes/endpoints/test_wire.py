"""Whatever is at the other end, the wire comes back in time with an answer or one line that says why not."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from probes.endpoints.address import parse_address
from probes.endpoints.fault import Fault, FaultKind
from probes.endpoints.wire import MAX_BODY_BYTES, Reply, Wire, tls_context
from probes.errors import InputError
from tests.captures import reply
from tests.servers import free_port, greeting, hear, http, saying, silent, talking

T = TypeVar("T")
KEY = "sk-canary-0123456789"


def using(url: str, do: Callable[[Wire], Coroutine[Any, Any, T]], **options: Any) -> T:
    async def run() -> T:
        async with Wire(parse_address(url, "url"), **options) as wire:
            return await do(wire)

    return asyncio.run(run())


def get(url: str, path: str = "/x", *, within_s: float = 10, **options: Any) -> Reply | Fault:
    return using(url, lambda wire: wire.get(path, within_s=within_s), **options)


def fault(url: str, **options: Any) -> Fault:
    outcome = get(url, **options)
    assert isinstance(outcome, Fault), outcome
    return outcome


def answer(url: str, **options: Any) -> Reply:
    outcome = get(url, **options)
    assert isinstance(outcome, Reply), outcome
    return outcome


def mocked(handler: Callable[[httpx.Request], httpx.Response]) -> dict[str, Any]:
    return {"transport": httpx.MockTransport(handler)}


def test_body_comes_whole_with_its_status() -> None:
    with talking(saying(http("200 OK", b'{"a": 1}', "Content-Type: application/json; charset=utf-8", "Server: x"))) as port:
        got = answer(f"http://127.0.0.1:{port}")
    assert (got.status, got.document, got.content_type, got.server, got.whole) == (200, {"a": 1}, "application/json", "x", True)
    assert got.connect_s is not None


def test_refused_connection_names_class_and_reason_and_no_address() -> None:
    assert fault(f"http://127.0.0.1:{free_port()}") == Fault(
        kind=FaultKind.REFUSED, words="ConnectionRefusedError: Connection refused"
    )


def test_name_that_does_not_resolve() -> None:
    got = fault("http://no-such-host.invalid")
    assert got.kind is FaultKind.NAME
    assert got.words.startswith("gaierror: ")


@pytest.mark.parametrize("banner", [b"SSH-2.0-OpenSSH_9.2p1\r\n", b"220 mail.example ESMTP\r\n", b"+OK\r\n", b"\x00\x01binary"])
def test_another_protocol_is_noticed_by_its_first_bytes(banner: bytes) -> None:
    with talking(greeting(banner)) as port:
        got = fault(f"http://127.0.0.1:{port}", within_s=60)
    assert got.kind is FaultKind.NOT_HTTP
    assert got.words.startswith("the port speaks another protocol; it says ")


def test_tls_port_asked_without_tls_is_told() -> None:
    with talking(saying(b"\x15\x03\x01\x00\x02\x02\x46")) as port:
        assert "write https://" in fault(f"http://127.0.0.1:{port}").words


def test_plain_port_asked_with_tls_is_told() -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(http("400 Bad Request"))

    with talking(refuse) as port:
        got = fault(f"https://127.0.0.1:{port}", tls=tls_context("x", ca_file=None, insecure=False))
    assert got == Fault(kind=FaultKind.TLS, words="SSLError: WRONG_VERSION_NUMBER; the port does not speak TLS")


def test_handshake_that_hangs_ends_at_the_deadline_and_leaves_no_socket() -> None:
    def ignore(connection: socket.socket) -> None:
        connection.recv(65536)

    with talking(ignore) as port:
        got = fault(f"https://127.0.0.1:{port}", tls=tls_context("x", ca_file=None, insecure=False), within_s=0.3)
    assert got.kind is FaultKind.SILENT


def test_silence_ends_at_the_deadline() -> None:
    with talking(silent) as port:
        got = fault(f"http://127.0.0.1:{port}", within_s=0.3)
    assert got == Fault(kind=FaultKind.SILENT, words="accepted the connection and sent nothing for 0.3 s")


def test_dripping_bytes_do_not_extend_the_deadline() -> None:
    def drip(connection: socket.socket) -> None:
        hear(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b".")
            time.sleep(0.05)

    with talking(drip) as port:
        got = fault(f"http://127.0.0.1:{port}", within_s=1.5)
    assert got.kind is FaultKind.DEADLINE


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (saying(), FaultKind.CLOSED),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), FaultKind.LOST),
        (saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha"), FaultKind.LOST),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", then="reset"), FaultKind.LOST),
        (saying(b"HTTP/1.1 nonsense\r\n\r\n"), FaultKind.NOT_HTTP),
        (saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), FaultKind.NOT_HTTP),
    ],
)
def test_broken_answers_are_told_apart(script: Callable[[socket.socket], None], kind: FaultKind) -> None:
    with talking(script) as port:
        assert fault(f"http://127.0.0.1:{port}").kind is kind


def test_body_that_http_does_not_frame_is_marked() -> None:
    with talking(saying(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx 1\ny")) as port:
        got = answer(f"http://127.0.0.1:{port}")
    assert (got.body, got.whole) == (b"x 1\ny", False)


def test_endless_body_is_given_up() -> None:
    def pour(connection: socket.socket) -> None:
        hear(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with talking(pour) as port:
        got = fault(f"http://127.0.0.1:{port}", within_s=60)
    assert got == Fault(kind=FaultKind.TOO_LARGE, words=f"the answer is over {MAX_BODY_BYTES} bytes")


def test_compression_is_not_asked_for_undone_and_noted() -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["accept-encoding"])
        return reply(200, gzip.compress(b'{"a": 1}'), content_encoding="gzip")

    got = answer("http://h", **mocked(handler))
    assert (got.document, got.encoding, asked) == ({"a": 1}, "gzip", ["identity"])


def test_compressed_flood_is_bounded() -> None:
    bomb = gzip.compress(bytes(20 * 2**20))
    got = fault("http://h", **mocked(lambda _request: reply(200, bomb, content_encoding="gzip")))
    assert got.kind is FaultKind.TOO_LARGE


@pytest.mark.parametrize("headers", [{"content_encoding": "br"}, {"content_encoding": "gzip"}])
def test_compression_that_cannot_be_undone_is_a_fault(headers: dict[str, str]) -> None:
    assert isinstance(get("http://h", **mocked(lambda _request: reply(200, b"not gzip", **headers))), Fault)


def test_redirect_of_the_same_origin_is_followed() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return reply(200, b"{}") if request.url.path == "/y" else reply(307, location="/y")

    assert answer("http://h", **mocked(handler)).status == 200


@pytest.mark.parametrize(
    ("location", "kind", "words"),
    [
        ("http://other.example/x?token=s3cret", FaultKind.REDIRECT, "redirects to other.example/x, which is not followed"),
        ("https://h/x", FaultKind.REDIRECT, "redirects to h/x, which is not followed"),
        ("http://h:81/x", FaultKind.REDIRECT, "redirects to h:81/x, which is not followed"),
        ("//user:s3cret@other.example/x", FaultKind.REDIRECT, "redirects to other.example/x, which is not followed"),
        ("/login?next=%2Fx", FaultKind.LOGIN, "redirects to the login page h/login"),
        ("https://sso.example/realms/a", FaultKind.LOGIN, "redirects to the login page sso.example/realms/a"),
        ("/x", FaultKind.REDIRECT, "redirects more than 3 times"),
    ],
)
def test_redirect_elsewhere_is_told_and_not_followed(location: str, kind: FaultKind, words: str) -> None:
    hosts: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.netloc.decode())
        return reply(302, location=location)

    got = fault("http://h", key=KEY, **mocked(handler))
    assert got.kind is kind
    assert got.words.startswith(words)
    assert "s3cret" not in got.words
    assert set(hosts) == {"h"}


def test_post_follows_no_redirect() -> None:
    def handler(_request: httpx.Request) -> httpx.Response:
        return reply(307, location="/y")

    got = using("http://h", lambda w: w.post("/x", {}, within_s=5, take=lambda _r, _a: False), **mocked(handler))
    assert isinstance(got, Fault)
    assert got.kind is FaultKind.REDIRECT


def test_key_is_in_the_authorization_header_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        heard.append(hear(connection))
        connection.sendall(http("500 Oops", KEY.encode()))

    with caplog.at_level(logging.DEBUG), talking(listen) as port:
        answer(f"http://127.0.0.1:{port}", key=KEY)
    (request,) = heard
    assert request.count(KEY.encode()) == 1
    assert f"authorization: bearer {KEY}".encode() in request.lower()
    assert KEY not in " ".join(record.getMessage() for record in caplog.records if record.name.startswith("probes"))


@pytest.mark.parametrize(
    "environment",
    [
        {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1", "NO_PROXY": "localhost"},
        {"NO_PROXY": "[::1]"},
        {"NO_PROXY": "fe80::/10"},
        {"ALL_PROXY": "socks5://h:1"},
        {"SSL_CERT_FILE": "/nonexistent"},
    ],
)
def test_environment_neither_diverts_nor_breaks_a_request(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with talking(saying(http("200 OK", b"{}"))) as port:
        assert answer(f"http://127.0.0.1:{port}").status == 200


def test_each_read_has_the_time_of_its_arrival_and_chunks_of_one_read_share_it() -> None:
    def stream(connection: socket.socket) -> None:
        hear(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        time.sleep(0.1)
        connection.sendall(b"1\r\na\r\n1\r\nb\r\n")
        time.sleep(0.1)
        connection.sendall(b"1\r\nc\r\n0\r\n\r\n")

    reads: list[tuple[bytes, float]] = []

    def take(read: bytes, at_s: float) -> bool:
        reads.append((read, at_s))
        return False

    with talking(stream) as port:
        using(f"http://127.0.0.1:{port}", lambda wire: wire.post("/x", {}, within_s=60, take=take))
    times = dict(reads)
    assert times[b"a"] == times[b"b"]
    assert 0 < times[b"a"] < times[b"c"]


def test_connection_that_stays_open_after_the_answer_is_left_after_the_grace_time() -> None:
    with talking(saying(b"HTTP/1.1 200 OK\r\n\r\ndata: [DONE]\n\n", then="hold")) as port:
        got = using(
            f"http://127.0.0.1:{port}",
            lambda wire: wire.post("/x", {}, within_s=600, take=lambda read, _at_s: b"[DONE]" in read, grace_s=0.1),
        )
    assert isinstance(got, Reply)
    assert (got.cut, got.body) == (None, b"data: [DONE]\n\n")


@pytest.fixture
def served(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


def test_self_signed_certificate_is_told_with_what_to_do(served: ssl.SSLContext) -> None:
    with talking(saying(http("200 OK")), tls=served) as port:
        got = fault(f"https://127.0.0.1:{port}", tls=tls_context("x", ca_file=None, insecure=False))
    assert got.kind is FaultKind.TLS
    assert got.words.startswith("SSLCertVerificationError: self")
    assert got.words.endswith("trust its authority with ca_file, or accept the risk with insecure_tls")


def test_certificate_of_a_named_authority_and_unverified_tls_are_accepted(served: ssl.SSLContext, certificate: Path) -> None:
    with talking(saying(http("200 OK")), tls=served) as port:
        for options in ({"ca_file": certificate, "insecure": False}, {"ca_file": None, "insecure": True}):
            assert answer(f"https://127.0.0.1:{port}", tls=tls_context("x", **options)).status == 200


def test_authority_that_is_no_file_of_certificates_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("hello")
    for name in ("ca.pem", "absent.pem"):
        with pytest.raises(InputError, match=r"^text-8b: ca_file: cannot be used \(.*\); expected a file of PEM certificates$"):
            tls_context("text-8b: ca_file", ca_file=tmp_path / name, insecure=False)
