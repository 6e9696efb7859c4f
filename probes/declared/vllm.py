"""vLLM's command line and its configuration file (vllm serve --help of 0.32.0, docs.vllm.ai).

Its parser takes `_` for `-`, numbers such as 8k, and nested options as `--speculative-config.method`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from probes.declared.complaint import refuse, usable
from probes.declared.entry import Entry, Reading
from probes.declared.jsontext import mapping
from probes.declared.launch import Launch, Word
from probes.declared.options import Found, Option, Takes, defaults, match
from probes.declared.release import default_of
from probes.declared.yamltree import Tree
from probes.evidence import Scalar, Technique
from probes.fleet import ConfigKind

PROGRAMS: Final = ("vllm",)
MODULES: Final = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main")
DEFAULTS: Final = ("vLLM", "0.9", "0.32")
_SPECULATION: Final = "speculative_config"
_NESTED: Final = re.compile(r"--(speculative[-_]config|kv[-_]transfer[-_]config)\.([A-Za-z_][\w.-]*)(?:=(.*))?", re.DOTALL)


def _speculation(text: str, place: str) -> Scalar:
    """Name the method; of the rest of the JSON only that much is a decision, and tokens may stand in it."""
    found = mapping(text, place)
    method = found.get("method")
    if isinstance(method, str) and usable(method) and method:
        return method
    return "draft_model" if "model" in found else "unnamed"


def _transfer(text: str, place: str) -> Scalar:
    found = mapping(text, place)
    words = [found.get(key) for key in ("kv_connector", "kv_role")]
    told = " as ".join(word for word in words if isinstance(word, str) and word)
    if not told or not usable(told):
        raise refuse(place, "names no kv_connector", "a JSON object with kv_connector and kv_role")
    return told


OPTIONS: Final = (
    Option(
        control="enable_prefix_caching",
        technique=Technique.PREFIX_CACHING,
        flags=("--enable-prefix-caching",),
        takes=Takes.SWITCH,
        off=("--no-enable-prefix-caching",),
    ),
    Option(
        control="kv_cache_dtype",
        technique=Technique.QUANTIZATION,
        flags=("--kv-cache-dtype",),
        takes=Takes.WORD,
    ),
    Option(
        control="weight_precision",
        technique=Technique.QUANTIZATION,
        flags=("--quantization", "-q"),
        takes=Takes.WORD,
    ),
    Option(
        control="max_num_seqs",
        technique=Technique.CONTINUOUS_BATCHING,
        flags=("--max-num-seqs",),
        takes=Takes.WHOLE,
        scaled=True,
    ),
    Option(
        control="max_num_batched_tokens",
        technique=Technique.CONTINUOUS_BATCHING,
        flags=("--max-num-batched-tokens",),
        takes=Takes.WHOLE,
        scaled=True,
    ),
    Option(
        control="gpu_memory_utilization",
        technique=Technique.KV_CACHE,
        flags=("--gpu-memory-utilization",),
        takes=Takes.NUMBER,
    ),
    Option(
        control="attention_backend",
        technique=Technique.FLASH_ATTENTION,
        flags=("--attention-backend",),
        takes=Takes.WORD,
        environment=("VLLM_ATTENTION_BACKEND",),
    ),
    Option(
        control="kv_transfer_config",
        technique=Technique.DISAGGREGATION,
        flags=("--kv-transfer-config",),
        takes=Takes.WORD,
        read=_transfer,
    ),
    Option(
        control=_SPECULATION,
        technique=Technique.SPECULATIVE_DECODING,
        flags=("--speculative-config",),
        takes=Takes.WORD,
        read=_speculation,
    ),
)
# Both hold since the V1 engine; the others are chosen by platform and memory.
_DEFAULTS: Final[Mapping[str, Scalar]] = {"enable_prefix_caching": True, "kv_cache_dtype": "auto"}


def read_launch(launch: Launch, version: str | None) -> Reading:
    """Read how vLLM is started.

    Raises:
        InputError: every known option whose value it does not take.
    """
    found = match(OPTIONS, tuple(_folded(launch.words)), launch.environment, wanted=("--config",))
    # What stands in a configuration file of its own is not known to be left out here.
    known = {} if "--config" in found.others else _DEFAULTS
    left_out = defaults(OPTIONS, found, launch, known, default_of(*DEFAULTS, version))
    return _told(ConfigKind.COMMAND_LINE, found, left_out)


def read_config(tree: Tree, name: str) -> Reading:
    """Read the YAML file that `--config` names: option names without dashes in front.

    Raises:
        InputError: it is no mapping, or a known option has a value that vLLM does not take.
    """
    words: list[Word] = []
    for key, value in tree.items():
        flag = key.replace("_", "-")
        where = f"{name}:{value.line}"
        if value.is_scalar and value.text.lower() in {"true", "false"}:
            words.append(Word(text=f"--{flag}" if value.text.lower() == "true" else f"--no-{flag}", where=where))
        elif value.is_scalar:
            words.append(Word(text=f"--{flag}={value.text}", where=where))
        elif value.is_mapping:
            inner = {k: v.text for k, v in value.items() if v.is_scalar}
            words.append(Word(text=f"--{flag}={json.dumps(inner)}", where=where))
    found = match(OPTIONS, words, {})
    return _told(ConfigKind.VLLM_CONFIG, found, ())


def _told(kind: ConfigKind, found: Found, left_out: tuple[Entry, ...]) -> Reading:
    """Say that speculation is configured, as the metrics of a live vLLM do, and keep the method as a fact."""
    entries, facts = dict(found.entries), dict[str, JsonValue]()
    if speculation := entries.get(_SPECULATION):
        facts["speculative_method"] = speculation.value
        entries[_SPECULATION] = replace(speculation, value="configured")
    return Reading(kind=kind, entries=(*entries.values(), *left_out), facts=facts, unread=found.unread)


def _folded(words: Sequence[Word]) -> Iterator[Word]:
    """Make one JSON option of the dotted ones."""
    nested: dict[str, dict[str, JsonValue]] = {}
    places: dict[str, Word] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        dotted = _NESTED.fullmatch(word.text)
        if dotted is None:
            yield word
            continue
        flag, key, value = dotted.group(1).replace("_", "-"), dotted.group(2), dotted.group(3)
        if value is None and rest:
            value = rest.pop(0).text
        nested.setdefault(flag, {})[key] = value or ""
        places.setdefault(flag, word)
    for flag, content in nested.items():
        yield Word(text=f"--{flag}={json.dumps(content)}", where=places[flag].where)
