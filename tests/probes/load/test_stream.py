"""One stream becomes one answer: what was said, when, how it was counted and how it ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.load.answer import Answer, Ending, FirstToken
from probes.load.sse import Framer
from probes.load.stream import Decoder, decode, decode_whole

DONE = b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": choices, **more}).encode() + b"\n\n"


def text(words: str, *, finish: str | None = None) -> bytes:
    return chunk({"content": words}, finish=finish)


def usage(**counts: Any) -> bytes:
    return chunk(usage=counts)


def answer_of(*reads: bytes, max_tokens: int | None = None) -> Answer:
    """Decode reads that arrive at 0, 1, 2 ... seconds."""
    return decode([(read, float(at)) for at, read in enumerate(reads)], max_tokens=max_tokens)


def test_plain_stream_is_complete() -> None:
    answer = answer_of(chunk({"role": "assistant"}), text("Hel"), text("lo", finish="stop"), usage(completion_tokens=2), DONE)
    assert (answer.ending, answer.text, answer.finish_reason) == (Ending.COMPLETE, "Hello", "stop")
    assert (answer.t_first_event_s, answer.t_first_output_s, answer.t_first_text_s, answer.t_end_s) == (0.0, 1.0, 1.0, 4.0)
    assert answer.arrivals_s == (1.0, 2.0)


@pytest.mark.parametrize("prelude", [{"role": "assistant", "content": ""}, {"role": "assistant", "content": None}, {}])
def test_empty_first_chunk_is_an_event_and_no_output(prelude: dict[str, Any]) -> None:
    """Both times are kept; which of them is the first token is the runtime's to say."""
    answer = answer_of(chunk(prelude), text("x"), DONE)
    assert answer.ttft_s(FirstToken.FIRST_EVENT) == 0.0
    assert answer.ttft_s(FirstToken.FIRST_OUTPUT) == 1.0


def test_finish_reason_alone_completes_and_done_alone_completes_without_one() -> None:
    assert answer_of(text("x", finish="stop")).ending is Ending.COMPLETE
    only_done = answer_of(text("x"), DONE)
    assert (only_done.ending, only_done.finish_reason) == (Ending.COMPLETE, None)


@pytest.mark.parametrize("rest", [b"", b'data: {"cho', b'data: {"cho\n', b": bye\n\n"])
def test_polite_end_without_terminator_is_truncated(rest: bytes) -> None:
    answer = answer_of(text("x"), rest)
    assert answer.ending is Ending.TRUNCATED
    assert answer.text == "x"
    assert answer.unreadable_events == 0


def test_empty_success_is_truncated() -> None:
    answer = answer_of(b"")
    assert (answer.ending, answer.produced) == (Ending.TRUNCATED, False)
    assert "without a single event" in answer.words


def test_terminator_without_line_end_counts() -> None:
    assert answer_of(text("x"), b"data: [DONE]").ending is Ending.COMPLETE


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (b'event: error\ndata: {"type":"overloaded_error","message":"busy"}\n\n', "overloaded_error: busy"),
        (b"event: error\ndata: boom\n\n", "boom"),
        (b'data: {"error":{"message":"CL_OUT_OF_RESOURCES","code":500}}\n\n', "CL_OUT_OF_RESOURCES"),
        (b'data: {"error":"graph failed"}\n\n', "graph failed"),
        (b'data: {"object":"error","message":"too long","type":"BadRequestError"}\n\n', "BadRequestError: too long"),
        (b'data: {"type":"error","message":"boom"}\n\n', "error: boom"),
        (b'data: {"code":500,"message":"engine is dead"}\n\n', "engine is dead"),
        (b'data: {"detail":"Internal Server Error"}\n\n', "Internal Server Error"),
        (b"event: error\ndata:\n\n", "an error event without a word"),
    ],
)
def test_error_inside_a_200_fails_the_request(event: bytes, words: str) -> None:
    answer = answer_of(text("x"), event, DONE)
    assert (answer.ending, answer.words) == (Ending.ERROR, words)
    assert answer.t_end_s == 1.0


def test_out_of_memory_is_told_apart() -> None:
    assert answer_of(b'data: {"error":"[GPU] CL_OUT_OF_RESOURCES"}\n\n').out_of_memory
    assert not answer_of(b'data: {"error":"no such model"}\n\n').out_of_memory
    assert not answer_of(text("you ran out of memory"), DONE).out_of_memory


@pytest.mark.parametrize("nothing", [None, {}, "", False, 0, []])
def test_falsy_error_field_is_no_error(nothing: object) -> None:
    answer = answer_of(chunk({"content": "ok"}, error=nothing), DONE)
    assert (answer.ending, answer.text) == (Ending.COMPLETE, "ok")


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_answer_that_the_server_gave_up_is_failed(reason: str) -> None:
    """So vLLM and SGLang end a request that they could not finish, with usage and terminator as ever."""
    answer = answer_of(text("x"), chunk({}, finish=reason), usage(completion_tokens=1), DONE)
    assert (answer.ending, reason in answer.words) == (Ending.ERROR, True)
    whole = decode_whole({"choices": [{"message": {"content": "x"}, "finish_reason": reason}]}, 1.0)
    assert (whole.ending, reason in whole.words) == (Ending.ERROR, True)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (b"", "the stream ended without a single choice"),
        (b'data: {"code":500,"message":"engine is dead"}\n\n', "engine is dead"),
        (b'data: {"detail":"Internal Server Error"}\n\n', "Internal Server Error"),
        (usage(completion_tokens=0), "the stream ended without a single choice"),
    ],
)
def test_terminator_after_no_choice_is_no_quick_answer(event: bytes, words: str) -> None:
    """A failure that is worded in no known way must not be filed as a success of no tokens."""
    answer = answer_of(event, DONE)
    assert (answer.ending, answer.words) == (Ending.ERROR, words)


def test_text_about_errors_is_text() -> None:
    assert answer_of(text('{"error": "x"}'), DONE).ending is Ending.COMPLETE


def test_clock_stops_at_the_terminator() -> None:
    decoder = Decoder()
    assert not decoder.feed(text("x"), 1.0)
    assert decoder.feed(DONE, 2.0)
    assert decoder.feed(text("late"), 9.0)
    answer = decoder.finish(60.0)
    assert (answer.t_end_s, answer.text) == (2.0, "x")


def test_finish_reason_settles_and_usage_may_still_follow() -> None:
    decoder = Decoder()
    assert decoder.feed(text("x", finish="stop"), 1.0)
    assert decoder.feed(usage(completion_tokens=1, prompt_tokens=3), 2.0)
    read = decoder.finish(5.0).usage
    assert read is not None
    assert (read.completion_tokens, read.prompt_tokens) == (1, 3)


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning": "Okay"},
        {"reasoning_content": "Okay"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "Okay"}]},
        {"thinking": "Okay"},
        {"reasoning": "Okay", "reasoning_content": "Okay"},
    ],
)
def test_reasoning_is_output_and_no_visible_text(delta: dict[str, Any]) -> None:
    answer = answer_of(chunk(delta), text("4"), DONE)
    assert (answer.t_first_output_s, answer.t_first_text_s) == (0.0, 1.0)
    assert (answer.reasoning, answer.text) == ("Okay", "4")


def test_answer_that_ends_while_reasoning_is_a_valid_speed_sample() -> None:
    chunks = [chunk({"reasoning_content": "."}) for _ in range(3)]
    answer = answer_of(*chunks, chunk({}, finish="length"), usage(completion_tokens=200), DONE, max_tokens=200)
    assert (answer.ending, answer.text, answer.t_first_text_s) == (Ending.COMPLETE, "", None)
    assert answer.decode_tok_s(FirstToken.FIRST_OUTPUT) == pytest.approx(199 / 2)


def call(index: int | None = 0, id: str | None = None, **function: str) -> bytes:
    fragment: dict[str, Any] = {"function": function}
    fragment |= {} if index is None else {"index": index}
    fragment |= {} if id is None else {"id": id}
    return chunk({"tool_calls": [fragment]})


def test_tool_call_is_rebuilt_from_fragments_by_index() -> None:
    answer = answer_of(
        call(id="c1", name="weather", arguments=""), call(arguments='{"c'), call(arguments='ity":1}'), chunk({}, finish="stop")
    )
    (one,) = answer.tool_calls
    assert (one.id, one.name, one.arguments, one.well_formed) == ("c1", "weather", '{"city":1}', True)
    assert answer.finish_reason == "stop"
    assert answer.t_first_output_s == 0.0


def test_several_tool_calls_keep_apart() -> None:
    interleaved = answer_of(call(0, name="f"), call(1, name="g"), call(0, arguments="{}"), call(1, arguments="[1"), DONE)
    assert [(c.name, c.arguments, c.well_formed) for c in interleaved.tool_calls] == [("f", "{}", True), ("g", "[1", False)]
    unnumbered = answer_of(call(None, "a", name="f"), call(None, arguments="{}"), call(None, "b", name="g"), DONE)
    assert [(c.name, c.arguments) for c in unnumbered.tool_calls] == [("f", "{}"), ("g", "")]


def test_text_and_tool_call_in_one_chunk_both_count() -> None:
    answer = answer_of(chunk({"content": "Let me look.", "tool_calls": [{"index": 0, "function": {"name": "f"}}]}), DONE)
    assert (answer.text, answer.tool_calls[0].name) == ("Let me look.", "f")


def test_tool_call_id_alone_is_no_output() -> None:
    assert answer_of(call(id="c1"), call(name="f"), DONE).t_first_output_s == 1.0


def test_usage_chunk_moves_no_time() -> None:
    answer = decode([(text("x"), 0.2), (usage(prompt_tokens=24, completion_tokens=58, total_tokens=82), 5.0), (DONE, 5.0)])
    assert (answer.t_first_event_s, answer.t_first_output_s) == (0.2, 0.2)
    assert answer.arrivals_s == (0.2,)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 58


def test_completions_stream_has_its_text_beside_the_delta() -> None:
    raw = b'data: {"choices":[{"index":0,"text":""}]}\n\n', b'data: {"choices":[{"index":0,"text":"Hi"}]}\n\n'
    answer = answer_of(*raw, DONE)
    assert (answer.text, answer.t_first_event_s, answer.t_first_output_s) == ("Hi", 0.0, 1.0)


def test_content_in_parts_is_joined() -> None:
    assert answer_of(chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), DONE).text == "ab"


def test_refusal_is_what_the_reader_sees() -> None:
    answer = answer_of(chunk({"role": "assistant"}), chunk({"refusal": "I can't"}), DONE)
    assert (answer.text, answer.t_first_text_s) == ("I can't", 1.0)


def test_call_in_the_shape_before_there_were_several_is_a_call() -> None:
    first = chunk({"function_call": {"name": "f", "arguments": ""}})
    answer = answer_of(first, chunk({"function_call": {"arguments": '{"a":1}'}}), chunk({}, finish="function_call"))
    (one,) = answer.tool_calls
    assert (one.name, one.arguments, one.well_formed, answer.t_first_output_s) == ("f", '{"a":1}', True, 0.0)


@pytest.mark.parametrize("choice", [{"index": 0, "message": {"content": "Hi"}}, {"index": "0", "delta": {"content": "Hi"}}])
def test_choice_that_is_written_otherwise_is_read(choice: dict[str, Any]) -> None:
    answer = answer_of(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n", DONE)
    assert (answer.ending, answer.text, answer.t_first_output_s) == (Ending.COMPLETE, "Hi", 0.0)


@pytest.mark.parametrize("extra", [{"message": "ok"}, {"detail": "cached"}])
def test_words_beside_a_choice_are_no_error(extra: dict[str, str]) -> None:
    assert answer_of(chunk({"content": "a"}, **extra), usage(completion_tokens=1), DONE).ending is Ending.COMPLETE


def test_other_choices_are_not_mixed_in() -> None:
    raw = b'data: {"choices":[{"index":1,"delta":{"content":"B"}},{"index":0,"delta":{"content":"A"}}]}\n\n'
    assert answer_of(raw, DONE).text == "A"


def test_several_events_in_one_read_are_coalesced() -> None:
    together = answer_of(text("a") + text("b") + text("c"), text("d"), DONE)
    assert together.coalesced_share == pytest.approx(2 / 3)
    assert answer_of(text("a"), text("b"), DONE).coalesced_share == 0.0
    assert answer_of(text("a"), DONE).coalesced_share is None


def test_decode_speed_counts_tokens_and_not_chunks() -> None:
    """With speculative decoding one chunk brings several tokens."""
    answer = answer_of(text("a"), text("b c d"), text("e f"), usage(completion_tokens=6), DONE)
    assert answer.decode_tok_s(FirstToken.FIRST_OUTPUT) == pytest.approx(5 / 2)


def test_decode_speed_starts_where_the_first_token_is() -> None:
    answer = answer_of(chunk({"content": None}), text("a"), text("b", finish="length"), usage(completion_tokens=3), DONE)
    assert answer.decode_tok_s(FirstToken.FIRST_EVENT) == pytest.approx(2 / 2)
    assert answer.decode_tok_s(FirstToken.FIRST_OUTPUT) == pytest.approx(2 / 1)


def test_tokens_of_the_first_chunk_are_in_no_span_where_the_server_counts_along() -> None:
    """Three of ten tokens come with the first chunk: seven took the time after it."""
    first = chunk({"content": "a b c"}, usage={"completion_tokens": 3})
    answer = decode([(first, 0.0), (text("d e f g h i j"), 0.7), (usage(completion_tokens=10) + DONE, 0.7)])
    assert answer.first_chunk_tokens == 3
    assert answer.decode_tok_s(FirstToken.FIRST_OUTPUT) == pytest.approx(10.0)


@pytest.mark.parametrize("counts", [{}, {"completion_tokens": 1}, {"completion_tokens": 0}, {"completion_tokens": "6"}])
def test_no_decode_speed_without_a_count(counts: dict[str, Any]) -> None:
    assert answer_of(text("a"), text("b"), usage(**counts), DONE).decode_tok_s(FirstToken.FIRST_OUTPUT) is None


def test_no_decode_speed_when_no_time_passed() -> None:
    answer = answer_of(text("a") + text("b") + usage(completion_tokens=2) + DONE)
    assert answer.decode_tok_s(FirstToken.FIRST_OUTPUT) is None


@pytest.mark.parametrize(
    ("counts", "max_tokens"),
    [({"completion_tokens": 19503}, 256), ({"completion_tokens": 19503}, None), ({"completion_tokens": 0}, 256)],
)
def test_implausible_usage_is_doubted_and_gives_no_speed(counts: dict[str, Any], max_tokens: int | None) -> None:
    answer = answer_of(text("a " * 98), text("b " * 99), usage(**counts), DONE, max_tokens=max_tokens)
    assert answer.usage is not None
    assert answer.usage.doubt
    assert answer.decode_tok_s(FirstToken.FIRST_OUTPUT) is None


@pytest.mark.parametrize("value", [True, -1, 1.5, "3", None, [], 1e400, 2**60])
def test_count_that_is_none_is_unknown(value: object) -> None:
    answer = answer_of(b'data: {"choices":[],"usage":' + json.dumps({"completion_tokens": value}).encode() + b"}\n\n", DONE)
    assert answer.usage is not None
    assert answer.usage.completion_tokens is None


def test_zero_prompt_tokens_are_unknown_and_cached_ones_are_read() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 37}}
    answer = answer_of(text("x"), usage(prompt_tokens=0, completion_tokens=1, **details), DONE)
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.cached_tokens) == (None, 37)


def test_usage_null_on_every_chunk_overwrites_nothing() -> None:
    answer = answer_of(text("x"), usage(completion_tokens=1), chunk({}, usage=None), DONE)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 1


def test_surrogate_pair_split_over_chunks_is_joined_and_a_lone_half_replaced() -> None:
    raw = [
        b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00"}}]}\n\n',
    ]
    assert answer_of(*raw, DONE).text == "😀"
    assert answer_of(raw[0], DONE).text == "\ufffd"


@pytest.mark.parametrize("data", [b"hello", b"[1]", b"3", b"null", b'"x"', b"{", b"[" * 100_000, b"1" * 10_000])
def test_event_that_is_no_chunk_is_counted_and_loses_nothing_else(data: bytes) -> None:
    answer = answer_of(text("a"), b"data: " + data + b"\n\n", text("b"), DONE)
    assert (answer.ending, answer.text, answer.unreadable_events) == (Ending.COMPLETE, "ab", 1)


def test_unbounded_line_ends_the_request() -> None:
    decoder = Decoder(framer=Framer(max_line_bytes=200))
    decoder.feed(text("x"), 0.0)
    assert decoder.feed(b"data: " + b"y" * 400, 1.0)
    answer = decoder.finish(1.0)
    assert (answer.ending, answer.text) == (Ending.TOO_LARGE, "x")


def test_reason_for_a_cut_is_kept_unless_the_answer_was_over() -> None:
    unfinished, finished = Decoder(), Decoder()
    unfinished.feed(text("x"), 0.0)
    finished.feed(text("x", finish="stop"), 0.0)
    cut = (Ending.LOST, "reset by peer")
    assert (unfinished.finish(1.0, cut).ending, unfinished.finish(1.0, cut).words) == cut
    assert finished.finish(1.0, cut).ending is Ending.COMPLETE


def test_whole_answer_has_an_end_and_no_first_token() -> None:
    body: dict[str, Any] = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    answer = decode_whole(body, 2.5)
    assert (answer.ending, answer.text, answer.streamed, answer.t_end_s) == (Ending.COMPLETE, "Hi", False, 2.5)
    assert answer.ttft_s(FirstToken.FIRST_EVENT) is None
    assert answer.usage is not None


@pytest.mark.parametrize("body", [None, [], {}, {"error": {"message": "no"}}, {"choices": []}, {"choices": [3]}])
def test_whole_answer_of_another_shape_is_an_error(body: Any) -> None:
    assert decode_whole(body, 1.0).ending is Ending.ERROR


FIELDS = ["choices", "delta", "content", "tool_calls", "function", "name", "arguments", "index", "id", "usage", "error"]
FIELDS += ["finish_reason", "completion_tokens", "message", "text", "reasoning", "reasoning_details", "object", "timings"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "tool_calls", "function", "name", "arguments", "index", "id", "usage"]
            )
            | st.sampled_from(["error", "finish_reason", "completion_tokens", "message", "text", "reasoning", "object"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=5))
def test_no_json_breaks_the_decoder(documents: list[Any]) -> None:
    stream = b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents)
    answer = answer_of(stream, DONE)
    answers = [answer, *(decode_whole(document, 1.0) for document in documents)]
    assert all(one.ending in Ending and isinstance((one.text + one.words + one.reasoning).encode(), bytes) for one in answers)


@given(st.lists(st.text(max_size=6), min_size=1, max_size=8), st.integers(min_value=1, max_value=7))
def test_any_cut_gives_the_same_answer(words: list[str], size: int) -> None:
    stream = b"".join(map(text, words)) + usage(completion_tokens=len(words)) + DONE
    whole = answer_of(stream)
    pieces = answer_of(*(stream[start : start + size] for start in range(0, len(stream), size)))
    assert (pieces.text, pieces.ending, pieces.usage) == (whole.text, whole.ending, whole.usage)
    assert len(pieces.arrivals_s) == len(whole.arrivals_s) == sum(bool(word) for word in words)
