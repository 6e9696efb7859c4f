"""Tokens counted here stand beside the server's own count, and for it only where it gives none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probes.errors import UsageError
from probes.evidence import Missing, MissingReason
from probes.load.answer import Answer, Ending, ToolCall
from probes.load.counting import check_tokenizer, count_texts, words_of, write_texts
from probes.load.series import Series
from probes.model import find_source
from tests.loading import DONE, STREAM_HEAD, WHOLE, answering, chunked, event, under_load, usage
from tests.servers import talking

GGUF = find_source().gguf


def counted(*answers: bytes, tokenizer: Path = GGUF, **shape: Any) -> dict[str, Series]:
    with talking(answering(*answers)) as port:
        return {one.name: one for one in under_load(port, tokenizer=tokenizer, **shape).series}


def said(*pieces: str, counts: int | None) -> bytes:
    events = b"".join(event({"content": piece}) for piece in pieces)
    return STREAM_HEAD + chunked(events + (usage(counts) if counts else b"") + DONE) + b"0\r\n\r\n"


def test_text_is_counted_once_and_whole(tmp_path: Path) -> None:
    """Three pieces of a word and a space are no three tokens."""
    write_texts(tmp_path / "texts", ["Hello world", "Hel", "lo", "", "\u4f60\u597d"])
    counts = count_texts(GGUF, tmp_path / "texts")
    assert not isinstance(counts, Missing)
    assert (counts[0], counts[3]) == (2, 0)
    assert counts[1] + counts[2] > 1
    assert counts[4] > 0


def test_every_channel_is_counted() -> None:
    call = ToolCall(id="1", name="look", arguments='{"a": 1}')
    answer = Answer(ending=Ending.COMPLETE, text="b", reasoning="a", tool_calls=(call,))
    assert words_of(answer) == 'ablook{"a": 1}'


def test_disagreement_is_shown_and_the_servers_count_stands() -> None:
    found = counted(said("Hel", "lo", " world", counts=4))
    assert found["counted_tokens"].samples == (2.0,) * 4
    assert found["completion_tokens"].samples == (4.0,) * 4
    assert found["token_disagreement"].samples == (1.0,) * 4
    assert found["aggregate_tok_s"].note == ""


def test_count_stands_in_where_the_server_gives_none_and_says_so() -> None:
    found = counted(said("Hel", "lo", " world", counts=None))
    assert found["completion_tokens"].samples == (2.0,) * 4
    assert "tokenizer" in found["aggregate_tok_s"].note
    missing = found["token_disagreement"].missing
    assert missing is not None
    assert missing.missing is MissingReason.NOT_MEASURED


def test_counts_of_two_kinds_are_not_mixed_in_one_run() -> None:
    found = counted(said("Hello", " world", counts=9), said("Hello", " world", counts=None), warmup=0)
    assert found["completion_tokens"].samples == (2.0,) * 4


def test_without_a_tokenizer_nothing_is_counted_here() -> None:
    with talking(answering(WHOLE)) as port:
        found = {one.name: one for one in under_load(port).series}
    missing = found["counted_tokens"].missing
    assert missing is not None
    assert missing.missing is MissingReason.NOT_CONFIGURED


def test_tokenizer_that_breaks_loses_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "openvino_tokenizer.xml").write_text("<net")
    found = counted(said("Hello", " world", counts=2), tokenizer=tmp_path)
    assert found["latency_s"].samples
    missing = found["counted_tokens"].missing
    assert missing is not None
    assert (missing.missing, missing.detail.startswith("the tokenizer: ")) == (MissingReason.FAILED, True)


def test_folder_without_a_tokenizer_is_told_before_the_load(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no tokenizer; expected a folder with"):
        check_tokenizer(tmp_path)
