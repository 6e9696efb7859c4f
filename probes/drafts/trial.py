"""One engine with one way of drafting, asked several things in a child process, and what each came to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from probes import telemetry
from probes.child import ChildResult, Outcome, run_child
from probes.devices import dump, prompts
from probes.devices.dump import Dump
from probes.devices.engine import Engine
from probes.evidence import Scalar
from probes.schema import Model

# More than one block of the cache (32 tokens on CPU, 16 on GPU), so that a repeated prompt finds one.
PROMPT_TOKENS = 40
ANSWER_TOKENS = 12
REQUESTS = 6
POOL_BLOCKS = 128
TIMEOUT_S = 300.0
MEMORY_BYTES = 6 * 2**30
PAGED, STATEFUL = "probes.drafts.trial:observe", "probes.drafts.trial:observe_stateful"
_LOADED = "loaded"


class Ask(Model):
    """One question to an engine: how many of the prompts, one by one or at once, with which settings.

    `counted` asks in the one call that tells what the draft did.
    """

    name: str
    requests: int = REQUESTS
    at_once: bool = False
    counted: bool = False
    generation: dict[str, Scalar] = {}


class Reply(Model):
    """What one question came to: the tokens of each request, or the words of a refusal.

    Steps are counted where the engine is watched step by step, drafts where it answers in one call.
    """

    name: str
    tokens: tuple[tuple[int, ...], ...] = ()
    tokens_per_step: float | None = None
    draft_steps: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    refusal: str | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What to open: a target, perhaps with a draft beside it, and what to ask it in turn.

    `observer` is the function that carries it out in the child.
    """

    target: Path
    device: str
    draft: Path | None = None
    properties: tuple[tuple[str, Scalar], ...] = ()
    scheduler: tuple[tuple[str, Scalar], ...] = ()
    asks: tuple[Ask, ...]
    observer: str = PAGED


@dataclass(frozen=True, kw_only=True)
class Tried:
    """How a trial ended, with the replies that came before its end, and the words of an end that came too soon."""

    outcome: Outcome
    loaded: bool
    replies: tuple[Reply, ...]
    dump: Dump | None
    words: str
    seconds: float
    peak_rss_bytes: int

    def reply(self, name: str) -> Reply | None:
        """Find the reply to one question; None when the engine ended before."""
        return next((reply for reply in self.replies if reply.name == name), None)


def try_drafts(trial: Trial) -> Tried:
    """Run a trial in a child of its own."""
    arguments: dict[str, JsonValue] = {
        "target": str(trial.target),
        "device": trial.device,
        "draft": None if trial.draft is None else str(trial.draft),
        "properties": dict(trial.properties),
        "scheduler": dict(trial.scheduler),
        "asks": [ask.model_dump(mode="json") for ask in trial.asks],
    }
    result = run_child(trial.observer, arguments, timeout_s=TIMEOUT_S, memory_bytes=MEMORY_BYTES, env=dump.ENVIRONMENT)
    return _tried(result)


def observe(
    *,
    target: str,
    device: str,
    draft: str | None,
    properties: dict[str, Scalar],
    scheduler: dict[str, Scalar],
    asks: list[dict[str, Any]],
    emit: Callable[[JsonValue], None],
) -> JsonValue:
    """Open an engine and ask it everything in turn; what one question raises ends that question (runs in the child)."""
    engine = Engine.open(
        Path(target),
        device=device,
        properties=properties,
        scheduler={"num_kv_blocks": POOL_BLOCKS, **scheduler},
        draft=None if draft is None else Path(draft),
    )
    emit(_LOADED)
    for asked in asks:
        reply = _reply(engine, Ask.model_validate(asked))
        emit(reply.model_dump(mode="json"))
    value: JsonValue = None if engine.dump is None else engine.dump.model_dump(mode="json")
    return value


def observe_stateful(
    *,
    target: str,
    device: str,
    draft: str | None,
    properties: dict[str, Scalar],
    scheduler: dict[str, Scalar],  # noqa: ARG001 - this pipeline has no scheduler
    asks: list[dict[str, Any]],
    emit: Callable[[JsonValue], None],
) -> JsonValue:
    """Open the pipeline without paged attention; that it opens is all it is asked (runs in the child)."""
    telemetry.silence()
    import openvino_genai

    beside = {} if draft is None else {"draft_model": openvino_genai.draft_model(draft, device)}
    openvino_genai.LLMPipeline(target, device, ATTENTION_BACKEND="SDPA", **properties, **beside)
    emit(_LOADED)
    for asked in asks:
        emit(Reply(name=Ask.model_validate(asked).name).model_dump(mode="json"))
    return None


def _reply(engine: Engine, ask: Ask) -> Reply:
    asked = [prompts.token_ids(f"speculation {number}", PROMPT_TOKENS) for number in range(ask.requests)]
    groups = [asked] if ask.at_once else [[prompt] for prompt in asked]
    try:
        return _counted(engine, ask, groups) if ask.counted else _stepped(engine, ask, groups)
    except Exception as exc:
        return Reply(name=ask.name, refusal=str(exc).strip() or type(exc).__name__)


def _counted(engine: Engine, ask: Ask, groups: list[list[tuple[int, ...]]]) -> Reply:
    found = [engine.count(group, max_tokens=ANSWER_TOKENS, generation=ask.generation) for group in groups]
    counters = [counted for _, counted in found if counted is not None]
    return Reply(
        name=ask.name,
        tokens=tuple(answer for answers, _ in found for answer in answers),
        draft_steps=sum(one.draft_steps for one in counters) if counters else None,
        drafted=sum(one.drafted for one in counters) if counters else None,
        accepted=sum(one.accepted for one in counters) if counters else None,
    )


def _stepped(engine: Engine, ask: Ask, groups: list[list[tuple[int, ...]]]) -> Reply:
    answers = [
        answer for group in groups for answer in engine.answer(group, max_tokens=ANSWER_TOKENS, generation=ask.generation)
    ]
    return Reply(
        name=ask.name,
        tokens=tuple(answer.tokens for answer in answers),
        tokens_per_step=sum(len(answer.tokens) - 1 for answer in answers)
        / sum(answer.steps - answer.steps_to_first for answer in answers),
    )


def _tried(result: ChildResult) -> Tried:
    sent = [json.dumps(value) for value in result.sent if value != _LOADED]
    return Tried(
        outcome=result.outcome,
        loaded=_LOADED in result.sent,
        replies=tuple(Reply.model_validate_json(value) for value in sent),
        dump=None if result.value is None else Dump.model_validate_json(json.dumps(result.value)),
        words=result.words,
        seconds=result.seconds,
        peak_rss_bytes=result.peak_rss_bytes,
    )
