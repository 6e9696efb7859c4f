"""The command that tells a reviewer what a change does."""

from __future__ import annotations

from pathlib import Path

from gen.commands.base import laid_out
from gen.commands.call import Call, Outcome
from gen.corpus import Corpus, read_corpus
from gen.knowledge import Knowledge, load_knowledge
from gen.review import review
from gen.review_text import as_markdown
from probes.errors import InputError, Problem


def review_change(call: Call) -> Outcome:
    """Write one Markdown summary of what differs between a base and this checkout."""
    after = read_corpus(call.root)
    with laid_out(call.root, call.arguments.base) as base:
        before, notes = _read_base(base.folder, base.label)
        found = review(before, after, call.today)
    runs = {run.id: run for run in after.runs}
    text = as_markdown(found, call.arguments.base, runs, (f"The base is {base.label}", *notes))
    return Outcome(shown=(text.rstrip("\n"),))


def _read_base(folder: Path, label: str) -> tuple[Corpus, tuple[str, ...]]:
    """Read the base with the knowledge of its own time, where today's program still understands it.

    Raises:
        InputError: its inventory cannot be read.
    """
    known = folder / "gen" / "knowledge"
    if not known.is_dir():
        return _corpus(folder, label), ("Both sides are judged by the knowledge of this checkout",)
    try:
        knowledge = load_knowledge(known)
    except InputError:
        note = "The knowledge of the base is written in another form, so both sides are judged by that of this checkout"
        return _corpus(folder, label), (note,)
    return _corpus(folder, label, knowledge), ()


def _corpus(folder: Path, label: str, knowledge: Knowledge | None = None) -> Corpus:
    try:
        return read_corpus(folder, knowledge)
    except InputError as exc:
        problems = [Problem(place=f"base {label}: {one.place}", found=one.found, expected=one.expected) for one in exc.problems]
        raise InputError(problems) from exc
