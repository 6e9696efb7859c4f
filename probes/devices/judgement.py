"""What a request came to, from the plugin's check, its trial and the trial it is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from probes.child import Outcome
from probes.devices.capabilities import (
    BACKEND,
    PAGED,
    STATEFUL,
    STEPPED_CHUNK,
    Effect,
    Request,
    default_trial,
    precise_trial,
)
from probes.devices.dump import executes_elsewhere
from probes.devices.trial import Observation, Trial, Tried
from probes.devices.words import runtime_words
from probes.evidence import Capability, CapabilityState

Finding = tuple[CapabilityState, str]
_TITLES = {PAGED: "Paged Attention", STATEFUL: "Stateful"}


@dataclass(frozen=True, kw_only=True)
class Proofs:
    """All that was found out about one device.

    `refused` holds the plugin's words by property and value, `lost` the trials that raised after the
    device had stopped working with default settings, and in whose words.
    """

    requests: Sequence[Request]
    tried: Mapping[Trial, Tried]
    refused: Mapping[str, Mapping[str, str]]
    skipped: str = ""
    lost: Mapping[Trial, str]


def refusal(request: Request, refused: Mapping[str, Mapping[str, str]]) -> str | None:
    """Give the plugin's words where it refuses a value before anything is compiled."""
    found = (refused.get(name, {}).get(str(value)) for name, value in request.trial.properties)
    return next((words for words in found if words is not None), None)


def judge(request: Request, proofs: Proofs) -> Capability:
    """Say what a request came to.

    Without default settings no refusal of a setting can be told from an engine that does not run at all.
    """
    trial, tried = request.trial, proofs.tried
    if said := refusal(request, proofs.refused):
        return _capability(request, CapabilityState.REFUSED, words=f"at the property check: {said}")
    if undone := _untried(request, proofs):
        return undone
    result = tried[trial]
    seen, seconds = result.observation, result.seconds
    if trial in proofs.lost:
        words = f"the device stopped working: with default settings {proofs.lost[trial]}"
        return _capability(request, CapabilityState.FAILED, words=words, seconds=seconds)
    if result.outcome is Outcome.RAISED:
        words = f"at {'generation' if result.loaded else 'compilation'}: {runtime_words(result.words)}"
        return _capability(request, CapabilityState.REFUSED, words=words, seconds=seconds)
    if seen is None or elsewhere(trial.device, seen):
        return _capability(request, CapabilityState.FAILED, words=failure(trial, tried), seconds=seconds)
    state, effect = _BY_EFFECT[request.effect](request, seen, proofs)
    return _capability(request, state, words=_live(request, seen), effect=effect, seconds=seconds)


def _untried(request: Request, proofs: Proofs) -> Capability | None:
    default = default_trial(request.trial.device)
    if default in proofs.tried and (broken := failure(default, proofs.tried)):
        return _capability(request, CapabilityState.FAILED, words=f"not tried: with default settings {broken}")
    if request.trial not in proofs.tried:
        return _capability(request, CapabilityState.SKIPPED, words=f"skipped: {proofs.skipped}")
    return None


def failure(trial: Trial, tried: Mapping[Trial, Tried]) -> str:
    """Say why a trial proves nothing; '' when it proves something."""
    result = tried[trial]
    if result.observation is None:
        return f"the engine {result.outcome}: {runtime_words(result.words)}"
    return elsewhere(trial.device, result.observation) or ""


def elsewhere(device: str, observation: Observation) -> str | None:
    """Say which other device executed, where the engine told."""
    return None if observation.dump is None else executes_elsewhere(device, observation.dump)


def _cache(request: Request, seen: Observation, proofs: Proofs) -> Finding:
    """Compare bytes and answers, with the widest other value where the request is the default's own."""
    other = _observed(request.against, proofs)
    if other is None:
        return _nothing_to_compare(request, proofs)
    if _live_value(other, request.name) == request.requested:
        return _of_default(request, seen, proofs)
    state, effect = _answers(request, seen, proofs)
    sizes = f"{seen.bytes_per_token} bytes of KV cache per token against {other.bytes_per_token} ({_name(request.against)})"
    if seen.bytes_per_token != other.bytes_per_token:
        state = CapabilityState.EFFECTIVE
    return state, f"{sizes}; {effect}{_precisely(seen, request, proofs)}"


def _of_default(request: Request, seen: Observation, proofs: Proofs) -> Finding:
    siblings = [
        (one, found)
        for one in proofs.requests
        if one.name == request.name and (found := _observed(one.trial, proofs)) is not None
        if found.bytes_per_token != seen.bytes_per_token
    ]
    own = f"is the default: {seen.bytes_per_token} bytes of KV cache per token"
    if not siblings:
        return CapabilityState.ACCEPTED, own
    widest, found = max(siblings, key=lambda pair: pair[1].bytes_per_token)
    against = f"{own} against {found.bytes_per_token} ({widest.name} {widest.requested})"
    return CapabilityState.EFFECTIVE, f"{against}; {_agreement(seen, found)}{_precisely(seen, request, proofs)}"


def _answers(request: Request, seen: Observation, proofs: Proofs) -> Finding:
    """Compare answers; where the engine does not even repeat itself, they prove nothing."""
    other = _observed(request.against, proofs)
    if other is None:
        return _nothing_to_compare(request, proofs)
    live = _live_value(seen, request.name)
    if live is not None and live == _live_value(other, request.name) == request.requested:
        return CapabilityState.ACCEPTED, f"is the default; {_agreement(seen, other)}"
    if not _repeats(proofs.tried[default_trial(request.trial.device)].observation):
        return CapabilityState.ACCEPTED, f"the engine does not repeat its own answers; {_agreement(seen, other)}"
    if _differ(seen, other):
        return CapabilityState.EFFECTIVE, _agreement(seen, other)
    if live is None and (sibling := _differing_sibling(request, other, proofs)):
        return CapabilityState.ACCEPTED, f"as the default, which {sibling.requested} changes; {_agreement(seen, other)}"
    return CapabilityState.INERT, _agreement(seen, other)


def _reuse(request: Request, seen: Observation, _proofs: Proofs) -> Finding:
    """Compare the steps that a prompt took until its first token with those of its repetition."""
    first, repeated = seen.steps_to_first
    tokens = request.trial.prompt_tokens
    steps = f"a prompt of {tokens} tokens in chunks of {STEPPED_CHUNK} took {first} steps to its first token"
    answers = "same answer" if seen.tokens[0] == seen.tokens[1] else "another answer"
    effect = f"{steps}, and {repeated} when repeated; {answers}"
    if first < 2:
        return CapabilityState.ACCEPTED, effect
    as_asked = (repeated < first) is (request.requested == "true")
    return (CapabilityState.EFFECTIVE if as_asked else CapabilityState.INERT), effect


def _turns(request: Request, seen: Observation, _proofs: Proofs) -> Finding:
    """Tell whether the second of two requests got its first token only after the first had its last."""
    first, second = seen.steps_to_first
    waited = second >= first + request.trial.answer_tokens - 1
    effect = f"of two requests at once the first had its first token in step {first} and the second in step {second}"
    return CapabilityState.EFFECTIVE if waited else CapabilityState.INERT, effect


def _steps(request: Request, seen: Observation, proofs: Proofs) -> Finding:
    other = _observed(request.against, proofs)
    if other is None:
        return _nothing_to_compare(request, proofs)
    ours, theirs = (one.steps_to_first[: request.trial.at_once] for one in (seen, other))
    told = ["steps " + ", ".join(map(str, steps)) for steps in (ours, theirs)]
    effect = f"{request.trial.at_once} requests at once had their first tokens in {told[0]}; otherwise in {told[1]}"
    return CapabilityState.INERT if ours == theirs else CapabilityState.EFFECTIVE, effect


def _fixed_pool(_request: Request, seen: Observation, _proofs: Proofs) -> Finding:
    before, after = seen.pool_bytes
    effect = f"the pool had {before} bytes after the first step and {after} after the last"
    return CapabilityState.EFFECTIVE if before == after > 0 else CapabilityState.INERT, effect


def _growing_pool(request: Request, seen: Observation, proofs: Proofs) -> Finding:
    before, after = seen.pool_bytes
    _, effect = _fixed_pool(request, seen, proofs)
    return CapabilityState.EFFECTIVE if after > before else CapabilityState.INERT, effect


def _eviction(request: Request, seen: Observation, _proofs: Proofs) -> Finding:
    held = round(seen.held_bytes / seen.bytes_per_token) if seen.bytes_per_token else 0
    fed = request.trial.prompt_tokens + request.trial.answer_tokens - 1
    effect = f"at the end of the answer the cache held {held} tokens of {fed} that went through it"
    return CapabilityState.EFFECTIVE if 0 < held < fed else CapabilityState.INERT, effect


def _backend(request: Request, seen: Observation, _proofs: Proofs) -> Finding:
    """Read off the engine's own title which attention path was built."""
    asked = dict(request.trial.properties).get(BACKEND, PAGED)
    if seen.dump is None:
        return CapabilityState.ACCEPTED, "the engine does not say which attention path it built"
    built = _TITLES[str(asked)] in seen.dump.title
    return CapabilityState.EFFECTIVE if built else CapabilityState.INERT, f"the engine built '{seen.dump.title}'"


def _files(_request: Request, seen: Observation, _proofs: Proofs) -> Finding:
    first, _second, rewritten = seen.files
    written = f"the first opening wrote {first} {'file' if first == 1 else 'files'}"
    effect = f"{written}, and the second {f'wrote {rewritten} again' if rewritten else 'loaded what was there'}"
    return CapabilityState.EFFECTIVE if first and not rewritten else CapabilityState.INERT, effect


def _time(request: Request, seen: Observation, proofs: Proofs) -> Finding:
    """Nothing but time would tell, and one opening times nothing: only a value that the engine drops is told."""
    live, dropped = _live_value(seen, request.name), False
    other = _observed(request.against, proofs)
    if live is not None and other is not None:
        dropped = live == _live_value(other, request.name) != request.requested
    return CapabilityState.INERT if dropped else CapabilityState.ACCEPTED, "answered; an effect would show in time alone"


def _runs(_request: Request, seen: Observation, _proofs: Proofs) -> Finding:
    return CapabilityState.ACCEPTED, f"{len(seen.tokens)} requests were answered"


_BY_EFFECT: Mapping[Effect, Callable[[Request, Observation, Proofs], Finding]] = {
    Effect.CACHE: _cache,
    Effect.ANSWERS: _answers,
    Effect.REUSE: _reuse,
    Effect.TURNS: _turns,
    Effect.STEPS: _steps,
    Effect.FIXED_POOL: _fixed_pool,
    Effect.GROWING_POOL: _growing_pool,
    Effect.EVICTION: _eviction,
    Effect.BACKEND: _backend,
    Effect.FILES: _files,
    Effect.TIME: _time,
    Effect.RUNS: _runs,
}


def _observed(trial: Trial, proofs: Proofs) -> Observation | None:
    result = proofs.tried.get(trial)
    return None if result is None or failure(trial, proofs.tried) else result.observation


def _nothing_to_compare(request: Request, proofs: Proofs) -> Finding:
    why = failure(request.against, proofs.tried) if request.against in proofs.tried else proofs.skipped
    return CapabilityState.ACCEPTED, f"answered; nothing to hold it against: {_name(request.against)} was not seen ({why})"


def _differ(seen: Observation, other: Observation) -> bool:
    count = min(len(seen.tokens), len(other.tokens))
    return (seen.tokens[:count], seen.log_likelihoods[:count]) != (other.tokens[:count], other.log_likelihoods[:count])


def _repeats(default: Observation | None) -> bool:
    """Tell whether the default engine gave the same answers with the same probabilities twice."""
    if default is None:
        return False
    half = len(default.tokens) // 2
    return (default.tokens[:half], default.log_likelihoods[:half]) == (default.tokens[half:], default.log_likelihoods[half:])


def _differing_sibling(request: Request, other: Observation, proofs: Proofs) -> Request | None:
    """Find another value of the same setting that changes what this one leaves as it is."""
    siblings = (one for one in proofs.requests if one.name == request.name and one.against == request.against)
    for sibling in siblings:
        found = _observed(sibling.trial, proofs)
        if found is not None and (found.bytes_per_token != other.bytes_per_token or _differ(found, other)):
            return sibling
    return None


def _agreement(seen: Observation, other: Observation) -> str:
    """Count answers that are the same token for token, and tell whether the same numbers led to them."""
    pairs = list(zip(seen.tokens, other.tokens, strict=False))
    same = sum(one == two for one, two in pairs)
    if same == len(pairs):
        numbers = "the same probabilities" if not _differ(seen, other) else "other probabilities"
        return f"{'the same answer' if same == 1 else f'all {same} answers the same'}, from {numbers}"
    if len(pairs) > 1:
        return f"{same} of {len(pairs)} answers the same"
    one, two = pairs[0]
    number = next(n for n, (left, right) in enumerate(zip(one, two, strict=True), start=1) if left != right)
    return f"the answer differs from token {number} on"


def _precisely(seen: Observation, request: Request, proofs: Proofs) -> str:
    """Add how many answers are those of a cache that loses nothing."""
    trial = precise_trial(request.trial.device)
    precise = _observed(trial, proofs)
    if precise is None or trial in {request.trial, request.against}:
        return ""
    said = f"; {_same(seen.tokens, precise.tokens)} of {len(precise.tokens)} are those of an f32 cache"
    if seen.told and precise.told:
        questions = f"{_same(seen.told, precise.told)} of {len(precise.told)} answers to questions in plain words"
        said += f", and {questions} ({len(precise.told[0])} tokens each)"
    return said


def _same(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> int:
    return sum(mine == theirs for mine, theirs in zip(one, other, strict=False))


def _name(trial: Trial) -> str:
    asked = {**dict(trial.properties), **dict(trial.scheduler)}
    if trial.properties:
        return ", ".join(f"{name} {value}" for name, value in trial.properties)
    return "the default" if not asked else "the same without it"


def _live_value(observation: Observation, name: str) -> str | None:
    if observation.dump is None:
        return None
    return observation.dump.properties.get(name) or observation.dump.scheduler.get(name)


def _live(request: Request, observation: Observation) -> str:
    """Repeat what the engine says about itself: its warnings, else the value it reports for the setting."""
    if observation.warnings:
        return f"the engine warns: {runtime_words(' '.join(observation.warnings))}"
    names = request.name.split(" and ")
    values = [(name, value) for name in names if (value := _live_value(observation, name))]
    return f"the engine reports {', '.join(f'{name} {value}' for name, value in values)}" if values else ""


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
        documented=request.documented,
        seconds=seconds,
    )
