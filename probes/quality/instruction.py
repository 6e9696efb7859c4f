"""Instructions that code can check: what was counted, and which rules an answer breaks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from probes.quality.task import Bounds, Instruction

_SENTENCE: Final = re.compile(r"(?<![.!?…。！？])[.!?…。！？]+[\"'”’)\]*_]*(?=\s|\Z)")
_BULLET: Final = re.compile(r"^[ \t]*[-*•][ \t]+\S", re.MULTILINE)


def broken(check: Instruction, answer: str) -> Iterator[str]:
    """Say which rules are broken, one sentence each."""
    counts = {
        "words": len(answer.split()),
        "sentences": _sentences(answer),
        "lines": sum(bool(line.strip()) for line in answer.splitlines()),
        "bullets": len(_BULLET.findall(answer)),
        "characters": len(answer),
    }
    for what, count in counts.items():
        bounds: Bounds | None = getattr(check, what)
        if bounds is not None and not _within(bounds, count):
            yield f"has {count} {what}, not {_range(bounds)}"
    folded = _folded(answer)
    for word in check.must_contain or ():
        if not _holds(folded, word):
            yield f"lacks {word!r}"
    for word in check.must_not_contain or ():
        if _holds(folded, word):
            yield f"holds {word!r}"
    if found := sorted(set(_folded(check.forbidden_characters or "")) & set(folded)):
        yield f"holds {', '.join(map(repr, found))}"
    if check.starts_with is not None and not folded.startswith(_folded(check.starts_with)):
        yield f"does not begin with {check.starts_with!r}"
    if check.ends_with is not None and not folded.endswith(_folded(check.ends_with)):
        yield f"does not end with {check.ends_with!r}"
    if check.letters is not None:
        cased = [char for char in answer if char.isupper() or char.islower()]
        if not cased or any(char.isupper() != (check.letters == "upper") for char in cased):
            yield f"is not all in {check.letters} case"


def _sentences(answer: str) -> int:
    """Count ends of sentences, and a last one without its mark."""
    ends = list(_SENTENCE.finditer(answer))
    rest = answer[ends[-1].end() :] if ends else answer
    return len(ends) + bool(re.search(r"\w", rest))


def _within(bounds: Bounds, count: int) -> bool:
    return (bounds.at_least is None or count >= bounds.at_least) and (bounds.at_most is None or count <= bounds.at_most)


def _range(bounds: Bounds) -> str:
    if bounds.at_least == bounds.at_most:
        return f"{bounds.at_most}"
    if bounds.at_least is None:
        return f"at most {bounds.at_most}"
    return f"at least {bounds.at_least}" if bounds.at_most is None else f"{bounds.at_least} to {bounds.at_most}"


def _holds(folded: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(_folded(word))}(?!\w)", folded))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
