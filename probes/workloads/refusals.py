"""What an engine for LLMs says when it is given a model that is none: not applicable, in the runtime's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from probes import telemetry
from probes.devices.words import runtime_words
from probes.evidence import CapabilityState, Technique
from probes.workloads.session import IR


@dataclass(frozen=True, kw_only=True)
class Request:
    """Something that only a model with a KV cache can be asked for. `key` finds its answer again."""

    key: str
    name: str
    technique: Technique | None
    requested: str


REQUESTS: Final = (
    *(
        Request(key=name, name="loads in OpenVINO GenAI", technique=None, requested=f"{name}(model)")
        for name in ("TextEmbeddingPipeline", "WhisperPipeline")
    ),
    Request(
        key="states",
        name="KV cache between requests",
        technique=Technique.KV_CACHE,
        requested="create_infer_request().query_state()",
    ),
    Request(
        key="precision",
        name="KV cache in 8 bits",
        technique=Technique.KV_CACHE,
        requested="compile_model(KV_CACHE_PRECISION=u8)",
    ),
    Request(
        key="batching",
        name="continuous batching",
        technique=Technique.CONTINUOUS_BATCHING,
        requested="ContinuousBatchingPipeline(model)",
    ),
    Request(
        key="prefix",
        name="prefix caching",
        technique=Technique.PREFIX_CACHING,
        requested="ContinuousBatchingPipeline(model, enable_prefix_caching=true)",
    ),
    Request(
        key="draft",
        name="speculative decoding",
        technique=Technique.SPECULATIVE_DECODING,
        requested="ContinuousBatchingPipeline(model, draft_model=SmolLM2-135M)",
    ),
)


def ask(*, folder: str, language_model: str, device: str, pipeline: str, emit: Callable[[JsonValue], None]) -> None:
    """Ask for each in turn and send what comes of it, so that a crash keeps the others (runs in the child).

    Tokenizer and draft are those of `language_model`, so that a refusal is about the model and not about what lies beside
    it. Without an IR in `folder` there is no network to ask about: then only `pipeline`, the class of OpenVINO GenAI that
    is made for such models, is asked to load it.
    """
    telemetry.silence()
    network = (Path(folder) / IR).is_file()
    for key, state, words, effect in _of_network(Path(folder) / IR, device) if network else []:
        emit({"key": key, "state": state.value, "words": words, "effect": effect})
    for key in ("batching", "prefix", "draft") if network else (pipeline,):
        state, words = _open(key, folder, language_model, device)
        emit({"key": key, "state": state.value, "words": words, "effect": ""})


def _of_network(ir: Path, device: str) -> Iterator[tuple[str, CapabilityState, str, str]]:
    import numpy as np
    import openvino

    core = openvino.Core()
    model = core.read_model(ir)
    plain = core.compile_model(model, device)
    kept = len(plain.create_infer_request().query_state())
    counted = CapabilityState.INERT if kept == 0 else CapabilityState.EFFECTIVE
    yield "states", counted, "", f"{kept or 'no'} state variables in the compiled model"
    try:
        packed = core.compile_model(model, device, {"KV_CACHE_PRECISION": "u8"})
    except RuntimeError as exc:
        yield "precision", CapabilityState.REFUSED, runtime_words(str(exc)), ""
        return
    feed = {port.any_name: _example(port) for port in model.inputs}
    pairs = zip(plain(feed).values(), packed(feed).values(), strict=True)
    same = all(np.array_equal(one, other) for one, other in pairs)
    state = CapabilityState.INERT if same else CapabilityState.ACCEPTED
    yield "precision", state, "", "the same numbers come out" if same else "other numbers come out"


def _example(port: Any) -> Any:
    """Give one input of a port's shape; a length that is left open is 1, or a window of sound where it is the last."""
    import numpy as np

    shape = [int(str(length)) if length.is_static else 1 for length in port.get_partial_shape()]
    if port.any_name == "input" and len(shape) == 2 and shape[1] == 1:
        shape[1] = 576
    values = np.ones(shape, dtype=port.get_element_type().to_dtype())
    return values * 16000 if port.any_name == "sr" else values


def _open(key: str, folder: str, language_model: str, device: str) -> tuple[CapabilityState, str]:
    import openvino_genai

    config = openvino_genai.SchedulerConfig()
    config.cache_size, config.enable_prefix_caching = 1, key == "prefix"
    more = {"draft_model": openvino_genai.draft_model(language_model, device)} if key == "draft" else {}
    try:
        if key.endswith("Pipeline"):
            getattr(openvino_genai, key)(folder, device)
        else:
            tokenizer = openvino_genai.Tokenizer(language_model)
            openvino_genai.ContinuousBatchingPipeline(folder, tokenizer, config, device, **more)
    except RuntimeError as exc:
        return CapabilityState.REFUSED, runtime_words(str(exc))
    return CapabilityState.ACCEPTED, ""
