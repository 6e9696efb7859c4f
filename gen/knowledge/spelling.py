"""How a runtime writes its controls, and the fragments of its configuration that give them a value."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Self

from pydantic import StringConstraints, model_validator

from gen.knowledge.schema import Engine, Id
from probes.evidence import Scalar
from probes.schema import Model

_Flag = Annotated[str, StringConstraints(pattern=r"^--[a-z][a-z0-9_-]+$")]
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTIONS = "mediapipe.LLMCalculatorOptions"


class Place(StrEnum):
    """Where a fragment belongs."""

    GRAPH = "graph.pbtxt"
    COMMAND_LINE = "command line"
    ENVIRONMENT = "environment of the server"
    MODELFILE = "Modelfile"
    INVENTORY = "fleet.yml"
    SCREEN = "user interface"


class Spelling(Model):
    """The words for one setting. `graph` is a field, or `field.inner`; `plugin` a key of its plugin_config.

    `bare` values are names of an enum and stand without quotes. With `off_flag` a flag takes no value: one of the two
    stands there. `screen` says where people find it in a program that keeps it in no file.
    """

    setting: str
    graph: str = ""
    bare: bool = False
    plugin: str = ""
    flag: _Flag | None = None
    off_flag: _Flag | None = None
    variable: Annotated[str, StringConstraints(pattern=r"^([A-Z][A-Z0-9_]*)?$")] = ""
    modelfile: str = ""
    inventory: str = ""
    screen: str = ""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if not any((self.graph, self.plugin, self.flag, self.variable, self.modelfile, self.inventory, self.screen)):
            raise ValueError("at least one place in which the setting is written")
        return self


class Dialect(Model):
    """All spellings of one runtime, with where they were read and when."""

    engine: Engine
    source: Id
    at: str = ""
    checked: date
    spellings: tuple[Spelling, ...]

    def spelling(self, setting: str) -> Spelling | None:
        """Find how a setting is written; None for one that no single value can fill."""
        return next((one for one in self.spellings if one.setting == setting), None)


class SpellingFile(Model):
    dialects: tuple[Dialect, ...]


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """A piece of configuration as its program reads it. `removed` are settings whose line goes, to their default."""

    place: Place
    text: str
    language: str
    removed: tuple[str, ...] = ()


def fragments(
    dialect: Dialect, values: Mapping[str, Scalar | None], beside: Mapping[str, Scalar] | None = None
) -> tuple[Fragment, ...]:
    """Write settings in each place where the runtime takes them; None takes a setting out.

    `beside` are other settings that hold already: a plugin_config is one text, which would lose what it leaves out.
    A value that the place cannot hold is left out of it.
    """
    known = {name: (spelled, values[name]) for name in values if (spelled := dialect.spelling(name)) is not None}
    return tuple(_fragments(dialect, known, beside or {}))


def _fragments(
    dialect: Dialect, known: Mapping[str, tuple[Spelling, Scalar | None]], beside: Mapping[str, Scalar]
) -> Iterator[Fragment]:
    given = [(one, value) for one, value in known.values() if value is not None]
    writers = (
        (Place.GRAPH, "text", _graph(dialect, known, beside)),
        (Place.COMMAND_LINE, "sh", _command_line(dialect, known, beside)),
        (Place.ENVIRONMENT, "sh", [_assigned(one.variable, value) for one, value in given if one.variable]),
        (Place.MODELFILE, "text", [f"{one.modelfile} {_plain(value)}" for one, value in given if one.modelfile]),
        (Place.INVENTORY, "yaml", _inventory(known)),
        (Place.SCREEN, "text", [f"{one.screen}: {_plain(value)}" for one, value in given if one.screen]),
    )
    for place, language, lines in writers:
        taken = tuple(name for name, (one, value) in known.items() if value is None and _goes_to(one, place))
        if lines or taken:
            yield Fragment(place=place, text="\n".join(lines), language=language, removed=taken)


def _goes_to(spelled: Spelling, place: Place) -> bool:
    return bool(
        {
            Place.GRAPH: spelled.graph or spelled.plugin,
            Place.COMMAND_LINE: spelled.flag or spelled.plugin,
            Place.ENVIRONMENT: spelled.variable,
            Place.MODELFILE: spelled.modelfile,
            Place.INVENTORY: spelled.inventory,
            Place.SCREEN: spelled.screen,
        }[place]
    )


def _graph(dialect: Dialect, known: Mapping[str, tuple[Spelling, Scalar | None]], beside: Mapping[str, Scalar]) -> list[str]:
    """Write fields of the LLM node's options as protobuf text, inside the block that holds them."""
    fields = [_field(one, value) for one, value in known.values() if one.graph and value is not None]
    if properties := _plugin(dialect, known, beside, flags=False):
        fields.append(f"plugin_config: {_quoted(json.dumps(properties))}")
    if not fields:
        return []
    opening = ["node_options: {", f"  [type.googleapis.com / {_OPTIONS}]: {{"]
    return [*opening, *(f"    {field}" for field in fields), "  }", "}"]


def _field(spelled: Spelling, value: Scalar) -> str:
    name, _, inner = spelled.graph.partition(".")
    shown = _plain(value) if not isinstance(value, str) or (spelled.bare and _WORD.fullmatch(value)) else _quoted(value)
    return f"{name}: {{ {inner}: {shown} }}" if inner else f"{name}: {shown}"


def _quoted(value: str) -> str:
    """Quote as protobuf text does: in single quotes where the value holds double ones, as OVMS writes JSON."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
    if '"' in escaped and "'" not in escaped:
        return f"'{escaped}'"
    escaped = escaped.replace('"', '\\"')
    return f'"{escaped}"'


def _plugin(
    dialect: Dialect, known: Mapping[str, tuple[Spelling, Scalar | None]], beside: Mapping[str, Scalar], *, flags: bool
) -> dict[str, str | bool]:
    """Collect the keys of a plugin_config; with `flags`, without those that have a flag of their own."""
    own = {one.plugin for one, _ in known.values() if one.plugin and not (flags and one.flag)}
    if not own:
        return {}
    held = {
        spelled.plugin: value
        for name, value in beside.items()
        if (spelled := dialect.spelling(name)) is not None and spelled.plugin and not (flags and spelled.flag)
    }
    asked = {one.plugin: value for one, value in known.values() if one.plugin in own}
    merged = {key: value for key, value in {**held, **asked}.items() if value is not None}
    # OVMS hands these on to the plugin as text, as its own exports write them; a switch stays one.
    return {key: value if isinstance(value, bool) else _plain(value) for key, value in merged.items()}


def _command_line(
    dialect: Dialect, known: Mapping[str, tuple[Spelling, Scalar | None]], beside: Mapping[str, Scalar]
) -> list[str]:
    lines = [_option(one, value) for one, value in known.values() if one.flag and value is not None]
    if properties := _plugin(dialect, known, beside, flags=True):
        lines.append(f"--plugin_config {shlex.quote(json.dumps(properties))}")
    return lines


def _option(spelled: Spelling, value: Scalar) -> str:
    if spelled.off_flag is not None:
        return str(spelled.flag if value is True else spelled.off_flag)
    return f"{spelled.flag} {shlex.quote(_plain(value))}"


def _assigned(variable: str, value: Scalar) -> str:
    # Ollama's words for a switch are 1 and 0 (envconfig/config.go).
    return f"{variable}={shlex.quote(str(int(value)) if isinstance(value, bool) else _plain(value))}"


def _inventory(known: Mapping[str, tuple[Spelling, Scalar | None]]) -> list[str]:
    lines = [f"    {one.inventory}: {_yaml(value)}" for one, value in known.values() if one.inventory and value is not None]
    return ["embedded:", "  settings:", *lines] if lines else []


def _yaml(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _plain(value)


def _plain(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
