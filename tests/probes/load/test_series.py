"""Every metric follows its definition, and none is made of a failed request."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest

from probes.evidence import Direction, Missing, MissingReason, Per
from probes.load.answer import FirstToken
from probes.load.objective import UNSET, Objective
from probes.load.outcome import Outcome
from probes.load.series import Series, TokenSource, coalesced_share, series, token_source
from probes.load.spool import End
from probes.load.window import Phase, Window
from tests.loading import DONE, MS, event, outcome, stream, usage

OUTPUT = FirstToken.FIRST_OUTPUT


def tokens(count: int, *, chunks: int | None = None, step_ms: float = 10.0, counted: bool = True, **fields: Any) -> Outcome:
    """An answer of `count` tokens in `chunks` chunks, sent at 100 ms, with its first chunk at 200 ms."""
    chunks = chunks or count
    reads = stream(*(event({"content": "x"}) for _ in range(chunks)), (usage(count) if counted else b"") + DONE)
    times = [150.0, *(200.0 + step_ms * n for n in range(chunks)), 200.0 + step_ms * (chunks - 1)]
    return outcome(*reads, times_ms=times, max_tokens=10_000, **fields)


def failed() -> Outcome:
    return outcome(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")


def of(outcomes: list[Outcome], *, slo: Objective | Missing = UNSET, phases: list[Phase] | None = None) -> dict[str, Series]:
    measured = [
        o for o, phase in zip(outcomes, phases or [Phase.MEASURED] * len(outcomes), strict=True) if phase is Phase.MEASURED
    ]
    window = Window(
        phases=tuple(phases or [Phase.MEASURED] * len(outcomes)),
        start_ns=min((o.start_ns for o in measured), default=0),
        end_ns=max((o.end_ns for o in measured), default=0),
    )
    return {one.name: one for one in series(outcomes, window, OUTPUT, slo)}


def test_definitions_of_one_stream() -> None:
    found = of([tokens(11)])
    values = {name: one.samples for name, one in found.items()}
    assert values["ttft_s"] == pytest.approx((0.1,))
    assert values["latency_s"] == pytest.approx((0.2,))
    assert values["tpot_s"] == pytest.approx((0.01,))
    assert values["decode_tok_s"] == pytest.approx((100.0,))
    assert values["itl_s"] == pytest.approx((0.01,) * 10)
    assert values["connect_s"] == (0.002,)
    assert values["aggregate_tok_s"] == pytest.approx((55.0,))
    assert values["attempts_per_request"] == (1.0,)


def test_speculative_decoding_counts_tokens_and_gives_no_gap_between_them() -> None:
    found = of([tokens(34, chunks=10, step_ms=1000 / 9)])
    assert found["decode_tok_s"].samples == pytest.approx((33.0,))
    assert found["tokens_per_chunk"].samples == (3.4,)
    missing = found["itl_s"].missing
    assert missing is not None
    assert "3.4 tokens" in missing.detail


def test_time_per_token_leaves_out_what_the_first_chunk_brought() -> None:
    reads = stream(event({"content": "x"}, usage={"completion_tokens": 3}), event({"content": "y"}), usage(10) + DONE)
    found = of([outcome(*reads, times_ms=[150, 200, 900, 900], max_tokens=10_000)])
    assert found["tpot_s"].samples == pytest.approx((0.1,))
    assert found["decode_tok_s"].samples == pytest.approx((10.0,))


def test_steps_that_a_parser_held_back_are_no_gap_of_zero() -> None:
    """Two chunks for 17 tokens: nobody saw the gaps, and none is printed."""
    found = of([tokens(17, chunks=2)])
    assert found["itl_s"].samples == ()
    assert found["itl_s"].document()["p50"] is None


def test_chunks_that_came_in_one_read_make_no_gap_of_zero() -> None:
    reads = stream(b"".join(event({"content": "x"}) for _ in range(8)), usage(8) + DONE)
    one = outcome(*reads, times_ms=[150, 200, 300])
    assert coalesced_share([one]) == 1.0
    found = of([one])
    missing = found["itl_s"].missing
    assert missing is not None
    assert "came together" in missing.detail
    for name in ("ttft_s", "first_event_s", "first_text_s", "tpot_s", "decode_tok_s"):
        held_back = found[name].missing
        assert held_back is not None, name
        assert held_back.detail.startswith("the path is buffered: 100% of the chunks")
    assert found["latency_s"].samples


def test_compressed_stream_has_a_latency_and_no_time_of_arrival() -> None:
    """What a compressor held back came when it let go, however far apart the reads are."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
    squeezed = zlib.compressobj(wbits=31)
    flush = zlib.Z_SYNC_FLUSH
    reads = [squeezed.compress(event({"content": "a"})) + squeezed.flush(flush), squeezed.compress(event({"content": "b"}))]
    last = squeezed.flush(flush) + squeezed.compress(usage(2) + DONE) + squeezed.flush()
    found = of([outcome(head, reads[0], reads[1] + last, times_ms=[150, 200, 500], end=End.CLOSED)])
    assert found["latency_s"].samples == pytest.approx((0.4,))
    for name in ("ttft_s", "first_text_s", "itl_s", "tpot_s", "decode_tok_s"):
        assert found[name].missing is not None, name


def test_drafts_that_are_nearly_all_right_are_no_buffered_path() -> None:
    steps = stream(*(b"".join(event({"content": "x"}) for _ in range(5)) for _ in range(4)), usage(20) + DONE)
    one = outcome(*steps, times_ms=[150, 200, 220, 240, 260, 270])
    assert coalesced_share([one]) == pytest.approx(16 / 19)
    found = of([one])
    assert found["ttft_s"].samples
    assert found["itl_s"].missing is not None


def test_answer_in_one_piece_has_a_latency_and_no_first_token() -> None:
    body = b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}'
    one = outcome(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    found = of([one])
    assert found["latency_s"].samples
    assert found["ttft_s"].missing is not None
    assert found["itl_s"].missing is not None


def test_failed_request_is_in_no_latency_and_credited_no_token() -> None:
    good = tokens(11)
    both, alone = of([good, failed()]), of([good])
    for name in ("ttft_s", "latency_s", "tpot_s", "decode_tok_s"):
        assert both[name].samples == alone[name].samples
    assert both["error_rate"].samples == (0.5,)
    assert of([failed()])["aggregate_tok_s"].samples == ()


def test_run_of_errors_only_has_reasons_and_no_throughput() -> None:
    found = of([failed()] * 3)
    assert found["error_rate"].samples == (1.0,)
    assert found["request_rate"].samples == (0.0,)  # of successful ones, however fast the errors came
    assert found["aggregate_tok_s"].samples == ()
    missing = found["ttft_s"].missing
    assert missing is not None
    assert (missing.missing, "HTTP 500" in missing.detail) == (MissingReason.FAILED, True)


def test_out_of_memory_is_told_apart() -> None:
    body = b'{"error": {"message": "out of memory"}}'
    oom = outcome(b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    found = of([tokens(3), failed(), oom, tokens(3)])
    assert (found["error_rate"].samples, found["oom_rate"].samples) == ((0.5,), (0.25,))


def test_server_errors_that_name_no_cause_leave_open_whether_memory_was_full() -> None:
    found = of([tokens(3), failed(), failed(), tokens(3)])
    assert found["error_rate"].samples == (0.5,)
    missing = found["oom_rate"].missing
    assert missing is not None
    assert missing.detail == "2 of 4 requests ended in a server error that names no cause"


def test_stalls_and_attempts_are_visible() -> None:
    found = of([replace(tokens(3), stalled=True, attempts=3), tokens(3)])
    assert found["stalled_streams"].samples == (1.0,)
    assert found["attempts_per_request"].samples == (3.0, 1.0)


def test_tokens_count_by_their_time_stamp() -> None:
    """A warm-up request that reaches into the window adds the chunks that came inside it, and no latency."""
    warm = tokens(11, step_ms=20.0)
    measured = tokens(11, sent_ns=250 * MS, last_sent_ns=250 * MS, index=1)
    shifted = replace(measured, start_ns=250 * MS, end_ns=450 * MS)
    found = of([warm, shifted], phases=[Phase.WARM_UP, Phase.MEASURED])
    assert len(found["latency_s"].samples) == 1
    inside = sum(250 < 200 + 20 * n <= 450 for n in range(11)) + sum(0 < at <= 0.2 for at in shifted.answer.arrivals_s)
    assert found["aggregate_tok_s"].samples == pytest.approx((inside / 0.2,))


def test_chunks_stand_in_for_tokens_and_say_so() -> None:
    found = of([tokens(11, counted=False)])
    assert found["completion_tokens"].missing is not None
    assert found["tpot_s"].missing is not None
    assert "chunks are not tokens" in found["aggregate_tok_s"].note
    assert of([tokens(11)])["aggregate_tok_s"].note == ""


def test_tokens_and_chunks_are_never_added_up() -> None:
    found = of([tokens(20, chunks=10), tokens(10, counted=False)])["aggregate_tok_s"]
    seconds = 0.19
    assert found.samples == pytest.approx((20 / seconds,))
    assert "chunks are not tokens" in found.note


def test_the_run_says_who_counted_its_tokens() -> None:
    """Rates by the server's usage and rates of chunks are told apart."""
    assert token_source([tokens(11), failed()]) is TokenSource.USAGE
    assert token_source([tokens(11), tokens(11, counted=False)]) is TokenSource.CHUNKS
    assert token_source([replace(tokens(11, counted=False), counted=12, by_tokenizer=True)]) is TokenSource.TOKENIZER
    assert token_source([failed()]) is None


def test_count_that_cannot_be_is_not_used() -> None:
    one = outcome(*stream(event({"content": "a"}), event({"content": "b"}), usage(19503) + DONE), max_tokens=256)
    found = of([one])
    assert found["completion_tokens"].missing is not None
    assert found["decode_tok_s"].missing is not None


def test_zero_prompt_tokens_are_unknown() -> None:
    assert of([outcome(*stream(event({"content": "a"}), usage(1, prompt=0) + DONE))])["prompt_tokens"].missing is not None


def test_number_for_the_whole_run_has_no_percentiles() -> None:
    document = of([tokens(11)])["aggregate_tok_s"].document()
    assert document["value"] == pytest.approx(55.0)
    assert {document[f"p{n}"] for n in (1, 5, 10, 50, 90, 95, 99)} == {None}


def test_percentiles_need_their_number_of_requests() -> None:
    nineteen, twenty = (of([tokens(5)] * n)["ttft_s"].document() for n in (19, 20))
    assert (nineteen["p95"], nineteen["n"]) == (None, 19)
    assert twenty["p95"] == pytest.approx(0.1)


def objective(**bounds: float) -> Objective:
    return Objective(bounds=bounds, origin="the SLO of --slo")


def test_goodput_counts_requests_that_keep_every_bound() -> None:
    fast, slow = tokens(11), tokens(11, step_ms=30.0)
    found = of([fast, slow, failed()], slo=objective(ttft_s=0.2, tpot_s=0.02))
    assert found["goodput_share"].samples == pytest.approx((1 / 3,))
    assert found["goodput"].note == "against the SLO of --slo: ttft_s <= 0.2, tpot_s <= 0.02"
    assert of([fast, slow], slo=objective(decode_tok_s=50.0))["goodput_share"].samples == (0.5,)


def test_nobody_who_keeps_the_slo_is_a_goodput_of_zero() -> None:
    found = of([tokens(11), tokens(11)], slo=objective(ttft_s=0.01))
    assert (found["goodput"].samples, found["goodput_share"].samples) == ((0.0,), (0.0,))


@pytest.mark.parametrize(
    ("outcomes", "bound", "why"),
    [
        pytest.param([tokens(11, counted=False)], "tpot_s", "tpot_s is missing: the server counts no tokens", id="uncounted"),
        pytest.param(
            [outcome(*stream(b"".join(event({"content": "x"}) for _ in range(8)), usage(8) + DONE), times_ms=[150, 200, 300])],
            "ttft_s",
            "ttft_s is missing: the path is buffered",
            id="buffered",
        ),
    ],
)
def test_bound_on_what_could_not_be_measured_gives_no_goodput(outcomes: list[Outcome], bound: str, why: str) -> None:
    """What nobody saw was neither good nor bad, and a zero would be invented."""
    for name in ("goodput", "goodput_share"):
        missing = of(outcomes, slo=objective(**{bound: 9.0}))[name].missing
        assert missing is not None
        assert (missing.missing, why in missing.detail) == (MissingReason.NOT_MEASURED, True)


def test_answer_of_one_token_has_no_later_tokens_to_be_slow() -> None:
    found = of([tokens(1), tokens(11, step_ms=30.0), tokens(11)], slo=objective(tpot_s=0.02))
    assert found["goodput_share"].samples == pytest.approx((2 / 3,))


def test_without_an_slo_goodput_is_not_configured() -> None:
    missing = of([tokens(3)])["goodput"].missing
    assert missing is not None
    assert missing.missing is MissingReason.NOT_CONFIGURED


def test_evidence_holds_one_sample_per_request() -> None:
    metric = of([tokens(11), tokens(11, step_ms=20.0)])["itl_s"].metric()
    assert metric.samples == pytest.approx((0.01, 0.02))
    assert (metric.per, metric.direction) == (Per.REQUEST, Direction.LOWER)
