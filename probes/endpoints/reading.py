"""What an adapter makes of answers already fetched: identity, models, settings, and what it cannot know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from probes.endpoints.address import Address
from probes.endpoints.fault import Fault
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Missing, MissingReason, ModelFacts, ModelKind, ModelState, Scalar, Technique
from probes.fleet import RuntimeName
from probes.load.answer import FirstToken
from probes.load.untrusted import error_words, one_line, string
from probes.told import Told

Replies = Mapping[str, Reply | Fault]

METRICS, CHAT = "/metrics", "/chat/completions"
# Stands for the path that no server has; the real one is random.
NOWHERE = "/<random>"
NO_MODEL: Final = "the server lists no model"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The value of one control and the answer it was read from. Names are those of the knowledge base."""

    technique: Technique
    control: str
    value: Scalar
    where: str


@dataclass(frozen=True, kw_only=True)
class NotTold:
    """A control that this server does not let anyone read, and why; "" stands for all of the technique.

    `default` is what holds if nobody set it, in the release that `default_of` names; "" where that is not known.
    """

    technique: Technique
    control: str
    why: str
    default: Scalar = ""
    default_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """An endpoint as its adapter sees it, before any text was asked for.

    `state` is LISTED for a server that lists what it serves. `askable` are the models that can be
    asked without making the server load one, `loadable` those that asking may load; `why_not` says why
    none is askable. `kinds` is what answers tell a model to be, by its id; "" stands for whatever the server serves.
    """

    runtime: RuntimeName
    version: str | Missing
    state: EndpointState
    api: str
    detail: str = ""
    models: tuple[ModelState, ...] = ()
    askable: tuple[str, ...] = ()
    loadable: tuple[str, ...] = ()
    why_not: str = ""
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)
    device: str | None = None
    seen: tuple[Seen, ...] = ()
    not_told: tuple[NotTold, ...] = ()
    kinds: Mapping[str, Told[ModelKind]] = field(default_factory=dict)
    first_token: FirstToken = FirstToken.FIRST_OUTPUT


@dataclass(frozen=True, kw_only=True)
class Silent:
    """A control that no answer of a runtime shows, with its default; "" where documents give none."""

    technique: Technique
    control: str
    default: Scalar = ""


def silences(controls: Iterable[Silent], why: str, *, default_of: str, seen: Iterable[Seen] = ()) -> tuple[NotTold, ...]:
    """Say of each control that was not seen after all why it is not told."""
    known = {one.control for one in seen}
    return tuple(
        NotTold(
            technique=one.technique,
            control=one.control,
            why=why,
            default=one.default,
            default_of=default_of if one.default != "" else "",
        )
        for one in controls
        if one.control not in known
    )


def absences(techniques: Iterable[Technique], why: str) -> tuple[NotTold, ...]:
    """Say of whole techniques why this server has nothing to tell about them."""
    return tuple(NotTold(technique=technique, control="", why=why) for technique in techniques)


def per_model(
    technique: Technique, control: str, values: Mapping[str, Scalar], where: str
) -> tuple[tuple[Seen, ...], tuple[NotTold, ...]]:
    """Read a setting that each loaded model has for itself: one value if they agree, else what differs."""
    if not values:
        return (), (NotTold(technique=technique, control=control, why=f"no loaded model shows it in {where}"),)
    # True is no 1: settings of different kinds never agree.
    if len({(type(value), value) for value in values.values()}) == 1:
        return (Seen(technique=technique, control=control, value=next(iter(values.values())), where=where),), ()
    told = ", ".join(f"{model} {value}" for model, value in values.items())
    return (), (NotTold(technique=technique, control=control, why=f"it differs between the loaded models: {told}"),)


def list_paths(address: Address) -> tuple[str, ...]:
    """Name where a model list may be: at the prefix of the address, else at those that servers use."""
    return (f"{address.api}/models",) if address.api else ("/v1/models", "/v3/models")


def of_list(
    runtime: RuntimeName,
    version: str | Missing,
    replies: Replies,
    api: str,
    *,
    seen: tuple[Seen, ...],
    not_told: tuple[NotTold, ...],
) -> Reading:
    """Read a server whose model list says all there is to know of its models: each that is listed can be asked."""
    prefix, entries = listed(replies) or ("/v1", ())
    models = tuple(string(entry.get("id")) for entry in entries)
    return Reading(
        runtime=runtime,
        version=version,
        state=EndpointState.LISTED if models else EndpointState.EMPTY,
        api=api or prefix,
        detail="" if models else NO_MODEL,
        models=tuple(ModelState(id=model, state="listed") for model in models),
        askable=models,
        why_not="" if models else NO_MODEL,
        seen=seen,
        not_told=not_told,
    )


def document(replies: Replies, path: str) -> dict[str, JsonValue]:
    """Give the JSON object that a path answered with status 200; empty for anything else."""
    reply = replies.get(path)
    if isinstance(reply, Reply) and reply.status == 200 and isinstance(reply.document, dict):
        return reply.document
    return {}


def objects(value: JsonValue) -> tuple[dict[str, JsonValue], ...]:
    """Give the objects of a JSON list; empty for anything else."""
    return tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def nested(value: Mapping[str, JsonValue], *names: str) -> dict[str, JsonValue]:
    """Follow names into nested JSON objects; empty where there is none."""
    inner: JsonValue = dict(value)
    for name in names:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else {}


def listed(replies: Replies) -> tuple[str, tuple[dict[str, JsonValue], ...]] | None:
    """Find a model list of the OpenAI shape and give the API prefix it lies under and its entries.

    A list without models may be `null`: Go writes an empty slice so, and Ollama is written in Go.
    """
    for path in replies:
        prefix, models, rest = path.rpartition("/models")
        body = document(replies, path) if models and not rest and not prefix.startswith("/api") else {}
        entries, typed = body.get("data"), body.get("object") == "list"
        named = tuple(entry for entry in objects(entries) if string(entry.get("id")))
        if named or (typed and (isinstance(entries, list) or ("data" in body and entries is None))):
            return prefix, named
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


def untold_facts(id: str, why: str = "the model list does not tell it") -> ModelFacts:
    """Give a model of which nothing but its id is known."""
    silent = Missing(missing=MissingReason.NOT_MEASURED, detail=why)
    return ModelFacts(id=id, revision=silent, sha256=silent, quantization=silent, bytes=silent)
