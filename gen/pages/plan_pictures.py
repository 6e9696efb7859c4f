"""Pictures of what the planners work out: the pool as it fills, the limit that memory sets, what a draft would gain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gen.charts import bars, capacity, figure, roofline
from gen.markdown import NOTHING, Markdown, block, paragraphs, sentence, text
from gen.planners import decode_roofline, kv_capacity
from gen.planners.model import shape_of
from gen.planners.plan import Plan, Planner, exactly
from gen.view import ServiceView

_SEQUENCES = "sequences at once"
# Where nobody declares how many may run at once, so many are shown.
_MANY = 16
_CONTEXTS = (2048,)
_ALONE = "limit with an empty cache"


def of_planner(planner: Planner, services: Sequence[tuple[ServiceView, Sequence[Plan]]]) -> Markdown:
    """Draw what one planner made of the services of a scope, each given with the plans of every planner."""
    own = [(service, _by(plans)[planner]) for service, plans in services]
    drawn: list[Markdown] = []
    if planner is Planner.KV_CAPACITY:
        drawn += [_capacity(service, plan) for service, plan in own]
    elif planner is Planner.DECODE_ROOFLINE:
        limits = [(service.title, one) for service, plan in own if (one := plan.result(_ALONE)) is not None]
        if len(limits) > 1:
            drawn.append(figure(bars("Decode limit", limits), sentence("Most tokens per second of one sequence, empty cache")))
        drawn += [_roofline(service, plans) for service, plans in services]
    elif planner is Planner.SPECULATION:
        for service, plan in own:
            rows = [(one.name, one.span) for one in plan.worked if one.name.startswith("speed-up")]
            if rows:
                caption = sentence(f"{service.title}: below 1 a draft makes it slower")
                drawn.append(figure(bars("Speed-up by share of right guesses", rows), caption))
    return _block(drawn)


def of_service(service: ServiceView, plans: Sequence[Plan]) -> Markdown:
    """Draw what the pool of a service holds, and how fast its memory lets it decode."""
    return _block([_capacity(service, _by(plans)[Planner.KV_CAPACITY]), _roofline(service, plans)])


def _block(drawn: Sequence[Markdown]) -> Markdown:
    return block(paragraphs(*drawn), "charts") if any(drawn) else NOTHING


def _by(plans: Sequence[Plan]) -> dict[Planner, Plan]:
    return {plan.planner: plan for plan in plans}


def _capacity(service: ServiceView, plan: Plan) -> Markdown:
    """Draw the cache of so many sequences against the pool; nothing where either is not known."""
    given = {one.name: one.span for one in plan.given}
    per_token, pool, held = plan.result(kv_capacity.PER_TOKEN), given.get(kv_capacity.POOL), plan.result(kv_capacity.TOKENS)
    if per_token is None or pool is None or held is None or held.low <= 0:
        return NOTHING
    most = int(given[_SEQUENCES].value) if _SEQUENCES in given else _MANY
    counts = sorted({1, math.isqrt(most), most})
    longest = shape_of(service).context_tokens
    most_tokens = None if longest is None else int(longest.span.value)
    chart = capacity(f"KV pool of {service.title}", per_token, pool, held, counts=counts, longest=most_tokens)
    told = f"{service.title}: lines are the cache of so many sequences as they grow; where one meets the pool, it is full."
    bound = "" if _SEQUENCES in given else " How many may run at once is not declared."
    return figure(chart, text(f"{told}{bound} A token takes {per_token.said()}, worked out and not sampled."))


def _roofline(service: ServiceView, plans: Sequence[Plan]) -> Markdown:
    """Draw the limit that memory sets by sequences at once, and what was reached; nothing where there is no limit."""
    by_planner = _by(plans)
    given = {one.name: one for one in by_planner[Planner.DECODE_ROOFLINE].given}
    speed, weights = given.get("speed of memory"), given.get("weights")
    per_token = by_planner[Planner.KV_CAPACITY].result(kv_capacity.PER_TOKEN)
    reached = decode_roofline.batches(service)
    if speed is None or weights is None or (per_token is None and not reached):
        return NOTHING
    counts = sorted({1, 2, 4, 8, 16, *(count for line in reached.values() for count in line)})
    contexts = [0, *(shape_of(service).within(_CONTEXTS) if per_token is not None else ())]
    limits = {
        f"limit, {context:,} tokens of cache each" if context else "limit, empty cache": {
            count: decode_roofline.limit_tok_s(speed.span, weights.span, per_token or exactly(0, "B"), context, count)
            for count in counts
        }
        for context in contexts
    }
    chart = roofline(f"Decode speed of {service.title}", limits, reached)
    sizes = sorted({one.n for line in reached.values() for one in line.values()})
    told = (
        f"reached: n = {sizes[0]}{f' to {sizes[-1]}' if len(sizes) > 1 else ''} repetitions" if sizes else "nothing reached yet"
    )
    return figure(
        chart,
        text(
            f"{service.title}: the most that memory of {speed.span.said()} ({speed.known.value}) allows, with its bounds; "
            f"{told}. Far below the line, computing sets the pace and not memory."
        ),
    )
