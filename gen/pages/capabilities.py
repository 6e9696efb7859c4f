"""What a device or an engine accepts, as shown by asking it to do the thing."""

from __future__ import annotations

from collections.abc import Sequence

from gen.markdown import Markdown, code, line, sifted, span, text
from gen.pages.marks import chip
from gen.tables import Layout, columns, table
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Capability, CapabilityState

_MEANING = {
    CapabilityState.REFUSED: "the runtime said no",
    CapabilityState.ACCEPTED: "taken; no effect shown",
    CapabilityState.INERT: "taken, and shown to change nothing",
    CapabilityState.EFFECTIVE: "its effect was seen",
    CapabilityState.FAILED: "the attempt broke",
    CapabilityState.SKIPPED: "not tried this time",
}


def capability_table(capabilities: Sequence[Capability]) -> Markdown:
    """Show each request with what came of it, in the runtime's own words."""
    body = [
        (
            text(one.name),
            line(sifted(chip(one.state), facet=one.state.value), span(text(_MEANING[one.state]), "note"), by="<br>"),
            _asked(one),
            text(one.effect) if one.effect else span(text("none seen"), "absent"),
            _words(one),
            text(TECHNIQUE_TITLES[one.technique]) if one.technique else span(text("none of the seven"), "note"),
        )
        for one in capabilities
    ]
    head = columns("Capability", "Result", "Asked for", "Effect", "In its words", "Technique")
    return table(head, body, Layout.CARDS, "capabilities", facets=("Result", "Technique"))


def _asked(one: Capability) -> Markdown:
    """Show what was asked for, and below it what a document says about that."""
    asked = code(one.requested)
    return line(asked, span(text(f"Documented: {one.documented}."), "note"), by="<br>") if one.documented else asked


def _words(one: Capability) -> Markdown:
    """Quote the runtime; what was skipped has only a reason."""
    if one.state is CapabilityState.SKIPPED:
        return span(text(one.words), "note")
    return span(text(one.words), "words") if one.words else span(text("the runtime said nothing"), "note")
