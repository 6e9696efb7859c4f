"""The speed of memory and, right after it, of decoding: what share of the limit that memory sets is reached."""

from __future__ import annotations

import contextlib
from typing import Any

from probes.devices.engine import Engine
from probes.devices.prompts import prompt_set_sha256, token_ids
from probes.evidence import Scalar
from probes.micro.bandwidth import DeviceMemory, Memory, buffer_bytes, last_cache_bytes
from probes.micro.bench import Bench
from probes.micro.roofline import Roofline, Turn
from probes.micro.weights import weight_bytes

REPETITIONS = 9
# As many as a step takes, which fill whole blocks of the cache.
PROMPT_TOKENS = STEP_TOKENS = 256
ANSWER_TOKENS = 16
SHARED: dict[str, Scalar] = {
    "num_kv_blocks": 32,
    "max_num_batched_tokens": STEP_TOKENS,
    "enable_prefix_caching": False,
}


def test_memory_bandwidth(bench: Bench) -> None:
    cache = last_cache_bytes()
    size = buffer_bytes(cache)
    memory = Memory(size) if bench.device == "CPU" else DeviceMemory(bench.device, size)
    bench.progress("warm-up")
    engine = Engine.open(bench.ir, device=bench.device, properties={}, scheduler=SHARED)
    (warm,) = engine.answer([token_ids("warm-up", PROMPT_TOKENS)], max_tokens=ANSWER_TOKENS)
    memory.copy_s()
    prompts = [token_ids(f"bandwidth {number}", PROMPT_TOKENS) for number in range(bench.rounds(usual=REPETITIONS))]
    turns: list[Turn] = []

    def turn() -> None:
        bench.progress(f"[{len(turns) + 1}/{len(prompts)}] memory, then decoding")
        read = memory.bytes / memory.read_s() if isinstance(memory, Memory) else None
        copied = 2 * memory.bytes / memory.copy_s()
        (answer,) = engine.answer([prompts[len(turns)]], max_tokens=ANSWER_TOKENS)
        turns.append(Turn(read_bytes_s=read, copy_bytes_s=copied, decode_tok_s=answer.decode_tok_s))

    with contextlib.closing(memory):
        bench.benchmark.pedantic(turn, rounds=len(prompts), iterations=1)
    report: Any = Roofline(
        turns=tuple(turns),
        buffer_bytes=size,
        last_cache_bytes=cache if bench.device == "CPU" else None,
        threads=memory.threads if isinstance(memory, Memory) else None,
        weight_bytes=weight_bytes(bench.ir),
        kv_bytes_per_token=round(warm.chunk_bytes / PROMPT_TOKENS),
        context_tokens=PROMPT_TOKENS + ANSWER_TOKENS / 2,
        prompt_tokens=PROMPT_TOKENS,
        max_tokens=ANSWER_TOKENS,
        prompt_set_sha256=prompt_set_sha256(prompts),
        warmup_requests=1,
        quick=bench.quick,
        dump=engine.dump,
    )
    bench.benchmark.extra_info["roofline"] = report.model_dump(mode="json")
