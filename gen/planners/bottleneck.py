"""What to optimise first: where the time of a request goes, and the questions that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from gen.planners import load
from gen.planners.plan import Gap, Given, Plan, Planner, Span, Worked, derived
from gen.planners.tree import Answer, Leaf, Path, Question, Reply, walk
from gen.view import ServiceView, View
from probes.evidence import ProvenanceKind, Run

PREFILL, DECODE = "share of time until the first token", "share of time after it"
FORMULA = "time to first token / time of the whole request; waiting in a queue counts until the first token"
MOST = 0.5
FULL_POOL = 0.9

QUEUEING = Leaf(name="queueing", advice="Queueing first: admission caps, a short queue, more replicas")
MEMORY = Leaf(name="memory", advice="Memory first: shorter contexts, a larger or denser KV cache, fewer sequences at once")
PREFILLING = Leaf(name="prefill", advice="Prefill first: shorter prompts, prefix caching, prefill in chunks")
DECODING = Leaf(name="decode", advice="Decode first: fewer bytes per token, better kernels, drafts, shorter answers")
COST = Leaf(name="cost", advice="Cost first: nothing stands out in time, so weigh tokens, model size and use of the device")
_TIME = Question(
    name="prefill",
    text="Does the time until the first token make up most of a request?",
    yes=Question(name="waiting", text="Is most of that spent waiting?", yes=QUEUEING, no=PREFILLING),
    no=Question(name="decode", text="Do the tokens after the first make up most of it?", yes=DECODING, no=COST),
)
TREE = Question(
    name="failing",
    text="Do requests fail, or does the KV pool run full?",
    yes=MEMORY,
    no=Question(
        name="tail",
        text=f"Under load, is the 99th percentile of latency more than {load.FAR_TAIL:g} times the median?",
        yes=Question(name="queue", text="Does the queue grow?", yes=QUEUEING, no=MEMORY),
        no=_TIME,
    ),
)


def plan(_view: View, service: ServiceView) -> Plan:
    """Share out the time of a request, as far as requests were measured."""
    shares = _shares(service)
    if shares is None:
        gap = Gap(name="time of requests", fill=f"nox -s probe -- --service {service.name}, or python -m probes load")
        return Plan(planner=Planner.BOTTLENECK, subject=service.name, gaps=(gap,))
    run, known = shares.run, ProvenanceKind.MEASURED
    gaps = () if load.tail_ratio(service) is not None else (
        Gap(name="latency under load", fill=f"at least {load.FEWEST_FOR_TAIL} requests: python -m probes load"),
    )  # fmt: skip
    return Plan(
        planner=Planner.BOTTLENECK,
        subject=service.name,
        given=tuple(
            Given(name=name, span=span, known=known, source=source, run=run.id, samples=load.size(run, source))
            for name, span, source in (
                ("time to first token", shares.ttft, "ttft_s"),
                ("time of a request", shares.latency, "latency_s"),
            )
        ),
        worked=(
            Worked(name=PREFILL, span=shares.first, formula=FORMULA),
            Worked(name=DECODE, span=shares.after, formula="the rest of the request"),
        ),
        gaps=gaps,
        sources=("llm-inference-skill-hub",),
        notes=("The shares are those of the prompts and answers that were sent; longer answers move them towards decode.",),
    )


def decide(service: ServiceView) -> Path:
    """Walk the tree for one service with what its requests measured."""
    shares = _shares(service)
    unmeasured = Answer(reply=Reply.UNKNOWN, because="requests to it would tell: python -m probes load")
    first = _most(shares.first, "of the time pass until the first token") if shares else unmeasured
    after = _most(shares.after, "of the time pass after it") if shares else unmeasured
    return walk(
        TREE,
        {
            "failing": _failing(service, unmeasured),
            "tail": _tail(service),
            "queue": _queue(service),
            "prefill": first,
            "waiting": _queue(service),
            "decode": after,
        },
    )


@dataclass(frozen=True, kw_only=True)
class _Shares:
    """The times of the requests of one run, and the shares before and after the first token."""

    run: Run
    ttft: Span
    latency: Span
    first: Span
    after: Span


def _shares(service: ServiceView) -> _Shares | None:
    """Share out the time of the newest run that measured both times."""
    for run in load.asking(service):
        ttft, latency = load.samples(run, "ttft_s"), load.samples(run, "latency_s")
        if ttft is not None and latency is not None and latency.low > 0:
            first = derived("share", lambda one, whole: min(1.0, one / whole), ttft, latency)
            after = derived("share", lambda share: 1 - share, first)
            return _Shares(run=run, ttft=ttft, latency=latency, first=first, after=after)
    return None


def _most(share: Span, words: str) -> Answer:
    known = ProvenanceKind.MEASURED
    if share.low > MOST:
        return Answer(reply=Reply.YES, because=f"{share.said()} {words}", known=known)
    if share.high < MOST:
        return Answer(reply=Reply.NO, because=f"{share.said()} {words}", known=known)
    return Answer(reply=Reply.UNKNOWN, because=f"{share.said()} {words}; more requests would settle it")


def _failing(service: ServiceView, unmeasured: Answer) -> Answer:
    errors, pool = load.highest(service, ("error_rate", "oom_rate")), load.highest(service, ("kv_cache_usage",))
    if errors is None and pool is None:
        return unmeasured
    failing, full = bool(errors), pool is not None and pool >= FULL_POOL
    told = [f"{errors:.1%} of the requests failed"] if errors is not None else []
    told += [f"the pool was {pool:.0%} full at most"] if pool is not None else []
    return Answer(reply=Reply.YES if failing or full else Reply.NO, because=", ".join(told), known=ProvenanceKind.MEASURED)


def _tail(service: ServiceView) -> Answer:
    ratio = load.tail_ratio(service)
    if ratio is None:
        because = f"at least {load.FEWEST_FOR_TAIL} requests to it would tell: python -m probes load"
        return Answer(reply=Reply.UNKNOWN, because=because)
    return Answer(
        reply=Reply.YES if ratio > load.FAR_TAIL else Reply.NO,
        because=f"{ratio:.2g} times the median measured",
        known=ProvenanceKind.MEASURED,
    )


def _queue(service: ServiceView) -> Answer:
    waiting = load.highest(service, ("requests_waiting",))
    if waiting is None:
        return Answer(reply=Reply.UNKNOWN, because="the server's own count of waiting requests would tell")
    reply = Reply.YES if waiting > 0 else Reply.NO
    return Answer(reply=reply, because=f"at most {waiting:g} requests waited", known=ProvenanceKind.MEASURED)
