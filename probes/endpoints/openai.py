"""Any other server with an OpenAI-shaped API: it can be asked, and says next to nothing about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.reading import CHAT, NOWHERE, NotTold, Reading, Replies, listed, unversioned
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, ModelState, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import string

# Servers that load a model when it is asked for, by the owner that their lists name.
_LOADS_ON_REQUEST: Final = {"library": "Ollama", "organization_owner": "LM Studio"}


class OpenAiCompatible:
    """The fallback. It reads no /metrics: TensorRT-LLM empties them with each reading."""

    paths: tuple[str, ...] = ()
    metrics_hint = ""
    prefix_control: str | None = None
    quantities: tuple[live.Quantity, ...] = ()

    def recognises(self, replies: Replies) -> bool:
        """Look for a model list, or for a chat path that wants a POST on a server that tells paths apart."""
        return _entries(replies) is not None or _chat_prefix(replies) is not None

    def read(self, replies: Replies, api: str) -> Reading:
        """Read the list; a model that would be loaded by asking is not asked."""
        prefix, entries = _entries(replies) or (_chat_prefix(replies) or "/v1", ())
        models = tuple(_id(entry) for entry in entries)
        loader = next((_LOADS_ON_REQUEST[o] for e in entries if (o := string(e.get("owned_by"))) in _LOADS_ON_REQUEST), "")
        why_not = f"{loader} loads a model when it is asked, and its list does not tell which are loaded" if loader else ""
        return Reading(
            runtime=RuntimeName.OPENAI_COMPATIBLE,
            version=unversioned("the server gives no version"),
            state=EndpointState.LISTED,
            api=api or prefix,
            detail="" if models else "the server lists no model",
            models=tuple(ModelState(id=model, state="listed") for model in models),
            askable=() if loader else models,
            why_not=why_not or ("" if models else "the server lists no model"),
            not_told=tuple(
                NotTold(technique=technique, control="", why="an OpenAI-shaped API has no path for settings")
                for technique in Technique
            ),
        )


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
        body = reply.document if isinstance(reply, Reply) and reply.status == 200 and path.endswith("/models") else None
        models = body.get("models") if isinstance(body, dict) else None
        if isinstance(models, list):
            return path.removesuffix("/models"), tuple(m for m in models if isinstance(m, dict) and _id(m))
    return None


def _id(entry: Mapping[str, JsonValue]) -> str:
    return string(entry.get("id")) or string(entry.get("model")) or string(entry.get("name"))
