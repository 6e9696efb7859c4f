"""One runtime's words: what to ask it, how to recognise it, and how to read what it answered."""

from __future__ import annotations

from abc import ABC, abstractmethod

from probes.endpoints.fault import Fault
from probes.endpoints.live import Quantity
from probes.endpoints.metrics import Scrape, scrape
from probes.endpoints.reading import METRICS, Reading, Replies
from probes.endpoints.wire import Reply
from probes.fleet import RuntimeName


class Adapter(ABC):
    """Everything here is a function of answers; an adapter never asks by itself, and names no path that changes a server.

    `identity` are the paths that show who answers where the model list does not, `paths` what else to ask
    once it is known. `lists_models` tells runtimes that answer with a model list of the OpenAI shape from those that
    do not. `metrics` is where the load figures are, "" for nowhere; `metrics_hint` says how they are switched on.
    Answers of `private` paths carry keys or other people's words and are not kept. `prefix_control` is the
    switch that cached prompt tokens prove to be on.
    """

    runtime: RuntimeName
    identity: tuple[str, ...] = ()
    paths: tuple[str, ...] = (METRICS,)
    lists_models: bool = True
    metrics: str = METRICS
    metrics_hint: str = ""
    private: frozenset[str] = frozenset()
    quantities: tuple[Quantity, ...] = ()
    prefix_control: str | None = None

    @abstractmethod
    def recognises(self, replies: Replies) -> bool:
        """Tell by the shape of bodies, never by a status: some servers answer 200 to any path."""

    @abstractmethod
    def read(self, replies: Replies, api: str) -> Reading:
        """Read the answers; `api` is the prefix that the address names, or ''."""

    def asks(self, replies: Replies) -> tuple[str, ...]:  # noqa: ARG002 (for those that ask in steps)
        """Name the paths of `identity` that are worth asking after these answers."""
        return self.identity

    def questions(self, replies: Replies) -> tuple[str, ...]:  # noqa: ARG002 (for those that ask in steps)
        """Name what to ask once recognised, in order; called again after each answer until it names nothing new."""
        return self.paths

    def scrape(self, reply: Reply | Fault) -> Scrape:
        """Read the answer of the path of its load figures."""
        return scrape(reply)
