"""Asking the suites of a chat endpoint, one request at a time unless more are allowed, and marking what came back."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from probes.fleet import ProbeLimits
from probes.quality.chat import Chat, Reply, Trouble
from probes.quality.result import Marked, Outcome, Quality
from probes.quality.scoring import expected, final_answer, judge
from probes.quality.tally import FEWEST_TASKS, score, scored_sha256
from probes.quality.task import Open, Suite, Task, Tools

_CHARACTERS_PER_TOKEN: Final = 3.5  # fewer than haystack.py reckons with, so that a bound is kept for denser text too
_WORD: Final = re.compile(r"\w+|[^\w\s]")
_LONGEST_KEPT: Final = 256
INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What may be sent. `requests` None means no bound; `thinking_tokens` are granted to each answer on top of its own.

    A task whose answer needs more than `max_tokens`, or whose prompt is longer than `context_tokens`, is left out and
    told, never cut. After `errors_in_a_row` nothing more is asked.
    """

    requests: int | None = None
    max_tokens: int = 8192
    context_tokens: int = 4096
    thinking_tokens: int = 0
    concurrency: int = 1
    errors_in_a_row: int = 3

    @classmethod
    def of(cls, limits: ProbeLimits | None, **more: int) -> Limits:
        """Take over the limits of an inventory's service; None bounds nothing."""
        return cls(**more) if limits is None else cls(requests=limits.requests, max_tokens=limits.max_tokens, **more)


def measure(
    chat: Chat,
    suites: Sequence[Suite],
    *,
    limits: Limits,
    repetitions: int = 1,
    quote: Callable[[str], str] = str,
    tell: Callable[[str], None] = lambda _line: None,
) -> Quality:
    """Ask every task of the suites `repetitions` times; what a server does is never an exception.

    A repetition asks all suites before the next one begins. `quote` redacts and trims what is kept of a server's words.
    `tell` takes one line per suite and repetition for the person who waits. A suite is not begun when the requests
    allowed do not cover all its repetitions.
    """
    asking = _Asking(chat=chat, limits=limits, quote=quote)
    asking.reserve(suites, repetitions)
    marked: list[Marked] = []
    for repetition in range(repetitions):
        for suite in suites:
            those = asking.suite(suite, repetition)
            marked += those
            tell(_line(suite, repetition, repetitions, those))
    return Quality(
        suites=tuple(score(suite, [one for one in marked if one.suite == suite.name], repetitions) for suite in suites),
        marked=tuple(marked),
        repetitions=repetitions,
        requests=asking.sent,
        tasks_sha256=scored_sha256(suites, marked),
        max_tokens=max((task.max_tokens for suite in suites for task in suite.tasks), default=1) + limits.thinking_tokens,
        thinking_tokens=limits.thinking_tokens,
        stopped=asking.stopped,
    )


@dataclass(kw_only=True)
class _Asking:
    """The requests of one run: how many went out, what the server turned down for good, and whether it is over."""

    chat: Chat
    limits: Limits
    quote: Callable[[str], str]
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: str = ""
    errors_in_a_row: int = 0
    not_begun: dict[str, str] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    names_tokens: bool = True
    called_a_tool: bool = False

    def reserve(self, suites: Sequence[Suite], repetitions: int) -> None:
        """Share out the requests allowed, the first suites first; what would give no score in the end is not begun."""
        left = self.limits.requests
        for suite in suites:
            reasons = [why for task in suite.tasks if (why := self._left_out(task))]
            asked = len(suite.tasks) - len(reasons)
            # One more finds out whether tokens can be named, or whether tools are read at all.
            needed = asked * repetitions + any(isinstance(task.check, Open | Tools) for task in suite.tasks)
            if asked < min(FEWEST_TASKS, len(suite.tasks)):
                self.not_begun[suite.name] = f"{asked} of {len(suite.tasks)} tasks may be asked: {reasons[0]}"
            elif left is not None and needed > left:
                why = f"{left} of the {self.limits.requests} requests allowed are left for it, and it needs {needed}"
                self.not_begun[suite.name] = why
            elif left is not None:
                left -= needed

    def suite(self, suite: Suite, repetition: int) -> list[Marked]:
        """Ask one suite once."""
        reasons = [(task, self._left_out(task)) for task in suite.tasks]
        marked = [self._unasked(task, repetition, Outcome.LEFT_OUT, why) for task, why in reasons if why]
        asked = [task for task, why in reasons if not why]
        if why := self.not_begun.get(suite.name, ""):
            return marked + [self._unasked(task, repetition, Outcome.NOT_ASKED, why) for task in asked]
        marked += self._in_turn(suite, asked, repetition)
        if repetition == 0 and self._ignores_tools(asked, marked):
            words = "no answer called a tool, and the prompt has as many tokens with tools as without: the server ignores them"
            self.unsupported[suite.name] = words
        if words := self.unsupported.get(suite.name, ""):
            return [self._unasked(task, repetition, Outcome.UNSUPPORTED, words) for task in suite.tasks]
        return marked

    def _in_turn(self, suite: Suite, tasks: Sequence[Task], repetition: int) -> Iterator[Marked]:
        with ThreadPoolExecutor(self.limits.concurrency) as pool:
            for batch in _batches(tasks, self.limits.concurrency):
                replies: list[Reply] = []
                if not self.stopped and suite.name not in self.unsupported:
                    try:
                        # Without a pool, Ctrl-C reaches the request itself.
                        replies = [self._ask(batch[0])] if len(batch) == 1 else list(pool.map(self._ask, batch))
                    except KeyboardInterrupt:
                        self.stopped = INTERRUPTED
                for task in batch[len(replies) :]:
                    why = self.stopped or self.unsupported[suite.name]
                    yield self._unasked(task, repetition, Outcome.NOT_ASKED, why)
                for task, reply in zip(batch, replies, strict=False):
                    yield self._mark(suite, task, repetition, reply)

    def _ask(self, task: Task) -> Reply:
        body = task.body(self.limits.thinking_tokens)
        if not isinstance(task.check, Open) or not self.names_tokens:
            return self._send(body)
        reply = self._send({**body, "logprobs": True})
        if reply.refuses("logprobs"):
            self.names_tokens = False
            return self._send(body)
        return reply

    def _send(self, body: dict[str, JsonValue]) -> Reply:
        with self.lock:
            self.sent += 1
        return self.chat.complete(body)

    def _left_out(self, task: Task) -> str:
        """Say why the limits do not allow a task."""
        granted = task.max_tokens + self.limits.thinking_tokens
        if granted > self.limits.max_tokens:
            return f"its answer may need {granted} tokens, and {self.limits.max_tokens} are allowed"
        about = round(len(json.dumps(task.body(), ensure_ascii=False)) / _CHARACTERS_PER_TOKEN) + granted
        if about > self.limits.context_tokens:
            return f"prompt and answer have about {about} tokens, and {self.limits.context_tokens} are allowed"
        return ""

    def _mark(self, suite: Suite, task: Task, repetition: int, reply: Reply) -> Marked:
        if reply.trouble is not None:
            return self._failed(suite, task, repetition, reply)
        self.errors_in_a_row = 0
        self.called_a_tool = self.called_a_tool or bool(reply.tool_calls)
        verdict = judge(task, reply)
        answer = _shown(reply)
        exact = hashlib.sha256(answer.encode()).hexdigest()
        return self._marked(
            task,
            repetition,
            outcome=verdict.outcome,
            points=verdict.points,
            why=self.quote(verdict.why),
            answer=self.quote(answer),
            answer_sha256=exact,
            finish_reason=None if reply.finish_reason is None else self.quote(reply.finish_reason),
            **(self._pieces(reply) if isinstance(task.check, Open) else {}),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            seconds=None if reply.seconds is None else round(reply.seconds, 4),
        )

    def _pieces(self, reply: Reply) -> dict[str, object]:
        """Give the answer in the server's tokens, or in words where those are not all of it or hold what is redacted."""
        answer, joined = final_answer(reply), "".join(reply.tokens)
        # A key that is spread over several tokens would not be found in any of them.
        if joined.strip() == answer and self.quote(joined) == joined:
            return {"unit": "token", "pieces": reply.tokens[:_LONGEST_KEPT]}
        return {"unit": "word", "pieces": tuple(_WORD.findall(self.quote(answer))[:_LONGEST_KEPT])}

    def _failed(self, suite: Suite, task: Task, repetition: int, reply: Reply) -> Marked:
        words = self.quote(reply.error)
        if isinstance(task.check, Tools) and reply.refuses_tools:
            self.unsupported.setdefault(suite.name, words)
            return self._unasked(task, repetition, Outcome.UNSUPPORTED, words)
        if reply.refuses_length:
            return self._unasked(task, repetition, Outcome.LEFT_OUT, words)
        # A server that answers, though not as wanted, is not one that is going down.
        self.errors_in_a_row += reply.trouble is not Trouble.WITHHELD
        if self.errors_in_a_row >= self.limits.errors_in_a_row:
            self.stopped = self.stopped or f"stopped after {self.errors_in_a_row} errors in a row; the last: {words}"
        return self._unasked(task, repetition, Outcome.ERROR, f"{reply.trouble}: {words}")

    def _ignores_tools(self, asked: Sequence[Task], marked: Sequence[Marked]) -> bool:
        """Ask once more without tools when no answer used one, and compare what the server counts."""
        task = next((one for one in asked if isinstance(one.check, Tools)), None)
        counted = next((one.prompt_tokens for one in marked if task and one.task == task.id), None)
        failed = self.stopped or any(one.outcome is Outcome.ERROR for one in marked)
        if task is None or counted is None or failed or self.called_a_tool:
            return False
        body = {name: value for name, value in task.body().items() if name not in {"tools", "tool_choice"}}
        return self._send({**body, "max_tokens": 1}).prompt_tokens == counted

    def _unasked(self, task: Task, repetition: int, outcome: Outcome, why: str) -> Marked:
        return self._marked(task, repetition, outcome=outcome, points=None, why=why)

    def _marked(self, task: Task, repetition: int, **found: object) -> Marked:
        return Marked.model_validate(
            {
                "suite": task.suite,
                "task": task.id,
                "repetition": repetition,
                "prompt_sha256": task.prompt_sha256,
                "task_sha256": task.sha256,
                "expected": expected(task),
                **found,
            }
        )


def _batches(tasks: Sequence[Task], size: int) -> Iterator[Sequence[Task]]:
    """Give the first task alone, as it may show that the rest would be asked in vain, and then groups of a size."""
    yield from filter(None, [tasks[:1], *(tasks[at : at + size] for at in range(1, len(tasks), size))])


def _shown(reply: Reply) -> str:
    """Give the whole answer as text: its words, and its tool calls as they came."""
    calls = [f"{call.name}({call.arguments})" for call in reply.tool_calls]
    return "\n".join(filter(None, [final_answer(reply), *calls]))


def _line(suite: Suite, repetition: int, repetitions: int, marked: Sequence[Marked]) -> str:
    counted = Counter(one.outcome.value for one in marked)
    seconds = sum(one.seconds or 0.0 for one in marked)
    turn = f" ({repetition + 1} of {repetitions})" if repetitions > 1 else ""
    return f"{suite.name}{turn}: {', '.join(f'{n} {outcome}' for outcome, n in counted.items())}; {seconds:.1f} s"
