"""OpenVINO Model Server as its HTTP answers show it, and the embedded stand-in that answers alike.

Shapes and states are those of github:openvinotoolkit/model_server @7e4df0c7 (2026-08-21).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.metrics import scrape
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
    owned_by,
    silences,
    unversioned,
)
from probes.evidence import EndpointState, ModelKind, ModelState, Scalar, Technique
from probes.fleet import RuntimeName
from probes.load.answer import FirstToken
from probes.load.untrusted import string
from probes.told import Told

SERVER, CONFIG, MODELS = "/v2", "/v1/config", "/v3/models"
_SETTING_INFO: Final = "inference_adr_embedded_setting_info"
_EMPTY_FIRST_CHUNK_SINCE: Final = (2026, 1)
_MODELS_LOOKED_AT: Final = 8
# docs/idle_servable_management.md @338728f0, a preview since 2026.4: what was unloaded while idle stays AVAILABLE, and a
# request loads it again, in the place of another group. The gauge is one of graphs; classic models have none.
_LOADED: Final = "ovms_graph_loaded"
_IDLE: Final = Silent(technique=Technique.KV_CACHE, control="idle_unload_timeout_seconds", default=0)
_WOKEN: Final = "unloaded while idle; a request loads it again, in the place of another"
# KServe's words for the types of tensors; a graph's streams have none (src/kfs_frontend/kfs_utils.cpp).
_TENSOR: Final = re.compile(r"BOOL|BYTES|BF16|(?:FP|U?INT)(?:8|16|32|64)")
_DEFAULTS_OF: Final = "OVMS 2026.0 to 2026.3, as graph.pbtxt and command line have them"
_CONTROLS: Final = (
    Silent(technique=Technique.QUANTIZATION, control="weight_precision"),
    Silent(technique=Technique.QUANTIZATION, control="KV_CACHE_PRECISION", default="chosen by the device's plugin"),
    Silent(
        technique=Technique.PREFIX_CACHING,
        control="enable_prefix_caching",
        default="false if graph.pbtxt leaves it out, true on the command line",
    ),
    Silent(technique=Technique.FLASH_ATTENTION, control="sparse_attention_config", default="dense attention"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="max_num_seqs", default=256),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="max_num_batched_tokens", default=256),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="dynamic_split_fuse", default=True),
    Silent(technique=Technique.KV_CACHE, control="cache_size", default="0, which grows as needed"),
    Silent(technique=Technique.KV_CACHE, control="cache_eviction_config", default="off"),
    Silent(technique=Technique.SPECULATIVE_DECODING, control="draft_models_path", default="none"),
    Silent(technique=Technique.SPECULATIVE_DECODING, control="draft_eagle3_mode", default=False),
)

# The engine's own names, of which the stand-in shows those that it was started with.
_ENGINE_CONTROLS: Final = (
    Silent(technique=Technique.QUANTIZATION, control="KV_CACHE_PRECISION"),
    Silent(technique=Technique.QUANTIZATION, control="DYNAMIC_QUANTIZATION_GROUP_SIZE"),
    Silent(technique=Technique.PREFIX_CACHING, control="enable_prefix_caching"),
    Silent(technique=Technique.FLASH_ATTENTION, control="use_sparse_attention"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="max_num_seqs"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="max_num_batched_tokens"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="dynamic_split_fuse"),
    Silent(technique=Technique.KV_CACHE, control="cache_size"),
    Silent(technique=Technique.KV_CACHE, control="use_cache_eviction"),
    Silent(technique=Technique.SPECULATIVE_DECODING, control="draft_model"),
)


class Phase(IntEnum):
    """What the state of a version means for somebody who wants an answer, the best first."""

    READY = 0
    LOADING = 1
    FAILED = 2
    UNKNOWN = 3
    GONE = 4


# ModelVersionStatus::isFailedLoading() and PipelineDefinitionStatus::convertToModelStatus(): a load that
# failed stays LOADING for ever and is told by its error code alone; the reason is in the log only.
_PHASES: Final = {
    ("START", "OK"): (Phase.LOADING, ""),
    ("LOADING", "OK"): (Phase.LOADING, ""),
    ("LOADING", "UNKNOWN"): (Phase.FAILED, "the model failed to load (error code UNKNOWN); the reason is in the log"),
    ("LOADING", "FAILED_PRECONDITION"): (
        Phase.FAILED,
        "the LLM graph failed to load (error code FAILED_PRECONDITION); the reason is in the log",
    ),
    ("AVAILABLE", "OK"): (Phase.READY, ""),
    ("UNLOADING", "OK"): (Phase.GONE, "being unloaded"),
    ("END", "OK"): (Phase.GONE, "retired"),
}
_STATES: Final = {Phase.LOADING: EndpointState.LOADING, Phase.FAILED: EndpointState.FAILED}


@dataclass(frozen=True, kw_only=True)
class Servable:
    """One model or graph, by the best of its versions. `word` is the server's own."""

    name: str
    word: str
    phase: Phase
    detail: str = ""
    idle: bool = False


class Ovms(Adapter):
    """A server with these paths, told apart by the name it gives itself.

    No HTTP path of the real one reports a setting and no metric a token. What its graphs are for (text,
    embeddings, ranks, speech) is not on the wire either; classic models are told by their tensors.
    """

    runtime = RuntimeName.OVMS
    name = "OpenVINO Model Server"
    identity = (SERVER,)
    paths = (SERVER, CONFIG, MODELS, METRICS)
    metrics_hint = "start ovms with --metrics_enable"
    why_not_told = "no HTTP path of OVMS reports it; it stands in graph.pbtxt or the command line"
    controls: tuple[Silent, ...] = _CONTROLS
    unloads_since: tuple[int, int] | None = (2026, 4)
    quantities = (
        # Graphs count as graphs; only classic models and DAGs count as requests.
        live.running(live.gauges("ovms_current_graphs", "ovms_current_requests")),
        live.waiting(live.never("OVMS has no metric of waiting requests")),
        live.cache_usage(live.never("OVMS writes the use of its KV cache to the log of llm_executor only")),
        live.prefix_hits(live.never("OVMS has no metric of prefix-cache hits")),
        live.drafted(live.never("OVMS has no metric of drafted tokens")),
        live.accepted(live.never("OVMS has no metric of accepted tokens")),
        # ovms_request_time_us stays 0 for graphs.
        live.server_time(live.mean_growth("ovms_graph_processing_time_us", scale=1e-6)),
    )

    def recognises(self, replies: Replies) -> bool:
        """Look for the server's name, or for its models while the path of the name is not known."""
        name = document(replies, SERVER).get("name")
        return name == self.name if name else self.runtime is RuntimeName.OVMS and "ovms" in owned_by(replies)

    def questions(self, replies: Replies) -> tuple[str, ...]:
        """Look also at the tensors of what is loaded; a name with a slash in it has no such path."""
        loaded = [one.name for one in _servables(replies) if one.phase is Phase.READY and not one.idle]
        names = [name for name in loaded if "/" not in name]
        return (*self.paths, *map(metadata_path, names[:_MODELS_LOOKED_AT]))

    def read(self, replies: Replies, api: str) -> Reading:
        """Read identity and states; a model can be asked when it is available, listed and none of tensors."""
        version = string(document(replies, SERVER).get("version"))
        servables = _servables(replies)
        ready = tuple(one.name for one in servables if one.phase is Phase.READY)
        text = tuple(name for name in ready if not _is_classic(replies, name))
        asleep = {one.name for one in servables if one.idle}
        askable = tuple(name for name in text if name not in asleep)
        settings = _settings(replies)
        where = f"GET {METRICS} {_SETTING_INFO}"
        seen = tuple(
            Seen(technique=one.technique, control=one.control, value=_scalar(settings[one.control]), where=where)
            for one in self.controls
            if one.control in settings
        )
        return Reading(
            runtime=self.runtime,
            version=version or unversioned(f"GET {SERVER} gave no version"),
            state=_state(servables),
            api=api or "/v3",
            detail=_sentence(servables, len(ready)),
            models=tuple(_model(one, classic=_is_classic(replies, one.name)) for one in servables),
            askable=askable,
            loadable=tuple(name for name in text if name in asleep),
            why_not="" if askable else _why_none(ready=bool(ready), text=bool(text)),
            device=settings.get("device"),
            kinds={name: _by_tensors(replies, name) for name in ready if _is_classic(replies, name)},
            seen=seen,
            not_told=(
                *silences(self.controls, self.why_not_told, default_of=_DEFAULTS_OF, seen=seen),
                *silences(self._unloading(version), "it stands in config.json", default_of="OVMS 2026.4"),
                *absences((Technique.DISAGGREGATION,), "neither OVMS nor its engine has such a setting"),
            ),
            first_token=_first_token(version),
        )

    def _unloading(self, version: str) -> tuple[Silent, ...]:
        """Name the setting that unloads idle models, in releases that have it."""
        release = _release(version)
        return (_IDLE,) if self.unloads_since and release and release >= self.unloads_since else ()


class Embedded(Ovms):
    """The stand-in, which adds to its metrics what only the engine knows, and has no other defaults than its settings."""

    runtime = RuntimeName.OPENVINO_GENAI_EMBEDDED
    name = "openvino-genai (embedded)"
    metrics_hint = ""
    why_not_told = "the embedded service does not report it"
    controls = _ENGINE_CONTROLS
    unloads_since = None
    quantities = (
        live.running(live.gauge("ovms_current_graphs")),
        live.waiting(live.never("the engine counts waiting and running requests together")),
        live.cache_usage(live.fraction("inference_adr_embedded_cache_usage_percent", scale=0.01)),
        live.prefix_hits(live.never("OpenVINO GenAI does not count prefix-cache hits")),
        live.drafted(live.never("the embedded service has no draft model")),
        live.accepted(live.never("the embedded service has no draft model")),
        live.server_time(live.mean_growth("ovms_graph_processing_time_us", scale=1e-6)),
    )


OVMS: Final = Ovms()
EMBEDDED: Final = Embedded()


def metadata_path(name: str) -> str:
    """Give the path of a servable's metadata; its name can change nothing but its own segment."""
    return f"{SERVER}/models/{quote(name, safe='')}"


def servable(name: str, versions: JsonValue) -> Servable:
    """Judge a servable of /v1/config by its versions; a state that is not known never counts as available."""
    entries = [entry for entry in versions if isinstance(entry, dict)] if isinstance(versions, list) else []
    judged = [_version(entry) for entry in entries]
    word, phase, detail = min(judged, key=lambda one: one[1], default=("no version", Phase.GONE, "none is listed"))
    return Servable(name=name, word=word, phase=phase, detail=detail)


def _version(entry: Mapping[str, JsonValue]) -> tuple[str, Phase, str]:
    word, status = string(entry.get("state")), entry.get("status")
    code = string(status.get("error_code")) if isinstance(status, dict) else ""
    unknown = (Phase.UNKNOWN, f"not a known state (error code {code or 'missing'})")
    phase, detail = _PHASES.get((word, code), unknown)
    return word or "no state", phase, detail


def _servables(replies: Replies) -> tuple[Servable, ...]:
    """Join what /v1/config and the model list say, the best phase first and otherwise in their order.

    The list holds what a request may name: models, DAGs and graphs alike.
    """
    found, config = listed(replies), document(replies, CONFIG)
    names = dict.fromkeys(string(entry.get("id")) for entry in found[1]) if found else {}
    judged = []
    for name, entry in config.items():
        one = servable(name, entry.get("model_version_status") if isinstance(entry, dict) else None)
        if one.phase is Phase.READY and found and name not in names:
            one = Servable(name=name, word=one.word, phase=Phase.GONE, detail="not in the list of models that can be asked")
        judged.append(one)
    judged += [Servable(name=name, word="listed", phase=Phase.READY) for name in names if name not in config]
    asleep = _asleep(replies)
    judged = [replace(one, idle=one.phase is Phase.READY and one.name in asleep) for one in judged]
    return tuple(sorted(judged, key=lambda one: (one.phase, one.idle)))


def _asleep(replies: Replies) -> set[str]:
    """Name the graphs whose resources are unloaded now, by the one place that tells them from loaded ones."""
    samples = scrape(replies[METRICS]).named(_LOADED) if METRICS in replies else ()
    return {sample.labels.get("name", "") for sample in samples if sample.value == 0}


def _why_none(*, ready: bool, text: bool) -> str:
    if text:
        return f"every model is {_WOKEN}"
    return "its models take tensors, not text" if ready else "no model is available"


def _state(servables: tuple[Servable, ...]) -> EndpointState:
    if not servables:
        return EndpointState.EMPTY
    return _STATES.get(servables[0].phase, EndpointState.LISTED)


def _model(one: Servable, *, classic: bool) -> ModelState:
    notes = (one.detail, "a classic model: it takes tensors, not text" if classic else "", _WOKEN if one.idle else "")
    detail = "; ".join(filter(None, notes))
    return ModelState(id=one.name, state=one.word, detail=detail)


def _is_classic(replies: Replies, name: str) -> bool:
    """Tell a model or a DAG by the types of its tensors."""
    inputs = objects(document(replies, metadata_path(name)).get("inputs"))
    return any(_TENSOR.fullmatch(string(one.get("datatype"))) for one in inputs)


def _by_tensors(replies: Replies, name: str) -> Told[ModelKind]:
    """Tell a classic model by its inputs: each request brings all of them and gets one answer."""
    inputs = objects(document(replies, metadata_path(name)).get("inputs"))
    names = [string(one.get("name")) for one in inputs]
    kind = ModelKind.ENCODER if "attention_mask" in names else ModelKind.FORWARD_ONLY
    cached = any(one.startswith("past_key_values.") for one in names)
    first = next((f"{string(one.get('name'))} {string(one.get('datatype'))}" for one in inputs), "")
    where = f"GET {metadata_path(name)} inputs {first}{f' and {len(inputs) - 1} more' if len(inputs) > 1 else ''}"
    return Told(value=ModelKind.DECODER if cached else kind, where=where)


def _sentence(servables: tuple[Servable, ...], ready: int) -> str:
    if not servables:
        return NO_MODEL
    first = servables[0]
    if not ready:
        return f"{first.name} is {first.word}" + (f": {first.detail}" if first.detail else "")
    return f"{ready} of {len(servables)} models available" if ready < len(servables) else ""


def _settings(replies: Replies) -> dict[str, str]:
    if METRICS not in replies:
        return {}
    labels = [sample.labels for sample in scrape(replies[METRICS]).named(_SETTING_INFO)]
    return {label["setting"]: label["value"] for label in labels if {"setting", "value"} <= set(label)}


def _first_token(version: str) -> FirstToken:
    """Since 2026.1 the first chunk is empty and sent when the first token exists."""
    release = _release(version) or _EMPTY_FIRST_CHUNK_SINCE
    return FirstToken.FIRST_EVENT if release >= _EMPTY_FIRST_CHUNK_SINCE else FirstToken.FIRST_OUTPUT


def _release(version: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{4})\.(\d+)", version)
    return (int(match.group(1)), int(match.group(2))) if match else None


def _scalar(text: str) -> Scalar:
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if text.isascii() and text.isdigit() else text
