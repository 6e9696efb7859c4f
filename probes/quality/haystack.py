"""Filler text for long prompts: plain sentences that no other task shares, with one sentence hidden among them."""

from __future__ import annotations

import random
from typing import Final

CHARACTERS_PER_TOKEN: Final = 4.2
_WHO: Final = (
    "The gardener", "A young engineer", "The night watch", "Our neighbour", "The baker", "A retired captain", "The librarian",
    "The cellist", "A travelling nurse", "The clockmaker", "A shepherd", "The ferry pilot", "The archivist", "A glass painter",
)  # fmt: skip
_DID: Final = (
    "repaired", "described", "painted", "measured", "carried", "polished", "cleaned", "sketched", "sorted", "borrowed",
    "wrapped", "photographed", "examined", "moved",
)  # fmt: skip
_WHAT: Final = (
    "a wooden gate", "two copper kettles", "the old harbour map", "a basket of pears", "the weather log", "a broken lantern",
    "some woollen blankets", "the station clock", "a box of chess pieces", "the northern fence", "three letters",
    "a bicycle wheel", "the bell rope", "a set of drawings",
)  # fmt: skip
_WHERE: Final = (
    "near the mill", "behind the town hall", "on the upper deck", "by the river bend", "under the stone arch",
    "in the reading room", "beside the orchard wall", "at the edge of the market", "along the coast road",
    "in front of the bakery", "above the stables", "close to the lighthouse",
)  # fmt: skip
_WHEN: Final = (
    "before breakfast", "on a quiet Tuesday", "after the first snow", "while it rained", "late in the evening",
    "during the fair", "as the tide went out", "early in spring", "without any hurry", "when the bells rang",
)  # fmt: skip


def haystack(seed: str, tokens: int, depth: float, needle: str) -> str:
    """Write about `tokens` tokens of filler, the same for the same seed, with the needle at `depth` of it (0 first, 1 last)."""
    chooser = random.Random(seed)  # noqa: S311 - text, not a secret
    sentences: list[str] = []
    length, wanted = 0, tokens * CHARACTERS_PER_TOKEN - len(needle)
    while length < wanted:
        parts = [chooser.choice(words) for words in (_WHO, _DID, _WHAT, _WHERE, _WHEN)]
        sentences.append(f"{' '.join(parts)}.")
        length += len(sentences[-1]) + 1
    sentences.insert(round(depth * len(sentences)), needle)
    return " ".join(sentences)
