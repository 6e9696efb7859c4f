"""Which settings are requested of a device, and what an effect of each would look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from probes.child import Outcome
from probes.devices.dump import executes_elsewhere
from probes.devices.trial import ANSWER_TOKENS, CHUNK_TOKENS, PROMPT_TOKENS, Observation, Trial, Tried
from probes.devices.words import runtime_words
from probes.evidence import Capability, CapabilityState, Technique

KV_PRECISION = "KV_CACHE_PRECISION"
PREFIX_CACHING = "enable_prefix_caching"
MAX_SEQUENCES = "max_num_seqs"
# Asked for whether or not the plugin lists them: what documents of one device name, another may refuse.
ALWAYS_ASKED = ("u8", "u4", "u3", "i8", "i4", "bf16", "f16", "f32", "f8e4m3")
QUICK_PRECISIONS = ("u8", "u4")


class Effect(StrEnum):
    """Where the effect of a setting shows, in things that a busy machine does not change."""

    CACHE = "bytes of KV cache per token, and greedy token ids"
    REUSE = "steps until the first token of a repeated prompt"
    TURNS = "whether the second of two requests waits for the first"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One setting asked of a device, with the trial that asks."""

    name: str
    requested: str
    technique: Technique
    effect: Effect
    trial: Trial


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An observation to compare with, and what it is called."""

    name: str
    observation: Observation


def default_trial(device: str) -> Trial:
    """Open the engine with nothing asked for; asked twice, it also shows that a repeated prompt is not reused."""
    return Trial(device=device, scheduler=((PREFIX_CACHING, False),), times=2)


def precision_requests(device: str, values: Sequence[str]) -> tuple[Request, ...]:
    """Request each KV-cache precision."""
    return tuple(
        Request(
            name=KV_PRECISION,
            requested=value,
            technique=Technique.KV_CACHE,
            effect=Effect.CACHE,
            trial=Trial(device=device, properties=((KV_PRECISION, value),), scheduler=((PREFIX_CACHING, False),)),
        )
        for value in values
    )


def prefix_requests(device: str) -> tuple[Request, ...]:
    """Request prefix caching on and off; off is what the default trial has."""
    on = Trial(device=device, scheduler=((PREFIX_CACHING, True),), times=2)
    trials = {"true": on, "false": default_trial(device)}
    return tuple(
        Request(
            name=PREFIX_CACHING,
            requested=requested,
            technique=Technique.PREFIX_CACHING,
            effect=Effect.REUSE,
            trial=trial,
        )
        for requested, trial in trials.items()
    )


def sequence_requests(device: str) -> tuple[Request, ...]:
    """Request a bound of one running sequence, with split fuse on, its default, and off."""
    return tuple(
        Request(
            name=MAX_SEQUENCES,
            requested=f"1 (dynamic_split_fuse {'on' if fuse else 'off'})",
            technique=Technique.CONTINUOUS_BATCHING,
            effect=Effect.TURNS,
            trial=Trial(
                device=device,
                # Without split fuse a whole prompt has to fit into one step.
                scheduler=((MAX_SEQUENCES, 1), ("dynamic_split_fuse", fuse), ("max_num_batched_tokens", 2 * PROMPT_TOKENS)),
                at_once=2,
            ),
        )
        for fuse in (True, False)
    )


def judge(
    request: Request, *, refusal: str | None, tried: Mapping[Trial, Tried], references: Sequence[Reference]
) -> Capability:
    """Say what a request came to, from the plugin's check, the trials and the observations to compare with.

    The first reference is the default. Without it no refusal of a setting can be told from an engine that
    does not run at all.
    """
    if refusal is not None:
        return _capability(request, CapabilityState.REFUSED, words=f"at the property check: {refusal}")
    if not references:
        words = f"not tried: with default settings {failure(default_trial(request.trial.device), tried)}"
        return _capability(request, CapabilityState.FAILED, words=words)
    result = tried[request.trial]
    if result.outcome is Outcome.RAISED:
        stage = "generation" if result.loaded else "compilation"
        words = f"at {stage}: {runtime_words(result.words)}"
        return _capability(request, CapabilityState.REFUSED, words=words, seconds=result.seconds)
    if result.observation is None or elsewhere(request.trial.device, result.observation):
        return _capability(request, CapabilityState.FAILED, words=failure(request.trial, tried), seconds=result.seconds)
    if request.effect is Effect.CACHE:
        state, effect = _cache(request, result.observation, references)
    elif request.effect is Effect.REUSE:
        state, effect = _reuse(request.requested == "true", result.observation)
    else:
        state, effect = _turns(result.observation)
    return _capability(request, state, words=_live(request, result.observation), effect=effect, seconds=result.seconds)


def failure(trial: Trial, tried: Mapping[Trial, Tried]) -> str:
    """Say why a trial proves nothing; '' when it proves something."""
    result = tried[trial]
    if result.observation is None:
        return f"the engine {result.outcome}: {runtime_words(result.words)}"
    return elsewhere(trial.device, result.observation) or ""


def elsewhere(device: str, observation: Observation) -> str | None:
    """Say which other device executed, where the engine told."""
    return None if observation.dump is None else executes_elsewhere(device, observation.dump)


def _cache(request: Request, seen: Observation, references: Sequence[Reference]) -> tuple[CapabilityState, str]:
    """Compare with the default, or with another precision where the request is the default's own value."""
    default = references[0]
    is_default = _live_value(default.observation, request.name) == request.requested
    if not is_default:
        state = CapabilityState.EFFECTIVE if _differ(seen, default.observation) else CapabilityState.INERT
        return state, _against(seen, default)
    others = [other for other in references[1:] if other.observation.bytes_per_token != seen.bytes_per_token]
    if not others:
        return CapabilityState.ACCEPTED, f"is the default: {seen.bytes_per_token} bytes of KV cache per token"
    widest = max(others, key=lambda other: other.observation.bytes_per_token)
    return CapabilityState.EFFECTIVE, f"is the default: {_against(seen, widest)}"


def _differ(seen: Observation, other: Observation) -> bool:
    """Tell whether two observations differ by more than the engine differs from itself."""
    if seen.bytes_per_token != other.bytes_per_token:
        return True
    repeatable = all(len(set(observation.tokens)) == 1 for observation in (seen, other))
    return repeatable and seen.tokens[0] != other.tokens[0]


def _against(seen: Observation, other: Reference) -> str:
    tokens, others = seen.tokens[0], other.observation.tokens[0]
    same = next((n for n, pair in enumerate(zip(tokens, others, strict=True)) if pair[0] != pair[1]), len(tokens))
    agreement = f"the same {same} greedy tokens" if same == len(tokens) else f"greedy tokens differ from number {same + 1} on"
    return (
        f"{seen.bytes_per_token} bytes of KV cache per token against {other.observation.bytes_per_token} "
        f"({other.name}); {agreement}"
    )


def _reuse(requested: bool, seen: Observation) -> tuple[CapabilityState, str]:  # noqa: FBT001
    """Compare the steps that a prompt took until its first token with those of its repetition."""
    first, repeated = seen.steps_to_first
    steps = f"a prompt of {PROMPT_TOKENS} tokens in chunks of {CHUNK_TOKENS} took {first} steps to its first token"
    answers = "same answer" if seen.tokens[0] == seen.tokens[1] else "another answer"
    effect = f"{steps}, and {repeated} when repeated; {answers}"
    if first < 2:
        return CapabilityState.ACCEPTED, effect
    return (CapabilityState.EFFECTIVE if (repeated < first) is requested else CapabilityState.INERT), effect


def _turns(seen: Observation) -> tuple[CapabilityState, str]:
    """Tell whether the second of two requests got its first token only after the first had its last."""
    first, second = seen.steps_to_first
    waited = second >= first + ANSWER_TOKENS - 1
    effect = f"of two requests at once the first had its first token in step {first} and the second in step {second}"
    return CapabilityState.EFFECTIVE if waited else CapabilityState.INERT, effect


def _live_value(observation: Observation, name: str) -> str | None:
    if observation.dump is None:
        return None
    return observation.dump.properties.get(name) or observation.dump.scheduler.get(name)


def _live(request: Request, observation: Observation) -> str:
    value = _live_value(observation, request.name)
    return f"the engine reports {request.name} {value}" if value else ""


def _capability(
    request: Request, state: CapabilityState, *, words: str, effect: str = "", seconds: float | None = None
) -> Capability:
    return Capability(
        name=request.name,
        technique=request.technique,
        requested=request.requested,
        state=state,
        words=words,
        effect=effect,
        seconds=seconds,
    )
