"""What switches or tunes a technique in one runtime, and how its live state shows."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import model_validator

from gen.knowledge.schema import Engine, Known, Sentence, same_value
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


class Accepts(Model):
    """The values that a control takes, as far as a program can check them; without `one_of` any of its kind."""

    kind: Literal["truth", "whole", "number", "word"]
    least: float | None = None
    most: float | None = None
    one_of: tuple[Scalar, ...] = ()

    def refuses(self, value: Scalar) -> str:
        """Say what is expected where a value is none of them, or nothing."""
        truth, number = isinstance(value, bool), isinstance(value, int | float) and not isinstance(value, bool)
        fits = {
            "truth": truth,
            "whole": number and isinstance(value, int),
            "number": number,
            "word": isinstance(value, str),
        }[self.kind]
        within = not isinstance(value, int | float) or (
            (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
        )
        listed = not self.one_of or any(same_value(value, one) for one in self.one_of)
        return "" if fits and within and listed else self.said()

    def said(self) -> str:
        """Say in words what is accepted."""
        if self.one_of:
            return f"one of {', '.join(str(one) for one in self.one_of)}"
        kind = {"truth": "true or false", "whole": "a whole number", "number": "a number", "word": "a word"}[self.kind]
        ends = (("at least", self.least), ("at most", self.most))
        return " ".join([kind, " and ".join(f"{word} {end:g}" for word, end in ends if end is not None)]).strip()


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
    accepts: Accepts | None = None
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
