"""LM Studio as its REST API shows it: shapes of github:lmstudio-ai/docs @c6854fba (2026-04-29), 1_developer/2_rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.reading import (
    NO_MODEL,
    NOWHERE,
    NotTold,
    Reading,
    Replies,
    Seen,
    Silent,
    absences,
    document,
    listed,
    nested,
    objects,
    owned_by,
    per_model,
    silences,
    untold_facts,
    unversioned,
)
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Missing, MissingReason, ModelFacts, ModelKind, ModelState, Scalar, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import count, string
from probes.told import Told

# REST v1 came with 0.4 and tells the settings of loaded instances; v0 tells no more than whether a model is loaded.
V1, V0 = "/api/v1/models", "/api/v0/models"
_ANY_PATH: Final = "Unexpected endpoint or method."
_OWNER: Final = "organization_owner"
_DEFAULTS_OF: Final = "LM Studio documentation of 2026-04-29"
_SILENT: Final = (
    Silent(technique=Technique.QUANTIZATION, control="llamaKCacheQuantizationType", default="off"),
    Silent(technique=Technique.QUANTIZATION, control="llamaVCacheQuantizationType", default="off"),
)
_DRAFT: Final = Silent(technique=Technique.SPECULATIVE_DECODING, control="draft_model", default="none")
_WHY_NOT: Final = "no model is loaded, and LM Studio loads one when it is asked"


@dataclass(frozen=True, kw_only=True)
class _Instance:
    """A loaded model: the name that a request uses, and the configuration it was loaded with."""

    id: str
    quantization: str
    config: Mapping[str, JsonValue]
    makes_text: bool


class LmStudio(Adapter):
    """REST v1 tells the settings of each loaded model; the type of its KV cache is told by no path."""

    runtime = RuntimeName.LMSTUDIO
    identity = (V1, V0)
    paths = (V1, V0)
    metrics = ""
    quantities = live.nothing("LM Studio has no metrics")

    def asks(self, replies: Replies) -> tuple[str, ...]:
        """Ask nothing where a list names other owners."""
        others = owned_by(replies) - {_OWNER}
        return () if others else self.questions(replies)

    def questions(self, replies: Replies) -> tuple[str, ...]:
        """Ask the older list only where the newer one did not answer."""
        return (V1,) if _v1(replies) is not None else self.paths

    def recognises(self, replies: Replies) -> bool:
        """Look for its lists, for the owner that its list of the OpenAI shape names, or for its words on any path."""
        nowhere = replies.get(NOWHERE)
        words = (
            string(nowhere.document.get("error")) if isinstance(nowhere, Reply) and isinstance(nowhere.document, dict) else ""
        )
        own = _v1(replies) is not None or _v0(replies) is not None or _OWNER in owned_by(replies)
        return own or words.startswith(_ANY_PATH)

    def read(self, replies: Replies, api: str) -> Reading:
        """Read models, which are loaded, and the configuration they run with; only a loaded one is asked."""
        models, instances, facts = _read(replies)
        askable = tuple(one.id for one in instances if one.makes_text)
        seen, unsure = _settings(instances)
        return Reading(
            runtime=RuntimeName.LMSTUDIO,
            version=unversioned("no path of LM Studio gives its version"),
            state=EndpointState.LISTED if models else EndpointState.EMPTY,
            api=api or "/v1",
            detail="" if models else NO_MODEL,
            models=models,
            askable=askable,
            loadable=tuple(model.id for model in models if model.state == "not loaded" and "no text" not in model.detail),
            why_not="" if askable else _WHY_NOT if models else NO_MODEL,
            facts=facts,
            kinds=_kinds(replies),
            seen=seen,
            not_told=(
                *unsure,
                *silences(
                    _SILENT, "no path of LM Studio reports it; it is set when a model is loaded", default_of=_DEFAULTS_OF
                ),
                *silences((_DRAFT,), "each request names its own draft model", default_of=_DEFAULTS_OF),
                *absences((Technique.PREFIX_CACHING,), "LM Studio documents no switch for it"),
                *absences((Technique.DISAGGREGATION,), "LM Studio has no such setting"),
            ),
        )


def _v1(replies: Replies) -> tuple[dict[str, JsonValue], ...] | None:
    """Give the entries of the newer list; an entry without instances would be another server's."""
    body = document(replies, V1)
    models = objects(body.get("models"))
    own = [model for model in models if "loaded_instances" in model]
    return models if isinstance(body.get("models"), list) and len(own) == len(models) else None


def _v0(replies: Replies) -> tuple[dict[str, JsonValue], ...] | None:
    models = objects(document(replies, V0).get("data"))
    return models if models and all({"id", "state", "type"} <= set(model) for model in models) else None


def _read(replies: Replies) -> tuple[tuple[ModelState, ...], tuple[_Instance, ...], dict[str, ModelFacts]]:
    models: list[ModelState] = []
    instances: list[_Instance] = []
    facts: dict[str, ModelFacts] = {}
    newer, older = _v1(replies), _v0(replies)
    for entry in newer or ():
        key, text = string(entry.get("key")), entry.get("type") == "llm"
        quantization = string(nested(entry, "quantization").get("name"))
        loaded = [one for one in objects(entry.get("loaded_instances")) if string(one.get("id"))]
        models.append(ModelState(id=key, state="loaded" if loaded else "not loaded", detail="" if text else "makes no text"))
        for one in loaded:
            id, config = string(one.get("id")), nested(one, "config")
            instances.append(_Instance(id=id, quantization=quantization, config=config, makes_text=text))
            facts[id] = _facts(id, quantization, entry.get("size_bytes"))
    for entry in () if newer is not None else older or ():
        id, text = string(entry.get("id")), entry.get("type") in {"llm", "vlm"}
        quantization, loaded_now = string(entry.get("quantization")), entry.get("state") == "loaded"
        models.append(ModelState(id=id, state="loaded" if loaded_now else "not loaded", detail="" if text else "makes no text"))
        facts[id] = _facts(id, quantization, None)
        if loaded_now:
            config = {"context_length": entry.get("loaded_context_length")}
            instances.append(_Instance(id=id, quantization=quantization, config=config, makes_text=text))
    if newer is None and older is None and (found := listed(replies)):
        # Its list of the OpenAI shape holds what is on disk, and does not say what is loaded.
        models = [ModelState(id=string(entry.get("id")), state="listed") for entry in found[1]]
    return tuple(models), tuple(instances), facts


def _kinds(replies: Replies) -> dict[str, Told[ModelKind]]:
    """Tell by the type of each model, under its key and under the names that its loaded instances have."""
    known = {
        "llm": ModelKind.GENERATOR,
        "vlm": ModelKind.MULTIMODAL_DECODER,
        "embedding": ModelKind.FORWARD_ONLY,
        "embeddings": ModelKind.FORWARD_ONLY,
    }
    newer = _v1(replies)
    told: dict[str, Told[ModelKind]] = {}
    for entry in newer if newer is not None else _v0(replies) or ():
        word, sees = string(entry.get("type")), nested(entry, "capabilities").get("vision") is True
        if word in known:
            kind = ModelKind.MULTIMODAL_DECODER if sees and word == "llm" else known[word]
            where = f"its list of models, type {word}{' with vision' if sees else ''}"
            names = [string(entry.get("key")) or string(entry.get("id"))]
            names += [string(one.get("id")) for one in objects(entry.get("loaded_instances"))]
            told |= dict.fromkeys(filter(None, names), Told(value=kind, where=where))
    return told


def _facts(id: str, quantization: str, size: JsonValue) -> ModelFacts:
    silent = Missing(missing=MissingReason.NOT_MEASURED, detail="LM Studio does not tell it")
    known = {"quantization": quantization or silent, "bytes": count(size) or silent}
    return untold_facts(id, silent.detail).model_copy(update=known)


def _flag(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None


_CONFIGURED: Final[tuple[tuple[Technique, str, Callable[[JsonValue], Scalar | None]], ...]] = (
    (Technique.FLASH_ATTENTION, "flash_attention", _flag),
    (Technique.CONTINUOUS_BATCHING, "parallel", count),
    (Technique.KV_CACHE, "context_length", count),
    (Technique.KV_CACHE, "offload_kv_cache_to_gpu", _flag),
)


def _settings(instances: tuple[_Instance, ...]) -> tuple[tuple[Seen, ...], tuple[NotTold, ...]]:
    """Read the settings that loaded models of text agree on."""
    loaded = [one for one in instances if one.makes_text]
    weights: dict[str, Scalar] = {one.id: one.quantization for one in loaded if one.quantization}
    read = [per_model(Technique.QUANTIZATION, "weight_precision", weights, "its list of models, quantization")]
    for technique, control, convert in _CONFIGURED:
        told = ((one.id, convert(one.config.get(control))) for one in loaded)
        values: dict[str, Scalar] = {id: value for id, value in told if value is not None}
        read.append(per_model(technique, control, values, f"GET {V1} loaded_instances[].config.{control}"))
    return tuple(seen for one in read for seen in one[0]), tuple(unsure for one in read for unsure in one[1])
