"""One engine with one group of settings, opened and asked in a child process, and what it showed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from probes.child import ChildResult, Outcome, run_child
from probes.devices import dump, prompts
from probes.devices.dump import Dump
from probes.devices.engine import Chooser, Engine
from probes.devices.questions import TOKENIZER, question_ids
from probes.evidence import Scalar
from probes.schema import Model

PROMPT_TOKENS = 32
# A multiple of the prompt and of the blocks that devices keep (32 tokens on CPU, 16 on GPU), so that a step fills them.
CHUNK_TOKENS = 128
ANSWER_TOKENS = 12
QUESTION_TOKENS = 48
AT_ONCE = 8
POOL_BLOCKS = 64
MEMORY_BYTES = 6 * 2**30
TIMEOUT_S = 180.0
# With log-probabilities two answers of the same tokens still show whether the same numbers led to them.
_GENERATION: dict[str, Scalar] = {"logprobs": 1}


class Pipeline(StrEnum):
    """Which class of the runtime is opened; BATCHING is the engine inside OVMS."""

    BATCHING = "ContinuousBatchingPipeline"
    CHOOSING = "LLMPipeline"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What to open, and how many prompts of which length to ask it at once, how often.

    `questions` in plain words are asked afterwards, all at once: answers to random ids soon run in circles, and a
    circle hides what rounding does to an answer.
    Scheduler values override a small pool without prefix caching. `compiled_cache` opens the engine
    twice with one folder for compiled models.
    """

    device: str
    properties: tuple[tuple[str, Scalar], ...] = ()
    scheduler: tuple[tuple[str, Scalar], ...] = ()
    pipeline: Pipeline = Pipeline.BATCHING
    prompt_tokens: int = PROMPT_TOKENS
    answer_tokens: int = ANSWER_TOKENS
    at_once: int = AT_ONCE
    times: int = 1
    compiled_cache: bool = False
    questions: int = 0

    @property
    def chunk_tokens(self) -> int:
        """How many prompt tokens the first step takes."""
        limit = int(dict(self.scheduler).get("max_num_batched_tokens", CHUNK_TOKENS))
        return min(limit, self.at_once * self.prompt_tokens)


class Observation(Model):
    """What the engine did: live settings, cache bytes, and one entry per answer in the order of the requests.

    `told` are the answers to questions in plain words. `pool_bytes` is the size of the KV cache after the first
    step and after the last; `files` counts what lay in the folder for compiled models after each opening, and what
    the last opening wrote there.
    """

    dump: Dump | None
    tokens: tuple[tuple[int, ...], ...]
    log_likelihoods: tuple[float, ...] = ()
    steps_to_first: tuple[int, ...] = ()
    bytes_per_token: int = 0
    held_bytes: int = 0
    pool_bytes: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    files: tuple[int, ...] = ()
    told: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tried:
    """How a trial ended; `loaded` tells a refusal to build the engine from one to answer."""

    outcome: Outcome
    observation: Observation | None
    loaded: bool
    words: str
    seconds: float
    peak_rss_bytes: int


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a trial may take, and the function that carries it out in the child."""

    target: str = "probes.devices.trial:observe"
    timeout_s: float = TIMEOUT_S
    memory_bytes: int = MEMORY_BYTES


def try_settings(trial: Trial, ir: Path, bounds: Bounds | None = None) -> Tried:
    """Run a trial in a child of its own."""
    limits = bounds or Bounds()
    with tempfile.TemporaryDirectory(prefix="inference-adr-") as scratch:
        return tried(
            run_child(
                limits.target,
                {"ir": str(ir), "scratch": scratch, "trial": as_json(trial)},
                timeout_s=limits.timeout_s,
                memory_bytes=limits.memory_bytes,
                env=dump.ENVIRONMENT,
            )
        )


def observe(*, ir: str, scratch: str, trial: dict[str, Any], emit: Callable[[JsonValue], None]) -> JsonValue:
    """Open an engine and ask it (runs in the child)."""
    asked, folder = _from_json(trial), Path(ir)
    choosing = asked.pipeline is Pipeline.CHOOSING
    seen = _choose(asked, folder, emit) if choosing else _batch(asked, folder, Path(scratch), emit)
    value: JsonValue = seen.model_dump(mode="json")
    return value


def tried(result: ChildResult) -> Tried:
    """Read what a child sent back."""
    return Tried(
        outcome=result.outcome,
        observation=Observation.model_validate_json(json.dumps(result.value)) if result.outcome is Outcome.OK else None,
        loaded="loaded" in result.sent,
        words=result.words,
        seconds=result.seconds,
        peak_rss_bytes=result.peak_rss_bytes,
    )


def as_json(trial: Trial) -> dict[str, JsonValue]:
    """Write a trial as JSON, which also tells it from every other."""
    return {**asdict(trial), "properties": dict(trial.properties), "scheduler": dict(trial.scheduler)}


def _from_json(values: dict[str, Any]) -> Trial:
    given = {name: tuple(values[name].items()) for name in ("properties", "scheduler")}
    return Trial(**{**values, **given, "pipeline": Pipeline(values["pipeline"])})


def _batch(trial: Trial, ir: Path, scratch: Path, emit: Callable[[JsonValue], None]) -> Observation:
    pool: dict[str, Scalar] = {
        "num_kv_blocks": POOL_BLOCKS,
        "max_num_batched_tokens": CHUNK_TOKENS,
        "enable_prefix_caching": False,
        # Without split fuse it may not exceed the tokens of a step.
        "max_num_seqs": CHUNK_TOKENS // 4,
    }
    properties = dict(trial.properties) | ({"CACHE_DIR": str(scratch)} if trial.compiled_cache else {})
    files: tuple[int, ...] = ()
    if trial.compiled_cache:
        Engine.open(ir, device=trial.device, properties=properties, scheduler=pool)
        before = _written(scratch)
        files = (len(before),)
    engine = Engine.open(ir, device=trial.device, properties=properties, scheduler={**pool, **dict(trial.scheduler)})
    if trial.compiled_cache:
        after = _written(scratch)
        files = (*files, len(after), len(after - before))
    emit("loaded")
    asked = _asked(trial)
    answers = [
        answer
        for _ in range(trial.times)
        for answer in engine.answer(asked, max_tokens=trial.answer_tokens, generation=_GENERATION)
    ]
    pool_bytes = answers[0].pool_bytes, engine.cache_bytes
    # A folder of the engine alone has no tokenizer, and needs none for anything else.
    questions = question_ids(ir)[: trial.questions] if (ir / TOKENIZER).exists() else ()
    told = engine.answer(questions, max_tokens=QUESTION_TOKENS) if questions else ()
    return Observation(
        dump=engine.dump,
        tokens=tuple(answer.tokens for answer in answers),
        told=tuple(answer.tokens for answer in told),
        log_likelihoods=tuple(answer.log_likelihood for answer in answers),
        steps_to_first=tuple(answer.steps_to_first for answer in answers),
        bytes_per_token=round(answers[0].chunk_bytes / trial.chunk_tokens),
        held_bytes=answers[0].held_bytes,
        pool_bytes=pool_bytes,
        files=files,
    )


def _choose(trial: Trial, ir: Path, emit: Callable[[JsonValue], None]) -> Observation:
    chooser = Chooser.open(ir, device=trial.device, properties=dict(trial.properties), scheduler=dict(trial.scheduler))
    emit("loaded")
    tokens = chooser.answer(_asked(trial), max_tokens=trial.answer_tokens)
    return Observation(dump=chooser.dump, tokens=tokens, warnings=chooser.warnings)


def _asked(trial: Trial) -> list[tuple[int, ...]]:
    return [prompts.token_ids(f"capability {number}", trial.prompt_tokens) for number in range(trial.at_once)]


def _written(folder: Path) -> set[tuple[str, int]]:
    """Name the files in a folder with the time each was written."""
    return {(path.name, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}
