"""Small task suites that tell whether the answers of a chat endpoint are still right."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probes.quality.agreement import Agreement, between, with_itself
    from probes.quality.asking import Limits, measure
    from probes.quality.chat import Chat, HttpChat, Reply, Trouble
    from probes.quality.library import suites
    from probes.quality.result import Marked, Outcome, Quality, SuiteScore
    from probes.quality.task import Suite, Task

__all__ = [
    "Agreement",
    "Chat",
    "HttpChat",
    "Limits",
    "Marked",
    "Outcome",
    "Quality",
    "Reply",
    "Suite",
    "SuiteScore",
    "Task",
    "Trouble",
    "between",
    "measure",
    "suites",
    "with_itself",
]

_HOMES = {
    "agreement": ("Agreement", "between", "with_itself"),
    "asking": ("Limits", "measure"),
    "chat": ("Chat", "HttpChat", "Reply", "Trouble"),
    "library": ("suites",),
    "result": ("Marked", "Outcome", "Quality", "SuiteScore"),
    "task": ("Suite", "Task"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is used: the words of the command line need neither HTTP nor JSON schemas."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"probes.quality.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
