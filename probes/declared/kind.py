"""What a model is, as its own files tell it: by its structure, never by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from probes.declared.complaint import usable
from probes.declared.network import Network
from probes.evidence import ModelKind
from probes.gguf import Header
from probes.told import Told

_K = ModelKind
# What a class of transformers ends in says what its head makes; longer endings first.
_HEADS: Final = (
    ("EncoderDecoderModel", _K.ENCODER_DECODER),
    ("ForSpeechSeq2Seq", _K.SPEECH_ENCODER_DECODER),
    ("ForConditionalGeneration", _K.ENCODER_DECODER),
    ("ForSeq2SeqLM", _K.ENCODER_DECODER),
    ("ForCausalLM", _K.DECODER),
    ("LMHeadModel", _K.DECODER),
)
_ONE_PASS: Final = re.compile(
    r"For(?:Masked|Sequence|Token|Image|Audio|MultipleChoice|QuestionAnswering|Semantic|Object|CTC|Zero)\w*|\w+Model$"
)
# Parts of a config that describe a second input beside text.
_OTHER_INPUTS: Final = ("vision_config", "audio_config", "img_processor", "vision_tower", "mm_vision_tower", "thinker_config")
# Only a config of speech says how many bands of a spectrogram it reads.
_SPECTROGRAM: Final = "num_mel_bins"
_STATE_SPACE: Final = ("ssm_cfg", "state_size", "ssm_state_size", "mamba_d_state", "time_step_rank")
# A config of a state space has a `num_heads` as well, so that it tells nothing of one that generates.
_HEADS_OF_ONE_PASS: Final = ("num_heads",)
_HEAD_COUNTS: Final = ("num_attention_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads")
# What llama.cpp calls the networks that denoise; their files have no tokenizer and no attention keys.
_DENOISERS: Final = frozenset(
    {"flux", "sd1", "sd3", "sdxl", "aura", "hidream", "cosmos", "ltxv", "hyvid", "wan", "lumina2", "qwen_image"}
)
# OVMS: what the options of a calculator are for (src/**/*_calculator*.proto @7e4df0c7).
_CALCULATORS: Final = {
    "EmbeddingsCalculatorOVOptions": _K.ENCODER,
    "RerankCalculatorOVOptions": _K.ENCODER,
    "S2tCalculatorOptions": _K.SPEECH_ENCODER_DECODER,
    "ImageGenCalculatorOptions": _K.DIFFUSION,
    "LLMCalculatorOptions": _K.GENERATOR,
}
_SPECIFICATIONS: Final = {
    "WhisperSpec": _K.SPEECH_ENCODER_DECODER,
    "TransformerSpec": _K.ENCODER_DECODER,
    "TransformerDecoderSpec": _K.DECODER,
    "TransformerEncoderSpec": _K.ENCODER,
    "Wav2Vec2Spec": _K.ENCODER,
    "Wav2Vec2BertSpec": _K.ENCODER,
}
_TASKS: Final = {
    "text-generation": _K.GENERATOR,
    "text2text-generation": _K.ENCODER_DECODER,
    "image-text-to-text": _K.MULTIMODAL_DECODER,
    "automatic-speech-recognition": _K.SPEECH_ENCODER_DECODER,
    "text-to-image": _K.DIFFUSION,
    "image-to-image": _K.DIFFUSION,
    "text-to-video": _K.DIFFUSION,
    "feature-extraction": _K.FORWARD_ONLY,
    "sentence-similarity": _K.FORWARD_ONLY,
    "text-classification": _K.FORWARD_ONLY,
    "text-ranking": _K.FORWARD_ONLY,
    "image-classification": _K.FORWARD_ONLY,
    "audio-classification": _K.FORWARD_ONLY,
    "voice-activity-detection": _K.FORWARD_ONLY,
    "fill-mask": _K.FORWARD_ONLY,
}
_FRONT: Final = re.compile(r"\A---\s*\n(.*?)\n---\s*$", re.DOTALL | re.MULTILINE)
_TAG: Final = re.compile(r"^pipeline_tag:\s*['\"]?([\w-]+)['\"]?\s*$", re.MULTILINE)


def of_network(network: Network, place: str) -> Told[ModelKind]:
    """Tell it by operations, inputs and state."""
    return Told(value=network.kind, where=f"{place}: {network.why}")


def of_speech(encoder: Network, place: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the encoder beside a decoder: one that reads a spectrogram listens."""
    listens = any("input_features" in name for name in encoder.inputs)
    kind = _K.SPEECH_ENCODER_DECODER if listens else _K.ENCODER_DECODER
    yield Told(value=kind, where=f"{place}: reads {', '.join(sorted(encoder.inputs)[:3])} for a decoder beside it")


def of_config(document: Mapping[str, JsonValue], place: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the class of the config.json of a transformers model, and by what the config describes."""
    named = document.get("architectures")
    classes = [one for one in named if isinstance(one, str) and usable(one)] if isinstance(named, list) else []
    for name in classes[:1]:
        kind, why = _of_class(name, document)
        if kind is not None:
            yield Told(value=kind, where=f"{place}: architectures {name[:80]}{f', {why}' if why else ''}")


def of_gguf(header: Header, where: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the keys of a GGUF header that describe attention, pooling and state."""
    architecture = header.metadata.get("general.architecture")
    if not isinstance(architecture, str) or not usable(architecture):
        return

    def key(name: str) -> object:
        return header.metadata.get(f"{architecture}.{name}")

    def told(kind: ModelKind, name: str) -> Told[ModelKind]:
        return Told(value=kind, where=f"{where}: {name}")

    if key("attention.causal") is False:
        yield told(_K.ENCODER, f"{architecture}.attention.causal is false")
    elif isinstance(key("pooling_type"), int) and key("pooling_type"):
        yield told(_K.ENCODER, f"{architecture}.pooling_type is {key('pooling_type')}")
    elif key("decoder_start_token_id") is not None:
        yield told(_K.ENCODER_DECODER, f"{architecture}.decoder_start_token_id is there")
    elif not key("attention.head_count") and (key("ssm.state_size") or key("wkv.head_size")):
        yield told(_K.STATE_SPACE_DECODER, f"{architecture} has a recurrent state and no attention heads")
    elif key("attention.head_count") and "tokenizer.ggml.model" in header.metadata:
        yield told(_K.DECODER, f"{architecture}.attention.head_count is there, and nothing says that attention is not causal")
    elif architecture in _DENOISERS:
        yield told(_K.DIFFUSION, f"general.architecture {architecture}")


def of_ctranslate2(head: bytes, place: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the specification that a model.bin of CTranslate2 names behind its version (python/.../model_spec.py)."""
    length = int.from_bytes(head[4:6], "little")
    name = head[6 : 6 + max(length - 1, 0)].decode("ascii", "replace")
    if name in _SPECIFICATIONS:
        yield Told(value=_SPECIFICATIONS[name], where=f"{place}: specification {name}")


def of_pipeline(document: Mapping[str, JsonValue], place: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the model_index.json of diffusers: a scheduler that steps a denoiser."""
    denoiser = next((name for name in ("unet", "transformer", "prior", "transformer_2") if name in document), "")
    if denoiser and "scheduler" in document:
        yield Told(value=_K.DIFFUSION, where=f"{place}: {denoiser} and scheduler")


def of_modules(modules: JsonValue, place: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the modules.json of sentence-transformers: what is pooled makes no tokens."""
    entries = modules if isinstance(modules, list) else []
    if any(isinstance(one, dict) and str(one.get("type", "")).endswith("Pooling") for one in entries):
        yield Told(value=_K.ENCODER, where=f"{place}: a Pooling module ends it")


def of_card(text: str, place: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the task that a model card names."""
    front = _FRONT.match(text)
    tag = _TAG.search(front.group(1)) if front else None
    if tag is not None and tag.group(1) in _TASKS:
        yield Told(value=_TASKS[tag.group(1)], where=f"{place}: pipeline_tag {tag.group(1)}")


def of_calculators(options: Sequence[str], pipeline: str, place: str) -> Iterator[Told[ModelKind]]:
    """Tell it by the calculators of a graph of OVMS; `pipeline` is the LLM calculator's pipeline_type."""
    for name in dict.fromkeys(options):
        if name not in _CALCULATORS:
            continue
        sees = name == "LLMCalculatorOptions" and pipeline.startswith("VLM")
        kind = _K.MULTIMODAL_DECODER if sees else _CALCULATORS[name]
        yield Told(value=kind, where=f"{place}: {name}{f' with pipeline_type {pipeline}' if sees else ''}")


def _of_class(name: str, document: Mapping[str, JsonValue]) -> tuple[ModelKind | None, str]:
    head = next((kind for ending, kind in _HEADS if name.endswith(ending)), None)
    if head is not None:
        return _generating(head, document)
    if not _ONE_PASS.search(name):
        return None, ""
    # A backbone for images has no heads of attention where it has no attention.
    counted = any(_positive(document.get(key)) for key in (*_HEAD_COUNTS, *_HEADS_OF_ONE_PASS))
    attends = counted or isinstance(document.get("text_config"), dict)
    return _K.ENCODER if attends else _K.FORWARD_ONLY, "a head that makes no tokens"


def _generating(head: ModelKind, document: Mapping[str, JsonValue]) -> tuple[ModelKind, str]:
    """Tell apart what generates by what else its config describes."""
    if _SPECTROGRAM in document and head is not _K.DECODER:
        return _K.SPEECH_ENCODER_DECODER, _SPECTROGRAM
    other = next((key for key in _OTHER_INPUTS if document.get(key)), "")
    if other and document.get("is_encoder_decoder") is not True:
        return _K.MULTIMODAL_DECODER, other
    heads = next((key for key in _HEAD_COUNTS if _positive(document.get(key))), "")
    state = next((key for key in _STATE_SPACE if document.get(key)), "")
    if head is _K.DECODER and not heads:
        return (_K.STATE_SPACE_DECODER, f"{state} and no attention heads") if state else (_K.GENERATOR, "no attention heads")
    return head, ""


def _positive(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
