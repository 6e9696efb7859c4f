"""What is claimed of each way of drafting, and what the answers of an engine make of the claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from probes.child import Outcome
from probes.devices.dump import executes_elsewhere
from probes.devices.words import runtime_words
from probes.drafts.trial import REQUESTS, Ask, Reply, Tried
from probes.evidence import Capability, CapabilityState, Scalar, Technique

CHAIN = 3
_FEW = 3
_CHAINED = f"num_assistant_tokens={CHAIN};"
_GUIDE = "the OVMS guide of 2026.0 to 2026.3"


class Method(StrEnum):
    """The ways of drafting that OpenVINO GenAI has."""

    EAGLE3 = "EAGLE-3"
    TREE = "EAGLE-3 tree"
    DRAFT_MODEL = "draft model"
    PROMPT_LOOKUP = "prompt lookup"


class Against(StrEnum):
    """What the answers are held against."""

    EXACT = "plain decoding of the same precision, which they have to equal"
    DEFAULT = "plain decoding with the default cache, beside its agreement with itself"
    NOTHING = "nothing: the answers are drawn at random"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One combination asked of a device. `documented` is what a document says of it, told beside the outcome."""

    method: Method
    ask: Ask
    against: Against = Against.EXACT
    documented: str = ""

    @property
    def requested(self) -> str:
        """The name of the question is what was asked for."""
        return self.ask.name


@dataclass(frozen=True, kw_only=True)
class Plain:
    """Answers without drafts: to the prompts one by one, and to all of them at once."""

    precision: str
    alone: tuple[tuple[int, ...], ...]
    at_once: tuple[tuple[int, ...], ...]

    @property
    def repeats(self) -> int:
        """How many answers stay the same when all run at once."""
        return _equal(self.at_once, self.alone)

    @property
    def steady(self) -> bool:
        """Whether plain decoding agrees with itself, without which nothing else can be asked to agree with it."""
        return self.repeats == len(self.alone)


def eagle_claims(*, quick: bool) -> tuple[Claim, ...]:
    """Claim what a head must do under an exact cache with prefix caching on; a refusal may end an engine, so it comes last."""
    three: dict[str, Scalar] = {"num_assistant_tokens": CHAIN}
    none: dict[str, Scalar] = {"num_assistant_tokens": 0}
    claims = [_claim(Method.EAGLE3, written(none), none, requests=1), *_basic(Method.EAGLE3, three, quick=quick)]
    if quick:
        return tuple(claims)
    # Until a request drafts, the engine never runs the head; afterwards it runs it for nothing.
    claims.append(_claim(Method.EAGLE3, f"{written(none)} after requests that drafted", none, requests=1))
    lengths: list[dict[str, Scalar]] = [{"num_assistant_tokens": n} for n in range(1, 6) if n != CHAIN]
    claims += [_claim(Method.EAGLE3, written(one), one, requests=1) for one in lengths]
    tree: dict[str, Scalar] = {"branching_factor": 3, "tree_depth": 3, "num_assistant_tokens": 8}
    claims += [
        _claim(Method.TREE, f"{written(tree)}; one request at a time", tree, requests=2),
        _claim(Method.TREE, f"{written(tree)}; {REQUESTS} requests at once", tree, at_once=True),
    ]
    refused: tuple[dict[str, Scalar], ...] = ({"num_beams": 4}, {"assistant_confidence_threshold": 0.4})
    claims += [_claim(Method.EAGLE3, written(one), {**three, **one}, requests=1) for one in refused]
    return (*claims, _sampled("do_sample with prefix caching"))


def default_cache_claims() -> tuple[Claim, ...]:
    """Claim what a head must do under the device's default cache, without prefix caching."""
    three: dict[str, Scalar] = {"num_assistant_tokens": CHAIN}
    default = _claim(Method.EAGLE3, f"num_assistant_tokens={CHAIN}; default KV cache", three, against=Against.DEFAULT)
    return default, _sampled("do_sample without prefix caching")


def draft_model_claims() -> tuple[Claim, ...]:
    """Claim what a second language model must do as a draft; the target itself is one that is always right."""
    return tuple(_basic(Method.DRAFT_MODEL, {"num_assistant_tokens": CHAIN}, quick=False, alone=_FEW))


def lookup_claims() -> tuple[Claim, ...]:
    """Claim what drafts from the prompt must do; the runtime counts none of them, so steps are watched."""
    settings: dict[str, Scalar] = {"num_assistant_tokens": CHAIN, "max_ngram_size": 3}
    return tuple(_basic(Method.PROMPT_LOOKUP, settings, quick=False, alone=_FEW))


def beside_claim(setting: str, *, method: Method = Method.EAGLE3) -> Claim:
    """Claim that a head works beside a setting of the engine."""
    return _claim(method, setting, {"num_assistant_tokens": CHAIN}, requests=1)


def judge(claim: Claim, *, tried: Tried, device: str, plain: Plain) -> Capability:
    """Say what a claim came to: a refusal, an engine that broke, or answers held against those without drafts."""
    reply = tried.reply(claim.ask.name)
    if reply is None or reply.refusal is not None:
        state, words = _unanswered(tried, reply)
        return _capability(claim, state, words=words, seconds=tried.seconds)
    if tried.dump is not None and (wrong := executes_elsewhere(device, tried.dump)):
        return _capability(claim, CapabilityState.FAILED, words=wrong, seconds=tried.seconds)
    state, told = _answered(claim, reply, plain)
    return _capability(claim, state, effect=told, seconds=tried.seconds)


def not_tried(words: str, method: Method = Method.EAGLE3) -> Capability:
    """Say that nothing could be asked of a way of drafting, and why."""
    claim = _basic(method, {"num_assistant_tokens": CHAIN}, quick=True)[0]
    return _capability(claim, CapabilityState.FAILED, words=words)


def skipped(claim: Claim, budget_s: float) -> Capability:
    """Say that there was no time for a claim."""
    return _capability(claim, CapabilityState.SKIPPED, words=f"skipped: the budget of {budget_s:g} s was spent")


def broken_chain(capabilities: Iterable[Capability], method: Method = Method.EAGLE3) -> Capability | None:
    """Find what keeps plain chains of a way of drafting from working here; None when they work."""
    chains = (one for one in capabilities if one.name == method and one.requested.startswith(_CHAINED))
    return next((one for one in chains if one.state in {CapabilityState.REFUSED, CapabilityState.FAILED}), None)


def written(settings: dict[str, Scalar]) -> str:
    """Write settings as they would be given."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _basic(method: Method, settings: dict[str, Scalar], *, quick: bool, alone: int = REQUESTS) -> list[Claim]:
    """Ask one by one, again, and all at once: the three in which a draft could leave something behind."""
    asked = written(settings)
    guide = method is Method.EAGLE3
    claims = [
        _claim(method, f"{asked}; one request at a time", settings, requests=alone),
        _claim(
            method,
            f"{asked}; {REQUESTS} requests at once",
            settings,
            at_once=True,
            documented=f"{_GUIDE} allows one request at a time" if guide else "",
        ),
    ]
    if not quick:
        again = f"{_GUIDE} excludes prefix caching" if guide else ""
        name = f"{asked}; the same prompts again with prefix caching"
        claims.append(_claim(method, name, settings, requests=alone, documented=again))
    return claims


def _sampled(name: str) -> Claim:
    settings: dict[str, Scalar] = {"num_assistant_tokens": CHAIN, "do_sample": True}
    documented = f"{_GUIDE} decodes greedily whatever is asked"
    return _claim(Method.EAGLE3, name, settings, requests=1, against=Against.NOTHING, documented=documented)


def _claim(
    method: Method,
    name: str,
    generation: dict[str, Scalar],
    *,
    requests: int = REQUESTS,
    at_once: bool = False,
    against: Against = Against.EXACT,
    documented: str = "",
) -> Claim:
    counted = method is not Method.PROMPT_LOOKUP
    ask = Ask(name=name, requests=requests, at_once=at_once, counted=counted, generation=generation)
    return Claim(method=method, ask=ask, against=against, documented=documented)


def _unanswered(tried: Tried, reply: Reply | None) -> tuple[CapabilityState, str]:
    if reply is not None:
        return CapabilityState.REFUSED, f"at generation: {runtime_words(reply.refusal or '')}"
    if tried.outcome is Outcome.RAISED and not tried.loaded:
        return CapabilityState.REFUSED, f"at compilation: {runtime_words(tried.words)}"
    return CapabilityState.FAILED, f"the engine {tried.outcome}: {runtime_words(tried.words)}"


def _answered(claim: Claim, reply: Reply, plain: Plain) -> tuple[CapabilityState, str]:
    count = len(reply.tokens)
    if claim.against is Against.NOTHING:
        return CapabilityState.ACCEPTED, "it answered; whether the distribution is unchanged was not checked"
    equal = _equal(reply.tokens, plain.alone)
    told = f"{equal} of {count} answers equal plain decoding ({plain.precision} KV cache)"
    if not plain.steady:
        told += f"; plain decoding itself keeps {plain.repeats} of {len(plain.alone)} when all run at once"
    told += f"; {_drafted(reply)}"
    if reply.drafted == 0:
        return CapabilityState.INERT, told
    if claim.against is Against.EXACT and plain.steady and equal < count:
        return CapabilityState.FAILED, told
    gained = bool(reply.accepted) or (reply.tokens_per_step or 1.0) > 1.0
    return CapabilityState.EFFECTIVE if gained else CapabilityState.ACCEPTED, told


def _drafted(reply: Reply) -> str:
    if reply.tokens_per_step is not None:
        return f"{reply.tokens_per_step:.2f} tokens per step"
    if reply.drafted is None:
        return "the runtime counts no drafts"
    return f"{reply.accepted} of {reply.drafted} drafted tokens accepted, in {reply.draft_steps} draft steps"


def _equal(answers: Sequence[Sequence[int]], expected: Sequence[Sequence[int]]) -> int:
    return sum(tuple(one) == tuple(other) for one, other in zip(answers, expected, strict=False))


def _capability(
    claim: Claim, state: CapabilityState, *, words: str = "", effect: str = "", seconds: float | None = None
) -> Capability:
    return Capability(
        name=claim.method.value,
        technique=Technique.SPECULATIVE_DECODING,
        requested=claim.requested,
        state=state,
        words=words,
        effect=effect,
        documented=claim.documented,
        seconds=seconds,
    )
