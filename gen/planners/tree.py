"""Decision trees: questions with yes and no, the answers that are known, and the path that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from probes.evidence import ProvenanceKind


class Reply(StrEnum):
    """What is known of a question."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A reply with its reason; for an unknown one the reason is what would tell it."""

    reply: Reply
    because: str
    known: ProvenanceKind | None = None


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """Where a tree ends: a word for programs and the advice for people."""

    name: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """A place where a tree parts. `name` finds the answer."""

    name: str
    text: str
    yes: Question | Leaf
    no: Question | Leaf


@dataclass(frozen=True, kw_only=True)
class Path:
    """The way through a tree: what was asked and answered, and the leaf, or the leaves that stay open."""

    tree: Question
    steps: tuple[tuple[Question, Answer], ...]
    leaf: Leaf | None
    open: tuple[Leaf, ...]

    def said(self) -> str:
        """Say in one sentence where the way led."""
        if self.leaf is not None:
            last = self.steps[-1][1]
            return f"{self.leaf.advice}: {last.because}."
        question, answer = self.steps[-1]
        return f"Open at {question.text!r}: {answer.because}."


def walk(tree: Question, answers: Mapping[str, Answer]) -> Path:
    """Follow the answers from the root; an unknown one ends the walk unless both ways end alike.

    Raises:
        KeyError: a question on the way has no answer at all; an open one is answered with unknown.
    """
    steps: list[tuple[Question, Answer]] = []
    at: Question | Leaf = tree
    while isinstance(at, Question):
        answer = answers[at.name]
        steps.append((at, answer))
        if answer.reply is Reply.UNKNOWN:
            ends = tuple(dict.fromkeys(leaves(at)))
            return Path(tree=tree, steps=tuple(steps), leaf=ends[0] if len(ends) == 1 else None, open=ends)
        at = at.yes if answer.reply is Reply.YES else at.no
    return Path(tree=tree, steps=tuple(steps), leaf=at, open=(at,))


def leaves(tree: Question | Leaf) -> Iterator[Leaf]:
    """Give every end below a place, from yes to no."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        yield from leaves(tree.yes)
        yield from leaves(tree.no)
