"""Token agreement: where two sides part, and how far one side agrees with itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gen.verdict import compare
from gen.words import Verdict
from probes.fleet import Gates
from probes.quality.agreement import AGREEMENT, between, first_difference, with_itself
from probes.quality.asking import Limits, measure
from probes.quality.chat import Reply, Trouble
from probes.quality.result import Quality
from tests.probes.quality.scripted import Scripted, failing, suite

OPEN = {"kind": "open"}
TOKENS = st.lists(st.sampled_from("abc"), max_size=8)


def side(*answers: Reply, repetitions: int = 1, prompts: str = "xy") -> Quality:
    chat = Scripted(lambda _prompt, n: answers[n % len(answers)])
    return measure(chat, [suite("open", *prompts, check=OPEN)], limits=Limits(), repetitions=repetitions)


def words(text: str) -> Reply:
    return Reply(text=text, finish_reason="stop")


def tokens(*names: str) -> Reply:
    return Reply(text="".join(names), tokens=names, finish_reason="length")


@given(TOKENS, TOKENS)
def test_first_difference_is_where_the_common_beginning_ends(one: list[str], other: list[str]) -> None:
    at = first_difference(one, other)
    assert at == first_difference(other, one)
    if at is None:
        assert one == other
    else:
        assert one[:at] == other[:at]
        assert one[at : at + 1] != other[at : at + 1]


def test_answer_that_ends_earlier_differs_at_its_end() -> None:
    assert first_difference(["a", "b"], ["a", "b", "c"]) == 2


def test_tokens_of_the_server_are_compared_where_it_names_them() -> None:
    found = between(side(tokens("The", " sea", "s")), side(tokens("The", " sea", " is")))
    assert (found.units, found.first_differences, found.identical_share) == ("tokens", (2, 2), 0.0)
    assert found.words == "0 of 2 answers identical; the others begin to differ after 2 tokens (median; 2 at least)"


def test_words_are_compared_where_it_names_none() -> None:
    found = between(side(words("The sea is wide."), words("Yes.")), side(words("The sea was wide."), words("Yes.")))
    assert (found.units, found.first_differences, found.identical_share) == ("words", (2,), 0.5)


def test_tokens_that_are_not_the_answer_are_not_compared() -> None:
    """Some servers name the tokens of the thinking too, or only some."""
    thinking = Reply(text="<think>a</think>b c", tokens=("<think>", "a", "</think>", "b", " c"), finish_reason="stop")
    mark = side(thinking).marked[0]
    assert (mark.unit, mark.pieces) == ("word", ("b", "c"))


def test_secret_that_is_spread_over_tokens_is_kept_out() -> None:
    chat = Scripted(lambda _prompt, _n: tokens("my", " sec", "ret", " key"))
    found = measure(
        chat, [suite("open", "x", check=OPEN)], limits=Limits(), quote=lambda text: text.replace("secret", "[redacted]")
    )
    assert found.marked[0].pieces == ("my", "[", "redacted", "]", "key")
    assert found.marked[0].answer == "my [redacted] key"


def test_server_without_logprobs_is_asked_once_more_and_then_never_again() -> None:
    refusal = failing("HTTP 400: logprobs is not supported", 400, Trouble.REFUSED)
    chat = Scripted(lambda _prompt, n: refusal if n == 0 else words("sea"))
    found = measure(chat, [suite("open", *"xyz", check=OPEN)], limits=Limits(), repetitions=2)
    assert ["logprobs" in body for body in chat.bodies] == [True, *[False] * 6]
    assert (found.requests, found.suites[0].outcomes) == (7, {"answered, not judged": 6})


def test_side_agrees_with_itself_as_far_as_its_repetitions_do() -> None:
    same = with_itself(side(words("a b"), repetitions=3))
    assert (same.identical_share, len(same.pairs)) == (1.0, 4)
    assert same.words == "4 of 4 answers identical"
    changed = with_itself(side(words("a b"), words("a b"), words("a c"), words("a b"), repetitions=2))
    assert (changed.identical_share, changed.first_differences) == (0.5, (1,))
    assert with_itself(side(words("a"))).words == "nothing to compare"


def test_only_the_same_questions_are_paired() -> None:
    found = between(side(words("a"), prompts="xy"), side(words("a"), prompts="xz"))
    assert len(found.pairs) == 1
    assert found.unpaired == ("open/t1",)


def test_agreement_is_a_metric_of_both_sides() -> None:
    """The candidate's agreement with the baseline is held against the baseline's with itself."""
    baseline = side(words("a b"), repetitions=7)
    candidate = side(words("a c"), repetitions=6)
    itself, other = with_itself(baseline).metric(), between(baseline, candidate).metric()
    assert (itself.name, itself.samples, other.samples) == (AGREEMENT, (1.0,) * 6, (0.0,) * 6)
    assert compare(itself, other, Gates()).verdict is Verdict.WORSE
    assert with_itself(side(words("a"))).metric().missing is not None
