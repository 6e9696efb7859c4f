"""Framing follows the bytes, not the reads: any way to cut a stream gives the same events."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.load.sse import Event, Framer, TooLargeError


def events_of(*reads: bytes, close: bool = True) -> list[Event]:
    """Frame reads that arrive at 0, 1, 2 ... seconds."""
    framer = Framer()
    events = [event for at, read in enumerate(reads) for event in framer.feed(read, float(at))]
    last = framer.close(float(len(reads))) if close else None
    return events if last is None else [*events, last]


def data_of(*reads: bytes) -> list[str]:
    return [event.data for event in events_of(*reads)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b'data:{"a":1}\n\n', ['{"a":1}']),
        (b"data: 1\n\n", ["1"]),
        (b"data:  1\n\n", [" 1"]),  # at most one space belongs to the field
        (b'data: {"a":1}\r\n\r\ndata: {"a":2}\r\n\r\n', ['{"a":1}', '{"a":2}']),
        (b"data: 1\rdata: 2\r\rdata: 3\r\r", ["1\n2", "3"]),
        (b"data: 1\r\ndata: 2\n\rdata: 3\r\n\n", ["1\n2", "3"]),
        (b'data: {"choices":\ndata: []}\n\n', ['{"choices":\n[]}']),
        (b": keepalive\n\n:\n\ndata: x\n\n", ["x"]),
        (b"id: 1\ndata: 1\n\n: ping\n\n", ["1"]),
        (b": x-gw-tokens-out=37\n: x-gw-cache-hit=true\ndata: [DONE]\n\n", ["[DONE]"]),
        (b"\n\n\n\ndata: x\n\n\n\n", ["x"]),
        (b"retry: 10\nid: 7\nunknown: y\ndata: x\n\n", ["x"]),
        (b"data\n\n", [""]),
        (b"data: 1\n", ["1"]),
        (b"\xef\xbb\xbfdata: x\n\n", ["x"]),
        (b"data: \xef\xbb\xbfx\n\n", ["\ufeffx"]),
        (b"", []),
    ],
)
def test_stream_becomes_events(stream: bytes, expected: list[str]) -> None:
    assert data_of(stream) == expected
    assert data_of(*(bytes([byte]) for byte in stream)) == expected


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_unicode_separator_inside_a_string_ends_no_line(separator: str) -> None:
    assert data_of(f'data: {{"c":"a{separator}b"}}\n\n'.encode()) == [f'{{"c":"a{separator}b"}}']


def test_line_end_split_over_reads_is_one_line_end() -> None:
    events = events_of(b"data: 1\r", b"\n\r\n", b"data: 2\r\n\r\n")
    assert [(event.data, event.at_s) for event in events] == [("1", 1.0), ("2", 2.0)]


def test_event_has_the_time_of_the_read_that_completed_it() -> None:
    events = events_of(b'data: {"choi', b'ces":[]}\n', b"\n", b"data: 2\n\ndata: 3\n\n")
    assert [(event.data, event.at_s) for event in events] == [('{"choices":[]}', 2.0), ("2", 3.0), ("3", 3.0)]


def test_carriage_return_alone_completes_an_event_at_once() -> None:
    assert [event.at_s for event in events_of(b"data: 1\r\r", b"data: 2\r\r")] == [0.0, 1.0]


def test_character_split_over_reads_is_whole() -> None:
    assert data_of(b'data: {"c":"\xe4\xbd', b'\xa0"}\n\n') == ['{"c":"你"}']


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert data_of(b"data: \xff\n\n") == ["\ufffd"]


def test_event_name_is_kept_for_one_event_only() -> None:
    events = events_of(b"event: error\ndata: 1\n\nevent: ping\n\ndata: 2\n\n")
    assert [(event.name, event.data) for event in events] == [("error", "1"), ("message", "2")]


def test_end_of_the_stream_gives_what_lacks_its_blank_line_and_marks_it() -> None:
    assert [(e.data, e.whole) for e in events_of(b"data: 1\n\ndata: [DONE]")] == [("1", True), ("[DONE]", False)]
    assert [(e.data, e.whole) for e in events_of(b'data: {"cho')] == [('{"cho', False)]


def test_comments_are_counted_and_are_no_events() -> None:
    framer = Framer()
    assert framer.feed(b": a\n: b\n\n", 0.0) == []
    assert framer.comments == 2


def test_line_without_end_is_given_up() -> None:
    framer = Framer(max_line_bytes=1000)
    framer.feed(b"data: " + b"x" * 900, 0.0)
    with pytest.raises(TooLargeError, match="a line is over 1000 bytes"):
        framer.feed(b"x" * 100, 0.0)


def test_long_line_that_ends_within_one_read_is_given_up_too() -> None:
    with pytest.raises(TooLargeError):
        Framer(max_line_bytes=10).feed(b"data: 0123456789\n\n", 0.0)


def test_event_without_end_is_given_up() -> None:
    framer = Framer(max_event_bytes=1000)
    framer.feed((b"data: " + b"x" * 100 + b"\n") * 9, 0.0)
    with pytest.raises(TooLargeError, match="an event is over 1000 bytes"):
        framer.feed(b"data: " + b"x" * 100 + b"\n", 0.0)


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(ends)]


LINES = [b"data: a", b"data:b", b"data", b":", b": c", b"event: error", b"id: 1", "é你😀".encode()]
ENDS = [b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r"]
pieces = st.sampled_from(LINES + ENDS)


@given(st.lists(pieces, max_size=30).map(b"".join), st.lists(st.integers(min_value=0), max_size=20))
def test_any_cut_gives_the_same_events(stream: bytes, places: list[int]) -> None:
    whole = [(event.data, event.name, event.whole) for event in events_of(stream)]
    assert [(event.data, event.name, event.whole) for event in events_of(*cut(stream, places))] == whole


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1), max_size=8))
def test_text_survives_framing(texts: list[str]) -> None:
    stream = "".join(f"data: {text}\r\n\r\n" for text in texts).encode()
    assert data_of(stream) == texts
