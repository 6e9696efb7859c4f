"""One OpenVINO GenAI engine: opened with settings, asked with token ids, watched step by step."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes import telemetry
from probes.devices.dump import Dump, parse_dump
from probes.evidence import Scalar

RUNTIME = "openvino-genai"
EVICTION_SIZES = tuple(f"cache_eviction_config.{name}" for name in ("start_size", "recent_size", "max_cache_size"))
GREEDY_EOS = 0  # any valid id: the end-of-text token is ignored, but a folder without one would hand in -1
_WARNING = "[WARNING]"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of one request. Steps and times count from the moment it was added, until its last token.

    `token_s` say when each token came, from the start of the batch; a request that joined it later has
    `added_s` above 0. `pool_bytes` is the size of the KV cache after the first step of the batch and
    `chunk_bytes` what that step took of it; `held_bytes` is what the batch held after the last step in which
    no request ended. `log_likelihood` is the sum over the answer's tokens where log-probabilities were asked
    for, else 0.
    """

    tokens: tuple[int, ...]
    steps: int
    steps_to_first: int
    ttft_s: float
    latency_s: float
    pool_bytes: int
    chunk_bytes: int
    held_bytes: int
    log_likelihood: float
    added_s: float = 0.0
    token_s: tuple[float, ...] = ()

    @property
    def decode_tok_s(self) -> float:
        """Tokens after the first by the time they took; the first token belongs to the prefill."""
        return (len(self.tokens) - 1) / (self.latency_s - self.ttft_s)


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What a draft did over a whole batch of requests: the runtime keeps no count per request."""

    draft_steps: int
    drafted: int
    accepted: int


class Engine:
    """A running pipeline and what it printed about itself while it was built (None without a log level)."""

    def __init__(self, pipeline: Any, dump: Dump | None) -> None:
        self._pipeline = pipeline
        self._requests = 0
        self.dump = dump

    @classmethod
    def open(
        cls,
        ir: Path,
        *,
        device: str,
        properties: Mapping[str, Scalar],
        scheduler: Mapping[str, Scalar],
        draft: Path | None = None,
    ) -> Engine:
        """Load a model folder, and beside it a draft model or an EAGLE-3 head with the same properties.

        A dot in a scheduler setting leads into a part of the configuration: `sparse_attention_config.mode`.

        Raises:
            RuntimeError: the runtime refuses the folder, the device or a setting, in its own words.
            AttributeError: the scheduler has no setting of that name.
        """
        telemetry.silence()
        import openvino_genai

        config = _scheduler(scheduler)
        beside = {} if draft is None else {"draft_model": openvino_genai.draft_model(str(draft), device, **properties)}
        with _stdout() as printed:
            pipeline = openvino_genai.ContinuousBatchingPipeline(
                str(ir), scheduler_config=config, device=device, properties={**properties, **beside}
            )
        return cls(pipeline, parse_dump(printed.getvalue()))

    @property
    def cache_usage_percent(self) -> float:
        """How much of the KV cache is taken now."""
        return float(self._pipeline.get_metrics().cache_usage)

    @property
    def cache_bytes(self) -> int:
        """The size of the KV cache as the engine counts it."""
        return int(self._pipeline.get_metrics().cache_size_in_bytes)

    def answer(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        max_tokens: int,
        generation: Mapping[str, Scalar] | None = None,
        late: Sequence[Sequence[int]] = (),
        late_after: int = 1,
    ) -> tuple[Answer, ...]:
        """Add all prompts at once and step until every one has exactly `max_tokens` greedy tokens.

        Times count from the moment before the first request is added. `generation` overrides settings of
        the request. Prompts that are `late` join when every other one has `late_after` tokens, and are
        answered after them.

        Raises:
            RuntimeError: the engine failed, or gave an answer of another length.
        """
        started = time.perf_counter()
        open_requests = [_Open(handle=self._add(prompt, max_tokens, generation or {})) for prompt in prompts]
        steps = 0
        pool_bytes = chunk_bytes = held_bytes = 0
        waiting = [*late]
        while self._pipeline.has_non_finished_requests():
            if waiting and all(request.has(late_after) for request in open_requests):
                added = steps, time.perf_counter() - started
                open_requests += [_Open(handle=self._add(one, max_tokens, generation or {}), added=added) for one in waiting]
                waiting.clear()
            self._pipeline.step()
            steps += 1
            now = time.perf_counter() - started
            for request in open_requests:
                request.take(steps, now)
            if not any(request.has(max_tokens) for request in open_requests):
                metrics = self._pipeline.get_metrics()
                held_bytes = round(metrics.cache_usage / 100 * metrics.cache_size_in_bytes)
                if steps == 1:
                    pool_bytes, chunk_bytes = metrics.cache_size_in_bytes, held_bytes
        cache = _Bytes(pool=pool_bytes, chunk=chunk_bytes, held=held_bytes)
        return tuple(request.closed(max_tokens, cache) for request in open_requests)

    def count(
        self, prompts: Sequence[Sequence[int]], *, max_tokens: int, generation: Mapping[str, Scalar]
    ) -> tuple[tuple[tuple[int, ...], ...], Counters | None]:
        """Answer all prompts at once in one call, which alone tells what a draft did; None without a draft model."""
        results = self._pipeline.generate(
            [_ids(prompt) for prompt in prompts], [_config(max_tokens, generation)] * len(prompts)
        )
        told = results[0].extended_perf_metrics
        tokens = tuple(tuple(map(int, result.m_generation_ids[0])) for result in results)
        if told is None:
            return tokens, None
        steps = len(told.draft_model_metrics.raw_metrics.m_durations)
        return tokens, Counters(
            draft_steps=steps, drafted=int(told.get_num_draft_tokens()), accepted=int(told.get_num_accepted_tokens())
        )

    def _add(self, prompt: Sequence[int], max_tokens: int, generation: Mapping[str, Scalar]) -> Any:
        self._requests += 1
        return self._pipeline.add_request(self._requests, _ids(prompt), _config(max_tokens, generation))


class Chooser:
    """The pipeline that picks its attention backend itself, and falls back to another one with no more than a warning."""

    def __init__(self, pipeline: Any, dump: Dump | None, warnings: tuple[str, ...]) -> None:
        self._pipeline = pipeline
        self.dump = dump
        self.warnings = warnings

    @classmethod
    def open(cls, ir: Path, *, device: str, properties: Mapping[str, Scalar], scheduler: Mapping[str, Scalar]) -> Chooser:
        """Load a model folder; a scheduler is handed over only where there are settings for one.

        Raises:
            RuntimeError: the runtime refuses the folder, the device or a setting, in its own words.
        """
        telemetry.silence()
        import openvino_genai

        beside = {"scheduler_config": _scheduler(scheduler)} if scheduler else {}
        with _stdout() as printed:
            pipeline = openvino_genai.LLMPipeline(str(ir), device, **beside, **properties)
        said = printed.getvalue()
        warnings = (line.removeprefix(_WARNING).strip() for line in said.splitlines() if line.startswith(_WARNING))
        return cls(pipeline, parse_dump(said), tuple(warnings))

    def answer(self, prompts: Sequence[Sequence[int]], *, max_tokens: int) -> tuple[tuple[int, ...], ...]:
        """Give exactly `max_tokens` greedy tokens to each of some prompts of equal length."""
        results = self._pipeline.generate(_ids(*prompts), _config(max_tokens, {}))
        return tuple(tuple(map(int, tokens)) for tokens in results.tokens)


def _ids(*prompts: Sequence[int]) -> Any:
    import numpy as np
    import openvino

    return openvino.Tensor(np.array(prompts, dtype=np.int64))


def _config(max_tokens: int, generation: Mapping[str, Scalar]) -> Any:
    import openvino_genai

    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = max_tokens
    config.do_sample = False
    config.ignore_eos = True
    config.set_eos_token_id(GREEDY_EOS)
    for name, value in generation.items():
        _assign(config, name, value)
    return config


def _scheduler(settings: Mapping[str, Scalar]) -> Any:
    import openvino_genai

    config = openvino_genai.SchedulerConfig()
    sizes = [settings[name] for name in EVICTION_SIZES if name in settings]
    if sizes:  # the sizes of an eviction configuration are fixed when it is made
        mode = openvino_genai.AggregationMode.NORM_SUM
        config.cache_eviction_config = openvino_genai.CacheEvictionConfig(*sizes, mode)
    for name, value in settings.items():
        if name not in EVICTION_SIZES:
            _assign(config, name, value)
    return config


def _assign(config: Any, name: str, value: Scalar) -> None:
    """Set a field, which may lie in a part of the configuration and may be an enum of the runtime's."""
    part, _, rest = name.partition(".")
    if rest:
        inner = getattr(config, part)
        _assign(inner, rest, value)
        setattr(config, part, inner)
        return
    kind = type(getattr(config, name))
    setattr(config, name, getattr(kind, value) if isinstance(value, str) and hasattr(kind, "__members__") else value)


@dataclass(frozen=True, kw_only=True)
class _Bytes:
    """The KV cache of one batch: its size, what the first step took, and what was held before the first request ended."""

    pool: int
    chunk: int
    held: int


class _Open:
    """One request while it runs."""

    def __init__(self, *, handle: Any, added: tuple[int, float] = (0, 0.0)) -> None:
        self._handle = handle
        self._added = added
        self._tokens: list[int] = []
        self._times: list[float] = []
        self._first: tuple[int, float] | None = None
        self._last = 0, 0.0
        self._log_likelihood = 0.0

    def has(self, tokens: int) -> bool:
        return len(self._tokens) >= tokens

    def take(self, steps: int, now_s: float) -> None:
        while self._handle.can_read():
            for output in self._handle.read().values():
                self._tokens.extend(output.generated_ids)
                self._times.extend(now_s for _ in output.generated_ids)
                self._log_likelihood += sum(output.generated_log_probs)
                self._last = steps, now_s
        if self._tokens and self._first is None:
            self._first = (steps, now_s)

    def closed(self, max_tokens: int, cache: _Bytes) -> Answer:
        if self._first is None or len(self._tokens) != max_tokens:
            status = str(self._handle.get_status()).rpartition(".")[2]
            raise RuntimeError(f"{len(self._tokens)} of {max_tokens} tokens were generated; the request ended as {status}")
        (first, first_s), (last, last_s), (before, added_s) = self._first, self._last, self._added
        return Answer(
            tokens=tuple(self._tokens),
            steps=last - before,
            steps_to_first=first - before,
            ttft_s=first_s - added_s,
            latency_s=last_s - added_s,
            pool_bytes=cache.pool,
            chunk_bytes=cache.chunk,
            held_bytes=cache.held,
            log_likelihood=self._log_likelihood,
            added_s=added_s,
            token_s=tuple(self._times),
        )


@contextlib.contextmanager
def _stdout() -> Iterator[io.StringIO]:
    """Catch what C++ code writes to file descriptor 1; the text is there when the block has ended."""
    caught = io.StringIO()
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        _flush()
        os.dup2(file.fileno(), 1)
        try:
            yield caught
        finally:
            _flush()
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            caught.write(file.read().decode(errors="replace"))


def _flush() -> None:
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
