"""The suites that come with the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

from probes.quality.corpus import parse_tasks
from probes.quality.task import Suite
from probes.quality.titles import TITLES


@cache
def suites() -> tuple[Suite, ...]:
    """Give the built-in suites: exact, json, tools, instruction, retrieval, and open, which is not judged."""
    return tuple(_suite(name, title) for name, title in TITLES.items())


def _suite(name: str, title: str) -> Suite:
    place = f"tasks/{name}.jsonl"
    text = resources.files("probes.quality").joinpath(place).read_text(encoding="utf-8")
    return Suite(name=name, title=title, tasks=parse_tasks(text, place, name))
