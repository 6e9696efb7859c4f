"""What the load asks: prompts of four shapes, each unique at its first word unless sharing is wanted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice
from typing import Final

_MARK: Final = "<mark>"
_SENTENCES: Final = (
    "The harbour office counts the boats that leave before sunrise and those that come back after dark.",
    "A pump in the cellar runs for two minutes in every hour and is heard on the third floor.",
    "Nine of the twelve lamps along the pier were replaced in spring, and the others flicker in the rain.",
    "The map in the hall shows a road that was planned forty years ago and never built.",
    "When the tide is low, a second path appears between the rocks and shortens the way to the lighthouse.",
    "The baker keeps a list of orders on the back of a calendar and crosses them out in green.",
    "Each winter the ferry stops for a week, and letters wait in a wooden box at the landing.",
    "Somebody painted the numbers of the houses on the kerb so that they can be read under snow.",
    "The archive holds three photographs of the old bridge, and two of them are dated wrongly.",
    "A weather station on the hill sends its readings every ten minutes unless the wind is too strong.",
    "Children call the narrow street behind the market the river, because it floods first.",
    "The clock above the station has been four minutes fast for as long as anyone remembers.",
)
_INTRODUCTION: Final = "You answer questions about a small town by the sea. Be brief and name the passage you rely on. "


class PromptKind(StrEnum):
    """The shapes of prompts, by what they cost: about 30, 250, 2000 and 1200 tokens."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"
    RAG = "rag"


@dataclass(frozen=True, kw_only=True)
class PromptSet:
    """The prompts of one run. `shared` of them, a share of 0 to 1, begin with one common text."""

    kind: PromptKind = PromptKind.SHORT
    shared: float = 0.0

    @property
    def unique(self) -> str:
        """The prompt whose first word is its mark, so that no cache knows any of it."""
        return f"[{_MARK}] {_text(self.kind)} {_question(self.kind)}"

    @property
    def sharing(self) -> str:
        """The prompt whose mark comes after the common text."""
        return f"{_text(self.kind)} [{_MARK}] {_question(self.kind)}"

    @property
    def sha256(self) -> str:
        """Identify what is asked, apart from the marks: equal hashes mean comparable prompts."""
        whole = json.dumps([self.unique, self.sharing, round(self.shared, 6)])
        return hashlib.sha256(whole.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Template:
    """The body of a request, cut where its mark goes."""

    before: bytes
    after: bytes

    def fill(self, mark: str) -> bytes:
        """Write the body with a mark of letters and digits."""
        return self.before + mark.encode() + self.after


def templates(
    prompts: PromptSet, *, run_mark: str, model: str, max_tokens: int, usage: bool, extra: str = ""
) -> list[Template]:
    """Give the bodies of a run: the unique one and the one that shares its beginning.

    `run_mark` sets the common text apart from that of earlier runs, whose prefix the server may still hold.
    `extra` is a JSON object of further fields, `{"ignore_eos": true}`.
    """
    bodies = []
    for prompt in (prompts.unique, f"[{run_mark}] {prompts.sharing}"):
        document = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
        }
        if usage:
            document["stream_options"] = {"include_usage": True}
        document |= json.loads(extra) if extra else {}
        before, _, after = json.dumps(document).partition(_MARK)
        bodies.append(Template(before=before.encode(), after=after.encode()))
    return bodies


def _text(kind: PromptKind) -> str:
    if kind is PromptKind.SHORT:
        return _SENTENCES[0]
    if kind is PromptKind.RAG:
        passages = (" ".join(islice(cycle(_SENTENCES), 7 * n, 7 * n + 7)) for n in range(8))
        return _INTRODUCTION + "\n\n".join(f"Passage {n}: {text}" for n, text in enumerate(passages, 1)) + "\n\n"
    return " ".join(_sentences(12 if kind is PromptKind.MEDIUM else 96))


def _sentences(count: int) -> Iterator[str]:
    return islice(cycle(_SENTENCES), count)


def _question(kind: PromptKind) -> str:
    if kind is PromptKind.RAG:
        return "Question: which passage speaks of the bridge, and what is wrong there?"
    return "Go on with this account in plain sentences."
