"""Prompts as token ids: exact in length, the same on every machine, and free of any tokenizer."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence

# Every language model's vocabulary holds these ids, and its special tokens lie elsewhere.
_FIRST, _LAST = 300, 2300


def token_ids(name: str, length: int) -> tuple[int, ...]:
    """Draw `length` ids for a name; prompts of different names differ from their first block on."""
    source = random.Random(name)  # noqa: S311
    return tuple(source.randint(_FIRST, _LAST) for _ in range(length))


def prompt_set_sha256(prompts: Sequence[Sequence[int]]) -> str:
    """Identify a set of prompts in their order."""
    return hashlib.sha256(json.dumps([list(prompt) for prompt in prompts]).encode()).hexdigest()
