"""Text Embeddings Inference as its HTTP answers show it: github:huggingface/text-embeddings-inference @0d124dc9, router/src."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.reading import (
    METRICS,
    Reading,
    Replies,
    Seen,
    absences,
    document,
    untold_facts,
    unversioned,
)
from probes.evidence import EndpointState, ModelFacts, ModelKind, ModelState, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import count, string
from probes.told import Told

INFO: Final = "/info"
_COUNTS: Final = ("max_concurrent_requests", "max_batch_tokens", "max_batch_requests", "max_client_batch_size")
_NOT_FOR_ENCODERS: Final = (
    Technique.PREFIX_CACHING,
    Technique.DISAGGREGATION,
    Technique.KV_CACHE,
    Technique.SPECULATIVE_DECODING,
)
_NO_TOKENS: Final = "an encoder makes no tokens one by one"


class TextEmbeddingsInference(Adapter):
    """One answer tells model, type and batching. `/health` is not asked: an idle server computes an embedding for it."""

    runtime = RuntimeName.TEXT_EMBEDDINGS_INFERENCE
    lists_models = False
    identity = (INFO,)
    paths = (INFO, METRICS)
    metrics_hint = "its metrics may be on the port of --prometheus-port instead"
    quantities = (
        live.running(live.never("TEI counts requests that came and ended, not those under way")),
        live.waiting(live.gauge("te_queue_size")),
        live.cache_usage(live.never(_NO_TOKENS)),
        live.prefix_hits(live.never(_NO_TOKENS)),
        live.drafted(live.never(_NO_TOKENS)),
        live.accepted(live.never(_NO_TOKENS)),
    )

    def recognises(self, replies: Replies) -> bool:
        """Look for its description of itself."""
        return {"model_id", "model_dtype", "max_batch_tokens"} <= set(document(replies, INFO))

    def read(self, replies: Replies, api: str) -> Reading:
        """Read model, type and batching."""
        info = document(replies, INFO)
        id = string(info.get("served_model_name")) or string(info.get("model_id"))
        kind = info.get("model_type")
        word = next(iter(kind), "") if isinstance(kind, dict) else string(kind)
        return Reading(
            runtime=RuntimeName.TEXT_EMBEDDINGS_INFERENCE,
            version=string(info.get("version")) or unversioned(f"GET {INFO} gave no version"),
            state=EndpointState.LISTED,
            api=api or "/v1",
            models=(ModelState(id=id, state="serving", detail=word),) if id else (),
            why_not="it makes embeddings or scores, not text",
            facts={id: _facts(id, info)} if id else {},
            # It runs transformers once per input, those of decoders too, and pools or scores what comes out.
            kinds={id: Told(value=ModelKind.ENCODER, where=f"GET {INFO} model_type {word}")} if word else {},
            seen=tuple(_seen(info)),
            not_told=(
                *absences((Technique.FLASH_ATTENTION,), "no path of TEI reports the attention kernel; the build chooses it"),
                *absences(_NOT_FOR_ENCODERS, _NO_TOKENS),
            ),
        )


def _seen(info: Mapping[str, JsonValue]) -> Iterator[Seen]:
    if dtype := string(info.get("model_dtype")):
        where = f"GET {INFO} model_dtype"
        yield Seen(technique=Technique.QUANTIZATION, control="weight_precision", value=dtype, where=where)
    for control in _COUNTS:
        if (value := count(info.get(control))) is not None:
            where = f"GET {INFO} {control}"
            yield Seen(technique=Technique.CONTINUOUS_BATCHING, control=control, value=value, where=where)


def _facts(id: str, info: Mapping[str, JsonValue]) -> ModelFacts:
    known = {"revision": string(info.get("model_sha")), "quantization": string(info.get("model_dtype"))}
    return untold_facts(id, f"GET {INFO} does not tell it").model_copy(update={k: v for k, v in known.items() if v})
