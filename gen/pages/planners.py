"""The page of planners: what follows by arithmetic for each service, with formula, inputs, bounds and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from gen.assess import EMBEDDED
from gen.markdown import (
    NOTHING,
    Markdown,
    anchor,
    bullets,
    code,
    details,
    fenced,
    heading,
    line,
    link,
    paragraphs,
    sentence,
    span,
    text,
)
from gen.pages import plan_pictures
from gen.pages.atlas import Atlas, Spot, scope_anchor
from gen.pages.marks import age_limit, dated, known, legend
from gen.pages.page import Page
from gen.pages.trees import tree
from gen.paths import relative
from gen.planners import bottleneck, decode_roofline, disaggregation, kv_capacity, parallelism, speculation
from gen.planners.plan import Given, Plan, Planner, Span
from gen.planners.tree import Path
from gen.tables import Layout, columns, table
from gen.techniques.wording import listing
from gen.view import FLEET, ServiceView, View
from probes.evidence import Technique, slug

HERE = "planners.md"
TITLES = {
    Planner.KV_CAPACITY: "KV capacity",
    Planner.DECODE_ROOFLINE: "Decode limit",
    Planner.SPECULATION: "Speculative decoding",
    Planner.DISAGGREGATION: "Splitting prefill from decode",
    Planner.PARALLELISM: "Which parallelism",
    Planner.BOTTLENECK: "What to optimise first",
}
_ABOUT = {
    Planner.KV_CAPACITY: "How many tokens the pool of a service holds, and how many sequences of a length share it.",
    Planner.DECODE_ROOFLINE: "The most tokens per second that the memory of a device allows one sequence.",
    Planner.SPECULATION: "From how many right guesses on a draft pays, and what memory is left for it beside others.",
    Planner.DISAGGREGATION: "What a KV cache weighs on a link against computing it again, and whether to split at all.",
    Planner.PARALLELISM: "Whether a service fits into one device, and how to spread it where it does not.",
    Planner.BOTTLENECK: "Where the time of a request goes, and what follows: queueing, memory, prefill, decode or cost.",
}
_FORMULAS = {
    Planner.KV_CAPACITY: (kv_capacity.FORMULA, kv_capacity.HELD),
    Planner.DECODE_ROOFLINE: (decode_roofline.FORMULA,),
    Planner.SPECULATION: (speculation.FORMULA, speculation.SPEED_UP),
    Planner.DISAGGREGATION: (disaggregation.FORMULA,),
    Planner.PARALLELISM: ("needed = weights + KV pool",),
    Planner.BOTTLENECK: (bottleneck.FORMULA,),
}
_BEARING = {
    Technique.QUANTIZATION: (Planner.KV_CAPACITY, Planner.DECODE_ROOFLINE),
    Technique.DISAGGREGATION: (Planner.DISAGGREGATION, Planner.PARALLELISM),
    Technique.CONTINUOUS_BATCHING: (Planner.KV_CAPACITY, Planner.BOTTLENECK),
    Technique.KV_CACHE: (Planner.KV_CAPACITY,),
    Technique.SPECULATIVE_DECODING: (Planner.SPECULATION, Planner.DECODE_ROOFLINE),
}


def pages(atlas: Atlas) -> Iterator[Page]:
    """Write the page of planners."""
    views = [seen for scope in atlas.scopes if (seen := atlas.view(scope)).text]
    intro = paragraphs(
        span(
            text(
                "What follows by arithmetic from a model's shape, a device and what was measured. A range stands for what the "
                "inputs leave open; a result that lacks an input names the field that would fill it, and is not guessed."
            ),
            "lead",
        ),
        text("What one setting would move, before it is touched:"),
        fenced("python -m gen whatif SERVICE CONTROL=VALUE", "sh"),
        legend(HERE),
    )
    sections = [_section(atlas, planner, views) for planner in Planner]
    yield Page(
        path=HERE,
        title="Planners",
        body=paragraphs(intro, *sections),
        trail=(("Matrix", "index.md"),),
        description="KV capacity, decode limit, drafts, splitting and bottlenecks, worked out for each service",
    )


def place(planner: Planner, spot: Spot) -> str:
    """Address one service within one planner's section."""
    return f"{HERE}#{planner.value}-{slug(spot.name if spot.scope == FLEET else f'{spot.scope} {spot.name}')}"


def named(spot: Spot) -> str:
    """Name a service as `python -m gen whatif` takes it."""
    return spot.name if spot.scope == FLEET else EMBEDDED


def of_service(atlas: Atlas, spot: Spot) -> tuple[Plan, ...]:
    """Give what every planner makes of one text service; nothing for any other."""
    return atlas.plans.get(spot, ())


def of_technique(technique: Technique, here: str) -> Markdown:
    """Link to the planners that bear on a technique."""
    links = [link(text(TITLES[one]), relative(f"{HERE}#{one.value}", here)) for one in _BEARING.get(technique, ())]
    return line(text("Worked out by the planners:"), line(*links, by=", ")) if links else NOTHING


def _section(atlas: Atlas, planner: Planner, views: Sequence[View]) -> Markdown:
    plans = {seen.scope: _of(atlas, planner, seen) for seen in views}
    sources = dict.fromkeys(source for some in plans.values() for _, plan in some for source in plan.sources)
    notes = dict.fromkeys(note for some in plans.values() for _, plan in some for note in plan.notes)
    return paragraphs(
        heading(2, text(TITLES[planner]), planner.value),
        sentence(_ABOUT[planner]),
        line(*(code(formula) for formula in _FORMULAS[planner]), by="<br>"),
        span(line(text("Sources:"), line(*(atlas.source(HERE, source) for source in sources), by=", ")), "meta")
        if sources
        else NOTHING,
        *(_scope(atlas, planner, seen, plans[seen.scope]) for seen in views),
        *(span(sentence(note), "note") for note in notes),
    )


def _of(atlas: Atlas, planner: Planner, seen: View) -> list[tuple[ServiceView, Plan]]:
    """Give one planner's plan of each text service of a scope."""
    found = ((service, of_service(atlas, Spot(scope=seen.scope, name=service.name))) for service in seen.text)
    return [(service, next(one for one in plans if one.planner is planner)) for service, plans in found]


def _scope(atlas: Atlas, planner: Planner, seen: View, plans: Sequence[tuple[ServiceView, Plan]]) -> Markdown:
    name = text(atlas.corpus.fleet.name if seen.scope == FLEET else atlas.client_alias(seen.scope))
    badge = NOTHING if seen.scope == FLEET else span(text("local"), "badge")
    return paragraphs(
        heading(3, line(name, badge), f"{planner.value}-{scope_anchor(seen.scope)}-scope"),
        plan_pictures.of_planner(
            planner, [(service, of_service(atlas, Spot(scope=seen.scope, name=service.name))) for service in seen.text]
        ),
        _paths(planner, seen),
        _table(atlas, planner, seen, plans),
    )


def _table(atlas: Atlas, planner: Planner, seen: View, plans: Sequence[tuple[ServiceView, Plan]]) -> Markdown:
    """Show what could be worked out, and fold away what lacks an input."""
    done = [pair for pair in plans if pair[1].worked]
    dark = [pair for pair in plans if not pair[1].worked]
    titles = listing(service.title for service, _ in dark)
    parts = [_rows(atlas, planner, seen, done)] if done else []
    if dark:
        label = text(f"Cannot be worked out yet, and what is missing: {titles}")
        parts.append(details(label, _rows(atlas, planner, seen, dark), "data"))
    return paragraphs(*parts)


def _rows(atlas: Atlas, planner: Planner, seen: View, plans: Sequence[tuple[ServiceView, Plan]]) -> Markdown:
    rows = []
    for service, plan in plans:
        spot = Spot(scope=seen.scope, name=service.name)
        rows.append(
            (
                line(anchor(place(planner, spot).partition("#")[2]), atlas.service(HERE, spot)),
                line(*(line(text(f"{one.name}:"), _span(one.span)) for one in plan.worked), by="<br>")
                or span(text("cannot be worked out"), "absent"),
                line(*(_given(atlas, one) for one in plan.given), by="<br>") or span(text("nothing"), "absent"),
                line(*_gaps(plan), by="<br>") or span(text("nothing"), "ok"),
            )
        )
    return table(columns("Service", "Result", "From", "Missing"), rows, Layout.STACK, "plans")


def _gaps(plan: Plan) -> Iterator[Markdown]:
    """Name what is missing, together where one thing would fill it."""
    for fill in dict.fromkeys(gap.fill for gap in plan.gaps):
        names = listing(gap.name for gap in plan.gaps if gap.fill == fill)
        yield line(text(names), span(text(fill), "question"))


def _span(value: Span) -> Markdown:
    return span(text(value.said()), "figure")


def _given(atlas: Atlas, one: Given) -> Markdown:
    where = atlas.run(HERE, one.run, text("run")) if one.run else _where(atlas, one.source)
    size = text(f"n = {one.samples}") if one.samples > 1 else NOTHING
    when = dated(_day(atlas, one), atlas.today, age_limit(one.known, atlas.corpus.fleet.policies.freshness))
    return line(text(f"{one.name}:"), _span(one.span), known(one.known), span(line(size, when, where), "note"))


def _day(atlas: Atlas, one: Given) -> date:
    """Date an input: by itself, else by its run or its source, else by the inventory that declares it."""
    if one.day is not None:
        return one.day
    if one.run in atlas.by_id:
        return atlas.by_id[one.run].date
    source = atlas.corpus.knowledge.sources.get(one.source)
    return source.checked if source else atlas.corpus.fleet.as_of


def _where(atlas: Atlas, source: str) -> Markdown:
    return atlas.source(HERE, source) if source in atlas.corpus.knowledge.sources else text(source)


def _paths(planner: Planner, seen: View) -> Markdown:
    """Show the tree of a planner that has one, once for all services that take the same way."""
    if planner is Planner.DISAGGREGATION:
        path = disaggregation.decide(seen)
        return paragraphs(sentence(path.said()), tree(path), _order())
    if planner is Planner.PARALLELISM:
        return _grouped((service, parallelism.decide(seen, service)) for service in seen.text)
    if planner is Planner.BOTTLENECK:
        return _grouped((service, bottleneck.decide(service)) for service in seen.text)
    return NOTHING


def _order() -> Markdown:
    return span(
        text("The source lists what makes splitting worth wanting first. Here what rules it out is asked before that."), "note"
    )


def _grouped(found: Iterable[tuple[ServiceView, Path]]) -> Markdown:
    groups: dict[tuple[object, ...], tuple[list[str], Path]] = {}
    for service, path in found:
        key = tuple((question.name, answer.reply, answer.because) for question, answer in path.steps)
        groups.setdefault(key, ([], path))[0].append(service.title)
    return paragraphs(
        bullets(line(text(f"{listing(titles)}:"), sentence(path.said())) for titles, path in groups.values()),
        *(details(text(f"The tree and the path of {listing(titles)}"), tree(path), "data") for titles, path in groups.values()),
    )
