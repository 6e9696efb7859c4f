"""OpenVINO Model Server as its HTTP answers show it, and the embedded stand-in that answers alike.

Shapes and states are those of github:openvinotoolkit/model_server @7e4df0c7 (2026-08-21).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.metrics import scrape
from probes.endpoints.reading import METRICS, NotTold, Reading, Replies, Seen, document, listed, owned_by, unversioned
from probes.evidence import EndpointState, ModelState, Scalar, Technique
from probes.fleet import RuntimeName
from probes.load.answer import FirstToken
from probes.load.untrusted import string

SERVER, CONFIG, MODELS = "/v2", "/v1/config", "/v3/models"
_SETTING_INFO: Final = "inference_adr_embedded_setting_info"
_EMPTY_FIRST_CHUNK_SINCE: Final = (2026, 1)
_TECHNIQUES: Final = {
    "weight_precision": Technique.QUANTIZATION,
    "KV_CACHE_PRECISION": Technique.QUANTIZATION,
    "enable_prefix_caching": Technique.PREFIX_CACHING,
    "sparse_attention_config": Technique.FLASH_ATTENTION,
    "max_num_seqs": Technique.CONTINUOUS_BATCHING,
    "max_num_batched_tokens": Technique.CONTINUOUS_BATCHING,
    "dynamic_split_fuse": Technique.CONTINUOUS_BATCHING,
    "cache_size": Technique.KV_CACHE,
    "cache_eviction_config": Technique.KV_CACHE,
    "draft_models_path": Technique.SPECULATIVE_DECODING,
    "draft_eagle3_mode": Technique.SPECULATIVE_DECODING,
}


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


@dataclass(frozen=True, kw_only=True)
class Ovms:
    """A server with these paths, told apart by the name it gives itself.

    No HTTP path of the real one reports a setting and no metric a token; the stand-in adds to its metrics
    what only the engine knows.
    """

    runtime: RuntimeName
    name: str
    why_not_told: str
    quantities: tuple[live.Quantity, ...]
    metrics_hint: str = ""
    prefix_control: str | None = None
    paths: tuple[str, ...] = field(default=(SERVER, CONFIG, MODELS, METRICS), init=False)

    def recognises(self, replies: Replies) -> bool:
        """Look for the server's name, or for its models while the path of the name is not known."""
        name = document(replies, SERVER).get("name")
        return name == self.name if name else self.runtime is RuntimeName.OVMS and "ovms" in owned_by(replies)

    def read(self, replies: Replies, api: str) -> Reading:
        """Read identity and states; a model can be asked when it is available and listed."""
        version = string(document(replies, SERVER).get("version"))
        servables = _servables(replies)
        ready = tuple(one.name for one in servables if one.phase is Phase.READY)
        settings = _settings(replies)
        where = f"GET {METRICS} {_SETTING_INFO}"
        return Reading(
            runtime=self.runtime,
            version=version or unversioned(f"GET {SERVER} gave no version"),
            state=EndpointState.LISTED if ready or not servables else _STATES.get(servables[0].phase, EndpointState.LISTED),
            api=api or "/v3",
            detail=_sentence(servables, len(ready)),
            models=tuple(ModelState(id=one.name, state=one.word, detail=one.detail) for one in servables),
            askable=ready,
            why_not="" if ready else "no model is available",
            device=settings.get("device"),
            seen=tuple(
                Seen(technique=technique, control=control, value=_scalar(settings[control]), where=where)
                for control, technique in _TECHNIQUES.items()
                if control in settings
            ),
            not_told=tuple(
                NotTold(technique=technique, control=control, why=self.why_not_told)
                for control, technique in _TECHNIQUES.items()
                if control not in settings
            ),
            first_token=_first_token(version),
        )


OVMS: Final = Ovms(
    runtime=RuntimeName.OVMS,
    name="OpenVINO Model Server",
    why_not_told="no HTTP path of OVMS reports it; it stands in graph.pbtxt or the command line",
    metrics_hint="start ovms with --metrics_enable",
    quantities=(
        live.running(live.gauge("ovms_current_graphs")),
        live.waiting(live.never("OVMS has no metric of waiting requests")),
        live.cache_usage(live.never("OVMS writes the use of its KV cache to the log of llm_executor only")),
        live.prefix_hits(live.never("OVMS has no metric of prefix-cache hits")),
        live.drafted(live.never("OVMS has no metric of drafted tokens")),
        live.accepted(live.never("OVMS has no metric of accepted tokens")),
        # ovms_request_time_us stays 0 for graphs.
        live.server_time(live.mean_growth("ovms_graph_processing_time_us", scale=1e-6)),
    ),
)
EMBEDDED: Final = Ovms(
    runtime=RuntimeName.OPENVINO_GENAI_EMBEDDED,
    name="openvino-genai (embedded)",
    why_not_told="the embedded service does not report it",
    quantities=(
        live.running(live.gauge("ovms_current_graphs")),
        live.waiting(live.never("the engine counts waiting and running requests together")),
        live.cache_usage(live.gauge("inference_adr_embedded_cache_usage_percent", scale=0.01)),
        live.prefix_hits(live.never("OpenVINO GenAI does not count prefix-cache hits")),
        live.drafted(live.never("the embedded service has no draft model")),
        live.accepted(live.never("the embedded service has no draft model")),
        live.server_time(live.mean_growth("ovms_graph_processing_time_us", scale=1e-6)),
    ),
)


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

    Classic models can be AVAILABLE without answering for text; the list holds what a request may name.
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
    return tuple(sorted(judged, key=lambda one: one.phase))


def _sentence(servables: tuple[Servable, ...], ready: int) -> str:
    if not servables:
        return "the server lists no model"
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
    match = re.match(r"(\d{4})\.(\d+)", version)
    release = (int(match.group(1)), int(match.group(2))) if match else _EMPTY_FIRST_CHUNK_SINCE
    return FirstToken.FIRST_EVENT if release >= _EMPTY_FIRST_CHUNK_SINCE else FirstToken.FIRST_OUTPUT


def _scalar(text: str) -> Scalar:
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if text.isascii() and text.isdigit() else text
