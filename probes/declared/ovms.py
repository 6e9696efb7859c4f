"""OVMS's command line and its config.json (src/graph_export/graph_cli_parser.cpp, src/schema.cpp @7e4df0c7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from probes.declared import plugin
from probes.declared.complaint import refuse, shown, usable
from probes.declared.entry import Entry, Reading, without_effect
from probes.declared.graph import DEFAULTS
from probes.declared.jsontext import mapping
from probes.declared.launch import Launch
from probes.declared.options import Option, Takes, defaults, match
from probes.declared.release import default_of, is_newer
from probes.evidence import Scalar, Technique
from probes.fleet import ConfigKind

PROGRAMS: Final = ("ovms", "ovms.exe")
_TEXT: Final = "text_generation"
_BATCHING, _CACHE, _DRAFT = Technique.CONTINUOUS_BATCHING, Technique.KV_CACHE, Technique.SPECULATIVE_DECODING


def _switch(text: str, place: str) -> Scalar:
    if text.lower() not in {"true", "false", "on", "1", "0"}:
        raise refuse(place, f"is {shown(text)}", "true or false")
    return text.lower() in {"true", "on", "1"}


OPTIONS: Final = (
    Option(control="max_num_seqs", technique=_BATCHING, flags=("--max_num_seqs",), takes=Takes.WHOLE),
    Option(control="max_num_batched_tokens", technique=_BATCHING, flags=("--max_num_batched_tokens",), takes=Takes.WHOLE),
    Option(control="dynamic_split_fuse", technique=_BATCHING, flags=("--dynamic_split_fuse",), takes=Takes.TRUTH),
    Option(control="pipeline_type", technique=_BATCHING, flags=("--pipeline_type",), takes=Takes.WORD),
    Option(control="rest_workers", technique=_BATCHING, flags=("--rest_workers",), takes=Takes.WHOLE),
    Option(
        control="enable_prefix_caching",
        technique=Technique.PREFIX_CACHING,
        flags=("--enable_prefix_caching",),
        takes=Takes.TRUTH,
    ),
    Option(
        control="cache_interval_multiplier",
        technique=Technique.PREFIX_CACHING,
        flags=("--cache_interval_multiplier",),
        takes=Takes.WHOLE,
    ),
    Option(control="cache_size", technique=_CACHE, flags=("--cache_size",), takes=Takes.WHOLE),
    Option(control="KV_CACHE_PRECISION", technique=Technique.QUANTIZATION, flags=("--kv_cache_precision",), takes=Takes.WORD),
    Option(control="weight_precision", technique=Technique.QUANTIZATION, flags=("--weight-format",), takes=Takes.WORD),
    Option(control="draft_source_model", technique=_DRAFT, flags=("--draft_source_model",), takes=Takes.WORD),
    Option(
        control="draft_eagle3_mode",
        technique=_DRAFT,
        flags=("--draft_eagle3_mode",),
        takes=Takes.MAYBE,
        read=_switch,
    ),
)
_OF_GRAPH: Final = frozenset(option.control for option in OPTIONS) - {"rest_workers"}
# The command line's own defaults, which are not those of the graph; what it leaves unset gets the graph's.
_DEFAULTS: Final[Mapping[str, Scalar]] = {
    "max_num_seqs": 256,
    "max_num_batched_tokens": 256,
    "dynamic_split_fuse": True,
    "pipeline_type": "AUTO",
    "enable_prefix_caching": True,
    "cache_size": 0,
}
_WANTED: Final = ("--task", "--target_device", "--plugin_config", "--source_model", "--model_name", "--config_path")
_EMPTY: Final = "--kv_cache_precision"

# Since 2026.4 (docs/idle_servable_management.md @338728f0); servables of the group `permanent` are never unloaded.
IDLE: Final = "idle_unload_timeout_seconds"
_GROUP: Final = "group_name"
_PERMANENT: Final = "permanent"
_SCHEMA_OF: Final = "2026.4"
_TOP: Final = frozenset(
    {"model_config_list", "mediapipe_config_list", "pipeline_config_list", "custom_node_library_config_list",
     "custom_loader_config_list", "monitoring", IDLE}
)  # fmt: skip
_MODEL: Final = frozenset(
    {"name", "base_path", "batch_size", "graph_path", "subconfig", "model_version_policy", "shape", "layout", "nireq",
     "target_device", "allow_cache", "plugin_config", "custom_loader_options", "mean", "scale", "color_format",
     "precision", "stateful", "idle_sequence_cleanup", "low_latency_transformation", "max_sequence_number", _GROUP}
)  # fmt: skip
_MEDIAPIPE: Final = frozenset({"name", "base_path", "graph_path", "subconfig", _GROUP})


def read_launch(launch: Launch, version: str | None) -> Reading:
    """Read how OVMS is started; with `--task text_generation` the graph is made from the command line.

    Raises:
        InputError: every known option whose value it does not take.
    """
    words = [word for word in launch.words if word.text != f"{_EMPTY}="]
    found = match(OPTIONS, words, {}, wanted=_WANTED, dashed=False)
    given = {flag: word.text for flag, word in found.others.items() if not word.open_to}
    facts: dict[str, JsonValue] = {}
    for flag, fact in (("--task", "task"), ("--target_device", "device"), ("--source_model", "source_model")):
        if given.get(flag) and usable(given[flag]):
            facts[fact] = given[flag]
    entries = tuple(found.entries.values())
    if "--plugin_config" in given:
        word = found.others["--plugin_config"]
        own = plugin.entries(word.text, word.where, given.get("--target_device", ""))
        if twice := {one.control for one in entries} & {one.control for one in own}:
            # createPluginString(): "Doubled KV_CACHE_PRECISION parameter in plugin config."
            expected = "it in one of the two, or OVMS does not start"
            raise refuse(f"{word.where}: --plugin_config", f"holds {min(twice)}, which an option of its own sets", expected)
        entries += own
    if given.get("--source_model", "").startswith("OpenVINO/"):
        why = "models of the OpenVINO organisation are downloaded as they are"
        entries = without_effect(entries, frozenset({"weight_precision"}), why)
    if given.get("--task") == _TEXT:
        entries += defaults(OPTIONS, found, launch, _DEFAULTS, default_of("OVMS command line", *DEFAULTS[1:], version))
    elif "--task" not in found.others and "--config_path" in found.others:
        why = "the graph of config.json decides"
        entries = without_effect(entries, _OF_GRAPH, why)
    return Reading(kind=ConfigKind.COMMAND_LINE, entries=entries, facts=facts, unread=found.unread)


@dataclass(frozen=True, kw_only=True)
class Served:
    """One servable of a config.json: where its graph would lie, and what of a plugin stands there itself."""

    name: str
    base_path: str
    graph_path: str
    device: str
    group: str
    entries: tuple[Entry, ...]
    unread: tuple[str, ...]


def read_config(text: str, name: str, entry: str, version: str | None = None) -> tuple[Served, ...]:
    """Read a config.json and give its servables, or the one called `entry`.

    `version` is the release that will read it; one newer than the schema known here may have more fields, which are
    named as not understood.

    Raises:
        InputError: OVMS would refuse it, or it has no servable of that name.
    """
    document, newer = mapping(text, name, 1), is_newer(version, _SCHEMA_OF)
    if "model_config_list" not in document and "mediapipe_config_list" not in document:
        raise refuse(name, "has no model_config_list", "a config.json of OVMS, or `kind` in the inventory")
    unread = _unknown(document, _TOP, f"{name}: ", newer=newer)
    idle = tuple(_idle(document, name))
    servables = (*_models(document, name, newer=newer), *_graphs(document, name, newer=newer))
    every = tuple(replace(_kept(one, idle), unread=(*unread, *one.unread)) for one in servables)
    named = tuple(one for one in every if not entry or one.name == entry)
    if not named:
        found = f"has no servable {shown(entry)}" if entry else "serves nothing"
        raise refuse(name, found, f"one of {', '.join(one.name for one in every)}" if every else "a servable")
    return named


def _idle(document: Mapping[str, JsonValue], name: str) -> Iterator[Entry]:
    if IDLE not in document:
        return
    value = document[IDLE]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise refuse(f"{name}: {IDLE}", "is no whole number of seconds", "0, which never unloads, or more")
    yield Entry(technique=_CACHE, control=IDLE, value=value, where=f"{name}: {IDLE}")


def _kept(one: Served, idle: tuple[Entry, ...]) -> Served:
    why = "its group is permanent"
    own = without_effect(idle, frozenset({IDLE}), why) if one.group == _PERMANENT else idle
    return replace(one, entries=(*one.entries, *own))


def _unknown(found: Mapping[str, JsonValue], known: frozenset[str], place: str, *, newer: bool) -> tuple[str, ...]:
    """Refuse fields that OVMS's own schema refuses; a newer release has a schema that is not known here."""
    unknown = tuple(key[:60] for key in sorted(set(found) - known))
    if unknown and not newer:
        raise refuse(f"{place}{unknown[0]}", "is not a known field", f"one of {', '.join(sorted(known))}")
    return unknown


def _models(document: Mapping[str, JsonValue], name: str, *, newer: bool) -> Iterator[Served]:
    for place, item in _items(document, "model_config_list", name):
        config = item.get("config")
        if not isinstance(config, dict) or len(item) != 1:
            raise refuse(place, "is no {config: {...}}", 'an object with "config" and nothing else')
        yield _served(config, f"{place}.config", _MODEL, newer=newer)


def _graphs(document: Mapping[str, JsonValue], name: str, *, newer: bool) -> Iterator[Served]:
    for place, item in _items(document, "mediapipe_config_list", name):
        yield _served(item, place, _MEDIAPIPE, newer=newer)


def _items(document: Mapping[str, JsonValue], key: str, name: str) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    items = document.get(key, [])
    if not isinstance(items, list):
        raise refuse(f"{name}: {key}", "is no list", "a list")
    for index, item in enumerate(items):
        place = f"{name}: {key}.{index}"
        if not isinstance(item, dict):
            raise refuse(place, "is no object", "an object")
        yield place, item


def _served(config: Mapping[str, JsonValue], place: str, known: frozenset[str], *, newer: bool) -> Served:
    unread = _unknown(config, known, f"{place}.", newer=newer)
    texts = {key: config.get(key, "") for key in ("name", "base_path", "graph_path", "target_device", _GROUP)}
    for key, value in texts.items():
        if not isinstance(value, str) or not usable(value) or (key == "name" and not value):
            raise refuse(f"{place}.{key}", "is missing or no text", "one printable line")
    said = {key: str(value) for key, value in texts.items()}
    properties = config.get("plugin_config", {})
    if not isinstance(properties, dict):
        raise refuse(f"{place}.plugin_config", "is no object", 'an object such as {"KV_CACHE_PRECISION": "u8"}')
    return Served(
        name=said["name"],
        base_path=said["base_path"],
        graph_path=said["graph_path"],
        device=said["target_device"],
        group=said[_GROUP],
        entries=plugin.of_object(properties, f"{place}.plugin_config", said["target_device"]),
        unread=unread,
    )
