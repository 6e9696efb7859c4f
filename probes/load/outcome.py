"""What one exchange amounts to: an answer with its times, or a failure of a class."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from probes.endpoints.fault import redirect_fault
from probes.load.answer import Answer, Ending
from probes.load.http1 import Dechunker, Head, NotHttpError, read_head
from probes.load.spool import UNCONNECTED, End, Exchange
from probes.load.stream import Decoder, decode_whole
from probes.load.untrusted import error_words, one_line, parse_json

_MAX_PIECE_BYTES = 4 * 2**20
_WORDS_CHARACTERS = 300
_NS = 1e9
# A proxy may call a stream JSON, because the request asked for that.
_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
_INFLATED = frozenset({"gzip", "x-gzip", "deflate"})


class Failure(StrEnum):
    """Why a request failed, by what an operator would look at."""

    UNREACHABLE = "unreachable"
    TLS = "tls failed"
    KEY = "key refused"
    NOT_FOUND = "not found"
    BUSY = "turned away (429 or 503)"
    REFUSED = "request refused (4xx)"
    SERVER = "server error (5xx)"
    REDIRECT = "redirected"
    OUT_OF_MEMORY = "out of memory"
    IN_STREAM = "error inside the stream"
    TRUNCATED = "cut off"
    LOST = "connection lost"
    TIMED_OUT = "timed out"
    TOO_LARGE = "too large"
    NOT_AN_ANSWER = "not an answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One request, read. Times in `answer` count from `start_ns`: in an open loop when it was due, else when it was sent.

    `failure` None means that the answer is whole. `connect_s` None means that an open connection was used. `counted` are
    the tokens of its text by a tokenizer of our own; `by_tokenizer` says that they stand for the server's count, for all
    requests of a run or for none.
    """

    index: int
    due_ns: int
    sent_ns: int
    start_ns: int
    end_ns: int
    attempts: int
    status: int | None
    connect_s: float | None
    stalled: bool
    compressed: bool
    answer: Answer
    failure: Failure | None
    counted: int | None = None
    by_tokenizer: bool = False

    @property
    def ok(self) -> bool:
        """Tell whether it may count for anything but the error rate."""
        return self.failure is None

    @property
    def tokens(self) -> int | None:
        """Tokens by the count that the run goes by: the server's, unless there is none or it cannot be."""
        return self.counted if self.by_tokenizer else self.usage_tokens

    @property
    def usage_tokens(self) -> int | None:
        """Tokens by the server's count, unless there is none or it cannot be."""
        usage = self.answer.usage
        return None if usage is None or usage.doubt else usage.completion_tokens

    @property
    def words(self) -> str:
        """Say what went wrong, in the server's words where it had any."""
        return self.answer.words[:_WORDS_CHARACTERS]


def read(exchange: Exchange, *, from_due: bool, max_tokens: int, texts: bool = False) -> Outcome:
    """Read an exchange that is over; nothing a server sent raises here. Texts are dropped: a run has thousands."""
    start_ns = exchange.due_ns if from_due else exchange.sent_ns
    head, answer = _answer(exchange, start_ns, max_tokens)
    whole = answer.ending is Ending.COMPLETE
    return Outcome(
        index=exchange.index,
        due_ns=exchange.due_ns,
        sent_ns=exchange.sent_ns,
        start_ns=start_ns,
        end_ns=exchange.end_ns if answer.t_end_s is None or not whole else start_ns + round(answer.t_end_s * _NS),
        attempts=exchange.attempts,
        status=head.status if head else None,
        connect_s=None if exchange.connect_ns == UNCONNECTED else exchange.connect_ns / _NS,
        stalled=exchange.stalled,
        compressed=bool(head and head.encoding),
        answer=answer if texts else without_texts(answer),
        failure=None if whole else _failure(exchange, head, answer),
    )


def without_texts(answer: Answer) -> Answer:
    """Keep times and counts only."""
    return replace(answer, text="", reasoning="", timings={})


def _answer(exchange: Exchange, start_ns: int, max_tokens: int) -> tuple[Head | None, Answer]:
    try:
        head = read_head(exchange.raw)
    except NotHttpError as exc:
        return None, Answer(ending=Ending.LOST, words=str(exc))
    ended_s = (exchange.end_ns - start_ns) / _NS
    if head is None:
        ending = Ending.TIMED_OUT if exchange.end is End.TIMED_OUT else Ending.LOST
        return None, Answer(ending=ending, words=exchange.words or "no whole answer came")
    try:
        return head, _decoded(exchange, head, start_ns, ended_s, max_tokens)
    except (NotHttpError, zlib.error) as exc:
        return head, Answer(ending=Ending.ERROR, words=f"the body cannot be read: {exc}", t_end_s=ended_s)


def _decoded(exchange: Exchange, head: Head, start_ns: int, ended_s: float, max_tokens: int) -> Answer:
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if head.status != 200 or (kind == "application/json" and exchange.end is End.WHOLE):
        body = b"".join(piece for piece, _ in _body(exchange, head))
        document = parse_json(body)
        if head.status == 200 and not (document is None and _STREAM.match(body)):
            return decode_whole(document, ended_s, max_tokens=max_tokens)
        if head.status == 200:
            return _streamed(exchange, head, start_ns, ended_s, max_tokens)
        words = error_words(parse_json(body)) or _target(head) or one_line(body[:600].decode("utf-8", "replace"))
        return Answer(ending=Ending.ERROR, words=f"HTTP {head.status}: {words}".rstrip(": "), t_end_s=ended_s)
    if (encoding := head.encoding) and encoding not in _INFLATED:
        words = f"the answer is compressed ({encoding[:40]}), which was not asked for"
        return Answer(ending=Ending.ERROR, words=words, streamed=False, t_end_s=ended_s)
    if kind == "text/html":
        return Answer(ending=Ending.ERROR, words="HTTP 200 with HTML in place of an answer", streamed=False, t_end_s=ended_s)
    return _streamed(exchange, head, start_ns, ended_s, max_tokens)


def _streamed(exchange: Exchange, head: Head, start_ns: int, ended_s: float, max_tokens: int) -> Answer:
    decoder = Decoder(max_tokens=max_tokens)
    for piece, at_ns in _body(exchange, head):
        decoder.feed(piece, (at_ns - start_ns) / _NS)
    return decoder.finish(ended_s, _cut(exchange, head))


def _body(exchange: Exchange, head: Head) -> Iterator[tuple[bytes, int]]:
    """Give the pieces of the body with the time of the read that brought each."""
    dechunker = Dechunker() if head.chunked else None
    inflater = zlib.decompressobj(wbits=47) if head.encoding in _INFLATED else None
    skip = head.size
    for read_bytes, at_ns in exchange.reads():
        piece = read_bytes[skip:] if skip else read_bytes
        skip = max(0, skip - len(read_bytes))
        if dechunker is not None and piece:
            piece = dechunker.feed(piece)
        if inflater is not None and piece:
            piece = inflater.decompress(piece, _MAX_PIECE_BYTES)
        if piece:
            yield piece, at_ns


def _target(head: Head) -> str:
    """Say where a redirect leads; '' for an answer that is none."""
    location = head.headers.get("location", "")
    if not 300 <= head.status < 400 or not location:
        return ""
    try:
        return one_line(redirect_fault("", location).words)
    except ValueError:
        return "redirects to an address that is none"


def _cut(exchange: Exchange, head: Head) -> tuple[Ending, str] | None:
    """Say why reading stopped where it did; None when the server's own end stands."""
    if exchange.end is End.TIMED_OUT:
        return Ending.TIMED_OUT, exchange.words
    if exchange.end is End.TOO_LARGE:
        return Ending.TOO_LARGE, exchange.words
    if exchange.end is End.CLOSED and (head.chunked or head.length is not None):
        return Ending.LOST, "the connection was closed in the middle of the answer"
    if exchange.end not in {End.WHOLE, End.CLOSED}:
        return Ending.LOST, exchange.words or "the connection was lost"
    return None


def _failure(exchange: Exchange, head: Head | None, answer: Answer) -> Failure:
    if answer.out_of_memory:
        return Failure.OUT_OF_MEMORY
    if head is None:
        wire = {
            End.UNREACHABLE: Failure.UNREACHABLE,
            End.TLS: Failure.TLS,
            End.NOT_HTTP: Failure.NOT_AN_ANSWER,
            End.TIMED_OUT: Failure.TIMED_OUT,
        }
        return wire.get(exchange.end, Failure.LOST)
    if head.status != 200:
        return _of_status(head.status)
    endings = {
        Ending.ERROR: Failure.IN_STREAM if answer.streamed else Failure.NOT_AN_ANSWER,
        Ending.TRUNCATED: Failure.TRUNCATED,
        Ending.TIMED_OUT: Failure.TIMED_OUT,
        Ending.TOO_LARGE: Failure.TOO_LARGE,
    }
    return endings.get(answer.ending, Failure.LOST)


def _of_status(status: int) -> Failure:
    if status in {401, 403}:
        return Failure.KEY
    if status in {429, 503}:
        return Failure.BUSY
    if status == 404:
        return Failure.NOT_FOUND
    if status >= 500:
        return Failure.SERVER
    return Failure.REFUSED if status >= 400 else Failure.REDIRECT
