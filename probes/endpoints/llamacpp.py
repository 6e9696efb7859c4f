"""llama.cpp's server as its HTTP answers show it.

Paths are those of tools/server/README.md @00dc8057; bodies were captured from its build in xllamacpp 2026.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.reading import (
    METRICS,
    NO_MODEL,
    Reading,
    Replies,
    Seen,
    Silent,
    absences,
    document,
    listed,
    objects,
    says_loading,
    silences,
    unversioned,
)
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Missing, MissingReason, ModelFacts, ModelKind, ModelState, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import count, string
from probes.told import Told

HEALTH, PROPS, SLOTS = "/health", "/props", "/slots"
_DEFAULTS_OF: Final = "llama.cpp of late 2026 (tools/server/README.md @00dc8057)"
_SILENT: Final = (
    Silent(technique=Technique.QUANTIZATION, control="cache_type_k", default="f16"),
    Silent(technique=Technique.QUANTIZATION, control="cache_type_v", default="f16"),
    Silent(technique=Technique.PREFIX_CACHING, control="cache_reuse", default=0),
    Silent(technique=Technique.PREFIX_CACHING, control="cache_ram", default=8192),
    Silent(technique=Technique.FLASH_ATTENTION, control="flash_attn", default="auto"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="cont_batching", default=True),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="batch_size", default=2048),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="ubatch_size", default=512),
    Silent(technique=Technique.KV_CACHE, control="kv_offload", default=True),
    Silent(technique=Technique.SPECULATIVE_DECODING, control="draft_model"),
)
_CACHE_PROMPT: Final = Silent(technique=Technique.PREFIX_CACHING, control="cache_prompt", default=True)
_WHY_NO_CACHE: Final = "no path reports it; cached tokens of a repeated request would prove it on, and none prove nothing"
_NO_DISAGGREGATION: Final = "llama-server has no such setting"
_SPEC_TYPE: Final = Silent(technique=Technique.SPECULATIVE_DECODING, control="spec_type", default="none")
_WHY_SILENT: Final = "no path of llama-server reports it; it stands in the command line"


class LlamaCpp(Adapter):
    """Weights, slots, context and speculation are on the wire; cache types and attention are not."""

    runtime = RuntimeName.LLAMACPP
    # `/` answers 415. /slots shows the parameters of other people's requests, so that nothing of it is kept.
    paths = (HEALTH, PROPS, SLOTS, METRICS)
    private = frozenset({SLOTS})
    metrics_hint = "start llama-server with --metrics"
    prefix_control = "cache_prompt"
    quantities = (
        live.running(live.gauge("llamacpp:requests_processing")),
        live.waiting(live.gauge("llamacpp:requests_deferred")),
        # Old builds have the gauge; it was removed.
        live.cache_usage(
            live.first(
                live.fraction("llamacpp:kv_cache_usage_ratio"),
                live.never("this build of llama.cpp has no metric of KV-cache use"),
            )
        ),
        # prompt_tokens_total leaves the cached ones out.
        live.prefix_hits(live.share("llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_tokens_total")),
        live.drafted(live.growth("llamacpp:spec_decode_num_draft_tokens_total")),
        live.accepted(
            live.share_of("llamacpp:spec_decode_num_accepted_tokens_total", "llamacpp:spec_decode_num_draft_tokens_total")
        ),
        live.server_time(live.never("llama.cpp has no metric of the time of a request")),
    )

    def recognises(self, replies: Replies) -> bool:
        """Look for models it owns, for its own facts about them, or for its name while it loads."""
        entries = _entries(replies)
        own = any(string(entry.get("owned_by")) == "llamacpp" or "n_ctx_train" in _meta(entry) for entry in entries)
        loading = (reply for reply in replies.values() if isinstance(reply, Reply) and says_loading(reply))
        return own or any(reply.server == "llama.cpp" for reply in loading)

    def read(self, replies: Replies, api: str) -> Reading:
        """Read models, slots and speculation."""
        found, entries, props = listed(replies), _entries(replies), document(replies, PROPS)
        loading = found is None or says_loading(replies.get(HEALTH))
        models = tuple(_model(entry, loading=loading) for entry in entries)
        askable = () if loading else tuple(model.id for model in models if model.state != "unloaded")
        seen = (*_seen(entries, props), *_speculation(replies))
        return Reading(
            runtime=RuntimeName.LLAMACPP,
            version=_version(string(props.get("build_info"))),
            state=EndpointState.LOADING if loading else EndpointState.LISTED if models else EndpointState.EMPTY,
            detail="the model is loading" if loading else "" if models else NO_MODEL,
            api=api or (found[0] if found else "/v1"),
            models=models,
            askable=askable,
            loadable=() if loading else tuple(model.id for model in models if model.state == "unloaded"),
            why_not="" if askable else "no model is loaded, and a request would load one",
            facts={string(entry.get("id")): _facts(entry) for entry in entries},
            kinds=_kinds(props),
            seen=seen,
            not_told=(
                *silences(_SILENT, _WHY_SILENT, default_of=_DEFAULTS_OF, seen=seen),
                *silences((_CACHE_PROMPT,), _WHY_NO_CACHE, default_of=_DEFAULTS_OF, seen=seen),
                *silences((_spec_type(replies),), _why_no_type(replies), default_of=_DEFAULTS_OF, seen=seen),
                *absences((Technique.DISAGGREGATION,), _NO_DISAGGREGATION),
            ),
        )


def _entries(replies: Replies) -> tuple[Mapping[str, JsonValue], ...]:
    found = listed(replies)
    return found[1] if found else ()


def _meta(entry: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    meta = entry.get("meta")
    return meta if isinstance(meta, dict) else {}


def _model(entry: Mapping[str, JsonValue], *, loading: bool) -> ModelState:
    """Give the router's word for a model, or that of the only one; a router loads models when they are asked."""
    status = entry.get("status")
    word = string(status.get("value")) if isinstance(status, dict) else ""
    return ModelState(id=string(entry.get("id")), state=word or ("loading" if loading else "ok"))


def _facts(entry: Mapping[str, JsonValue]) -> ModelFacts:
    silent = Missing(missing=MissingReason.NOT_MEASURED, detail="the model list does not tell it")
    return ModelFacts(
        id=string(entry.get("id")),
        revision=silent,
        sha256=silent,
        quantization=string(_meta(entry).get("ftype")) or silent,
        bytes=count(_meta(entry).get("size")) or silent,
    )


def _kinds(props: Mapping[str, JsonValue]) -> dict[str, Told[ModelKind]]:
    """Tell a model that reads more than text. Its list says `completion` of every model, and so nothing."""
    modalities = props.get("modalities")
    others = [name for name, there in modalities.items() if there is True] if isinstance(modalities, dict) else []
    where = f"GET {PROPS} modalities {', '.join(others)}"
    return {"": Told(value=ModelKind.MULTIMODAL_DECODER, where=where)} if others else {}


def _seen(entries: tuple[Mapping[str, JsonValue], ...], props: Mapping[str, JsonValue]) -> Iterator[Seen]:
    defaults = props.get("default_generation_settings")
    defaults = defaults if isinstance(defaults, dict) else {}
    if file_type := string(_meta(entries[0]).get("ftype")) if len(entries) == 1 else "":
        where = "GET /v1/models meta.ftype"
        yield Seen(technique=Technique.QUANTIZATION, control="weight_precision", value=file_type, where=where)
    if slots := count(props.get("total_slots")):
        yield Seen(technique=Technique.CONTINUOUS_BATCHING, control="parallel", value=slots, where="GET /props total_slots")
    if context := count(defaults.get("n_ctx")):
        # What one slot has: --ctx-size is divided by the slots, or given whole to each with --kv-unified.
        where = "GET /props default_generation_settings.n_ctx"
        yield Seen(technique=Technique.KV_CACHE, control="n_ctx_per_slot", value=context, where=where)


def _drafting(replies: Replies) -> set[bool]:
    """Give whether slots draft. /props has a `speculative.types` too: that of a request without one, which is always none."""
    reply = replies.get(SLOTS)
    slots = objects(reply.document) if isinstance(reply, Reply) and reply.status == 200 else ()
    return {flag for slot in slots if isinstance(flag := slot.get("speculative"), bool)}


def _speculation(replies: Replies) -> Iterator[Seen]:
    if _drafting(replies) == {False}:
        where = "GET /slots speculative"
        yield Seen(technique=Technique.SPECULATIVE_DECODING, control="spec_type", value="none", where=where)


def _spec_type(replies: Replies) -> Silent:
    """Give no default where slots draft: somebody has set it."""
    return replace(_SPEC_TYPE, default="") if True in _drafting(replies) else _SPEC_TYPE


def _why_no_type(replies: Replies) -> str:
    if True in _drafting(replies):
        return "GET /slots says that slots draft, and no path says by which method"
    return "GET /slots does not answer, and no other path tells it"


def _version(build: str) -> str | Missing:
    if not build or build.startswith("b0-"):
        return unversioned(f"GET {PROPS} says build_info {build!r}" if build else f"GET {PROPS} gave no build_info")
    return build
