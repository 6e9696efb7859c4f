"""Any other server with an OpenAI-shaped API: it can be asked, and says next to nothing about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from probes.endpoints.adapter import Adapter
from probes.endpoints.reading import (
    CHAT,
    NO_MODEL,
    NOWHERE,
    Reading,
    Replies,
    absences,
    document,
    listed,
    nested,
    owned_by,
    unversioned,
)
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, ModelKind, ModelState, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import string
from probes.told import Told

API: Final = "/openapi.json"
# Ollama's name for the owner of a model, behind a proxy that lets nothing but this list through.
_OLLAMA: Final = "library"


class OpenAiCompatible(Adapter):
    """The fallback. It reads no /metrics: a server it does not know may empty them with each reading, as TensorRT-LLM does."""

    runtime = RuntimeName.OPENAI_COMPATIBLE
    paths = ()
    metrics = ""

    def recognises(self, replies: Replies) -> bool:
        """Look for a model list, for a chat path that wants a POST on a server that tells paths apart, or for its paths."""
        return _entries(replies) is not None or _chat_prefix(replies) is not None or bool(_without_text(replies))

    def read(self, replies: Replies, api: str) -> Reading:
        """Read the list; what the server's own description calls no server for text is not asked for any."""
        found = _entries(replies)
        prefix, entries = found or (_chat_prefix(replies) or "/v1", ())
        models = tuple(_id(entry) for entry in entries)
        without_text = _without_text(replies) or _why_not(replies)
        empty = NO_MODEL if found else "the server has no list of models"
        return Reading(
            runtime=RuntimeName.OPENAI_COMPATIBLE,
            version=unversioned("the server gives no version"),
            state=EndpointState.EMPTY if found and not models else EndpointState.LISTED,
            api=api or prefix,
            detail="" if models else empty,
            models=tuple(ModelState(id=model, state="listed") for model in models),
            askable=() if without_text else models,
            loadable=models if _OLLAMA in owned_by(replies) else (),
            why_not=without_text or ("" if models else empty),
            kinds=_kinds(replies),
            not_told=absences(Technique, "an OpenAI-shaped API has no path for settings"),
        )


def _why_not(replies: Replies) -> str:
    behind = "Ollama loads a model when it is asked, and its list does not tell which are loaded"
    return behind if _OLLAMA in owned_by(replies) else ""


def api_paths(replies: Replies) -> frozenset[str]:
    """Give the paths that a server describes in OpenAPI, as FastAPI does by itself."""
    return frozenset(nested(document(replies, API), "paths"))


def _without_text(replies: Replies) -> str:
    """Say by a server's own description that it makes no text; '' when it does or does not say."""
    paths = api_paths(replies)
    makes_text = any(path.endswith((CHAT, "/completions")) for path in paths)
    for ending, what in (("/audio/transcriptions", "speech"), ("/embeddings", "embeddings")):
        if not makes_text and any(path.endswith(ending) for path in paths):
            return f"its API has paths for {what} and none for text"
    return ""


def _kinds(replies: Replies) -> dict[str, Told[ModelKind]]:
    """Tell by the paths of a server that has none for text; what listens may be of several kinds."""
    paths = api_paths(replies)
    embeds = bool(_without_text(replies)) and not any(path.endswith("/audio/transcriptions") for path in paths)
    where = f"GET {API} has paths for embeddings and none for text"
    return {"": Told(value=ModelKind.FORWARD_ONLY, where=where)} if embeds else {}


def _chat_prefix(replies: Replies) -> str | None:
    """Give the prefix of a chat path that answers 405 to a GET where a random path answers 404."""
    nowhere = replies.get(NOWHERE)
    if not isinstance(nowhere, Reply) or nowhere.status != 404:
        return None
    wants_post = (p for p, r in replies.items() if p.endswith(CHAT) and isinstance(r, Reply) and r.status == 405)
    return next((path.removesuffix(CHAT) for path in wants_post), None)


def _entries(replies: Replies) -> tuple[str, tuple[Mapping[str, JsonValue], ...]] | None:
    """Give the entries of an OpenAI list, or of the Ollama list that some proxies answer in its place."""
    found = listed(replies)
    if found is not None:
        return found
    for path, reply in replies.items():
        body = document(replies, path) if path.endswith("/models") and isinstance(reply, Reply) else {}
        models = body.get("models")
        if isinstance(models, list):
            return path.removesuffix("/models"), tuple(m for m in models if isinstance(m, dict) and _id(m))
    return None


def _id(entry: Mapping[str, JsonValue]) -> str:
    return string(entry.get("id")) or string(entry.get("model")) or string(entry.get("name"))
