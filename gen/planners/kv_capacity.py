"""How many tokens a KV pool holds: the bytes of one token from the model's shape and the precision, or as the engine counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gen.knowledge import Engine, Role
from gen.planners.model import shape_of
from gen.planners.plan import Gap, Given, Plan, Planner, Span, Worked, between, derived, exactly, whole
from gen.view import ServiceView, Sighting, View, shown
from probes.evidence import ProvenanceKind

DeviceKind = Literal["cpu", "gpu"]
GIB = 2**30
CONTEXTS = (2048, 4096, 8192, 16384, 32768)
FORMULA = "bytes per token = layers x KV heads x (bytes of a key + bytes of a value), each of head size numbers"
HELD = "tokens in the pool = whole blocks that fit into it x tokens per block"
POOL, PER_TOKEN, TOKENS = "KV pool", "KV cache per token", "tokens in the pool"
EACH = "tokens for each sequence when all run at once"
# Paged attention hands the cache out in blocks (openvino, paged_attention.hpp and executor_pa.cpp).
BLOCK_TOKENS: dict[DeviceKind, int] = {"cpu": 32, "gpu": 16}
_OPENVINO = {Engine.OVMS, Engine.OPENVINO_GENAI, Engine.OPENVINO}
# llama.cpp stores 32 numbers with an f16 scale, and a minimum where the name ends in _1 (ggml-common.h).
_PLAIN = {"f32": 4.0, "fp32": 4.0, "f16": 2.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0,
          "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32}  # fmt: skip


def head_bytes(precision: str, head_size: int, device: DeviceKind) -> Span | None:
    """Size one key and one value of one head for one token; None for a precision whose layout is not known here.

    OpenVINO stores u8 and u4 with a scale and a zero point. CPU (2026.4.1): two f32, for values per token, for keys per
    channel and block of 32 tokens; measured, 152 bytes for heads of 64 in u8. The pool counts a u4 number as a whole
    byte: measured, 176 bytes where the numbers take 88. GPU: two f16, for values per token, for keys per token or per
    channel and block of 16, which the release chooses, so both bound the answer.
    """
    word = precision.casefold()
    if word in _PLAIN:
        return exactly(2 * head_size * _PLAIN[word], "B")
    if device == "cpu":
        block = BLOCK_TOKENS["cpu"]
        if word in {"u8", "i8"}:
            return exactly(head_size * (block + 8) / block + head_size + 8, "B")
        if word in {"u4", "i4"}:
            counted = head_size * (block + 16) / block + head_size + 16
            return Span(low=counted / 2, value=counted, high=counted, unit="B")
        return None
    block = BLOCK_TOKENS["gpu"]
    if word in {"u8", "i8"}:
        value, key = head_size + 4.0, (head_size + 4.0, head_size * (block + 4) / block)
    elif word in {"u4", "i4"}:
        value, key = head_size / 2 + 4, (head_size / 2 + 4, head_size * (block / 2 + 4) / block)
    else:
        return None
    return between(value + min(key), value + max(key), "B")


def bytes_per_token(layers: int, kv_heads: int, head_size: int, precision: str, device: DeviceKind) -> Span | None:
    """Size the keys and values of one token over all layers."""
    one = head_bytes(precision, head_size, device)
    return None if one is None else derived("B", lambda size: layers * kv_heads * size, one)


def tokens_held(pool_bytes: Span, per_token: Span, block_tokens: int) -> Span:
    """Count the tokens of the whole blocks that fit into a pool."""

    def blocks(pool: float, size: float) -> float:
        return math.floor(pool / (size * block_tokens)) * block_tokens

    return derived("tokens", blocks, pool_bytes, per_token)


def sequences_held(tokens: Span, context_tokens: int, block_tokens: int) -> Span:
    """Count the sequences of a length that share a pool; each takes whole blocks."""
    each = math.ceil(context_tokens / block_tokens) * block_tokens
    return whole(derived("sequences", lambda held: held / each, tokens))


def device_kind(view: View, service: ServiceView) -> DeviceKind | None:
    """Tell whether a service runs on a card or on a processor, as far as that is known."""
    if any(device.lower().startswith("cpu") for device in service.devices):
        return "cpu"
    return "gpu" if view.cards(service) or any(device.lower().startswith("gpu") for device in service.devices) else None


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """The KV cache of one token: the result, what it rests on, and what is missing for it."""

    token: Given | None
    given: tuple[Given, ...] = ()
    gaps: tuple[Gap, ...] = ()


def weigh(view: View, service: ServiceView) -> Weighed:
    """Take the engine's own count where there is one for the precision in use, else work it out from the shape."""
    shape, device = shape_of(service), device_kind(view, service)
    precision = view.setting(service, Role.KV_PRECISION)
    word = "" if precision is None else shown(precision.value).casefold()
    counted = (shape.measured_kv or {}).get(word)
    if counted is not None:
        return Weighed(token=counted, given=(counted,))
    files = f"name the model's folder, or its config.json, under services.{service.name}.config and run nox -s probe"
    fill = f"nox -s probe -- micro counts the cache of a token in {word}" if view.local else files
    factors = {"layers": shape.layers, "kv_heads": shape.kv_heads, "head_size": shape.head_size}
    gaps = [Gap(name=name, fill=fill) for name, one in factors.items() if one is None]
    if precision is None:
        gaps.append(Gap(name="KV precision", fill=f"services.{service.name}.settings: the control of the runtime"))
    if device is None:
        gaps.append(Gap(name="device", fill=f"services.{service.name}.device"))
    given = tuple(one for one in factors.values() if one is not None)
    if gaps or device is None:
        return Weighed(token=None, given=given, gaps=tuple(gaps))
    layers, heads, size = (int(one.span.value) for one in given)
    span = bytes_per_token(layers, heads, size, word, device)
    if span is None:
        return Weighed(token=None, given=given, gaps=(Gap(name=f"layout of a {word} cache", fill="nox -s probe -- micro"),))
    token = Given(name=PER_TOKEN, span=span, known=given[0].known, source=given[0].source, run=given[0].run)
    return Weighed(token=token, given=given)


def plan(view: View, service: ServiceView) -> Plan:
    """Work out what the pool of a service holds, or say which fields are missing for it."""
    weighed, device = weigh(view, service), device_kind(view, service)
    pool, sequences = pool_of(view, service), view.setting(service, Role.SEQUENCES)
    given, worked = list(weighed.given), []
    gaps = list(weighed.gaps) + ([pool] if isinstance(pool, Gap) else [])
    if isinstance(pool, Given):
        given.append(pool)
    if weighed.token is not None:
        counted = weighed.token.known is ProvenanceKind.MEASURED
        how = "as the engine counted it" if counted else FORMULA
        worked.append(Worked(name=PER_TOKEN, span=weighed.token.span, formula=how))
    if weighed.token is not None and isinstance(pool, Given) and device is not None:
        block = BLOCK_TOKENS[device]
        tokens = tokens_held(pool.span, weighed.token.span, block)
        worked.append(Worked(name=TOKENS, span=tokens, formula=HELD))
        worked += [
            Worked(
                name=f"sequences of {context} tokens",
                span=sequences_held(tokens, context, block),
                formula="tokens in the pool / whole blocks of a sequence",
            )
            for context in shape_of(service).within(CONTEXTS)
        ]
        if sequences is not None and isinstance(sequences.value, int) and sequences.value > 0:
            bound = sighted(sequences, "sequences at once", sequences.value, "sequences")
            given.append(bound)
            each = whole(derived("tokens", lambda held, n: held / n, tokens, bound.span))
            worked.append(Worked(name=EACH, span=each, formula="tokens in the pool / sequences at once"))
    return Plan(
        planner=Planner.KV_CAPACITY,
        subject=service.name,
        lead=TOKENS,
        given=tuple(given),
        worked=tuple(worked),
        gaps=tuple(gaps),
        sources=("openvino-gpu-paged-attention", "openvino-cpu-paged-attention", "genai-cpu-2026.4.1")
        if service.engine in _OPENVINO
        else (),
        notes=(
            "Every layer is taken to keep every token: of a model with sliding windows or linear attention in some layers the "
            "pool holds more.",
        ),
    )


def pool_of(view: View, service: ServiceView) -> Given | Gap:
    """Give the size of a service's KV pool, or why it has none that could be divided."""
    pool = view.setting(service, Role.POOL)
    number = pool.value if pool is not None and not isinstance(pool.value, bool) else None
    if pool is None or not isinstance(number, int | float):
        return Gap(name=POOL, fill=f"services.{service.name}.settings: the pool's size")
    if view.is_off(service, pool):
        return Gap(name=POOL, fill="it has no fixed size and grows with the requests")
    control = view.knowledge.control(service.engine, pool.control)
    if control is None or control.unit != "GiB":
        return Gap(name=POOL, fill=f"{pool.control} is not a size in GiB")
    return sighted(pool, POOL, number * GIB, "B")


def sighted(sighting: Sighting, name: str, value: float, unit: str) -> Given:
    """Take a setting as an input."""
    source = f"{sighting.control}, {sighting.source}"
    return Given(name=name, span=exactly(value, unit), known=sighting.kind, source=source, run=sighting.run, day=sighting.date)
