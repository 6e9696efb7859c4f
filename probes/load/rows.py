"""One row per request: what the file of a run lists, and the same as CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from probes.endpoints.quoting import Quoter
from probes.load.run import Finding
from probes.load.series import request_values

Row = Mapping[str, JsonValue]
_DIGITS: Final = 7
_VALUES: Final = ("ttft_s", "tpot_s", "latency_s", "prompt_tokens", "completion_tokens", "counted_tokens", "chunks")
# Units stand in the names: `_s` seconds since the run began or of a request, `_tokens` tokens.
COLUMNS: Final = (
    "concurrency", "index", "phase", "due_s", "sent_s", "end_s", "attempts", "status", "error", "words", "stalled",
    "finish_reason", *_VALUES,
)  # fmt: skip
# What spreadsheets take for the beginning of a formula (OWASP, CSV Injection).
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def rows(finding: Finding, quoter: Quoter) -> list[dict[str, JsonValue]]:
    """Give the requests in the order in which they were due; times are seconds since the run began."""
    began = finding.course.began_ns
    both = zip(finding.outcomes, finding.window.phases, strict=True)
    found: list[dict[str, JsonValue]] = []
    for outcome, phase in sorted(both, key=lambda pair: (pair[0].due_ns, pair[0].index)):
        values = request_values(outcome, finding.shape.first_token) if outcome.ok else {}
        reason = outcome.answer.finish_reason
        row: dict[str, JsonValue] = {
            "index": outcome.index,
            "phase": phase.value,
            "due_s": (outcome.due_ns - began) / 1e9,
            "sent_s": (outcome.sent_ns - began) / 1e9,
            "end_s": (outcome.end_ns - began) / 1e9,
            "attempts": outcome.attempts,
            "status": outcome.status,
            "error": None if outcome.failure is None else outcome.failure.value,
            "words": None if outcome.failure is None else quoter.line(outcome.words),
            "stalled": outcome.stalled,
            "finish_reason": None if reason is None else quoter.line(reason, 40),
            **{name: values.get(name) for name in _VALUES},
        }
        found.append({name: round(value, _DIGITS) if isinstance(value, float) else value for name, value in row.items()})
    return found


def as_csv(runs: Sequence[tuple[int, Sequence[Row]]]) -> bytes:
    """Write runs, given as (concurrency, rows), as one CSV file with a header (RFC 4180); what is not known stays empty."""
    sink = io.StringIO(newline="")
    writer = csv.DictWriter(sink, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for concurrency, those in runs:
        for row in those:
            writer.writerow({name: _cell(value) for name, value in {"concurrency": concurrency, **row}.items()})
    return sink.getvalue().encode()


def _cell(value: JsonValue) -> JsonValue:
    """Keep a server's text from being a formula; numbers stay numbers, negative ones too."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
