"""llama.cpp's server as its HTTP answers show it.

Paths are those of tools/server/README.md @00dc8057; bodies were captured from its build in xllamacpp 2026.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.reading import METRICS, NotTold, Reading, Replies, Seen, document, listed, says_loading, unversioned
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Missing, MissingReason, ModelFacts, ModelState, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import count, string

HEALTH, PROPS = "/health", "/props"
_SILENT: Final = {
    "cache_type_k": Technique.QUANTIZATION,
    "cache_type_v": Technique.QUANTIZATION,
    "cache_reuse": Technique.PREFIX_CACHING,
    "cache_ram": Technique.PREFIX_CACHING,
    "flash_attn": Technique.FLASH_ATTENTION,
    "cont_batching": Technique.CONTINUOUS_BATCHING,
    "batch_size": Technique.CONTINUOUS_BATCHING,
    "ubatch_size": Technique.CONTINUOUS_BATCHING,
    "kv_offload": Technique.KV_CACHE,
    "draft_model": Technique.SPECULATIVE_DECODING,
}
_WHY_SILENT: Final = "no path of llama-server reports it; it stands in the command line"


class LlamaCpp:
    """Weights, slots, context and speculation are on the wire; cache types and attention are not."""

    paths = (HEALTH, PROPS, METRICS)  # `/` answers 415, and /slots shows the parameters of other people's requests
    metrics_hint = "start llama-server with --metrics"
    prefix_control: str | None = "cache_prompt"
    quantities: tuple[live.Quantity, ...] = (
        live.running(live.gauge("llamacpp:requests_processing")),
        live.waiting(live.gauge("llamacpp:requests_deferred")),
        live.cache_usage(live.never("llama.cpp has no metric of KV-cache use; kv_cache_usage_ratio was removed")),
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
        seen = tuple(_seen(entries, props))
        return Reading(
            runtime=RuntimeName.LLAMACPP,
            version=_version(string(props.get("build_info"))),
            state=EndpointState.LOADING if loading else EndpointState.LISTED,
            detail="the model is loading" if loading else "",
            api=api or (found[0] if found else "/v1"),
            models=models,
            askable=askable,
            why_not="" if askable else "no model is loaded, and a request would load one",
            facts={string(entry.get("id")): _facts(entry) for entry in entries},
            seen=seen,
            not_told=tuple(
                NotTold(technique=technique, control=control, why=_WHY_SILENT) for control, technique in _SILENT.items()
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


def _seen(entries: tuple[Mapping[str, JsonValue], ...], props: Mapping[str, JsonValue]) -> Iterator[Seen]:
    defaults = props.get("default_generation_settings")
    defaults = defaults if isinstance(defaults, dict) else {}
    params = defaults.get("params")
    if file_type := string(_meta(entries[0]).get("ftype")) if len(entries) == 1 else "":
        where = "GET /v1/models meta.ftype"
        yield Seen(technique=Technique.QUANTIZATION, control="weight_precision", value=file_type, where=where)
    if slots := count(props.get("total_slots")):
        yield Seen(technique=Technique.CONTINUOUS_BATCHING, control="parallel", value=slots, where="GET /props total_slots")
    if context := count(defaults.get("n_ctx")):
        # What one slot has: --ctx-size is divided by the slots, or given whole to each with --kv-unified.
        where = "GET /props default_generation_settings.n_ctx"
        yield Seen(technique=Technique.KV_CACHE, control="n_ctx_per_slot", value=context, where=where)
    if speculative := string(params.get("speculative.types")) if isinstance(params, dict) else "":
        where = "GET /props default_generation_settings.params speculative.types"
        yield Seen(technique=Technique.SPECULATIVE_DECODING, control="spec_type", value=speculative, where=where)


def _version(build: str) -> str | Missing:
    if not build or build.startswith("b0-"):
        return unversioned(f"GET {PROPS} says build_info {build!r}" if build else f"GET {PROPS} gave no build_info")
    return build
