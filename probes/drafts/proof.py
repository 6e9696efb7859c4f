"""The speculative part of the device probe: engines opened in turn, each with its claims."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from probes.child import Outcome
from probes.devices.words import runtime_words
from probes.drafts.capabilities import (
    Against,
    Claim,
    Method,
    Plain,
    beside_claim,
    default_cache_claims,
    draft_model_claims,
    eagle_claims,
    judge,
    lookup_claims,
    not_tried,
    skipped,
)
from probes.drafts.pair import Pair, paired
from probes.drafts.trial import STATEFUL, Ask, Trial, Tried, try_drafts
from probes.errors import InputError, ProbeError
from probes.evidence import Capability, Scalar

# Rounding that depends on what else runs in a batch changes answers without any draft; f32 leaves the least of it.
EXACT: dict[str, Scalar] = {"INFERENCE_PRECISION_HINT": "f32"}
PRECISIONS = ("f32", "f16")
PREFIX_CACHING = "enable_prefix_caching"
_ALONE, _AT_ONCE = "alone", "at once"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was proven, with the trials behind it, and the full name of the device that executed, where it was told."""

    capabilities: tuple[Capability, ...]
    native: dict[str, JsonValue]
    full_name: str = ""


@dataclass(frozen=True, kw_only=True)
class Session:
    """One engine to open and the claims it is asked to hold."""

    name: str
    claims: tuple[Claim, ...]
    trial: Trial


@dataclass(frozen=True, kw_only=True)
class Course:
    """How a proof is carried out: in short or whole, until which moment, and who is told what runs."""

    quick: bool
    say: Callable[[str], None]
    budget_s: float
    ends_s: float

    @property
    def spent(self) -> bool:
        """Whether the budget is used up."""
        return time.monotonic() >= self.ends_s


def prove(
    ir: Path,
    device: str,
    *,
    quick: bool,
    say: Callable[[str], None],
    head: Path | None = None,
    required: bool = False,
    budget_s: float = math.inf,
) -> Proof:
    """Prove what drafts do on a device; with `head` by that head, else by one built here and gone afterwards.

    No engine is opened once `budget_s` seconds are spent; what it would have been asked is skipped. A target
    for which no head can be built is a capability that failed, and so is a device without plain
    decoding; where a head is `required`, it is an error.

    Raises:
        InputError: no head can be built, or the given head is for another target.
        ProbeError: the runtime could not read or write a model.
    """
    course = Course(quick=quick, say=say, budget_s=budget_s, ends_s=time.monotonic() + budget_s)
    if course.spent:
        return Proof(capabilities=(skipped(eagle_claims(quick=True)[1], budget_s),), native={})
    say(f"{device}: speculative decoding: plain decoding to compare with")
    exact, tried = _plain_exact(ir, device)
    native: dict[str, JsonValue] = {"plain": shown(tried)}
    if exact is None:
        words = f"not tried: plain decoding: the engine {tried.outcome}: {runtime_words(tried.words)}"
        return Proof(capabilities=(not_tried(words),), native=native)
    try:
        with paired(ir, head=head, aim=often_said(exact)) as pair:
            found = _prove(ir, device, pair, exact, course)
            return replace(found, native={**native, **found.native}, full_name=_full_name(tried))
    except (InputError, ProbeError) as exc:
        if required:
            raise
        return Proof(capabilities=(not_tried(f"no head can be built for this target: {exc}"),), native=native)


def prove_draft(ir: Path, draft: Path, device: str, *, say: Callable[[str], None]) -> Proof:
    """Prove what a draft model of the user's does for a target; a device without plain decoding is a capability that failed."""
    say(f"{device}: speculative decoding: plain decoding to compare with")
    exact, tried = _plain_exact(ir, device)
    native: dict[str, JsonValue] = {"plain": shown(tried)}
    if exact is None:
        words = f"not tried: plain decoding: the engine {tried.outcome}: {runtime_words(tried.words)}"
        return Proof(capabilities=(not_tried(words, Method.DRAFT_MODEL),), native=native)
    say(f"{device}: speculative decoding: {Method.DRAFT_MODEL}")
    trial = Trial(
        target=ir,
        draft=draft,
        device=device,
        properties=(*EXACT.items(), ("KV_CACHE_PRECISION", exact.precision)),
        scheduler=((PREFIX_CACHING, True),),
        asks=(),
    )
    claims = draft_model_claims()
    drafted = try_drafts(_asking(trial, claims))
    found = tuple(judge(claim, tried=drafted, device=device, plain=exact) for claim in claims)
    return Proof(capabilities=found, native={**native, Method.DRAFT_MODEL: shown(drafted)}, full_name=_full_name(tried))


def often_said(plain: Plain) -> tuple[int, ...]:
    """Give the token that plain answers hold most often: a head that drafts nothing else is right now and then."""
    counts = Counter(token for answer in plain.alone for token in answer)
    return tuple(token for token, _ in counts.most_common(1))


def shown(tried: Tried) -> JsonValue:
    """Write a trial down as it came."""
    value: JsonValue = {
        "outcome": tried.outcome.value,
        "words": tried.words,
        "loaded": tried.loaded,
        "seconds": round(tried.seconds, 3),
        "peak_rss_bytes": tried.peak_rss_bytes,
        "replies": [reply.model_dump(mode="json") for reply in tried.replies],
        "dump": None if tried.dump is None else tried.dump.model_dump(mode="json"),
    }
    return value


def _prove(ir: Path, device: str, pair: Pair, exact: Plain, course: Course) -> Proof:
    """Try each engine in turn while there is time; a short run opens one."""
    native: dict[str, JsonValue] = {
        "head": {"built": pair.built, "draft_vocab": pair.draft_vocab, "layers": [*pair.shape.tapped]}
    }
    if course.quick:
        native["skipped"] = "quick: EAGLE-3 chains under an exact cache only"
    default = None
    found: list[Capability] = []
    sessions = [one for one in _sessions(ir, device, pair, exact.precision) if not course.quick or one.name == Method.EAGLE3]
    for number, session in enumerate(sessions, start=1):
        claims = eagle_claims(quick=True) if course.quick else session.claims
        if course.spent:
            found += [skipped(claim, course.budget_s) for claim in claims]
            continue
        course.say(f"{device}: speculative decoding: [{number}/{len(sessions)}] {session.name}")
        if default is None and any(claim.against is Against.DEFAULT for claim in claims):
            default, native["plain, default cache"] = _plain_default(ir, device)
        tried = try_drafts(_asking(session.trial, claims))
        native[session.name] = shown(tried)
        for claim in claims:
            plain = default if claim.against is Against.DEFAULT and default is not None else exact
            found.append(judge(claim, tried=tried, device=device, plain=plain))
    return Proof(capabilities=tuple(found), native=native)


def _full_name(tried: Tried) -> str:
    return next(iter(tried.dump.devices.values()), "") if tried.dump else ""


def _sessions(ir: Path, device: str, pair: Pair, precision: str) -> Iterator[Session]:
    properties = (*EXACT.items(), ("KV_CACHE_PRECISION", precision))
    cached: tuple[tuple[str, Scalar], ...] = ((PREFIX_CACHING, True),)
    uncached: tuple[tuple[str, Scalar], ...] = ((PREFIX_CACHING, False),)
    head = Trial(target=pair.target, draft=pair.head, device=device, properties=properties, scheduler=cached, asks=())

    def plain_target(*, draft: Path | None = None, more: tuple[tuple[str, Scalar], ...] = ()) -> Trial:
        return Trial(target=ir, draft=draft, device=device, properties=(*properties, *more), scheduler=cached, asks=())

    def beside(setting: str, *, method: Method = Method.EAGLE3, **changes: object) -> Session:
        values = {**vars(head), **changes}
        claims = (beside_claim(setting, method=method),)
        return Session(name=f"{method} with {setting}", claims=claims, trial=Trial(**values))

    lookup: tuple[tuple[str, Scalar], ...] = (("prompt_lookup", True),)
    yield Session(name=Method.EAGLE3, claims=eagle_claims(quick=False), trial=head)
    sparse: tuple[tuple[str, Scalar], ...] = (
        ("use_sparse_attention", True),
        ("sparse_attention_config.mode", "XATTENTION"),
    )
    yield beside("XATTENTION", scheduler=(*uncached, *sparse))
    yield beside("prompt_lookup", properties=(*properties, *lookup))
    yield beside("ATTENTION_BACKEND=SDPA", properties=(), observer=STATEFUL)
    yield Session(name=Method.DRAFT_MODEL, claims=draft_model_claims(), trial=plain_target(draft=ir))
    yield beside("XATTENTION", method=Method.DRAFT_MODEL, target=ir, draft=ir, scheduler=(*uncached, *sparse))
    yield Session(name=Method.PROMPT_LOOKUP, claims=lookup_claims(), trial=plain_target(more=lookup))
    default_cache = Trial(target=pair.target, draft=pair.head, device=device, scheduler=uncached, asks=())
    yield Session(name=f"{Method.EAGLE3}, default cache", claims=default_cache_claims(), trial=default_cache)


def _asking(trial: Trial, claims: tuple[Claim, ...]) -> Trial:
    return Trial(**{**vars(trial), "asks": tuple(claim.ask for claim in claims)})


def _plain_exact(ir: Path, device: str) -> tuple[Plain | None, Tried]:
    """Decode without drafts under the first precision of the cache that the device takes."""
    for precision in PRECISIONS:
        properties = (*EXACT.items(), ("KV_CACHE_PRECISION", precision))
        plain, tried = _plain(ir, device, properties, precision)
        if plain is not None or tried.outcome is not Outcome.RAISED:
            break
    return plain, tried


def _plain_default(ir: Path, device: str) -> tuple[Plain | None, JsonValue]:
    plain, tried = _plain(ir, device, (), "default")
    return plain, shown(tried)


def _plain(ir: Path, device: str, properties: tuple[tuple[str, Scalar], ...], precision: str) -> tuple[Plain | None, Tried]:
    asks = (Ask(name=_ALONE), Ask(name=_AT_ONCE, at_once=True))
    tried = try_drafts(Trial(target=ir, device=device, properties=properties, scheduler=((PREFIX_CACHING, False),), asks=asks))
    alone, at_once = tried.reply(_ALONE), tried.reply(_AT_ONCE)
    if alone is None or at_once is None or not alone.tokens or not at_once.tokens:
        return None, tried
    return Plain(precision=precision, alone=alone.tokens, at_once=at_once.tokens), tried
