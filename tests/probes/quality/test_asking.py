"""What is asked and what becomes of it: errors are no wrong answers, limits hold, and what has no score says why."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence

import pytest

from gen.verdict import compare, gate_for
from gen.words import Verdict
from probes.evidence import MissingReason, Per
from probes.fleet import Gates, ProbeLimits
from probes.load.answer import ToolCall
from probes.quality.asking import INTERRUPTED, Limits, measure
from probes.quality.chat import Reply, Trouble
from probes.quality.report import native, reasons
from probes.quality.result import Outcome, Quality, SuiteScore
from probes.quality.task import Suite
from tests.probes.quality.scripted import Scripted, echo, failing, suite

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
TOOLS = {"kind": "tools", "tools": [TOOL], "calls": [{"name": "f"}]}
NO_TOOL_FITS = {"kind": "tools", "tools": [TOOL], "calls": []}
OPEN = {"kind": "open"}
FREE = Limits()


def one(found: Quality, name: str) -> SuiteScore:
    return next(suite for suite in found.suites if suite.name == name)


def outcomes(found: Quality) -> list[Outcome]:
    return [mark.outcome for mark in found.marked]


def ask(chat: Scripted, *suites: Suite, limits: Limits = FREE, repetitions: int = 1) -> Quality:
    return measure(chat, suites, limits=limits, repetitions=repetitions)


def missing(score: SuiteScore) -> tuple[MissingReason, str]:
    assert score.missing is not None
    assert score.shares == ()
    return score.missing.missing, score.missing.detail


def test_share_is_right_answers_among_those_judged() -> None:
    found = ask(Scripted(echo), suite("s", "yes", "no", "yes.", "perhaps"))
    assert one(found, "s").shares == (0.5,)
    assert one(found, "s").outcomes == {"right": 2, "wrong": 2}
    assert found.requests == 4


def test_requests_are_greedy_and_in_one_piece() -> None:
    chat = Scripted(echo)
    ask(chat, suite("s", "yes", system="Be brief."), limits=Limits(thinking_tokens=100))
    assert chat.bodies == [
        {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "yes"}],
            "max_tokens": 108,
            "temperature": 0,
            "stream": False,
        }
    ]


def test_every_mark_says_what_was_asked_answered_expected_and_why() -> None:
    mark = measure(Scripted(echo), [suite("s", "my key")], limits=FREE, quote=lambda text: text.replace("key", "***")).marked[0]
    assert (mark.suite, mark.task, mark.outcome, mark.points) == ("s", "t0", Outcome.WRONG, 0.0)
    assert (mark.answer, mark.expected, mark.why) == ("my ***", "nothing but 'yes'", "is something else, or more than that")
    assert len(mark.prompt_sha256) == len(mark.answer_sha256) == 64


def test_error_is_counted_apart_and_leaves_no_share_and_no_total() -> None:
    chat = Scripted(lambda prompt, n: failing() if prompt == "boom" else echo(prompt, n))
    found = ask(chat, suite("bad", "yes", "boom", "no"), suite("good", "yes"))
    assert missing(one(found, "bad")) == (
        MissingReason.FAILED,
        "1 of 3 requests failed; the first: server error: HTTP 500: broken",
    )
    assert one(found, "good").shares == (1.0,)
    metrics = {metric.name: metric for metric in found.metrics()}
    assert metrics["quality_bad"].missing is not None
    total = metrics["task_quality"].missing
    assert total is not None
    assert (total.missing, total.detail.startswith("bad: 1 of 3 requests failed")) == (MissingReason.FAILED, True)
    assert reasons(found) == ("requests-failed",)


@pytest.mark.parametrize("trouble", [t for t in Trouble if t is not Trouble.WITHHELD])
def test_run_of_errors_stops_everything(trouble: Trouble) -> None:
    chat = Scripted(lambda _prompt, _n: failing(trouble=trouble))
    found = ask(chat, suite("s", *"abcdef"), suite("next", "yes"))
    assert len(chat.bodies) == 3
    assert outcomes(found) == [Outcome.ERROR] * 3 + [Outcome.NOT_ASKED] * 4
    assert found.stopped == "stopped after 3 errors in a row; the last: HTTP 500: broken"
    assert reasons(found) == ("stopped", "requests-failed", "nothing-answered")
    assert missing(one(found, "next"))[0] is MissingReason.SKIPPED


def test_answer_withheld_by_the_server_is_an_error_but_not_one_of_a_server_going_down() -> None:
    chat = Scripted(lambda _prompt, _n: failing("I cannot help", 200, Trouble.WITHHELD))
    found = ask(chat, suite("s", *"abcde"))
    assert outcomes(found) == [Outcome.ERROR] * 5
    assert not found.stopped


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (
            400,
            "HTTP 400: MP status - INVALID_ARGUMENT: tools is not supported by the embedded service",
        ),
        (400, 'HTTP 400: "auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "HTTP 500: tools param requires --jinja flag"),
        (400, "HTTP 400: registry.ollama.ai/library/x does not support tools"),
        (501, "HTTP 501: Function calling is not implemented"),
    ],
)
def test_server_without_tools_is_asked_once_and_is_unsupported_in_its_words(status: int, words: str) -> None:
    chat = Scripted(lambda _prompt, _n: failing(words, status, Trouble.REFUSED))
    found = ask(chat, suite("tools", "a", "b", "c", check=TOOLS), repetitions=2)
    assert missing(one(found, "tools")) == (MissingReason.UNSUPPORTED, words)
    assert len(chat.bodies) == 1
    assert reasons(found) == ("nothing-answered",)


def test_suite_that_is_unsupported_leaves_the_total_to_the_others() -> None:
    def answer(prompt: str, n: int) -> Reply:
        return failing("HTTP 400: no tools", 400, Trouble.REFUSED) if prompt == "call" else echo(prompt, n)

    found = ask(Scripted(answer), suite("tools", "call", check=TOOLS), suite("s", "yes", "no"))
    assert found.metrics()[-1].samples == (0.5,)
    without = ask(Scripted(echo), suite("s", "yes", "no"))
    assert found.tasks_sha256 == without.tasks_sha256


def test_server_that_ignores_tools_is_found_out_by_its_own_count() -> None:
    chat = Scripted(echo)
    found = ask(chat, suite("tools", "a", "b", check=TOOLS))
    assert missing(one(found, "tools"))[0] is MissingReason.UNSUPPORTED
    assert "ignores" in missing(one(found, "tools"))[1]
    assert [("tools" in body) for body in chat.bodies] == [True, True, False]


def test_model_that_reads_tools_and_calls_none_is_wrong() -> None:
    chat = Scripted(lambda prompt, n: dataclasses.replace(echo(prompt, n), prompt_tokens=50 if n < 2 else 10))
    found = ask(chat, suite("tools", "a", "b", check=TOOLS))
    assert one(found, "tools").shares == (0.0,)


def test_one_call_proves_that_tools_are_read() -> None:
    def answer(prompt: str, n: int) -> Reply:
        call = ToolCall(id="c", name="f", arguments="{}")
        return Reply(tool_calls=(call,), finish_reason="tool_calls") if n == 0 else echo(prompt, n)

    chat = Scripted(answer)
    found = ask(chat, suite("tools", "a", "b", check=TOOLS))
    assert (one(found, "tools").shares, len(chat.bodies)) == ((0.5,), 2)


def test_points_for_not_calling_do_not_hide_that_tools_are_ignored() -> None:
    found = ask(Scripted(echo), suite("tools", "a", check=NO_TOOL_FITS))
    assert missing(one(found, "tools"))[0] is MissingReason.UNSUPPORTED


def test_prompt_too_long_for_the_server_is_left_out_and_told() -> None:
    words = "HTTP 400: request (2100 tokens) exceeds the available context size (2048 tokens)"
    chat = Scripted(lambda prompt, n: failing(words, 400, Trouble.REFUSED) if prompt == "long" else echo(prompt, n))
    found = ask(chat, suite("s", *["yes"] * 5, "long", "long", "long", "long"))
    assert one(found, "s").shares == (1.0,)
    assert one(found, "s").outcomes == {"right": 5, "left out": 4}
    assert not found.stopped
    assert one(found, "s").tasks_sha256 != one(found, "s").suite_sha256


def test_too_few_tasks_left_is_no_share() -> None:
    words = "HTTP 400: prompt is too long"
    chat = Scripted(lambda prompt, n: failing(words, 400, Trouble.REFUSED) if prompt == "long" else echo(prompt, n))
    assert missing(one(ask(chat, suite("s", *["yes"] * 4, "long", "long")), "s")) == (
        MissingReason.SKIPPED,
        "4 of 6 tasks could be asked: HTTP 400: prompt is too long",
    )


def test_budget_spent_on_thinking_withholds_a_share_only_when_it_happens_often() -> None:
    def thinking(on: Sequence[int]) -> Scripted:
        spent = Reply(reasoning="hm", finish_reason="length")
        return Scripted(lambda prompt, n: spent if n in on else echo(prompt, n))

    rare = one(ask(thinking([3]), suite("s", *["yes"] * 10)), "s")
    assert (rare.shares, rare.outcomes) == ((1.0,), {"right": 9, "no answer within the budget": 1})
    often = one(ask(thinking([3, 4]), suite("s", *["yes"] * 10)), "s")
    assert missing(often) == (
        MissingReason.TOO_FEW_SAMPLES,
        "2 of 10 answers ended before they began: the limit of tokens was spent on thinking",
    )


def test_limits_of_the_inventory_hold_and_no_request_is_spent_in_vain() -> None:
    limits = Limits.of(ProbeLimits(requests=5, max_tokens=8))
    chat = Scripted(echo)
    found = ask(chat, suite("big", *["yes"] * 6), suite("small", *["yes"] * 5), limits=limits)
    assert missing(one(found, "big")) == (MissingReason.SKIPPED, "5 of the 5 requests allowed are left for it, and it needs 6")
    assert (one(found, "small").shares, len(chat.bodies)) == ((1.0,), 5)
    assert len(ask(Scripted(echo), suite("s", "a", "b", "c"), limits=limits, repetitions=2).marked) == 6


def test_repetitions_count_before_the_first_request() -> None:
    chat = Scripted(echo)
    ask(chat, suite("s", "a", "b", "c"), limits=Limits(requests=5), repetitions=2)
    assert chat.bodies == []


@pytest.mark.parametrize("kind", [OPEN, TOOLS])
def test_requests_beside_the_tasks_are_counted_too(kind: dict[str, object]) -> None:
    def refusing(prompt: str, n: int) -> Reply:
        return (
            failing("HTTP 400: logprobs is not supported", 400, Trouble.REFUSED) if n == 0 and kind is OPEN else echo(prompt, n)
        )

    for allowed, sent in ((2, 0), (3, 3)):
        chat = Scripted(refusing)
        assert ask(chat, suite("s", "a", "b", check=kind), limits=Limits(requests=allowed)).requests == sent


def test_task_that_needs_more_than_allowed_is_left_out_never_cut() -> None:
    chat = Scripted(echo)
    found = ask(chat, suite("s", "yes"), limits=Limits(max_tokens=7))
    assert (chat.bodies, outcomes(found)) == ([], [Outcome.LEFT_OUT])
    context = {"tokens": 1000, "depth": 0.5, "needle": "yes"}
    found = ask(chat, suite("s", "yes", context=context), limits=Limits(context_tokens=1000))
    assert (chat.bodies, outcomes(found)) == ([], [Outcome.LEFT_OUT])
    assert "tokens, and 1000 are allowed" in found.marked[0].why


def test_first_request_goes_alone_and_the_rest_as_many_at_a_time_as_allowed() -> None:
    together, fifth = threading.Barrier(4), threading.Event()
    left: list[int] = []
    early: list[int] = []

    def answer(prompt: str, n: int) -> Reply:
        if len(left) < (n > 0) + 4 * (n > 4):
            early.append(n)
            fifth.set()
        if 1 <= n <= 4:
            together.wait(20)
            fifth.wait(0.1)  # time for one too many, who must not come
        left.append(n)
        return echo(prompt, n)

    found = ask(Scripted(answer), suite("s", "yes", *"abcdefg"), limits=Limits(concurrency=4))
    assert early == []
    assert [mark.task for mark in found.marked] == [f"t{n}" for n in range(8)]
    assert one(found, "s").shares == (0.125,)


def test_what_was_marked_before_ctrl_c_is_kept() -> None:
    def answer(prompt: str, n: int) -> Reply:
        if n == 2:
            raise KeyboardInterrupt
        return echo(prompt, n)

    found = ask(Scripted(answer), suite("s", "yes", "no", "yes", "yes"), suite("t", "yes"))
    assert outcomes(found) == [Outcome.RIGHT, Outcome.WRONG, *[Outcome.NOT_ASKED] * 3]
    assert found.stopped == INTERRUPTED
    assert missing(one(found, "s")) == (MissingReason.SKIPPED, "interrupted")


def test_sample_is_a_repetition_and_the_verdict_takes_it() -> None:
    """A share is held against the quality gate, in points of a hundred."""

    def half(prompt: str, _n: int) -> Reply:
        return Reply(text="yes" if prompt in "ab" else "no")

    good = ask(Scripted(lambda _p, _n: Reply(text="yes")), suite("s", *"abcd"), repetitions=6)
    bad = ask(Scripted(half), suite("s", *"abcd"), repetitions=6)
    gates = Gates()
    for name in ("quality_s", "task_quality"):
        one, two = (next(m for m in side.metrics() if m.name == name) for side in (good, bad))
        assert (one.per, one.unit, len(one.samples), gate_for(one, gates).width) == (Per.REPETITION, "share", 6, 0.01)
        assert compare(one, two, gates).verdict is Verdict.WORSE
        assert compare(two, one, gates).verdict is Verdict.BETTER
        assert compare(one, one, gates).verdict is Verdict.SAME


def test_repetitions_that_differ_are_reported_and_not_averaged_away() -> None:
    """Prefix caching has changed greedy answers before."""
    chat = Scripted(lambda _prompt, n: Reply(text="yes" if n != 3 else "no"))
    found = ask(chat, suite("s", "a", "b"), repetitions=2)
    assert one(found, "s").shares == (1.0, 0.5)
    assert found.repeat_agreement == 0.5
    assert found.metrics()[-1].samples == (0.5,)
    kept = native(found)["tasks"]
    assert isinstance(kept, list)
    assert len(kept) == 3
    assert ask(Scripted(echo), suite("s", "a")).repeat_agreement is None


def test_result_is_read_back_as_written() -> None:
    found = ask(
        Scripted(lambda _p, n: failing() if n == 1 else Reply(text="x")), suite("s", "a", "b"), suite("o", "c", check=OPEN)
    )
    assert Quality.model_validate_json(found.model_dump_json()) == found
