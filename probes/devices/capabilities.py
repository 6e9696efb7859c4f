"""Which settings are requested of a device, what each is held against, and where its effect would show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from probes.devices.engine import EVICTION_SIZES
from probes.devices.properties import Check
from probes.devices.trial import POOL_BLOCKS, Pipeline, Trial
from probes.evidence import Scalar, Technique

KV_PRECISION = "KV_CACHE_PRECISION"
PRECISION_HINT = "INFERENCE_PRECISION_HINT"
PREFIX_CACHING = "enable_prefix_caching"
MAX_SEQUENCES = "max_num_seqs"
SPLIT_FUSE = "dynamic_split_fuse"
BATCHED_TOKENS = "max_num_batched_tokens"
BACKEND = "ATTENTION_BACKEND"
PAGED, STATEFUL = "PA", "SDPA"
# Asked for whether or not the plugin lists them: what documents of one device name, another may refuse.
ALWAYS_ASKED = ("u8", "u4", "u3", "i8", "i4", "bf16", "f16", "f32", "f8e4m3")
QUICK_PRECISIONS = ("u8", "u4", "f32")
HINTS_ASKED = ("bf16", "f16", "i8")
# Properties whose values the plugin is asked about before anything is compiled, with values worth asking about.
CHECKED: Mapping[str, Sequence[str]] = {
    KV_PRECISION: ALWAYS_ASKED,
    PRECISION_HINT: HINTS_ASKED,
    "KEY_CACHE_PRECISION": ("u8", "u4", "f16"),
    "VALUE_CACHE_PRECISION": ("u8", "u4"),
    "KEY_CACHE_QUANT_MODE": ("BY_TOKEN", "BY_CHANNEL"),
    "VALUE_CACHE_QUANT_MODE": ("BY_TOKEN", "BY_CHANNEL"),
    "KEY_CACHE_QUANT_ALG": ("TURBO",),
    "VALUE_CACHE_QUANT_ALG": ("TURBO",),
    "KEY_CACHE_GROUP_SIZE": ("32",),
    "VALUE_CACHE_GROUP_SIZE": ("32",),
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": ("0", "128"),
    "NUM_STREAMS": ("2",),
}
STEPPED_PROMPT, STEPPED_CHUNK = 200, 64
QUESTIONS = 6
# TRISHAPE keeps 128 + 1920 tokens and the last 100 dense by default: a shorter prompt leaves nothing out.
LONG_PROMPT, LONG_ANSWER, SPLIT, WHOLE = 2640, 8, 256, 4096


class Effect(StrEnum):
    """Where the effect of a setting shows, in things that a busy machine does not change."""

    CACHE = "bytes of KV cache per token, and greedy answers"
    ANSWERS = "greedy answers and their probabilities"
    REUSE = "steps until the first token of a repeated prompt"
    TURNS = "whether the second of two requests waits for the first"
    STEPS = "steps until the first tokens of requests that need more than one step"
    FIXED_POOL = "bytes of the pool after the first step and after the last"
    GROWING_POOL = "a pool that is larger after the last step than after the first"
    EVICTION = "tokens that the cache still holds at the end of an answer"
    BACKEND = "the attention path that the engine names when it is built"
    FILES = "files written by the first opening and kept by the second"
    TIME = "time alone"
    RUNS = "nothing but that a combination runs at all"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One setting asked of a device, with the trial that asks and the trial it is held against.

    `documented` is what a document says about it. A quick run keeps what is `quick`.
    """

    name: str
    requested: str
    technique: Technique | None
    effect: Effect
    trial: Trial
    against: Trial
    documented: str = ""
    quick: bool = False


def default_trial(device: str) -> Trial:
    """Open the engine with nothing asked for; asked twice, it also shows whether it repeats itself."""
    return Trial(device=device, times=2)


def precise_trial(device: str) -> Trial:
    """Open the engine with a KV cache that loses nothing."""
    return _told(device, {KV_PRECISION: "f32"})


def requests(device: str, checks: Mapping[str, Check]) -> tuple[Request, ...]:
    """List everything that is asked of a device, what fleets use first: a spent budget leaves out the last."""
    (turbo, *layouts), (by_score, by_shape, *sparse) = _cache_layouts(device), _sparse(device)
    return (
        *_precisions(device, checks.get(KV_PRECISION, Check()).candidates or ALWAYS_ASKED),
        *_reuse(device),
        turbo,
        by_score,
        by_shape,
        *_backends(device),
        *_batching(device),
        *_pools(device),
        *sparse,
        *layouts,
        *_numbers(device),
    )


def _precisions(device: str, values: Sequence[str]) -> tuple[Request, ...]:
    return tuple(
        Request(
            name=KV_PRECISION,
            requested=value,
            technique=Technique.KV_CACHE,
            effect=Effect.CACHE,
            trial=_told(device, {KV_PRECISION: value}),
            against=default_trial(device),
            quick=value in QUICK_PRECISIONS,
        )
        for value in values
    )


def _reuse(device: str) -> tuple[Request, ...]:
    off = _stepped(device, {}, times=2)
    trials = {"true": _stepped(device, {PREFIX_CACHING: True}, times=2), "false": off}
    return tuple(
        Request(
            name=PREFIX_CACHING,
            requested=requested,
            technique=Technique.PREFIX_CACHING,
            effect=Effect.REUSE,
            trial=trial,
            against=off,
            quick=True,
        )
        for requested, trial in trials.items()
    )


def _backends(device: str) -> tuple[Request, ...]:
    """Ask for either attention path, for one with what belongs to the other, and for what makes the runtime fall back."""
    asked: dict[str, tuple[dict[str, Scalar], dict[str, Scalar], str]] = {
        STATEFUL: ({BACKEND: STATEFUL}, {}, ""),
        PAGED: ({BACKEND: PAGED}, {}, ""),
        f"{STATEFUL} with a scheduler configuration": (
            {BACKEND: STATEFUL},
            {"num_kv_blocks": POOL_BLOCKS},
            "OpenVINO GenAI's source excludes the pair",
        ),
        f"{PAGED}, the default, with {KV_PRECISION}=bf16": (
            {KV_PRECISION: "bf16"},
            {},
            f"OpenVINO GenAI's source falls back to {STATEFUL} with a warning when {PAGED} cannot be built",
        ),
    }
    return tuple(
        Request(
            name=BACKEND,
            requested=requested,
            technique=Technique.FLASH_ATTENTION,
            effect=Effect.BACKEND,
            trial=replace(_with(device, properties, scheduler), pipeline=Pipeline.CHOOSING, at_once=1),
            against=default_trial(device),
            documented=documented,
            quick=requested == STATEFUL,
        )
        for requested, (properties, scheduler, documented) in asked.items()
    )


def _pools(device: str) -> tuple[Request, ...]:
    """Ask for a pool in blocks, in GB and without a size, and for eviction with sizes that fit and that do not."""
    default = default_trial(device)
    pools = (
        ("num_kv_blocks", str(POOL_BLOCKS), Effect.FIXED_POOL, default),
        ("cache_size", "1", Effect.FIXED_POOL, _with(device, {}, {"num_kv_blocks": 0, "cache_size": 1})),
        (
            "cache_size and num_kv_blocks",
            "0",
            Effect.GROWING_POOL,
            # One answer long enough to need more blocks than its prompt.
            replace(_with(device, {}, {"num_kv_blocks": 0}), at_once=1, answer_tokens=64),
        ),
    )
    evictions = {
        "start 32, recent 64, at most 160 tokens": (32, 64, 160),
        "start 30, recent 64, at most 160 tokens": (30, 64, 160),
    }
    return tuple(
        Request(name=name, requested=requested, technique=Technique.KV_CACHE, effect=effect, trial=trial, against=default)
        for name, requested, effect, trial in pools
    ) + tuple(
        Request(
            name="use_cache_eviction",
            requested=requested,
            technique=Technique.KV_CACHE,
            effect=Effect.EVICTION,
            trial=_stepped(
                device,
                {"use_cache_eviction": True, **dict(zip(EVICTION_SIZES, sizes, strict=True))},
                answer_tokens=40,
            ),
            against=default,
            documented="OpenVINO GenAI's source asks for multiples of the block size, 32 tokens on CPU and 16 on GPU",
        )
        for requested, sizes in evictions.items()
    )


def _batching(device: str) -> tuple[Request, ...]:
    """Ask for bounds of a batch, alone and in combinations that exclude each other."""
    default = default_trial(device)
    off = _with(device, {}, {SPLIT_FUSE: False})
    fewer_tokens = {MAX_SEQUENCES: 128, BATCHED_TOKENS: STEPPED_CHUNK}
    fewer = f"128, with {BATCHED_TOKENS} {STEPPED_CHUNK} and {SPLIT_FUSE}"
    rule = f"vLLM's rule for the same two settings: {BATCHED_TOKENS} must not be below {MAX_SEQUENCES}"
    bounded = {BATCHED_TOKENS: 2 * STEPPED_PROMPT, MAX_SEQUENCES: 1}
    too_long = {SPLIT_FUSE: False, MAX_SEQUENCES: 8}
    asked: tuple[tuple[str, str, Effect, Trial, Trial, str], ...] = (
        (SPLIT_FUSE, "true", Effect.STEPS, default, off, ""),
        (SPLIT_FUSE, "false", Effect.STEPS, off, default, ""),
        (
            SPLIT_FUSE,
            f"false, a prompt of {STEPPED_PROMPT} tokens and {BATCHED_TOKENS} {STEPPED_CHUNK}",
            Effect.STEPS,
            _stepped(device, too_long),
            default,
            "without split fuse a whole prompt has to fit into one step",
        ),
        (MAX_SEQUENCES, f"1 ({SPLIT_FUSE} on)", Effect.TURNS, _turns(device, bounded), default, ""),
        (MAX_SEQUENCES, f"1 ({SPLIT_FUSE} off)", Effect.TURNS, _turns(device, bounded | {SPLIT_FUSE: False}), default, ""),
        (MAX_SEQUENCES, f"{fewer} on", Effect.RUNS, _with(device, {}, fewer_tokens), default, rule),
        (MAX_SEQUENCES, f"{fewer} off", Effect.RUNS, _with(device, {}, fewer_tokens | {SPLIT_FUSE: False}), default, rule),
    )
    return tuple(
        Request(
            name=name,
            requested=requested,
            technique=Technique.CONTINUOUS_BATCHING,
            effect=effect,
            trial=trial,
            against=against,
            documented=documented,
        )
        for name, requested, effect, trial, against, documented in asked
    )


def _cache_layouts(device: str) -> tuple[Request, ...]:
    """Ask for keys and values apart, and for modes, algorithm and group sizes of their quantisation."""
    default = default_trial(device)
    u4, by_token = _told(device, {KV_PRECISION: "u4"}), {"KEY_CACHE_QUANT_MODE": "BY_TOKEN"}
    turbo = {KV_PRECISION: "u4", "KEY_CACHE_QUANT_ALG": "TURBO", "VALUE_CACHE_QUANT_ALG": "TURBO"}
    apart = "KEY_CACHE_PRECISION and VALUE_CACHE_PRECISION"
    key, value = apart.split(" and ")
    asked: tuple[tuple[str, str, Mapping[str, Scalar], Trial], ...] = (
        ("KEY_CACHE_QUANT_ALG and VALUE_CACHE_QUANT_ALG", f"TURBO, with {KV_PRECISION} u4", turbo, u4),
        (apart, "u8 and u4", {key: "u8", value: "u4"}, default),
        (apart, "u4 and u8", {key: "u4", value: "u8"}, default),
        (apart, "f16 and u8", {key: "f16", value: "u8"}, default),
        ("KEY_CACHE_QUANT_MODE", "BY_TOKEN", by_token, default),
        ("KEY_CACHE_QUANT_MODE", "BY_CHANNEL", {"KEY_CACHE_QUANT_MODE": "BY_CHANNEL"}, default),
        ("VALUE_CACHE_QUANT_MODE", "BY_TOKEN", {"VALUE_CACHE_QUANT_MODE": "BY_TOKEN"}, default),
        ("VALUE_CACHE_QUANT_MODE", "BY_CHANNEL", {"VALUE_CACHE_QUANT_MODE": "BY_CHANNEL"}, default),
        ("KEY_CACHE_GROUP_SIZE", "32", {"KEY_CACHE_GROUP_SIZE": 32}, default),
        (
            "KEY_CACHE_GROUP_SIZE",
            "32, with KEY_CACHE_QUANT_MODE BY_TOKEN",
            {"KEY_CACHE_GROUP_SIZE": 32, **by_token},
            _with(device, by_token),
        ),
        ("VALUE_CACHE_GROUP_SIZE", "32", {"VALUE_CACHE_GROUP_SIZE": 32}, default),
    )
    return tuple(
        Request(
            name=name,
            requested=requested,
            technique=Technique.KV_CACHE,
            effect=Effect.CACHE,
            trial=_told(device, properties) if name in {apart, asked[0][0]} else _with(device, properties),
            against=against,
        )
        for name, requested, properties, against in asked
    )


def _numbers(device: str) -> tuple[Request, ...]:
    """Ask for the precision of the arithmetic, for streams, and for a folder of compiled models."""
    default = default_trial(device)
    group = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
    asked: list[tuple[str, str, Technique | None, Effect, Trial]] = [
        ("CACHE_DIR", "a folder", None, Effect.FILES, replace(default, times=1, compiled_cache=True)),
        *((group, str(size), Technique.QUANTIZATION, Effect.ANSWERS, _with(device, {group: size})) for size in (0, 128)),
        *(
            (PRECISION_HINT, hint, Technique.QUANTIZATION, Effect.ANSWERS, _with(device, {PRECISION_HINT: hint}))
            for hint in HINTS_ASKED
        ),
        ("NUM_STREAMS", "2", Technique.CONTINUOUS_BATCHING, Effect.TIME, _with(device, {"NUM_STREAMS": 2})),
    ]
    return tuple(
        Request(name=name, requested=requested, technique=technique, effect=effect, trial=trial, against=default)
        for name, requested, technique, effect, trial in asked
    )


def _sparse(device: str) -> tuple[Request, ...]:
    """Ask for sparse attention on a long prompt, in one step and split over many, as it comes and tightened."""
    tight_shape: dict[str, Scalar] = {"sparse_attention_config.num_retained_recent_tokens_in_cache": 512}
    tight_score: dict[str, Scalar] = {"sparse_attention_config.xattention_threshold": 0.5}
    asked: tuple[tuple[str, str, dict[str, Scalar], int], ...] = (
        ("XATTENTION", "", {}, WHOLE),
        ("TRISHAPE", "", {}, SPLIT),
        ("TRISHAPE", ", 512 recent tokens", tight_shape, SPLIT),
        ("XATTENTION", "", {}, SPLIT),
        ("TRISHAPE", ", 512 recent tokens", tight_shape, WHOLE),
        ("XATTENTION", ", threshold 0.5", tight_score, WHOLE),
    )
    shown = {WHOLE: "in one step", SPLIT: f"in steps of {SPLIT} tokens"}
    long = tuple(
        Request(
            name="use_sparse_attention",
            requested=f"{mode}{tightened}, a prompt of {LONG_PROMPT} tokens {shown[chunk]}",
            technique=Technique.FLASH_ATTENTION,
            effect=Effect.ANSWERS,
            trial=_long(device, chunk, _sparse_settings(mode) | settings),
            against=_long(device, chunk, {}),
        )
        for mode, tightened, settings, chunk in asked
    )
    together = Request(
        name="use_sparse_attention",
        requested=f"XATTENTION, with {KV_PRECISION} u4",
        technique=Technique.FLASH_ATTENTION,
        effect=Effect.RUNS,
        trial=_with(device, {KV_PRECISION: "u4"}, _sparse_settings("XATTENTION")),
        against=default_trial(device),
        documented="the review of OpenVINO's GPU preview (pull request 32064) allows keys quantised by token only",
    )
    return (*long, together)


def _sparse_settings(mode: str) -> dict[str, Scalar]:
    return {"use_sparse_attention": True, "sparse_attention_config.mode": mode}


def _with(device: str, properties: Mapping[str, Scalar], scheduler: Mapping[str, Scalar] | None = None) -> Trial:
    return Trial(device=device, properties=tuple(properties.items()), scheduler=tuple((scheduler or {}).items()))


def _told(device: str, properties: Mapping[str, Scalar]) -> Trial:
    """Ask in plain words too: how the cache is kept decides how far answers agree."""
    return replace(_with(device, properties), questions=QUESTIONS)


def _stepped(device: str, scheduler: Mapping[str, Scalar], *, times: int = 1, answer_tokens: int = 16) -> Trial:
    """Ask one prompt that takes four steps."""
    return replace(
        _with(device, {}, {BATCHED_TOKENS: STEPPED_CHUNK, **scheduler}),
        prompt_tokens=STEPPED_PROMPT,
        at_once=1,
        times=times,
        answer_tokens=answer_tokens,
    )


def _turns(device: str, scheduler: Mapping[str, Scalar]) -> Trial:
    return replace(_with(device, {}, scheduler), prompt_tokens=STEPPED_PROMPT, at_once=2, answer_tokens=16)


def _long(device: str, chunk: int, scheduler: Mapping[str, Scalar]) -> Trial:
    # A pool that grows: blocks differ in size between devices, and XATTENTION's are the largest.
    settings: dict[str, Scalar] = {"num_kv_blocks": 0, BATCHED_TOKENS: chunk, **scheduler}
    return replace(_with(device, {}, settings), prompt_tokens=LONG_PROMPT, at_once=1, answer_tokens=LONG_ANSWER)
