"""Prometheus text from servers that may send anything: good samples kept, bad lines named."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from probes.endpoints.fault import Fault
from probes.endpoints.wire import Reply
from probes.load.untrusted import error_words, one_line

MAX_LINE_CHARACTERS: Final = 16384
MAX_LINES: Final = 40000
MAX_BAD_LINES: Final = 20
_NAMED: Final = 5
_NUMBERS: Final = re.compile(r"^(?:[^\s{]+\s|[^{]*\{.*\})\s*[-+.\w]+(?:\s+[-+.\w]+)?\s*$", re.ASCII | re.DOTALL)
_BASES_OF_CREATED = ("_total", "_count", "_sum", "_bucket")


class ScrapeState(StrEnum):
    """What came of asking for metrics."""

    READ = "read"
    NOT_ENABLED = "metrics not enabled"
    NOT_ALLOWED = "metrics need a key"
    NOT_METRICS = "not metrics"
    NOT_REACHABLE = "not reachable"
    FAILED = "failed"


_STATES = {
    200: ScrapeState.READ,
    **dict.fromkeys((401, 403), ScrapeState.NOT_ALLOWED),
    **dict.fromkeys((400, 404, 405, 501), ScrapeState.NOT_ENABLED),
}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One sample. `value` keeps whole numbers whole and is None for NaN and infinity."""

    name: str
    labels: Mapping[str, str]
    value: int | float | None


@dataclass(frozen=True, kw_only=True)
class BadLine:
    number: int
    text: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Scrape:
    """One reading of /metrics. `kinds` maps the name of a sample to counter, gauge, histogram or summary."""

    state: ScrapeState
    detail: str = ""
    samples: tuple[Sample, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    bad: tuple[BadLine, ...] = ()

    def total(self, name: str, **labels: str) -> int | float | None:
        """Add up a metric over all label sets that carry `labels`; None when there is no such number."""
        values = [sample.value for sample in self.named(name, **labels) if sample.value is not None]
        return sum(values) if values else None

    def named(self, name: str, **labels: str) -> tuple[Sample, ...]:
        """Give the samples of a name that carry `labels`."""
        return tuple(s for s in self.samples if s.name == name and all(s.labels.get(k) == v for k, v in labels.items()))


def scrape(reply: Reply | Fault) -> Scrape:
    """Read an answer to GET /metrics, or say whether metrics are off, guarded or broken.

    OVMS answers 400 'Invalid request URL' while its metrics are off, llama.cpp 501, others 404 or an
    empty 200; none of that means that the server is down.
    """
    if isinstance(reply, Fault):
        return Scrape(state=ScrapeState.NOT_REACHABLE, detail=reply.words)
    state = _STATES.get(reply.status, ScrapeState.FAILED)
    begin = reply.text.lstrip("\ufeff \t\r\n")[:1]
    if state is ScrapeState.READ and begin in {"", "<", "{", "["}:
        state = ScrapeState.NOT_METRICS if begin else ScrapeState.NOT_ENABLED
    if state is ScrapeState.READ:
        return parse(reply.text, openmetrics=reply.content_type == "application/openmetrics-text", whole=reply.whole)
    words = error_words(reply.document) or one_line(reply.text) or "an empty body"
    return Scrape(state=state, detail=f"HTTP {reply.status}: {words}")


def parse(text: str, *, openmetrics: bool = False, whole: bool = True) -> Scrape:
    """Read an exposition line by line with the Prometheus client's parser.

    The client refuses a whole body for one bad line, takes an exemplar for a timestamp and renames
    counters; given single samples without exemplars it does none of that. Both text formats share
    that grammar, so `openmetrics` only demands the closing `# EOF`. A body that HTTP did not frame
    (`whole` is False) may have lost its end, so its last line counts only with its line end.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    samples: list[Sample] = []
    kinds: dict[str, str] = {}
    bad: list[BadLine] = []
    if not whole and lines[-1].strip():
        bad.append(BadLine(number=len(lines), text=lines.pop()[:MAX_LINE_CHARACTERS], why="the body ended inside this line"))
    if openmetrics and "# EOF" not in lines[-3:]:
        bad.append(BadLine(number=len(lines), text="", why="no # EOF at the end: the body may be cut"))
    if len(lines) > MAX_LINES:
        bad.append(BadLine(number=MAX_LINES, text="", why=f"{len(lines)} lines; the rest was not read"))
    for number, line in enumerate(map(str.strip, lines[:MAX_LINES]), start=1):
        if line.startswith("#"):
            kinds |= _kind(line)
        elif line:
            try:
                samples.append(_sample(line))
            except (ValueError, IndexError) as exc:
                bad.append(
                    BadLine(number=number, text=line[:MAX_LINE_CHARACTERS], why=one_line(str(exc)) or type(exc).__name__)
                )
    names = {sample.name for sample in samples}
    kept = tuple(sample for sample in samples if not _is_created(sample.name, names))
    notes = [f"{len(bad)} of {len(lines)} lines could not be read"] if bad else []
    nothing = list(dict.fromkeys(sample.name for sample in kept if sample.value is None))
    if nothing:
        more = f" and {len(nothing) - _NAMED} more" if len(nothing) > _NAMED else ""
        notes.append(f"no finite number: {', '.join(nothing[:_NAMED])}{more}")
    return Scrape(
        state=ScrapeState.READ if kept else ScrapeState.NOT_METRICS,
        detail="; ".join(notes) if kept else f"no sample in {len(lines)} lines",
        samples=kept,
        kinds={sample.name: _kind_of(sample.name, kinds) for sample in kept},
        bad=tuple(bad[:MAX_BAD_LINES]),
    )


def ratio(part: float | None, whole: float | None) -> float | None:
    """Divide a part by its whole; None when nothing was counted or the part is larger, which no ratio can be."""
    if part is None or whole is None or whole <= 0 or not 0 <= part <= whole:
        return None
    return part / whole


def mean(total: float | None, count: float | None) -> float | None:
    """Give the mean behind a `_sum` and a `_count`; None when nothing was counted, which is not 0."""
    return None if total is None or not count else total / count


def _sample(line: str) -> Sample:
    if len(line) > MAX_LINE_CHARACTERS:
        raise ValueError(f"over {MAX_LINE_CHARACTERS} characters")
    line = _without_exemplar(line)
    # The client reads past a third word, and takes the digits of any script for numbers.
    if not _NUMBERS.search(line):
        raise ValueError("no value, or more than a value and a timestamp")
    found = [sample for family in text_string_to_metric_families(line) for sample in family.samples]
    if len(found) != 1:
        raise ValueError("not a sample")
    name, labels, value = found[0].name, found[0].labels, found[0].value
    finite = isinstance(value, int) or math.isfinite(value)
    return Sample(name=name, labels=labels, value=value if finite else None)


def _without_exemplar(line: str) -> str:
    """Cut ` # {trace_id="…"} 0.5` off: a '#' outside quotes, which no name, label or value can hold."""
    if "#" not in line:
        return line
    quoted = False
    for position, character in enumerate(line):
        if character == '"' and not _escaped(line, position):
            quoted = not quoted
        elif character == "#" and not quoted:
            return line[:position].rstrip()
    return line


def _escaped(line: str, position: int) -> bool:
    backslashes = re.search(r"\\*$", line[:position])
    return backslashes is not None and len(backslashes.group()) % 2 == 1


def _kind(comment: str) -> dict[str, str]:
    words = comment.split()
    return {words[2]: words[3].lower()} if len(words) == 4 and words[1] == "TYPE" else {}


def _kind_of(name: str, kinds: Mapping[str, str]) -> str:
    """Find the TYPE of a sample; OpenMetrics names the family and leaves the suffix to its samples."""
    for suffix in ("", "_total", "_bucket", "_count", "_sum", "_info"):
        if name.endswith(suffix) and (kind := kinds.get(name.removesuffix(suffix))):
            return kind
    return "unknown"


def _is_created(name: str, names: set[str]) -> bool:
    """`x_created` beside `x_total` is the time a counter began, not a number of its own."""
    base = name.removesuffix("_created")
    return base != name and any(base + suffix in names for suffix in _BASES_OF_CREATED)
