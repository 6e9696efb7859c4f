"""The day of a build comes from one place, and a wrong one is told with its name."""

from __future__ import annotations

from datetime import date

import pytest

from gen.days import build_day
from probes.errors import UsageError

NOW = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("environ", "given", "expected"),
    [
        ({}, None, NOW),
        ({"SOURCE_DATE_EPOCH": "1783728000"}, None, date(2026, 7, 11)),
        ({"SOURCE_DATE_EPOCH": "1783727999"}, None, date(2026, 7, 10)),
        ({"SOURCE_DATE_EPOCH": "0", "INFERENCE_ADR_TODAY": "2026-07-10"}, None, date(2026, 7, 10)),
        ({"INFERENCE_ADR_TODAY": "2026-07-10"}, "2026-08-01", date(2026, 8, 1)),
        ({"INFERENCE_ADR_TODAY": "", "SOURCE_DATE_EPOCH": ""}, None, NOW),
    ],
)
def test_the_nearest_word_wins(environ: dict[str, str], given: str | None, expected: date) -> None:
    assert build_day(environ, NOW, given) == expected


@pytest.mark.parametrize(
    ("environ", "given", "place"),
    [
        ({"INFERENCE_ADR_TODAY": "10.7.2026"}, None, "INFERENCE_ADR_TODAY: is '10.7.2026'"),
        ({"SOURCE_DATE_EPOCH": "soon"}, None, "SOURCE_DATE_EPOCH: is 'soon'"),
        ({"SOURCE_DATE_EPOCH": "9" * 30}, None, "SOURCE_DATE_EPOCH"),
        ({}, "2026-13-01", "--today: is '2026-13-01'"),
    ],
)
def test_a_value_that_is_no_day_names_its_place(environ: dict[str, str], given: str | None, place: str) -> None:
    with pytest.raises(UsageError, match=place):
        build_day(environ, NOW, given)
