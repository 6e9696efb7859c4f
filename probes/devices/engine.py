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
GREEDY_EOS = 0  # any valid id: the end-of-text token is ignored, but a folder without one would hand in -1


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of one request. Steps count the engine's iterations since the request was added.

    `chunk_bytes` is the KV cache that the first step of the batch took.
    """

    tokens: tuple[int, ...]
    steps_to_first: int
    ttft_s: float
    latency_s: float
    chunk_bytes: int

    @property
    def decode_tok_s(self) -> float:
        """Tokens after the first by the time they took; the first token belongs to the prefill."""
        return (len(self.tokens) - 1) / (self.latency_s - self.ttft_s)


class Engine:
    """A running pipeline and what it printed about itself while it was built (None without a log level)."""

    def __init__(self, pipeline: Any, dump: Dump | None) -> None:
        self._pipeline = pipeline
        self._requests = 0
        self.dump = dump

    @classmethod
    def open(cls, ir: Path, *, device: str, properties: Mapping[str, Scalar], scheduler: Mapping[str, Scalar]) -> Engine:
        """Load a model folder.

        Raises:
            RuntimeError: the runtime refuses the folder, the device or a setting, in its own words.
            AttributeError: the scheduler has no setting of that name.
        """
        telemetry.silence()
        import openvino_genai

        config = openvino_genai.SchedulerConfig()
        for name, value in scheduler.items():
            setattr(config, name, value)
        with _stdout() as printed:
            pipeline = openvino_genai.ContinuousBatchingPipeline(
                str(ir), scheduler_config=config, device=device, properties=dict(properties)
            )
        return cls(pipeline, parse_dump(printed.getvalue()))

    @property
    def cache_usage_percent(self) -> float:
        """How much of the KV cache is taken now."""
        return float(self._pipeline.get_metrics().cache_usage)

    @property
    def max_cache_usage_percent(self) -> float:
        """How much of the KV cache was taken at most since the engine was opened."""
        return float(self._pipeline.get_metrics().max_cache_usage)

    @property
    def cache_bytes(self) -> int:
        """The size of the KV cache as the engine counts it."""
        return int(self._pipeline.get_metrics().cache_size_in_bytes)

    def answer(self, prompts: Sequence[Sequence[int]], *, max_tokens: int) -> tuple[Answer, ...]:
        """Add all prompts at once and step until every one has exactly `max_tokens` greedy tokens.

        Times count from the moment before the first request is added.

        Raises:
            RuntimeError: the engine failed, or gave an answer of another length.
        """
        started = time.perf_counter()
        open_requests = [_Open(handle=self._add(prompt, max_tokens)) for prompt in prompts]
        steps = 0
        chunk_bytes = 0
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
            steps += 1
            now = time.perf_counter() - started
            if steps == 1:
                metrics = self._pipeline.get_metrics()
                chunk_bytes = round(metrics.cache_usage / 100 * metrics.cache_size_in_bytes)
            for request in open_requests:
                request.take(steps, now)
        return tuple(request.closed(max_tokens, chunk_bytes) for request in open_requests)

    def _add(self, prompt: Sequence[int], max_tokens: int) -> Any:
        import numpy as np
        import openvino
        import openvino_genai

        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = max_tokens
        config.do_sample = False
        config.ignore_eos = True
        config.set_eos_token_id(GREEDY_EOS)
        self._requests += 1
        ids = openvino.Tensor(np.array([prompt], dtype=np.int64))
        return self._pipeline.add_request(self._requests, ids, config)


class _Open:
    """One request while it runs."""

    def __init__(self, *, handle: Any) -> None:
        self._handle = handle
        self._tokens: list[int] = []
        self._first: tuple[int, float] | None = None
        self._last_s = 0.0

    def take(self, steps: int, now_s: float) -> None:
        while self._handle.can_read():
            for output in self._handle.read().values():
                self._tokens.extend(output.generated_ids)
                self._last_s = now_s
        if self._tokens and self._first is None:
            self._first = (steps, now_s)

    def closed(self, max_tokens: int, chunk_bytes: int) -> Answer:
        if self._first is None or len(self._tokens) != max_tokens:
            status = str(self._handle.get_status()).rpartition(".")[2]
            raise RuntimeError(f"{len(self._tokens)} of {max_tokens} tokens were generated; the request ended as {status}")
        steps, ttft_s = self._first
        return Answer(
            tokens=tuple(self._tokens), steps_to_first=steps, ttft_s=ttft_s, latency_s=self._last_s, chunk_bytes=chunk_bytes
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
