"""A decision tree as a nested list, with the path that was taken in words as well as in weight."""

from __future__ import annotations

from collections.abc import Iterator

from gen.markdown import NOTHING, Markdown, block, line, sentence, span, text
from gen.pages.marks import known
from gen.planners.tree import Answer, Leaf, Path, Question, Reply


def tree(path: Path) -> Markdown:
    """Show the whole tree; each question that was asked carries its answer and why."""
    answers = {question.name: answer for question, answer in path.steps}
    taken = {id(question) for question, _ in path.steps} | ({id(path.leaf)} if path.leaf else set())
    rows = "\n".join(_rows(path.tree, answers, taken, 0, NOTHING))
    return block(Markdown(rows), "tree")


def _rows(at: Question | Leaf, answers: dict[str, Answer], taken: set[int], depth: int, prefix: Markdown) -> Iterator[str]:
    """Write a place and what lies below it, four blanks deeper for each question."""
    on_path = id(at) in taken and bool(prefix is NOTHING or "taken" in prefix)
    words = sentence(at.advice) if isinstance(at, Leaf) else text(at.text)
    answer = None if isinstance(at, Leaf) or not on_path else answers.get(at.name)
    shown = span(words, "asked") if on_path else words
    yield f"{'    ' * depth}- {line(prefix, shown, _because(answer))}"
    if isinstance(at, Question):
        for reply, below in ((Reply.YES, at.yes), (Reply.NO, at.no)):
            here = answer is not None and answer.reply is reply
            mark = span(text(f"{reply.value}, taken:" if here else f"{reply.value}:"), "reply", *(["taken"] if here else []))
            yield from _rows(below, answers, taken, depth + 1, mark)


def _because(answer: Answer | None) -> Markdown:
    if answer is None:
        return NOTHING
    open_ = span(text("open"), "absent") if answer.reply is Reply.UNKNOWN else NOTHING
    how = known(answer.known) if answer.known else NOTHING
    return span(line(open_, sentence(answer.because), how), "note")
