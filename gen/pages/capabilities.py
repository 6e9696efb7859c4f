"""What a device or an engine accepts, as shown by asking it to do the thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gen.markdown import NOTHING, Markdown, anchor, code, line, link, sifted, span, text
from gen.pages.atlas import Atlas
from gen.pages.marks import chip
from gen.paths import names, relative
from gen.tables import Layout, columns, table
from gen.words import TECHNIQUE_TITLES
from probes.evidence import Capability, CapabilityState, Run, Technique

_MEANING = {
    CapabilityState.REFUSED: "the runtime said no",
    CapabilityState.ACCEPTED: "taken; no effect shown",
    CapabilityState.INERT: "taken, and shown to change nothing",
    CapabilityState.EFFECTIVE: "its effect was seen",
    CapabilityState.FAILED: "the attempt broke",
    CapabilityState.SKIPPED: "not tried this time",
}
# What says most about a device stands first.
_ORDER = (
    CapabilityState.EFFECTIVE,
    CapabilityState.INERT,
    CapabilityState.ACCEPTED,
    CapabilityState.REFUSED,
    CapabilityState.FAILED,
    CapabilityState.SKIPPED,
)
_OTHER = "none of the seven"


def capability_table(capabilities: Sequence[Capability], here: str, among: Sequence[Capability] = ()) -> Markdown:
    """Show each request with what came of it in the runtime's own words, technique by technique.

    `among` are all that the page shows, where it shows them in several tables: anchors stay apart.
    """
    marks = _anchors(among or capabilities)
    body = []
    for one in sorted(capabilities, key=_rank):
        # The same request twice in one run has one address, that of the first.
        mark = anchor(marks.pop(_key(one))) if _key(one) in marks else NOTHING
        result = line(sifted(chip(one.state), facet=one.state.value), span(text(_MEANING[one.state]), "note"), by="<br>")
        body.append((line(mark, _asked(one), by=""), result, _seen(one), _serves(one, here)))
    head = columns("Asked for", "Result", "Effect and words", "Technique")
    return table(head, body, Layout.CARDS, "capabilities", facets=("Result", "Technique"))


def capability_counts(capabilities: Sequence[Capability], here: str) -> Markdown:
    """Count what came of the requests, technique by technique, each count leading to the first row it stands for."""
    marks = _anchors(capabilities)
    groups: dict[Technique | None, list[Capability]] = {}
    for one in sorted(capabilities, key=_rank):
        groups.setdefault(one.technique, []).append(one)
    body = []
    for technique, found in groups.items():
        counts = Counter(one.state for one in found)
        first = {one.state: marks[_key(one)] for one in reversed(found)}
        told = (_count(counts[state], state, first[state]) for state in _ORDER if counts[state])
        body.append((_serves(found[0], here) if technique else text("Other"), line(*told, by=" ")))
    return table(columns("Technique", "What came of it"), body, Layout.CARDS, "counts pair-of-columns")


def capability_place(atlas: Atlas, run: Run, one: Capability, here: str) -> str:
    """Address the row of a capability on the page of its run; '' where the run has no page or does not hold it."""
    path, mark = atlas.run_paths.get(run.id), _anchors(run.capabilities).get(_key(one))
    return relative(f"{path}#{mark}", here) if path and mark else ""


def _anchors(capabilities: Sequence[Capability]) -> dict[str, str]:
    return {key: f"capability-{name}" for key, name in names(map(_key, capabilities)).items()}


def _key(one: Capability) -> str:
    return f"{one.name} {one.requested}"


def _rank(one: Capability) -> tuple[int, int]:
    techniques = list(Technique)
    return techniques.index(one.technique) if one.technique else len(techniques), _ORDER.index(one.state)


def _count(count: int, state: CapabilityState, mark: str) -> Markdown:
    return span(line(text(str(count)), chip(state, f"#{mark}")), "count")


def _asked(one: Capability) -> Markdown:
    """Show what was asked for, and below it what a document says about that."""
    asked = line(text(one.name), code(one.requested))
    return line(asked, span(text(f"Documented: {one.documented}."), "note"), by="<br>") if one.documented else asked


def _seen(one: Capability) -> Markdown:
    """Say what effect was seen, and quote the runtime; what was skipped has only a reason."""
    effect = text(one.effect) if one.effect else NOTHING
    if one.state is CapabilityState.SKIPPED:
        words = span(text(one.words), "note")
    elif one.words:
        words = span(text(one.words), "words")
    else:
        words = span(text("the runtime said nothing"), "note") if not one.effect else NOTHING
    return line(effect, words, by="<br>")


def _serves(one: Capability, here: str) -> Markdown:
    if one.technique is None:
        return span(text(_OTHER), "note")
    return link(text(TECHNIQUE_TITLES[one.technique]), relative(f"techniques/{one.technique.value}.md", here))
