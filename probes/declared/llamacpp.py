"""llama-server's command line and its LLAMA_ARG_ variables (tools/server/README.md @00dc8057)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from probes.declared.complaint import refuse, shown
from probes.declared.entry import Entry, Reading
from probes.declared.launch import Launch
from probes.declared.options import Option, Takes, defaults, match
from probes.evidence import Scalar, Technique
from probes.fleet import ConfigKind

PROGRAMS: Final = ("llama-server", "llama-server.exe")
DEFAULTS_OF: Final = "llama-server at 00dc8057"
_KV_TYPES: Final = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
_FLASH: Final = {"1": "on", "true": "on", "enabled": "on", "0": "off", "false": "off", "disabled": "off", "-1": "auto"}
# A slot's share of the context is rounded up to this many tokens.
_CONTEXT_STEP: Final = 256


def _flash(text: str, place: str) -> Scalar:
    word = _FLASH.get(text.lower(), text.lower())
    if word not in {"on", "off", "auto"}:
        raise refuse(place, f"is {shown(text)}", "on, off or auto")
    return word


OPTIONS: Final = (
    Option(
        control="parallel",
        technique=Technique.CONTINUOUS_BATCHING,
        flags=("--parallel", "-np"),
        takes=Takes.WHOLE,
        environment=("LLAMA_ARG_N_PARALLEL",),
    ),
    Option(
        control="cont_batching",
        technique=Technique.CONTINUOUS_BATCHING,
        flags=("--cont-batching", "-cb"),
        takes=Takes.SWITCH,
        off=("--no-cont-batching", "-nocb"),
        environment=("LLAMA_ARG_CONT_BATCHING",),
        off_environment=("LLAMA_ARG_NO_CONT_BATCHING",),
    ),
    Option(
        control="batch_size",
        technique=Technique.CONTINUOUS_BATCHING,
        flags=("--batch-size", "-b"),
        takes=Takes.WHOLE,
        environment=("LLAMA_ARG_BATCH",),
    ),
    Option(
        control="ubatch_size",
        technique=Technique.CONTINUOUS_BATCHING,
        flags=("--ubatch-size", "-ub"),
        takes=Takes.WHOLE,
        environment=("LLAMA_ARG_UBATCH",),
    ),
    Option(
        control="n_ctx",
        technique=Technique.KV_CACHE,
        flags=("--ctx-size", "-c"),
        takes=Takes.WHOLE,
        environment=("LLAMA_ARG_CTX_SIZE",),
    ),
    Option(
        control="kv_unified",
        technique=Technique.KV_CACHE,
        flags=("--kv-unified", "-kvu"),
        takes=Takes.SWITCH,
        off=("--no-kv-unified", "-no-kvu"),
        environment=("LLAMA_ARG_KV_UNIFIED",),
    ),
    Option(
        control="kv_offload",
        technique=Technique.KV_CACHE,
        flags=("--kv-offload", "-kvo"),
        takes=Takes.SWITCH,
        off=("--no-kv-offload", "-nkvo"),
        environment=("LLAMA_ARG_KV_OFFLOAD",),
        off_environment=("LLAMA_ARG_NO_KV_OFFLOAD",),
    ),
    Option(
        control="cache_type_k",
        technique=Technique.QUANTIZATION,
        flags=("--cache-type-k", "-ctk"),
        takes=Takes.WORD,
        one_of=_KV_TYPES,
        environment=("LLAMA_ARG_CACHE_TYPE_K",),
    ),
    Option(
        control="cache_type_v",
        technique=Technique.QUANTIZATION,
        flags=("--cache-type-v", "-ctv"),
        takes=Takes.WORD,
        one_of=_KV_TYPES,
        environment=("LLAMA_ARG_CACHE_TYPE_V",),
    ),
    Option(
        control="flash_attn",
        technique=Technique.FLASH_ATTENTION,
        flags=("--flash-attn", "-fa"),
        takes=Takes.MAYBE,
        one_of=("auto",),
        environment=("LLAMA_ARG_FLASH_ATTN",),
        read=_flash,
    ),
    Option(
        control="cache_prompt",
        technique=Technique.PREFIX_CACHING,
        flags=("--cache-prompt",),
        takes=Takes.SWITCH,
        off=("--no-cache-prompt",),
        environment=("LLAMA_ARG_CACHE_PROMPT",),
        off_environment=("LLAMA_ARG_NO_CACHE_PROMPT",),
    ),
    Option(
        control="cache_reuse",
        technique=Technique.PREFIX_CACHING,
        flags=("--cache-reuse",),
        takes=Takes.WHOLE,
        environment=("LLAMA_ARG_CACHE_REUSE",),
    ),
    Option(
        control="cache_ram",
        technique=Technique.PREFIX_CACHING,
        flags=("--cache-ram", "-cram"),
        takes=Takes.WHOLE,
        environment=("LLAMA_ARG_CACHE_RAM",),
    ),
    Option(
        control="spec_type",
        technique=Technique.SPECULATIVE_DECODING,
        flags=("--spec-type",),
        takes=Takes.WORD,
        environment=("LLAMA_ARG_SPEC_TYPE",),
    ),
    Option(
        control="draft_model",
        technique=Technique.SPECULATIVE_DECODING,
        flags=("--spec-draft-model", "--model-draft", "-md"),
        takes=Takes.WORD,
        environment=("LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_MODEL_DRAFT"),
    ),
)
_DEFAULTS: Final[dict[str, Scalar]] = {
    "cont_batching": True,
    "cache_prompt": True,
    "cache_type_k": "f16",
    "cache_type_v": "f16",
    "flash_attn": "auto",
    "kv_offload": True,
    "spec_type": "none",
}
# These serve the share of a slot and are no control of their own.
_INNER: Final = "kv_unified"


def read_launch(launch: Launch, version: str | None) -> Reading:
    """Read how llama-server is started.

    Raises:
        InputError: every known option whose value it does not take.
    """
    found = match(OPTIONS, launch.words, launch.environment)
    entries = found.entries
    if (slots := entries.get("parallel")) is not None and isinstance(slots.value, int) and slots.value < 0:
        # -1 leaves the number to the server: nothing that an observed one could differ from.
        del entries["parallel"]
    share = tuple(_share(entries))
    unified = entries.pop(_INNER, None)
    told = f"{DEFAULTS_OF}, not checked for {version}" if version else DEFAULTS_OF
    # A draft model without a type is left to the server, whose choice is not known here.
    known = {control: value for control, value in _DEFAULTS.items() if control != "spec_type" or "draft_model" not in entries}
    facts: dict[str, JsonValue] = {} if unified is None else {"kv_unified": unified.value}
    every = (*entries.values(), *share, *defaults(OPTIONS, found, launch, known, told))
    return Reading(kind=ConfigKind.COMMAND_LINE, entries=every, facts=facts, unread=found.unread)


def _share(entries: dict[str, Entry]) -> Iterator[Entry]:
    """Work out what one slot has: the context divided by the slots, or all of it where they share one buffer."""
    context, slots, unified = entries.get("n_ctx"), entries.get("parallel"), entries.get(_INNER)
    if context is None or slots is None or not isinstance(context.value, int) or not isinstance(slots.value, int):
        return
    if context.value <= 0 or slots.value <= 0:
        return
    whole = unified is not None and unified.value is True
    tokens = context.value if whole else context.value // slots.value
    if tokens % _CONTEXT_STEP == 0 and (whole or context.value % slots.value == 0):
        yield replace(context, control="n_ctx_per_slot", value=tokens)
