"""One engine with one group of settings, opened and asked in a child process, and what it showed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from probes.child import ChildResult, Outcome, run_child
from probes.devices import dump, prompts
from probes.devices.dump import Dump
from probes.devices.engine import Engine
from probes.evidence import Scalar
from probes.schema import Model

PROMPT_TOKENS = 200
# A multiple of the blocks that devices keep (32 tokens on CPU, 16 on GPU), so that a chunk fills them.
CHUNK_TOKENS = 64
ANSWER_TOKENS = 16
POOL_BLOCKS = 64
MEMORY_BYTES = 6 * 2**30
TIMEOUT_S = 180.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What to open, and how often to ask it the same prompt or how many prompts to ask it at once.

    Scheduler values override the small pool above.
    """

    device: str
    properties: tuple[tuple[str, Scalar], ...] = ()
    scheduler: tuple[tuple[str, Scalar], ...] = ()
    times: int = 1
    at_once: int = 1


class Observation(Model):
    """What the engine did: live settings, cache bytes, and one entry per request in the order they were made."""

    dump: Dump | None
    bytes_per_token: int
    tokens: tuple[tuple[int, ...], ...]
    steps_to_first: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """How a trial ended; `loaded` tells a refusal to build the engine from one to answer."""

    outcome: Outcome
    observation: Observation | None
    loaded: bool
    words: str
    seconds: float
    peak_rss_bytes: int


def try_settings(trial: Trial, ir: Path) -> Tried:
    """Run a trial in a child of its own."""
    arguments: dict[str, JsonValue] = {
        "ir": str(ir),
        "device": trial.device,
        "properties": dict(trial.properties),
        "scheduler": dict(trial.scheduler),
        "times": trial.times,
        "at_once": trial.at_once,
    }
    return _tried(
        run_child(
            "probes.devices.trial:observe",
            arguments,
            timeout_s=TIMEOUT_S,
            memory_bytes=MEMORY_BYTES,
            env=dump.ENVIRONMENT,
        )
    )


def observe(
    *,
    ir: str,
    device: str,
    properties: dict[str, Scalar],
    scheduler: dict[str, Scalar],
    times: int,
    at_once: int,
    emit: Callable[[JsonValue], None],
) -> JsonValue:
    """Open an engine and ask it (runs in the child)."""
    pool: dict[str, Scalar] = {"num_kv_blocks": POOL_BLOCKS, "max_num_batched_tokens": CHUNK_TOKENS}
    engine = Engine.open(Path(ir), device=device, properties=properties, scheduler={**pool, **scheduler})
    emit("loaded")
    asked = [prompts.token_ids(f"capability {number}", PROMPT_TOKENS) for number in range(at_once)]
    answers = [answer for _ in range(times) for answer in engine.answer(asked, max_tokens=ANSWER_TOKENS)]
    observation = Observation(
        dump=engine.dump,
        bytes_per_token=round(answers[0].chunk_bytes / CHUNK_TOKENS),
        tokens=tuple(answer.tokens for answer in answers),
        steps_to_first=tuple(answer.steps_to_first for answer in answers),
    )
    value: JsonValue = observation.model_dump(mode="json")
    return value


def _tried(result: ChildResult) -> Tried:
    value = result.value
    return Tried(
        outcome=result.outcome,
        observation=Observation.model_validate_json(json.dumps(value)) if result.outcome is Outcome.OK else None,
        loaded="loaded" in result.sent,
        words=result.words,
        seconds=result.seconds,
        peak_rss_bytes=result.peak_rss_bytes,
    )
