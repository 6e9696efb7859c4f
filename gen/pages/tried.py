"""Measurements beside a documented price: what a probe saw when it did what a document rules out or warns of."""

from __future__ import annotations

from collections.abc import Iterator

from gen.knowledge.schema import KnownConflict
from gen.markdown import NOTHING, Markdown, line, sentence, span, text
from gen.pages.atlas import Atlas
from gen.pages.capabilities import capability_place
from gen.pages.marks import chip, dated
from gen.techniques.wording import speaks_for
from probes.evidence import Capability, CapabilityState, Run


def tried(atlas: Atlas, conflict: KnownConflict, here: str) -> Markdown:
    """Show each trial with the device, runtime and version that it speaks for; neither side silently wins."""
    found = list(_trials(atlas, conflict))
    if not found:
        return NOTHING
    limit = atlas.corpus.fleet.policies.freshness.evidence_days
    items = (
        line(
            chip(one.state, capability_place(atlas, run, one, here)),
            text(f"{one.name} {one.requested}"),
            span(sentence(one.effect or one.words), "words") if one.effect or one.words else NOTHING,
            span(
                line(text(speaks_for(run)), dated(run.date, atlas.today, limit), atlas.run(here, run.id, text("run"))), "note"
            ),
        )
        for run, one in found
    )
    return line(*items, by="<br>")


def _trials(atlas: Atlas, conflict: KnownConflict) -> Iterator[tuple[Run, Capability]]:
    """Find the newest trial of each device and release."""
    seen: set[tuple[str, str, str]] = set()
    for run in atlas.proving_runs:
        whom = speaks_for(run)
        for one in run.capabilities:
            meant = any(one.name == trial.name and trial.asked in one.requested for trial in conflict.tried)
            if meant and one.state is not CapabilityState.SKIPPED and (key := (whom, one.name, one.requested)) not in seen:
                seen.add(key)
                yield run, one
