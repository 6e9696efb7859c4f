"""What an adapter makes of answers already fetched: identity, models, settings, and what it cannot know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from probes.endpoints.address import Address
from probes.endpoints.fault import Fault
from probes.endpoints.live import Quantity
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Missing, MissingReason, ModelFacts, ModelState, Scalar, Technique
from probes.fleet import RuntimeName
from probes.load.answer import FirstToken
from probes.load.untrusted import error_words, one_line, string

Replies = Mapping[str, Reply | Fault]

METRICS, CHAT = "/metrics", "/chat/completions"
# Stands for the path that no server has; the real one is random.
NOWHERE = "/<random>"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The value of one control and the answer it was read from. Names are those of the knowledge base."""

    technique: Technique
    control: str
    value: Scalar
    where: str


@dataclass(frozen=True, kw_only=True)
class NotTold:
    """A control that this server does not let anyone read, and why; "" stands for all of the technique."""

    technique: Technique
    control: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """An endpoint as its adapter sees it, before any text was asked for.

    `state` is LISTED for a server that lists what it serves. `askable` are the models that can be
    asked without making the server load one; `why_not` says why there is none.
    """

    runtime: RuntimeName
    version: str | Missing
    state: EndpointState
    api: str
    detail: str = ""
    models: tuple[ModelState, ...] = ()
    askable: tuple[str, ...] = ()
    why_not: str = ""
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)
    device: str | None = None
    seen: tuple[Seen, ...] = ()
    not_told: tuple[NotTold, ...] = ()
    first_token: FirstToken = FirstToken.FIRST_OUTPUT


class Adapter(Protocol):
    """One runtime's words. Everything is a function of answers; an adapter never asks by itself."""

    @property
    def paths(self) -> tuple[str, ...]:
        """What else to ask once the runtime is recognised."""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The figures its metrics give."""

    @property
    def metrics_hint(self) -> str:
        """How its metrics are switched on."""

    @property
    def prefix_control(self) -> str | None:
        """The switch that cached prompt tokens prove to be on."""

    def recognises(self, replies: Replies) -> bool:
        """Tell by the shape of bodies, never by a status: some servers answer 200 to any path."""

    def read(self, replies: Replies, api: str) -> Reading:
        """Read the answers; `api` is the prefix that the address names, or ''."""


def list_paths(address: Address) -> tuple[str, ...]:
    """Name where a model list may be: at the prefix of the address, else at those that servers use."""
    return (f"{address.api}/models",) if address.api else ("/v1/models", "/v3/models")


def document(replies: Replies, path: str) -> dict[str, JsonValue]:
    """Give the JSON object that a path answered with status 200; empty for anything else."""
    reply = replies.get(path)
    if isinstance(reply, Reply) and reply.status == 200 and isinstance(reply.document, dict):
        return reply.document
    return {}


def listed(replies: Replies) -> tuple[str, tuple[dict[str, JsonValue], ...]] | None:
    """Find a model list of the OpenAI shape and give the API prefix it lies under and its entries."""
    for path in replies:
        prefix, models, rest = path.rpartition("/models")
        body = document(replies, path) if models and not rest else {}
        entries = body.get("data")
        named = [e for e in entries if isinstance(e, dict) and string(e.get("id"))] if isinstance(entries, list) else []
        if named or (isinstance(entries, list) and body.get("object") == "list"):
            return prefix, tuple(named)
    return None


def owned_by(replies: Replies) -> set[str]:
    """Give the owners that a model list names, in lower case."""
    found = listed(replies)
    return {string(entry.get("owned_by")).lower() for entry in found[1]} if found else set()


def says_loading(reply: Reply | Fault | None) -> bool:
    """Tell a server that still loads its model from one that is down, by its own words."""
    return isinstance(reply, Reply) and reply.status == 503 and "loading" in words_of(reply).lower()


def words_of(reply: Reply) -> str:
    """Give an error answer's message, or its body; whoever keeps it has it redacted first and cut then."""
    return error_words(reply.document) or one_line(reply.text)


def unversioned(why: str) -> Missing:
    """Say why a version is not known."""
    return Missing(missing=MissingReason.NOT_MEASURED, detail=why)
