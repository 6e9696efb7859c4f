"""What switches or tunes a technique in one runtime, and how its live state shows."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from gen.knowledge.schema import Engine, Known, Sentence
from probes.evidence import Scalar, Technique
from probes.schema import Model


class SetBy(StrEnum):
    """The ways a control is set; `internal` is set by nobody, `reading` is only looked at."""

    GRAPH_FIELD = "graph field"
    COMMAND_LINE = "command line"
    ENVIRONMENT = "environment"
    CONFIG_FILE = "config file"
    PLUGIN_PROPERTY = "plugin property"
    API = "api"
    LOAD_REQUEST = "load request"
    REQUEST = "request"
    ARTIFACT = "artifact"
    INTERNAL = "internal"
    READING = "reading"


class How(StrEnum):
    """The ways the live state of a control shows."""

    HTTP = "http"
    METRIC = "metric"
    LOG = "log"
    LOG_DUMP = "log dump"
    FILE = "file"
    PROCESS_ARGUMENTS = "process arguments"
    ENVIRONMENT = "environment"
    PYTHON = "python"
    BEHAVIOUR = "behaviour"
    NONE = "none"


class Role(StrEnum):
    """What a control does for its technique, in any runtime: the word the rules are written in."""

    WEIGHTS = "weight precision"
    KV_PRECISION = "kv precision"
    SWITCH = "switch"
    SEQUENCES = "sequences at once"
    TOKENS = "tokens per batch"
    POOL = "kv pool"
    KERNEL = "attention kernel"
    SPARSE = "sparse attention"
    DRAFT = "draft"


class Observation(Model):
    how: How
    where: str
    field: str = ""


class Control(Known):
    """One control of one technique in one runtime, or (`absent`) that there is none.

    `settings` are the names that inventories and evidence use for it; `off` are the values that switch
    it off. `unit` belongs to its number.
    """

    technique: Technique
    name: Sentence
    settings: tuple[str, ...] = ()
    role: Role | None = None
    off: tuple[Scalar, ...] = ()
    unit: str = ""
    absent: bool = False
    set_by: tuple[SetBy, ...] = ()
    values: str = ""
    default: str = ""
    since: str = ""
    observe: tuple[Observation, ...] = ()
    limits: tuple[Sentence, ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _absent_or_settable(self) -> Self:
        if self.absent == bool(self.set_by):
            raise ValueError("set_by for a control that exists, and none for an absent one")
        if self.absent and not self.values:
            raise ValueError("in values, the sentence that says what is not there")
        if self.absent and (self.settings or self.true_from is None):
            raise ValueError("for an absent control no settings, and true_from")
        return self


class ControlFile(Model):
    engine: Engine
    controls: tuple[Control, ...]
