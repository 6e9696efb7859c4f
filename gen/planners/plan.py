"""What a planner is given and what it gives back: inputs and where they stand, results with bounds, and what is missing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from gen.spread import quantity, spread
from probes.evidence import Metric, ProvenanceKind


class Planner(StrEnum):
    """The planners, in the order of their page; the words are anchors."""

    KV_CAPACITY = "kv-capacity"
    DECODE_ROOFLINE = "decode-roofline"
    SPECULATION = "speculation"
    DISAGGREGATION = "disaggregation"
    PARALLELISM = "parallelism"
    BOTTLENECK = "bottleneck"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A value between the bounds that its inputs allow."""

    low: float
    value: float
    high: float
    unit: str

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low <= value <= high, not {self.low}, {self.value}, {self.high}")

    @property
    def exact(self) -> bool:
        """Whether nothing is open about it."""
        return self.low == self.high

    def said(self) -> str:
        """Write it with its unit, and with its bounds where it has any."""
        if self.exact:
            return quantity(self.value, self.unit)
        return f"{quantity(self.value, self.unit)} ({quantity(self.low, self.unit)} to {quantity(self.high, self.unit)})"


def exactly(value: float, unit: str) -> Span:
    """Give a value about which nothing is open."""
    return Span(low=value, value=value, high=value, unit=unit)


def between(low: float, high: float, unit: str) -> Span:
    """Give the middle of two bounds of which any value may be the true one."""
    return Span(low=low, value=(low + high) / 2, high=high, unit=unit)


def of_metric(metric: Metric | None) -> Span | None:
    """Give the median of samples with its bounds; None where there are none."""
    if metric is None or not metric.samples:
        return None
    one = spread(metric.samples, metric.per)
    return Span(low=one.low, value=one.median, high=one.high, unit=metric.unit)


def derived(unit: str, formula: Callable[..., float], *spans: Span) -> Span:
    """Carry bounds through a formula that is monotone in each of its inputs, as all of these planners are."""
    corners = [formula(*values) for values in itertools.product(*((span.low, span.high) for span in spans))]
    middle = formula(*(span.value for span in spans))
    return Span(low=min(corners), value=min(max(middle, min(corners)), max(corners)), high=max(corners), unit=unit)


def whole(span: Span) -> Span:
    """Round down to whole things: half a token is none."""
    return Span(low=math.floor(span.low), value=math.floor(span.value), high=math.floor(span.high), unit=span.unit)


@dataclass(frozen=True, kw_only=True)
class Given:
    """One input. `source` says where it stands, `run` which evidence it is.

    `samples` is how many a measured median rests on, 0 for what is no median. `day` is when it became known, None for
    what is as old as its run, its source or the inventory.
    """

    name: str
    span: Span
    known: ProvenanceKind
    source: str
    run: str = ""
    samples: int = 0
    day: date | None = None


@dataclass(frozen=True, kw_only=True)
class Worked:
    """One result and the formula it came from."""

    name: str
    span: Span
    formula: str


@dataclass(frozen=True, kw_only=True)
class Gap:
    """An input that nobody has told, and what would tell it."""

    name: str
    fill: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a planner makes of one subject: a service or a device. Without a result there is at least one gap.

    `lead` begins the name of the result that says most in one line.
    """

    planner: Planner
    subject: str
    given: tuple[Given, ...] = ()
    worked: tuple[Worked, ...] = ()
    gaps: tuple[Gap, ...] = ()
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lead: str = ""

    def __post_init__(self) -> None:
        if not self.worked and not self.gaps:
            raise ValueError(f"{self.planner} of {self.subject}: a result, or what is missing for one")

    @property
    def headline(self) -> Worked | None:
        """Give the result that says most, or the first one."""
        return next((one for one in self.worked if one.name.startswith(self.lead)), next(iter(self.worked), None))

    def result(self, name: str) -> Span | None:
        """Find a result by its name."""
        return next((one.span for one in self.worked if one.name == name), None)
