"""What weights and KV pool leave of the memory of each card that a service may run on."""

from __future__ import annotations

from dataclasses import dataclass

from gen.planners.kv_capacity import GIB, pool_of
from gen.planners.model import shape_of
from gen.planners.plan import Gap, Given, Span, Worked, derived, exactly
from gen.view import ServiceView, View
from probes.evidence import ProvenanceKind

NEEDED, LEFT = "memory for weights and KV pool", "memory left on"
FORMULA = "memory of the card - weights - KV pool; buffers of the runtime come off as well"


@dataclass(frozen=True, kw_only=True)
class Room:
    """`left` is by the name of the card; negative where it does not fit."""

    given: tuple[Given, ...]
    needed: Span | None
    left: tuple[tuple[str, Span], ...]
    gaps: tuple[Gap, ...]
    sources: tuple[str, ...]

    @property
    def worked(self) -> tuple[Worked, ...]:
        """Write the room as results."""
        needed = () if self.needed is None else (Worked(name=NEEDED, span=self.needed, formula="weights + KV pool"),)
        return (*needed, *(Worked(name=f"{LEFT} {card}", span=span, formula=FORMULA) for card, span in self.left))


def room(view: View, service: ServiceView) -> Room:
    """Add up what a service keeps on its card, and take it off each card that it may run on."""
    weights, pool = shape_of(service).weight_bytes, pool_of(view, service)
    cards = {card.title: card for card in view.cards_known(service)}
    gaps = []
    if weights is None:
        gaps.append(Gap(name="bytes of the weights", fill=f"services.{service.name}.model.parameters and weight_precision"))
    if isinstance(pool, Gap):
        gaps.append(pool)
    if not cards:
        fill = "none here is known by its maker's figures" if view.local else f"services.{service.name}.device names the card"
        gaps.append(Gap(name="memory of the card", fill=fill))
    kept = tuple(one for one in (weights, pool) if isinstance(one, Given))
    sizes = tuple(
        Given(
            name=f"memory of {title}",
            span=exactly(card.memory_gib * GIB, "B"),
            known=ProvenanceKind.DOCUMENTED,
            source=card.source,
        )
        for title, card in cards.items()
    )
    needed = derived("B", lambda one, other: one + other, *(one.span for one in kept)) if len(kept) == 2 else None
    left = [
        (title, derived("B", lambda memory, used: memory - used, size.span, needed))
        for title, size in zip(cards, sizes, strict=True)
        if needed is not None
    ]
    return Room(
        given=kept + sizes,
        needed=needed,
        left=tuple(left),
        gaps=tuple(gaps),
        sources=tuple(card.source for card in cards.values()),
    )
