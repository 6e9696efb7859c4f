"""graph.pbtxt of OVMS: protobuf text, with a comment that is configuration and JSON inside a string.

Grammar is protobuf's own; what an absent field means is the message's default and never the command line's
(model_server src/llm/llm_calculator.proto, src/mediapipe_internal/mediapipegraphdefinition.cpp @7e4df0c7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError, EncodeError
from pydantic import JsonValue

from probes.declared import kind, plugin
from probes.declared.complaint import refuse, shown, usable
from probes.declared.entry import Entry, Reading, without_effect
from probes.declared.protos import CALCULATORS, GRAPH, LLM, PACKAGE, message_class, pool
from probes.declared.release import default_of, is_newer
from probes.evidence import Scalar, Technique
from probes.fleet import ConfigKind

QUEUE: Final = "OVMS_GRAPH_QUEUE_MAX_SIZE"
MAX_DEPTH: Final = 64
MAX_NODES: Final = 20
DEFAULTS: Final = ("OVMS", "2025.4", "2026.3")

TECHNIQUES: Final = {
    "max_num_seqs": Technique.CONTINUOUS_BATCHING,
    "max_num_batched_tokens": Technique.CONTINUOUS_BATCHING,
    "dynamic_split_fuse": Technique.CONTINUOUS_BATCHING,
    "pipeline_type": Technique.CONTINUOUS_BATCHING,
    "enable_prefix_caching": Technique.PREFIX_CACHING,
    "cache_interval_multiplier": Technique.PREFIX_CACHING,
    "cache_size": Technique.KV_CACHE,
    "cache_eviction_config": Technique.KV_CACHE,
    "sparse_attention_config": Technique.FLASH_ATTENTION,
    "draft_models_path": Technique.SPECULATIVE_DECODING,
    "draft_device": Technique.SPECULATIVE_DECODING,
    "draft_max_num_batched_tokens": Technique.SPECULATIVE_DECODING,
    "draft_cache_size": Technique.SPECULATIVE_DECODING,
    "draft_block_size": Technique.SPECULATIVE_DECODING,
    "draft_max_num_seqs": Technique.SPECULATIVE_DECODING,
    "draft_dynamic_split_fuse": Technique.SPECULATIVE_DECODING,
    "draft_eagle3_mode": Technique.SPECULATIVE_DECODING,
}
# Whose default says something when the field is absent; an absent draft or eviction is none.
_DEFAULTED: Final = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "dynamic_split_fuse",
    "pipeline_type",
    "enable_prefix_caching",
    "cache_size",
)
_OF_BATCHING: Final = frozenset({*TECHNIQUES, "prompt_lookup"} - {"pipeline_type"})
_STATEFUL: Final = {"LM", "VLM"}
_FACTS: Final = (
    "models_path",
    "device",
    "target_device",
    "tool_parser",
    "reasoning_parser",
    "max_tokens_limit",
    "best_of_limit",
)

# MediapipeGraphDefinition::resolveGraphQueueSize() searches the whole file, and the first match counts.
_DIRECTIVE: Final = re.compile(rf"(?:^|\n)[^\S\n]*#\s*{QUEUE}\s*:\s*(\S+)\s*(?:\n|$)")
_CREATOR: Final = re.compile(r"(?:^|\n)# File created with: OpenVINO Model Server (\S+)")


def read_graph(text: str, name: str, version: str | None, first_line: int = 1) -> Reading:
    """Read a graph; `first_line` is where it begins in the file `name`, `version` the release that will read it.

    A release newer than the message that is known here may have more fields: they are named as not understood.

    Raises:
        InputError: OVMS would refuse the file, or it holds options of a calculator that is not known here.
    """
    newer = is_newer(version, DEFAULTS[2])
    graph = _parse(text, name, first_line, newer=newer)
    nodes = [(node, options) for node in graph.node for options in _options(node, name)]
    speaking = [options for _, options in nodes if options.DESCRIPTOR.full_name == LLM]
    if len(speaking) > 1:
        raise refuse(name, f"holds {len(speaking)} nodes with {LLM}", "one, whose settings are the service's")
    facts: dict[str, JsonValue] = {
        "calculators": [node.calculator for node in graph.node[:MAX_NODES] if usable(node.calculator)]
    }
    if creator := _CREATOR.search(text):
        facts["created_with"] = f"OpenVINO Model Server {creator.group(1)[:40]}"
    for _, options in nodes:
        facts |= {field: getattr(options, field) for field in _FACTS if _told(options, field)}
    lines = {field: line + first_line - 1 for field, line in _lines(text).items()}
    entries = [*_queue(text, name, first_line)]
    for options in speaking:
        entries += _entries(options, name, lines, default_of(*DEFAULTS, version))
    pipeline = _enum(speaking[0], "pipeline_type") if speaking else ""
    kinds = tuple(kind.of_calculators([options.DESCRIPTOR.name for _, options in nodes], pipeline, name))
    known = message_class(LLM).DESCRIPTOR.fields_by_name
    unread = tuple(field for field in lines if field not in known) if newer else ()
    return Reading(kind=ConfigKind.GRAPH, entries=tuple(entries), facts=facts, kinds=kinds, unread=unread)


def _parse(text: str, name: str, first_line: int, *, newer: bool) -> Any:
    graph = message_class(GRAPH)()
    if _depth(text) > MAX_DEPTH:
        raise refuse(name, f"nests deeper than {MAX_DEPTH} levels", "a graph that people wrote")
    try:
        text_format.Parse(text, graph, allow_unknown_extension=True, allow_unknown_field=newer, descriptor_pool=pool())
    except text_format.ParseError as exc:
        raise _complaint(exc, text, name, first_line) from exc
    except EncodeError as exc:
        # Options are packed as soon as they are read, and what they require has to be there then.
        said = re.search(r"Message (\S+) is missing required fields: ([\w.]+)", str(exc))
        message, field = said.groups() if said else ("a message", "a field")
        raise refuse(f"{name}: {field}", "is missing", f"a value: {message} requires it") from exc
    except (ValueError, TypeError, RecursionError, UnicodeError) as exc:
        raise refuse(name, f"is no graph ({type(exc).__name__})", "protobuf text of a CalculatorGraphConfig") from exc
    return graph


def _complaint(exc: text_format.ParseError, text: str, name: str, first_line: int) -> Exception:
    """Tell a parse error with its line in the file and without the parser's own '12:3 : '."""
    said = re.sub(r"^\d+:\d+ : ", "", str(exc)).replace("\n", " ")
    said = re.sub(r"^'.*?': ", "", said)
    line = exc.GetLine()
    if unknown := re.search(r"Type (\S+) not found", said):
        where = next((n for n, one in enumerate(text.split("\n"), 1) if unknown.group(1).rpartition(".")[2] in one), 1)
        known = ", ".join(f"{PACKAGE}.{calculator}" for calculator in CALCULATORS)
        return refuse(f"{name}:{where + first_line - 1}", f"holds options of {unknown.group(1)}", f"one of {known}")
    place = name if line is None else f"{name}:{line + first_line - 1}"
    if unknown := re.search(r'"?([\w.]+)"? has no field named "(\w+)"', said):
        message, field = unknown.groups()
        return refuse(f"{place}: {field}", f"is not a field of {message}", "")
    field, at = _token(text, line, exc.GetColumn())
    told = f"is refused by protobuf at {shown(at)} ({said[:200]})" if at else f"is refused by protobuf ({said[:200]})"
    return refuse(f"{place}: {field}" if field else place, told, "protobuf text that OVMS takes")


def _token(text: str, line: int | None, column: int | None) -> tuple[str, str]:
    """Find the field and the word that a parse error speaks of."""
    if not line or not column:
        return "", ""
    lines = text.split("\n")
    whole = lines[line - 1] if line <= len(lines) else ""
    before = re.search(r"([A-Za-z_]\w*)\s*:?\s*$", whole[: column - 1])
    at = re.match(r"[\w.+-]+|\S", whole[column - 1 :])
    return before.group(1) if before else "", at.group() if at else ""


def _options(node: Any, name: str) -> Iterator[Any]:
    """Unpack the options of a node."""
    for packed in node.node_options:
        kind = packed.type_url.rpartition("/")[2]
        try:
            options = message_class(kind)()
            options.MergeFromString(packed.value)
        except (KeyError, DecodeError) as exc:
            raise refuse(name, f"holds options of {shown(kind)}", f"{LLM}, or another calculator of OVMS") from exc
        yield options


def _told(options: Any, field: str) -> bool:
    known = field in options.DESCRIPTOR.fields_by_name and options.HasField(field)
    return known and (not isinstance(getattr(options, field), str) or usable(getattr(options, field)))


def _entries(options: Any, name: str, lines: Mapping[str, int], default: str) -> Iterator[Entry]:
    """Give what the LLM calculator is told, defaults included."""
    found: list[Entry] = []
    for control, technique in TECHNIQUES.items():
        if options.HasField(control):
            where = _at(name, lines.get(control))
            found.append(Entry(technique=technique, control=control, value=_value(options, control, where), where=where))
        elif control in _DEFAULTED:
            value = _value(options, control, name)
            found.append(Entry(technique=technique, control=control, value=value, where=name, default_of=default))
    if options.HasField("plugin_config"):
        found += plugin.entries(options.plugin_config, _at(name, lines.get("plugin_config")), options.device)
    if why := _not_batching(options):
        # What is ignored has no default worth telling, but that no prefix is cached stays true.
        found = [one for one in found if not one.default_of or one.control in {"pipeline_type", "enable_prefix_caching"}]
        found = list(without_effect(found, _OF_BATCHING, why))
    if not options.draft_models_path:
        # llm_calculator.proto: speculation is used when draft_models_path is set.
        drafting = frozenset(control for control in TECHNIQUES if control.startswith("draft_"))
        found = list(without_effect(found, drafting, "no draft_models_path"))
    yield from found


def _not_batching(options: Any) -> str:
    """Say which pipeline ignores the options of continuous batching; '' where it does not."""
    pipeline = _enum(options, "pipeline_type")
    if pipeline in _STATEFUL:
        return f"{pipeline} pipeline"
    return "NPU runs the stateful pipeline" if pipeline == "AUTO" and options.device.upper().startswith("NPU") else ""


def _value(options: Any, control: str, where: str) -> Scalar:
    field = options.DESCRIPTOR.fields_by_name[control]
    if field.enum_type is not None:
        return _enum(options, control)
    value = getattr(options, control)
    if control == "sparse_attention_config":
        # Even an empty one turns sparse attention on, with the mode that is the default.
        return _enum(value, "mode")
    if field.message_type is not None:
        words = [f"{one.name} {_enum(value, one.name) if one.enum_type else content}" for one, content in value.ListFields()
                 if one.message_type is None]  # fmt: skip
        return ", ".join(words)
    if isinstance(value, str) and not usable(value):
        raise refuse(where, f"holds the text {shown(value)}", "one printable line")
    return value  # type: ignore[no-any-return]


def _enum(message: Any, field: str) -> str:
    described = message.DESCRIPTOR.fields_by_name[field].enum_type
    number = getattr(message, field)
    known = described.values_by_number.get(number)
    return str(number) if known is None else str(known.name)


def _queue(text: str, name: str, first_line: int) -> Iterator[Entry]:
    match = _DIRECTIVE.search(text)
    if match is None:
        return
    where, value = f"{name}:{text[: match.start(1)].count(chr(10)) + first_line}", match.group(1)
    if value != "AUTO" and not re.fullmatch(r"\+?\d{1,9}", value):
        raise refuse(f"{where}: {QUEUE}", f"is {shown(value)}", "AUTO, 0 or a whole number above it")
    parsed: Scalar = value if value == "AUTO" else int(value)
    yield Entry(technique=Technique.CONTINUOUS_BATCHING, control=QUEUE, value=parsed, where=where)


_TOKEN: Final = re.compile(
    r"""(?P<skip>\#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<any>\[[^\]"'\n]*\])|(?P<open>[{<])|(?P<close>[}>])"""
    r"""|(?P<colon>:)|(?P<name>[A-Za-z_]\w*)|(?P<other>\S)""",
    re.DOTALL,
)


def _lines(text: str) -> dict[str, int]:
    """Find the line of each field of the LLM options in a text that has been parsed: the parser keeps none."""
    found: dict[str, int] = {}
    path: list[str] = []
    last, after_colon, line, counted = "", False, 1, 0
    for token in _TOKEN.finditer(text):
        line, counted = line + text.count("\n", counted, token.start()), token.start()
        kind = token.lastgroup
        if kind == "open":
            path.append(last)
        elif kind == "close":
            path = path[:-1]
        elif kind in {"name", "any"} and not after_colon:
            last = re.sub(r"\s", "", token.group())
            if path and path[-1].strip("[]").rpartition("/")[2] == LLM:
                found.setdefault(last, line)
        after_colon = kind == "colon" or (after_colon and kind == "skip" and token.group().startswith("#"))
    return found


def _depth(text: str) -> int:
    depth = deepest = 0
    for token in _TOKEN.finditer(text):
        depth += {"open": 1, "close": -1}.get(token.lastgroup or "", 0)
        deepest = max(deepest, depth)
    return deepest


def _at(name: str, line: int | None) -> str:
    return name if line is None else f"{name}:{line}"
