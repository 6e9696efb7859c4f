"""What the HTTP process and the engine process say to each other: one JSON object a line, both ways."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from probes.endpoints.embedded.settings import Settings
from probes.evidence import Scalar
from probes.schema import Model


class FinishReason(StrEnum):
    """Why a generation ended, in the words of the OpenAI API."""

    STOP = "stop"
    LENGTH = "length"


class Message(Model):
    role: str
    content: str


class Decoding(Model):
    """How to pick tokens; the defaults are those of OVMS, which samples unless the temperature is 0."""

    max_tokens: int | None = None
    ignore_eos: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    seed: int | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    include_stop: bool = False


class Start(Model):
    """First frame to the engine: load this."""

    kind: Literal["start"] = "start"
    ir: str
    context_tokens: int
    settings: Settings


class Submit(Model):
    """Generate for a chat (messages) or a text (prompt)."""

    kind: Literal["submit"] = "submit"
    id: int
    prompt: str | tuple[Message, ...]
    decoding: Decoding


class Cancel(Model):
    kind: Literal["cancel"] = "cancel"
    id: int


class Ready(Model):
    """The engine has generated its first token. `settings` are the values in force, the runtime's defaults included."""

    kind: Literal["ready"] = "ready"
    settings: dict[str, Scalar]


class Refused(Model):
    """The runtime will not run with these settings; `words` are its own."""

    kind: Literal["refused"] = "refused"
    words: str


class Accepted(Model):
    """A request has joined the batch."""

    kind: Literal["accepted"] = "accepted"
    id: int
    prompt_tokens: int


class Rejected(Model):
    """A request cannot be run as it is."""

    kind: Literal["rejected"] = "rejected"
    id: int
    words: str


class Progress(Model):
    """New tokens of one request. `text` is empty while a character is still incomplete."""

    kind: Literal["progress"] = "progress"
    id: int
    text: str
    tokens: int
    finish: FinishReason | None = None


class Failed(Model):
    """A request that was accepted will not be finished."""

    kind: Literal["failed"] = "failed"
    id: int
    words: str


class Stats(Model):
    """The books of the pipeline after a step. `requests` counts what is in the batch or waits for it."""

    kind: Literal["stats"] = "stats"
    requests: int = 0
    scheduled_requests: int = 0
    cache_usage_percent: float = 0.0
    max_cache_usage_percent: float = 0.0
    cache_size_bytes: int = 0


Command = Annotated[Start | Submit | Cancel, Field(discriminator="kind")]
Event = Annotated[Ready | Refused | Accepted | Rejected | Progress | Failed | Stats, Field(discriminator="kind")]

_COMMANDS: TypeAdapter[Start | Submit | Cancel] = TypeAdapter(Command)
_EVENTS: TypeAdapter[Ready | Refused | Accepted | Rejected | Progress | Failed | Stats] = TypeAdapter(Event)


def encode(frame: Model) -> bytes:
    """Write one frame as a line."""
    return frame.model_dump_json().encode() + b"\n"


def decode_command(line: bytes) -> Start | Submit | Cancel:
    """Read a line sent to the engine."""
    return _COMMANDS.validate_json(line)


def decode_event(line: bytes) -> Ready | Refused | Accepted | Rejected | Progress | Failed | Stats:
    """Read a line sent by the engine."""
    return _EVENTS.validate_json(line)
