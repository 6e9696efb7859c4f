"""Which models an address lists, under which prefix, and how long a prompt they take."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from probes.endpoints.address import Address
from probes.endpoints.fault import Fault
from probes.endpoints.reading import list_paths, listed, words_of
from probes.endpoints.wire import Reply, Wire
from probes.errors import ProbeError
from probes.load.untrusted import count, string

_FIRST_TRIED: Final = "/v1"


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One model; `context_tokens` is None where the list does not say how much it takes."""

    id: str
    context_tokens: int | None


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A server's models. `why_none` holds its words where it lists none."""

    api: str
    models: tuple[Listed, ...]
    why_none: str = ""


def list_models(address: Address, *, key: str | None, tls: ssl.SSLContext | None, within_s: float) -> Listing:
    """Ask for the list of models; a server without a list is asked for answers all the same.

    Raises:
        ProbeError: nothing answers there; the words are not yet redacted.
    """
    return asyncio.run(_list(address, key, tls, within_s))


async def _list(address: Address, key: str | None, tls: ssl.SSLContext | None, within_s: float) -> Listing:
    replies: dict[str, Reply | Fault] = {}
    async with Wire(address, key=key, tls=tls) as wire:
        for path in list_paths(address):
            replies[path] = await wire.get(path, within_s=within_s)
            if (found := listed(replies)) is not None:
                models = tuple(Listed(id=string(entry.get("id")), context_tokens=_context(entry)) for entry in found[1])
                return Listing(api=found[0], models=models, why_none="" if models else "its list is empty")
    first = next(iter(replies.values()))
    if isinstance(first, Fault):
        raise ProbeError(first.words)
    return Listing(api=address.api or _FIRST_TRIED, models=(), why_none=f"HTTP {first.status}: {words_of(first)}")


def _context(entry: Mapping[str, JsonValue]) -> int | None:
    """Read what vLLM, llama.cpp and others say; a server with several slots gives each of them less than it has in all."""
    meta = entry.get("meta")
    said = [entry.get("max_model_len"), entry.get("context_length"), meta.get("n_ctx") if isinstance(meta, dict) else None]
    return next((number for one in said if (number := count(one))), None)
