"""Which day it is for a build: given, or reproducible, or read once by the one who calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime

from probes.errors import UsageError

TODAY = "INFERENCE_ADR_TODAY"
EPOCH = "SOURCE_DATE_EPOCH"


def build_day(environ: Mapping[str, str], utc_today: date, given: str | None = None) -> date:
    """Take `--today`, else INFERENCE_ADR_TODAY, else SOURCE_DATE_EPOCH, else the UTC date.

    Raises:
        UsageError: a value that is no date, with the name of where it came from.
    """
    for place, value in (("--today", given), (TODAY, environ.get(TODAY))):
        if value:
            return _iso(place, value)
    epoch = environ.get(EPOCH)
    if not epoch:
        return utc_today
    try:
        return datetime.fromtimestamp(int(epoch), UTC).date()
    except (ValueError, OverflowError, OSError) as exc:
        raise UsageError(f"{EPOCH}: is {epoch!r}; expected seconds since 1970 as a whole number") from exc


def iso_day(value: str) -> date:
    """Read YYYY-MM-DD and nothing else: Python also takes 20260710 and 2026-W28-5, which files here do not hold.

    Raises:
        ValueError: with what is expected.
    """
    expected = "expected a date such as 2026-07-10"
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError(expected)
    try:
        return date.fromisoformat(value)
    except ValueError as exc:
        raise ValueError(f"{expected} ({exc})") from exc


def _iso(place: str, value: str) -> date:
    try:
        return iso_day(value)
    except ValueError as exc:
        raise UsageError(f"{place}: is {value!r}; {exc}") from exc
