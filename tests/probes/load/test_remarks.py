"""What no number says is said: short answers, warm prefixes, other users, ends that nobody explains."""

from __future__ import annotations

from typing import Any

from probes.evidence import Direction, Per
from probes.load.observation import Observation
from probes.load.prompts import PromptSet
from probes.load.remarks import finish_reasons, remarks
from probes.load.run import Finding
from probes.load.series import Series
from tests.loading import DONE, STREAM_HEAD, answering, chunked, event, under_load, usage
from tests.servers import talking


def said(*events: bytes) -> bytes:
    return STREAM_HEAD + chunked(b"".join(events) + DONE) + b"0\r\n\r\n"


def measured(*answers: bytes, **shape: Any) -> Finding:
    with talking(answering(*answers)) as port:
        return under_load(port, **shape)


def observed(**values: float) -> Observation:
    series = tuple(
        Series(name=name, unit="x", direction=Direction.NEUTRAL, per=Per.RUN, samples=(value,))
        for name, value in values.items()
    )
    return Observation(reading=None, here=True, series=series, native={})


def test_share_of_answers_whose_end_is_not_told_is_shown() -> None:
    finding = measured(said(event({"content": "a"}), usage(1)), said(event({"content": "a"}, "stop"), usage(1)))
    counted = finish_reasons(finding.outcomes)
    assert counted["not told"] == 1
    assert set(counted) == {"not told", "stop"}


def test_full_length_that_was_asked_for_and_not_given_is_told() -> None:
    short = measured(said(event({"content": "a"}, "stop"), usage(2)), extra='{"ignore_eos": true}', max_tokens=8)
    assert list(remarks(short, None)) == [
        "--ignore-eos was not heeded: 4 of 4 answers are shorter than 8 tokens (2 to 2)",
    ]
    whole = measured(said(event({"content": "a"}, "length"), usage(8)), extra='{"ignore_eos": true}', max_tokens=8)
    assert list(remarks(whole, None)) == []
    unasked = measured(said(event({"content": "a"}, "stop"), usage(2)), max_tokens=8)
    assert list(remarks(unasked, None)) == []


def test_prefix_cache_that_answered_new_prompts_is_told() -> None:
    counts = {"prompt_tokens": 100, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 40}}
    warm = said(event({"content": "a"}, "stop"), event(None, usage=counts))
    (remark,) = remarks(measured(warm), None)
    assert remark.startswith("a prefix cache gave 40% of the prompt tokens although every prompt is new")
    assert list(remarks(measured(warm, prompts=PromptSet(shared=0.5)), None)) == []
    cold = measured(said(event({"content": "a"}, "stop"), usage(2)))
    assert "gave 25%" in next(remarks(cold, observed(server_prefix_cache_hit_ratio=0.25)))


def test_others_who_use_the_server_are_told() -> None:
    finding = measured(said(event({"content": "a"}, "stop"), usage(2)))
    mine = sum(one.tokens or 0 for one in finding.outcomes)
    assert list(remarks(finding, observed(server_generated_tokens=mine * 1.5))) == []
    assert "others use it too" in next(remarks(finding, observed(server_generated_tokens=mine * 3.0)))
