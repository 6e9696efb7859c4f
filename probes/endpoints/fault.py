"""Why an exchange failed, in one line: every foreign exception of the wire ends here."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urljoin, urlsplit

import httpcore
import httpx

from probes.load.untrusted import one_line

_LOGIN = re.compile(r"(?:^|[/._-])(?:log-?in|sign-?in|sso|oauth2?|auth|saml2?|openid)(?:$|[/._?-])", re.IGNORECASE)
_BANNER_BYTES = 1000


class FaultKind(StrEnum):
    """What kept an answer from coming, or from coming whole."""

    NAME = "name not resolved"
    REFUSED = "connection refused"
    UNREACHABLE = "no route or no connection"
    TLS = "TLS failed"
    SILENT = "no answer"
    CLOSED = "closed without an answer"
    LOST = "connection lost"
    NOT_HTTP = "another protocol"
    REDIRECT = "redirects elsewhere"
    LOGIN = "redirects to a login page"
    TOO_LARGE = "too large"
    DEADLINE = "deadline passed"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A failed exchange. `words` are one line; untrusted text in them is not yet redacted."""

    kind: FaultKind
    words: str


class NotHttpError(httpcore.RemoteProtocolError):
    """The first bytes of a connection are not those of an HTTP answer."""

    def __init__(self, heard: bytes) -> None:
        self.heard = heard
        super().__init__("not HTTP")


def fault_of(exc: BaseException) -> Fault:
    """Name class and message of the innermost cause; httpx and anyio wrap it in up to four others.

    Addresses stay out: the text of a refused connection repeats the IP address and is not used.
    """
    causes = list(_causes(exc))
    for cause in reversed(causes):
        name = type(cause).__name__
        if isinstance(cause, NotHttpError):
            return Fault(kind=FaultKind.NOT_HTTP, words=_banner(cause.heard))
        if isinstance(cause, ssl.SSLCertVerificationError):
            hint = "trust its authority with ca_file, or accept the risk with insecure_tls"
            return Fault(kind=FaultKind.TLS, words=f"{name}: {cause.verify_message}; {hint}")
        if isinstance(cause, ssl.SSLError):
            hint = "; the port does not speak TLS" if "WRONG_VERSION" in str(cause.reason) else ""
            return Fault(kind=FaultKind.TLS, words=f"{name}: {cause.reason or 'handshake failed'}{hint}")
        if isinstance(cause, socket.gaierror | UnicodeError):
            words = cause.strerror if isinstance(cause, socket.gaierror) else "not a host name"
            return Fault(kind=FaultKind.NAME, words=f"{name}: {words}")
        if isinstance(cause, OSError) and cause.errno:
            return Fault(kind=_kind_of(cause), words=f"{name}: {os.strerror(cause.errno)}")
    return _of_library(exc)


def redirect_fault(url: str, location: str) -> Fault:
    """Say where a redirect leads without its query, which may carry tokens."""
    target = urlsplit(urljoin(url, location))
    where = f"{target.netloc.rpartition('@')[2]}{target.path}"
    if _LOGIN.search(target.path) or _LOGIN.search(target.hostname or ""):
        return Fault(kind=FaultKind.LOGIN, words=f"redirects to the login page {where}")
    return Fault(
        kind=FaultKind.REDIRECT, words=f"redirects to {where}, which is not followed; name that address if it is meant"
    )


def _kind_of(cause: OSError) -> FaultKind:
    if isinstance(cause, ConnectionRefusedError):
        return FaultKind.REFUSED
    if isinstance(cause, ConnectionResetError | BrokenPipeError):
        return FaultKind.LOST
    return FaultKind.UNREACHABLE


def _of_library(exc: BaseException) -> Fault:
    message = one_line(str(exc))
    words = f"{type(exc).__name__}: {message}" if message else type(exc).__name__
    if isinstance(exc, httpx.RemoteProtocolError):
        if "without sending a response" in message:
            return Fault(kind=FaultKind.CLOSED, words="the connection was closed without an answer")
        if "peer closed connection" in message:
            return Fault(kind=FaultKind.LOST, words="the connection was closed in the middle of the answer")
        return Fault(kind=FaultKind.NOT_HTTP, words=words)
    if isinstance(exc, httpx.TimeoutException):
        return Fault(kind=FaultKind.SILENT, words=words)
    if isinstance(exc, httpx.ReadError | httpx.WriteError | httpx.CloseError):
        return Fault(kind=FaultKind.LOST, words=words)
    return Fault(kind=FaultKind.UNREACHABLE, words=words)


def _banner(heard: bytes) -> str:
    if heard[:1] in {b"\x15", b"\x16"}:
        return "the port speaks TLS; write https:// in its address"
    text = one_line(heard[:_BANNER_BYTES].decode("latin-1").encode("ascii", "replace").decode())
    return f"the port speaks another protocol; it says {text!r}"


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Walk from the outermost exception to the innermost; of a group, the first."""
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        group = current.exceptions[0] if isinstance(current, BaseExceptionGroup) else None
        current = group or current.__cause__ or current.__context__
