"""Ollama as its own API shows it: shapes of github:ollama/ollama @fb307609 (2026-08-21), server/routes.go, api/types.go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.reading import (
    NO_MODEL,
    Reading,
    Replies,
    Seen,
    Silent,
    absences,
    document,
    nested,
    objects,
    per_model,
    silences,
    untold_facts,
    unversioned,
)
from probes.evidence import EndpointState, Missing, MissingReason, ModelFacts, ModelKind, ModelState, Scalar, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import count, string
from probes.told import Told

VERSION, LOADED, LOCAL = "/api/version", "/api/ps", "/api/tags"
_DEFAULTS_OF: Final = "Ollama main of 2026-08-21 (docs/faq.mdx, envconfig/config.go)"
_SILENT: Final = (
    Silent(technique=Technique.QUANTIZATION, control="OLLAMA_KV_CACHE_TYPE", default="f16"),
    Silent(technique=Technique.FLASH_ATTENTION, control="OLLAMA_FLASH_ATTENTION", default="auto"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="OLLAMA_NUM_PARALLEL", default=1),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="OLLAMA_MAX_QUEUE", default=512),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="OLLAMA_MAX_LOADED_MODELS", default="3 for each GPU"),
    Silent(technique=Technique.KV_CACHE, control="OLLAMA_KEEP_ALIVE", default="5m"),
    Silent(technique=Technique.KV_CACHE, control="OLLAMA_GPU_OVERHEAD", default=0),
)
_WHY_SILENT: Final = "no path of Ollama reports it; it stands in the environment of the server"
_DRAFT: Final = Silent(technique=Technique.SPECULATIVE_DECODING, control="draft_num_predict")
_WHY_DRAFT: Final = "no GET shows it; it stands in the Modelfile"
# sched.go reloads a runner whose options differ from the request's, so that even a loaded model is not safe to ask.
_WHY_NOT: Final = "Ollama loads a model when it is asked, and reloads one that runs with other options"


class Ollama(Adapter):
    """Models, which are loaded, their context and their place in VRAM are told; all that its environment sets is not."""

    runtime = RuntimeName.OLLAMA
    identity = (VERSION, LOADED)
    paths = (VERSION, LOADED, LOCAL)
    metrics = ""
    quantities = live.nothing("Ollama has no metrics")

    def asks(self, replies: Replies) -> tuple[str, ...]:
        """Ask for loaded models only where its version answered."""
        return self.identity if string(document(replies, VERSION).get("version")) else (VERSION,)

    def recognises(self, replies: Replies) -> bool:
        """Look for its version and its list of loaded models; translators in front of other servers have only the first."""
        models = document(replies, LOADED).get("models")
        return bool(string(document(replies, VERSION).get("version"))) and objects(models) == _tuple(models)

    def read(self, replies: Replies, api: str) -> Reading:
        """Read what is local and what is loaded; asking either may load or reload it, so none is asked unless allowed."""
        loaded = {_name(one): one for one in objects(document(replies, LOADED).get("models"))}
        local = {_name(one): one for one in objects(document(replies, LOCAL).get("models"))}
        names = tuple(dict.fromkeys((*loaded, *local)))
        weights, unsure = per_model(Technique.QUANTIZATION, "weight_precision", _quantizations(loaded), f"GET {LOADED} details")
        context, vague = per_model(Technique.KV_CACHE, "num_ctx", _contexts(loaded), f"GET {LOADED} context_length")
        seen: tuple[Seen, ...] = (*weights, *context)
        return Reading(
            runtime=RuntimeName.OLLAMA,
            version=string(document(replies, VERSION).get("version")) or unversioned(f"GET {VERSION} gave no version"),
            state=EndpointState.LISTED if names else EndpointState.EMPTY,
            api=api or "/v1",
            detail="" if names else NO_MODEL,
            models=tuple(_state(name, loaded.get(name), local.get(name, {})) for name in names),
            loadable=tuple(name for name in names if _makes_text(local.get(name, {}))),
            why_not=_WHY_NOT if names else NO_MODEL,
            facts={name: _facts(name, loaded.get(name) or local[name]) for name in names},
            kinds={name: kind for name, entry in local.items() if (kind := _kind(entry)) is not None},
            seen=seen,
            not_told=(
                *unsure,
                *vague,
                *silences(_SILENT, _WHY_SILENT, default_of=_DEFAULTS_OF),
                *silences((_DRAFT,), _WHY_DRAFT, default_of=_DEFAULTS_OF),
                *absences((Technique.PREFIX_CACHING,), "Ollama has no switch for it, and its counts leave cached tokens out"),
                *absences((Technique.DISAGGREGATION,), "Ollama has no such setting"),
            ),
        )


def _tuple(value: JsonValue) -> tuple[JsonValue, ...] | None:
    return tuple(value) if isinstance(value, list) else None


def _name(entry: Mapping[str, JsonValue]) -> str:
    return string(entry.get("model")) or string(entry.get("name"))


def _quantizations(loaded: Mapping[str, dict[str, JsonValue]]) -> dict[str, Scalar]:
    told = ((name, string(nested(entry, "details").get("quantization_level"))) for name, entry in loaded.items())
    return {name: level for name, level in told if level not in {"", "unknown"}}


def _contexts(loaded: Mapping[str, dict[str, JsonValue]]) -> dict[str, Scalar]:
    return {name: tokens for name, entry in loaded.items() if (tokens := count(entry.get("context_length")))}


def _state(name: str, running: Mapping[str, JsonValue] | None, local: Mapping[str, JsonValue]) -> ModelState:
    if running is None:
        remote = bool(string(local.get("remote_host")) or string(local.get("remote_model")))
        return ModelState(id=name, state="remote" if remote else "not loaded")
    return ModelState(id=name, state="loaded", detail="; ".join(_placed(running)))


def _placed(running: Mapping[str, JsonValue]) -> Iterator[str]:
    size, in_vram = count(running.get("size")), count(running.get("size_vram"))
    if size and in_vram is not None and in_vram <= size:
        yield f"{in_vram / size:.0%} of {size / 2**30:.1f} GiB in VRAM"
    if until := string(running.get("expires_at")):
        yield f"stays until {until}"


def _makes_text(local: Mapping[str, JsonValue]) -> bool:
    """Tell by the capabilities that newer releases list; those that list none are taken for models of text."""
    capabilities, remote = local.get("capabilities"), string(local.get("remote_host"))
    return not remote and (not isinstance(capabilities, list) or not capabilities or "completion" in capabilities)


def _kind(local: Mapping[str, JsonValue]) -> Told[ModelKind] | None:
    """Tell by the capabilities, which Ollama reads off the keys of the GGUF file (server/images.go)."""
    listed = local.get("capabilities")
    words = [string(one) for one in listed] if isinstance(listed, list) else []
    sees = {"completion", "vision"} <= set(words)
    known = {"completion": ModelKind.GENERATOR, "embedding": ModelKind.FORWARD_ONLY, "image": ModelKind.DIFFUSION}
    kind = ModelKind.MULTIMODAL_DECODER if sees else next((known[word] for word in known if word in words), None)
    return None if kind is None else Told(value=kind, where=f"GET {LOCAL} capabilities {', '.join(words)}")


def _facts(name: str, entry: Mapping[str, JsonValue]) -> ModelFacts:
    """Take the digest of the manifest for the revision; it is no hash of the weights."""
    silent = Missing(missing=MissingReason.NOT_MEASURED, detail="Ollama does not tell it")
    level = string(nested(entry, "details").get("quantization_level"))
    return untold_facts(name, silent.detail).model_copy(
        update={
            "revision": string(entry.get("digest")) or silent,
            "quantization": level if level not in {"", "unknown"} else silent,
            "bytes": count(entry.get("size")) or silent,
        }
    )
