"""A value read from a file or an answer, with the place that tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Told(Generic[T]):
    """A value and the place that tells it."""

    value: T
    where: str
