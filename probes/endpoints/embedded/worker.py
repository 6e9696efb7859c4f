"""The engine process: one OpenVINO GenAI pipeline that advances all requests together, one step at a time.

`ContinuousBatchingPipeline.step()` keeps Python's interpreter lock for as long as it computes: tens of milliseconds
for a token, most of a second for a chunk of a long prompt (measured, openvino-genai 2026.4.1). In one process with
the HTTP side, tokens would wait for the next step to be sent, and health checks with them. Hence a process of its own.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from probes import telemetry
from probes.endpoints.embedded.detokenizer import Detokenizer
from probes.endpoints.embedded.frames import (
    Accepted,
    Cancel,
    Decoding,
    Failed,
    FinishReason,
    Progress,
    Ready,
    Refused,
    Rejected,
    Start,
    Stats,
    Submit,
    decode_command,
    encode,
)
from probes.endpoints.embedded.settings import Settings
from probes.evidence import Scalar
from probes.schema import Model

# Without it OVMS samples from the 40 most likely tokens (base_generation_config_builder.cpp, 2026-08-21).
_DEFAULT_TOP_K: Final = 40
_SCHEDULER: Final = ("enable_prefix_caching", "max_num_seqs", "max_num_batched_tokens", "cache_size", "dynamic_split_fuse")
_READ_BYTES: Final = 1 << 16
# Shorter than a block of the KV cache, so that nothing of it stays in the prefix cache.
_TRIAL_PROMPT: Final = "One two three four five six seven eight nine ten eleven twelve"


def main() -> int:
    """Serve the process that holds the other end of the socket until it closes it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to a whole container at once; the HTTP side ends this process
    link = _Link(socket.socket(fileno=parser.parse_args().fd))
    commands = link.receive(wait=True)
    if not commands or not isinstance(commands[0], Start):
        return 1
    start = commands[0]
    telemetry.silence()
    try:
        engine = _Engine(start, link)
    except Exception as exc:  # whatever the runtime raises is its answer
        link.send(Refused(words=words(exc)))
        return 1
    try:
        link.send(Ready(settings=engine.settings))
        return engine.run()
    except ConnectionError:
        return 0  # nobody is left to tell


def words(exc: Exception) -> str:
    """Give the runtime's message on one line, without the source positions it piles up in front."""
    lines = [line.strip() for line in str(exc).splitlines()]
    told = [line for line in lines if line and not line.startswith("Exception from ")]
    return " ".join(told or lines or [type(exc).__name__])


class _Link:
    """Frames over the socket, without threads: a step must not compete for the interpreter lock."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._rest = b""

    def send(self, *frames: Model) -> None:
        self._socket.sendall(b"".join(map(encode, frames)))

    def receive(self, *, wait: bool) -> list[Start | Submit | Cancel] | None:
        """Take the commands that have come in; None when the other side is gone."""
        lines: list[bytes] = []
        while (wait and not lines) or select.select([self._socket], [], [], 0)[0]:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                return None
            *complete, self._rest = (self._rest + data).split(b"\n")
            lines += complete
        return [decode_command(line) for line in lines]


@dataclass
class _Request:
    """A request in the batch. The pipeline drops a request, without a word, once nobody holds its handle."""

    handle: Any
    detokenizer: Detokenizer


class _Engine:
    """The pipeline and the requests in it."""

    def __init__(self, start: Start, link: _Link) -> None:
        import openvino_genai

        self._genai = openvino_genai
        self._link = link
        self._context_tokens = start.context_tokens
        self._scheduler = openvino_genai.SchedulerConfig()
        for name in _SCHEDULER:
            value = getattr(start.settings, name)
            if value is not None:
                setattr(self._scheduler, name, value)
        device, precision = start.settings.device, start.settings.kv_cache_precision
        properties = {} if precision is None else {"KV_CACHE_PRECISION": precision}
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(start.ir, self._scheduler, device, properties)
        self._tokenizer = self._pipeline.get_tokenizer()
        self._live: dict[int, _Request] = {}
        self.settings = self._in_force(start.settings)
        self._try_out()

    def run(self) -> int:
        """Step while there is something to do, wait while there is not."""
        while True:
            busy = self._pipeline.has_non_finished_requests()
            commands = self._link.receive(wait=not busy)
            if commands is None:
                return 0
            for command in commands:
                self._obey(command)
            if not self._pipeline.has_non_finished_requests():
                continue
            try:
                self._pipeline.step()
            except Exception as exc:  # told to every client, then the process ends as OVMS does
                self._link.send(*(Failed(id=id, words=words(exc)) for id in self._live))
                return 1
            self._report()

    def _in_force(self, asked: Settings) -> dict[str, Scalar]:
        settings: dict[str, Scalar] = {name: getattr(self._scheduler, name) for name in _SCHEDULER}
        if asked.kv_cache_precision is not None:
            settings["KV_CACHE_PRECISION"] = asked.kv_cache_precision
        return {**settings, "device": asked.device}

    def _try_out(self) -> None:
        """Generate: some settings pass every check of the runtime and fail at the first use.

        One prompt and one single token also build the kernels that the first client would otherwise wait for.
        """
        tokens = self._tokenizer.encode(_TRIAL_PROMPT).input_ids
        handle = self._pipeline.add_request(
            0, tokens, self._config(Decoding(temperature=0.0, ignore_eos=True, max_tokens=2), 0)
        )
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        generated, _finish = self._read(handle)
        if len(generated) != 2:
            raise RuntimeError(f"the runtime took the settings and generated {len(generated)} of 2 tokens")

    def _obey(self, command: Start | Submit | Cancel) -> None:
        if isinstance(command, Submit):
            self._submit(command)
        elif isinstance(command, Cancel):
            request = self._live.pop(command.id, None)
            if request is not None:
                request.handle.cancel()  # the next step takes it out of the batch
                self._link.send(self._stats())

    def _submit(self, command: Submit) -> None:
        try:
            tokens = self._encode(command.prompt)
            count = int(tokens.shape[1])
            self._check_length(count, command.decoding.max_tokens)
            config = self._config(command.decoding, self._context_tokens - count)
            handle = self._pipeline.add_request(command.id, tokens, config)
        except Exception as exc:  # one bad request must not end the others
            self._link.send(Rejected(id=command.id, words=words(exc)))
            return
        self._live[command.id] = _Request(handle, Detokenizer(self._tokenizer.decode))
        self._link.send(Accepted(id=command.id, prompt_tokens=count), self._stats())

    def _encode(self, prompt: str | tuple[Any, ...]) -> Any:
        if isinstance(prompt, str):
            return self._tokenizer.encode(prompt).input_ids
        history = [{"role": message.role, "content": message.content} for message in prompt]
        text = self._tokenizer.apply_chat_template(history, add_generation_prompt=True)
        return self._tokenizer.encode(text, add_special_tokens=False).input_ids

    def _check_length(self, prompt_tokens: int, max_tokens: int | None) -> None:
        """Refuse what does not fit, in the words of OVMS; the library itself computes on past the limit."""
        limit = self._context_tokens
        if prompt_tokens >= limit:
            raise ValueError(f"Number of prompt tokens: {prompt_tokens} exceeds model max length: {limit}")
        if max_tokens is not None and prompt_tokens + max_tokens > limit:
            raise ValueError(
                f"Number of prompt tokens: {prompt_tokens} + max tokens value: {max_tokens} exceeds model max length: {limit}"
            )
        chunk = self._scheduler.max_num_batched_tokens
        if prompt_tokens > chunk and not self._scheduler.dynamic_split_fuse:
            raise ValueError(f"Input length exceeds pipeline capabilities: {prompt_tokens} > {chunk}")

    def _config(self, decoding: Decoding, room: int) -> Any:
        config = self._pipeline.get_config()
        config.apply_chat_template = False
        config.max_new_tokens = room if decoding.max_tokens is None else decoding.max_tokens
        config.ignore_eos = decoding.ignore_eos
        config.do_sample = decoding.temperature > 0
        if config.do_sample:
            config.temperature = decoding.temperature
            config.top_p = decoding.top_p
            if decoding.top_k != -1:
                config.top_k = decoding.top_k or _DEFAULT_TOP_K
            config.rng_seed = decoding.seed if decoding.seed is not None else int.from_bytes(os.urandom(4))
        config.frequency_penalty = decoding.frequency_penalty
        config.presence_penalty = decoding.presence_penalty
        config.repetition_penalty = decoding.repetition_penalty
        config.stop_strings = set(decoding.stop)
        config.include_stop_str_in_output = decoding.include_stop
        return config

    def _report(self) -> None:
        """Send what the step produced; all tokens of one step leave together."""
        frames: list[Model] = []
        for id, request in list(self._live.items()):
            frame = self._progress(id, request)
            if frame is not None:
                frames.append(frame)
                if isinstance(frame, Failed) or frame.finish is not None:
                    del self._live[id]
        self._link.send(*frames, self._stats())

    def _progress(self, id: int, request: _Request) -> Progress | Failed | None:
        tokens, finish = self._read(request.handle)
        if not tokens and finish is None:
            if request.handle.get_status() == self._genai.GenerationStatus.RUNNING:
                return None
            return Failed(id=id, words="the runtime gave up on the request: its KV cache does not fit beside the others")
        return Progress(id=id, text=request.detokenizer.add(tokens), tokens=len(tokens), finish=finish)

    def _read(self, handle: Any) -> tuple[Sequence[int], FinishReason | None]:
        tokens: list[int] = []
        finish = None
        while handle.can_read():  # read() would wait for a token, which only the next step can bring
            for output in handle.read().values():
                tokens.extend(output.generated_ids)
                finish = _FINISH.get(output.finish_reason.name, finish)
        return tokens, finish

    def _stats(self) -> Stats:
        metrics = self._pipeline.get_metrics()
        return Stats(
            # The pipeline's own count is that of the last step and keeps standing when the last request has left.
            requests=len(self._live),
            scheduled_requests=min(metrics.scheduled_requests, len(self._live)),
            cache_usage_percent=metrics.cache_usage,
            max_cache_usage_percent=metrics.max_cache_usage,
            cache_size_bytes=metrics.cache_size_in_bytes,
        )


_FINISH: Final = {"STOP": FinishReason.STOP, "LENGTH": FinishReason.LENGTH}


if __name__ == "__main__":
    raise SystemExit(main())
