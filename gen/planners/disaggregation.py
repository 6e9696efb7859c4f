"""Whether to split prefill from decode: what a KV cache weighs on a link, and the criteria as a tree."""

from __future__ import annotations

from gen.planners.kv_capacity import PER_TOKEN, weigh
from gen.planners.load import FAR_TAIL, most_tok_s, prefill_tok_s, prompt_spread, tail_ratio
from gen.planners.model import shape_of
from gen.planners.plan import Gap, Given, Plan, Planner, Span, Worked, derived, exactly
from gen.planners.tree import Answer, Leaf, Path, Question, Reply, walk
from gen.view import ServiceView, View
from probes.evidence import ProvenanceKind

PROMPTS = (512, 2048, 8192)
FEWEST_CARDS, MUCH_TOK_S, MIXED = 4, 10_000, 4.0
MOVED, TAKES, PREFILL = "KV cache of a prompt", "time on the link", "time to compute it again"
FORMULA = "bits of KV cache per token x tokens of the prompt / bits per second of the link"

COLOCATED = Leaf(name="colocated", advice="Keep prefill and decode in one place")
SPLIT = Leaf(name="split", advice="Benchmark split pools against unsplit serving")
# The criteria of the source, but what rules it out is asked before what makes it worth wanting: a wish supplies no link.
TREE = Question(
    name="cards",
    text=f"Are there at least {FEWEST_CARDS} accelerators?",
    no=COLOCATED,
    yes=Question(
        name="pools",
        text="Do two pools serve one model on runtimes that hand over a KV cache?",
        no=COLOCATED,
        yes=Question(
            name="link",
            text="Does the link between them move a KV cache faster than it is computed again?",
            no=COLOCATED,
            yes=Question(
                name="batch",
                text="Is the load more than batches and single users?",
                no=COLOCATED,
                yes=Question(
                    name="throughput",
                    text=f"Are more than {MUCH_TOK_S} tokens per second needed?",
                    yes=SPLIT,
                    no=Question(
                        name="tail",
                        text=f"Is the 99th percentile of latency more than {FAR_TAIL:g} times the median?",
                        yes=SPLIT,
                        no=Question(name="mixed", text="Do short and long prompts mix?", yes=SPLIT, no=COLOCATED),
                    ),
                ),
            ),
        ),
    ),
)


def transfer_s(kv_bytes_per_token: Span, prompt_tokens: int, link_gbit_s: Span) -> Span:
    """Time a prompt's KV cache on a link that is used to the full."""
    return derived("s", lambda size, link: size * prompt_tokens * 8 / (link * 1e9), kv_bytes_per_token, link_gbit_s)


def plan(view: View, service: ServiceView) -> Plan:
    """Weigh a service's KV cache against the declared link and against computing it again."""
    given: list[Given] = []
    gaps: list[Gap] = []
    worked: list[Worked] = []
    kv = weigh(view, service).token
    link, prefill = view.fleet.topology.interconnect_gbit_s, prefill_tok_s(service)
    prompts = shape_of(service).within(PROMPTS)
    if kv is None:
        gaps.append(Gap(name=PER_TOKEN, fill="as for the KV capacity: layers, KV heads, head size and KV precision"))
    else:
        given.append(kv)
        size = kv.span
        for prompt in prompts:
            moved = derived("B", lambda one, tokens=prompt: one * tokens, size)
            worked.append(Worked(name=f"{MOVED} of {prompt} tokens", span=moved, formula="KV cache per token x tokens"))
    if link is None or view.local:
        gaps.append(Gap(name="link between two pools", fill="topology.interconnect_gbit_s; none is declared"))
    else:
        speed = exactly(link, "Gbit/s")
        given.append(Given(name="link", span=speed, known=ProvenanceKind.DECLARED, source="topology.interconnect_gbit_s"))
        if kv is not None:
            worked += [
                Worked(name=f"{TAKES} for {n} tokens", span=transfer_s(kv.span, n, speed), formula=FORMULA) for n in prompts
            ]
    if prefill is None:
        gaps.append(Gap(name="prefill speed", fill=f"nox -s probe -- --service {service.name}"))
    else:
        given.append(prefill)
        worked += [
            Worked(
                name=f"{PREFILL}, {n} tokens",
                span=derived("s", lambda speed, tokens=n: tokens / speed, prefill.span),
                formula="tokens of the prompt / prefill speed",
            )
            for n in prompts
        ]
    return Plan(
        planner=Planner.DISAGGREGATION,
        subject=service.name,
        given=tuple(given),
        worked=tuple(worked),
        gaps=tuple(gaps),
        sources=("llm-inference-skill-hub", "distserve"),
    )


def decide(view: View) -> Path:
    """Walk the tree for a scope with what its inventory and its measurements answer."""
    return walk(
        TREE, {"cards": _cards(view), "pools": _pools(view), "link": _link(view), "batch": _batch(view), **_wishes(view)}
    )


def _cards(view: View) -> Answer:
    if view.local:
        return Answer(reply=Reply.NO, because="one machine serves one model")
    count = len(view.fleet.devices)
    return Answer(
        reply=Reply.YES if count >= FEWEST_CARDS else Reply.NO,
        because=f"the inventory lists {count}",
        known=ProvenanceKind.DECLARED,
    )


def _pools(view: View) -> Answer:
    topology, known = view.fleet.topology, ProvenanceKind.DECLARED
    if not topology.compatible_pools:
        return Answer(reply=Reply.NO, because="the inventory declares no compatible pools", known=known)
    if topology.kv_transfer is None:
        return Answer(reply=Reply.NO, because="the inventory declares no KV-transfer path", known=known)
    return Answer(reply=Reply.YES, because=f"declared, over {topology.kv_transfer}", known=known)


def _link(view: View) -> Answer:
    link = view.fleet.topology.interconnect_gbit_s
    if link is None:
        return Answer(reply=Reply.NO, because="the inventory declares no link", known=ProvenanceKind.DECLARED)
    named = {name for pool in view.fleet.topology.compatible_pools for name in pool}
    times = []
    for service in (one for one in view.services if one.name in named):
        kv, prefill = weigh(view, service).token, prefill_tok_s(service)
        if kv is not None and prefill is not None:
            move = transfer_s(kv.span, 1, exactly(link, "Gbit/s"))
            again = derived("s", lambda speed: 1 / speed, prefill.span)
            times.append((move, again))
    if times and all(move.high < again.low for move, again in times):
        return Answer(reply=Reply.YES, because=f"{link:g} Gbit/s move it faster than it was measured to be computed",
                      known=ProvenanceKind.MEASURED)  # fmt: skip
    if any(move.low > again.high for move, again in times):
        return Answer(reply=Reply.NO, because=f"computing it again was measured to be faster than {link:g} Gbit/s",
                      known=ProvenanceKind.MEASURED)  # fmt: skip
    return Answer(reply=Reply.UNKNOWN, because="the shape of the model and its measured prefill speed would tell")


def _batch(view: View) -> Answer:
    clients = dict.fromkeys(client.title for service in view.text for _, client in service.clients)
    if clients:
        return Answer(reply=Reply.YES, because=f"served to {' and '.join(clients)}", known=ProvenanceKind.DECLARED)
    return Answer(reply=Reply.UNKNOWN, because="services.NAME.clients would tell who waits for the answers")


def _wishes(view: View) -> dict[str, Answer]:
    found = [speed for service in view.text if (speed := most_tok_s(service)) is not None]
    tails = [ratio for service in view.text if (ratio := tail_ratio(service)) is not None]
    mixes = [mix for service in view.text if (mix := prompt_spread(service)) is not None]
    again = "a load on the services would tell: python -m probes load"
    return {
        "throughput": _over(sum(found) if found else None, MUCH_TOK_S, "tok/s measured over all services", again),
        "tail": _over(max(tails, default=None), FAR_TAIL, "times the median measured", again),
        "mixed": _over(max(mixes, default=None), MIXED, "is the longest measured prompt to the shortest", again),
    }


def _over(value: float | None, limit: float, words: str, fill: str) -> Answer:
    if value is None:
        return Answer(reply=Reply.UNKNOWN, because=fill)
    return Answer(reply=Reply.YES if value > limit else Reply.NO, because=f"{value:.3g} {words}", known=ProvenanceKind.MEASURED)
