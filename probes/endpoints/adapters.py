"""Every runtime the project can tell apart, in the order in which they are looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from probes.endpoints.adapter import Adapter
from probes.endpoints.comfyui import ComfyUi
from probes.endpoints.llamacpp import LlamaCpp
from probes.endpoints.lmstudio import LmStudio
from probes.endpoints.ollama import Ollama
from probes.endpoints.openai import OpenAiCompatible
from probes.endpoints.ovms import EMBEDDED, OVMS
from probes.endpoints.sglang import SgLang
from probes.endpoints.tei import TextEmbeddingsInference
from probes.endpoints.tensorrt import TensorRtLlm
from probes.endpoints.vllm import Vllm
from probes.endpoints.whisper import FasterWhisperServer, Speaches, WhisperCpp
from probes.fleet import RuntimeName

# Those that a model list or the first answer shows come first; the others cost a question each.
ADAPTERS: Final[Mapping[RuntimeName, Adapter]] = {
    adapter.runtime: adapter
    for adapter in (
        LlamaCpp(),
        Vllm(),
        SgLang(),
        TensorRtLlm(),
        WhisperCpp(),
        OVMS,
        EMBEDDED,
        LmStudio(),
        Speaches(),
        FasterWhisperServer(),
        Ollama(),
        ComfyUi(),
        TextEmbeddingsInference(),
    )
}
FALLBACK: Final[Adapter] = OpenAiCompatible()


def candidates(expected: RuntimeName | None, *, with_list: bool) -> Iterator[Adapter]:
    """Give the adapters worth a question, the expected one first; once a model list came, only those that have one."""
    first = ADAPTERS.get(expected) if expected else None
    for adapter in dict.fromkeys(filter(None, (first, *ADAPTERS.values()))):
        if adapter.lists_models or not with_list:
            yield adapter
