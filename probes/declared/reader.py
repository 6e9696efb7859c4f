"""One file of the inventory's `config`, read by whichever format it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from probes.declared import compose, kubernetes, llamacpp, ollama, ovms, starts, unit, vllm
from probes.declared.complaint import refuse, usable
from probes.declared.entry import Entry, Reading, joined
from probes.declared.graph import read_graph
from probes.declared.jsontext import mapping
from probes.declared.launch import Launch, Word
from probes.declared.shape import GENERATION, ModelShape, find_shape, read_shape
from probes.declared.text import read_text
from probes.declared.yamltree import Tree, documents
from probes.evidence import Technique
from probes.fleet import ConfigFile, ConfigKind, RuntimeName

_DIALECTS: Final[Mapping[RuntimeName, Callable[[Launch, str | None], Reading]]] = {
    RuntimeName.OVMS: ovms.read_launch,
    RuntimeName.VLLM: vllm.read_launch,
    RuntimeName.LLAMACPP: llamacpp.read_launch,
    RuntimeName.OLLAMA: ollama.read_launch,
}
# The embedded service takes the options of a graph by the same names.
_GRAPHS: Final = frozenset({RuntimeName.OVMS, RuntimeName.OPENVINO, RuntimeName.OPENVINO_GENAI_EMBEDDED})
_GRAPH: Final = "graph.pbtxt"
_DRAFTING: Final = ("num_assistant_tokens", "assistant_confidence_threshold", "max_ngram_size")
_MAX_MAP_FILES: Final = 64
_ASSIGNS: Final = re.compile(r"\s*(?:export\s+)?[A-Za-z_]\w*=(?:\S*|(['\"]).*\1)\s*$")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file to read: where it lies, what it is called in messages and evidence, and for which service."""

    path: Path
    name: str
    file: ConfigFile
    runtime: RuntimeName
    version: str | None


def read(source: Source) -> Reading:
    """Read one file or folder.

    Raises:
        InputError: with file, line, field, value and expectation.
    """
    try:
        folder, there = source.path.is_dir(), source.path.exists()
    except OSError as exc:
        raise refuse(source.name, f"cannot be looked at ({exc.strerror})", "a readable file or folder") from exc
    if folder:
        return _folder(source)
    if not there:
        raise refuse(source.name, "does not exist", "a file or folder; paths are relative to the inventory")
    kind = source.file.kind or _by_name(source.path.name)
    if kind is ConfigKind.GGUF:
        return _of_shape(read_shape(source.path, source.name), ConfigKind.GGUF)
    text = read_text(source.path, source.name)
    if kind in _YAML or (kind is None and source.path.suffix.lower() in {".yml", ".yaml"}):
        trees = documents(text, source.name)
        return _YAML[kind or _of_yaml(trees, source)](trees, source)
    return _READERS[kind or _by_content(text, source)](text, source)


def _by_name(name: str) -> ConfigKind | None:
    low = name.lower()
    endings = {
        ".pbtxt": ConfigKind.GRAPH,
        ".gguf": ConfigKind.GGUF,
        ".modelfile": ConfigKind.MODELFILE,
        ".env": ConfigKind.ENVIRONMENT,
        ".service": ConfigKind.UNIT,
        ".sh": ConfigKind.COMMAND_LINE,
        ".cmd": ConfigKind.COMMAND_LINE,
    }
    if low.startswith("modelfile"):
        return ConfigKind.MODELFILE
    return next((kind for ending, kind in endings.items() if low.endswith(ending)), None)


def _by_content(text: str, source: Source) -> ConfigKind:
    if source.path.suffix.lower() == ".json":
        return ConfigKind.OVMS_CONFIG
    if re.search(r"^\[Service\]\s*$", text, re.MULTILINE):
        return ConfigKind.UNIT
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    assigns = bool(lines) and all(_ASSIGNS.match(line) for line in lines)
    return ConfigKind.ENVIRONMENT if assigns else ConfigKind.COMMAND_LINE


def _of_yaml(trees: tuple[Tree, ...], source: Source) -> ConfigKind:
    if kubernetes.is_manifest(trees):
        return ConfigKind.KUBERNETES
    if compose.is_compose(trees):
        return ConfigKind.COMPOSE
    if source.runtime is RuntimeName.VLLM and len(trees) == 1 and trees[0].is_mapping:
        return ConfigKind.VLLM_CONFIG
    raise refuse(source.name, "is neither a manifest nor a compose file", "apiVersion and kind, or services")


def _folder(source: Source) -> Reading:
    """Read what a model folder tells of its model, and the graph that serves it where one lies in it."""
    name = source.name.rstrip("/")
    graph = source.path / _GRAPH
    told = graph.is_file() and source.runtime in _GRAPHS
    readings: list[Reading] = []
    if told:
        readings.append(read_graph(read_text(graph, f"{name}/{_GRAPH}"), f"{name}/{_GRAPH}", source.version))
    # Beside a graph a model may lie or not; without one, a folder that describes nothing is a mistake.
    shape = find_shape(source.path, name) if told else read_shape(source.path, name)
    if shape is not None:
        readings.append(_of_shape(shape, ConfigKind.MODEL_FOLDER))
    if (source.path / GENERATION).is_file() and source.runtime in _GRAPHS:
        readings.append(_generation(source.path / GENERATION, f"{name}/{GENERATION}"))
    return joined(ConfigKind.MODEL_FOLDER, readings)


def _generation(path: Path, place: str) -> Reading:
    """Read what requests get that do not say it themselves, as far as it drafts tokens."""
    document = mapping(read_text(path, place), place, 1)
    entries = tuple(
        Entry(technique=Technique.SPECULATIVE_DECODING, control=control, value=value, where=f"{place}: {control}")
        for control in _DRAFTING
        if isinstance(value := document.get(control), int | float) and not isinstance(value, bool)
    )
    return Reading(kind=ConfigKind.MODEL_FOLDER, entries=entries)


def _of_shape(shape: ModelShape, kind: ConfigKind) -> Reading:
    precision = shape.weight_precision
    if precision is None:
        return Reading(kind=kind, shape=shape, kinds=shape.kinds)
    one = Entry(technique=Technique.QUANTIZATION, control="weight_precision", value=precision.value, where=precision.where)
    return Reading(kind=kind, entries=(one,), shape=shape, kinds=shape.kinds)


def _graph(text: str, source: Source) -> Reading:
    if source.runtime not in _GRAPHS:
        raise refuse(source.name, f"is a graph of OVMS, and the service runs {source.runtime}", "a file of its runtime")
    return read_graph(text, source.name, source.version)


def _command(text: str, source: Source) -> Reading:
    dialect = _dialect(source)
    return dialect(starts.in_script(text, source.name, source.runtime), source.version)


def _unit(text: str, source: Source) -> Reading:
    dialect = _dialect(source)
    return replace(dialect(unit.read_unit(text, source.name, source.runtime), source.version), kind=ConfigKind.UNIT)


def _environment(text: str, source: Source) -> Reading:
    """Read variables alone: what the command line adds is not known, so only Ollama, which has none, has defaults."""
    dialect = _dialect(source)
    partial = () if source.runtime is RuntimeName.OLLAMA else ("the command line",)
    launch = Launch(words=(), environment=unit.read_environment(text, source.name), where=source.name, partial=partial)
    return replace(dialect(launch, source.version), kind=ConfigKind.ENVIRONMENT)


def _kubernetes(trees: tuple[Tree, ...], source: Source) -> Reading:
    found = kubernetes.served(trees, source.name, source.file.container, source.runtime)
    readings: list[Reading] = []
    if found.launch is not None and source.runtime in _DIALECTS:
        readings.append(_DIALECTS[source.runtime](found.launch, source.version))
    readings += _mounted(found.files, source)
    if not readings:
        raise refuse(source.name, f"says nothing about {source.runtime}", "arguments, variables or a mounted graph")
    return joined(ConfigKind.KUBERNETES, readings)


def _mounted(files: Mapping[str, Tree], source: Source) -> Iterator[Reading]:
    """Read the files of mounted ConfigMaps that the runtime reads too."""
    entry = source.file.entry
    if entry and entry not in files and entry.endswith((".pbtxt", ".modelfile", ".yaml", ".yml")):
        raise refuse(source.name, f"mounts no {entry[:60]!r}", f"one of {', '.join(sorted(files)) or 'none'}")
    named = {key: tree for key, tree in list(files.items())[:_MAX_MAP_FILES] if usable(key)}
    wanted = {key: tree for key, tree in named.items() if not entry or key == entry}
    graphs = [key for key in wanted if key.endswith(".pbtxt")]
    if source.runtime in _GRAPHS and len(graphs) > 1:
        raise refuse(source.name, f"mounts {len(graphs)} graphs", f"`entry` in the inventory, one of: {', '.join(graphs)}")
    for key, tree in wanted.items():
        line = tree.line + 1 if tree.is_block else tree.line
        if source.runtime in _GRAPHS and key.endswith(".pbtxt"):
            yield read_graph(tree.text, tree.name, source.version, line)
        elif source.runtime is RuntimeName.VLLM and key.endswith((".yaml", ".yml")):
            trees = documents(tree.text, f"{tree.name}: {key}")
            if len(trees) == 1 and trees[0].is_mapping and not kubernetes.is_manifest(trees):
                yield vllm.read_config(trees[0], f"{tree.name}: {key}")
        elif source.runtime is RuntimeName.OLLAMA and key.lower().startswith("modelfile"):
            yield ollama.read_modelfile(tree.text, f"{tree.name}: {key}")


def _compose(trees: tuple[Tree, ...], source: Source) -> Reading:
    if not compose.is_compose(trees):
        raise refuse(source.name, "is no compose file", "one document with services")
    folder = source.path.parent

    def env_file(path: str, place: str) -> Mapping[str, Word] | None:
        target = folder / path
        if path.startswith(("/", "~", "$")) or not target.is_file():
            return None
        return unit.read_environment(read_text(target, f"{place}: {path}"), f"{source.name.rpartition('/')[0] or '.'}/{path}")

    found = compose.launch(trees[0], source.name, source.file.container, source.runtime, env_file)
    return replace(_dialect(source)(found, source.version), kind=ConfigKind.COMPOSE)


def _vllm_config(trees: tuple[Tree, ...], source: Source) -> Reading:
    if source.runtime is not RuntimeName.VLLM or len(trees) != 1 or not trees[0].is_mapping:
        raise refuse(source.name, "is no configuration of vLLM", "one mapping of option names, for a service that runs vllm")
    return vllm.read_config(trees[0], source.name)


def _modelfile(text: str, source: Source) -> Reading:
    if source.runtime is not RuntimeName.OLLAMA:
        raise refuse(source.name, f"is a Modelfile, and the service runs {source.runtime}", "a file of its runtime")
    reading = ollama.read_modelfile(text, source.name)
    weights = source.path.parent / str(reading.facts.get("from", ""))
    if weights.suffix == ".gguf" and weights.is_file():
        own = _of_shape(read_shape(weights, f"{source.name}: {reading.facts['from']}"), ConfigKind.GGUF)
        return joined(ConfigKind.MODELFILE, [reading, own])
    return reading


def _ovms_config(text: str, source: Source) -> Reading:
    """Read a config.json and the graph of its servable, where that lies beside it."""
    if source.runtime not in _GRAPHS:
        raise refuse(source.name, f"is read as a config.json of OVMS, and the service runs {source.runtime}", "`kind`")
    every = ovms.read_config(text, source.name, source.file.entry, source.version)
    if len(every) > 1:
        names = ", ".join(one.name for one in every)
        raise refuse(source.name, f"serves {len(every)} models", f"`entry` in the inventory, one of: {names}")
    (one,) = every
    facts: dict[str, JsonValue] = {"servable": one.name, "base_path": one.base_path}
    own = Reading(kind=ConfigKind.OVMS_CONFIG, entries=one.entries, facts=facts, unread=one.unread)
    inner = Path(one.base_path) / (one.graph_path or _GRAPH)
    graph = source.path.parent / inner
    if Path(one.base_path).is_absolute() or Path(one.graph_path).is_absolute() or not graph.is_file():
        return own
    name = (Path(source.name).parent / inner).as_posix()
    return joined(ConfigKind.OVMS_CONFIG, [own, read_graph(read_text(graph, name), name, source.version)])


def _model_files(text: str, source: Source) -> Reading:
    """Refuse a single file where a folder was announced."""
    raise refuse(source.name, f"is one file of {len(text)} characters", "a folder, for kind 'model folder'")


def _dialect(source: Source) -> Callable[[Launch, str | None], Reading]:
    dialect = _DIALECTS.get(source.runtime)
    if dialect is None:
        known = ", ".join(_DIALECTS)
        raise refuse(source.name, f"starts a service whose runtime is {source.runtime}", f"one of {known}")
    return dialect


_READERS: Final[Mapping[ConfigKind, Callable[[str, Source], Reading]]] = {
    ConfigKind.GRAPH: _graph,
    ConfigKind.OVMS_CONFIG: _ovms_config,
    ConfigKind.COMMAND_LINE: _command,
    ConfigKind.ENVIRONMENT: _environment,
    ConfigKind.UNIT: _unit,
    ConfigKind.MODELFILE: _modelfile,
    ConfigKind.MODEL_FOLDER: _model_files,
    ConfigKind.GGUF: _model_files,
}
_YAML: Final[Mapping[ConfigKind, Callable[[tuple[Tree, ...], Source], Reading]]] = {
    ConfigKind.KUBERNETES: _kubernetes,
    ConfigKind.COMPOSE: _compose,
    ConfigKind.VLLM_CONFIG: _vllm_config,
}
