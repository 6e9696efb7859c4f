"""A stretch of readings has a most, a mean and a growth, or a reason; never 0 for what was not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.evidence import Missing, MissingReason
from probes.sensors.track import Source, Track, growth, mean, peak


def track(points: Iterable[tuple[int, float]], *, wraps_at: float | None = None, counts: bool = True) -> Track:
    source = Source(label="s", unit="J", read=lambda: 0.0, counts=counts, wraps_at=wraps_at)
    points = list(points)
    return Track(source=source, at_ns=[at for at, _ in points], values=[value for _, value in points])


def test_counter_grows_between_readings_in_proportion_to_time() -> None:
    assert growth(track([(0, 100.0), (10, 110.0), (20, 150.0)]), 5, 15) == pytest.approx(5 + 20)


def test_counter_that_wraps_goes_on_however_often() -> None:
    """Readings every second see each wrap of a 32-bit counter; readings at both ends would lose all but one."""
    points = [(n, float(n * 70 % 100)) for n in range(9)]
    assert growth(track(points, wraps_at=100.0), 0, 8) == pytest.approx(8 * 70)


@given(st.lists(st.floats(0.001, 99.0), min_size=1, max_size=30))
def test_wraps_lose_nothing(steps: list[float]) -> None:
    at, points = 0.0, [(0, 0.0)]
    for n, step in enumerate(steps, 1):
        at += step
        points.append((n, at % 100))
    assert growth(track(points, wraps_at=100.0), 0, len(steps)) == pytest.approx(at, rel=1e-6)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([(0, 5.0), (10, 5.0)], "stands still"),
        ([(0, 5.0), (10, 4.0)], "went backwards"),
        ([(0, 5.0)], "no two readings"),
        ([(3, 5.0), (10, 9.0)], "no two readings"),
        ([], "never read"),
    ],
)
def test_counter_that_tells_nothing_is_no_sensor(points: list[tuple[int, float]], words: str) -> None:
    found = growth(track(points), 1, 9)
    assert isinstance(found, Missing)
    assert found.missing is MissingReason.NO_SENSOR
    assert words in found.detail


def test_most_and_mean_speak_of_the_stretch() -> None:
    one = track([(0, 900.0), (10, 3.0), (20, 5.0), (30, 900.0)])
    assert (peak(one, 5, 25), mean(one, 5, 25)) == (5.0, 4.0)


def test_stretch_between_two_readings_has_those_around_it() -> None:
    one = track([(0, 3.0), (100, 7.0)])
    assert (peak(one, 40, 60), mean(one, 40, 60)) == (7.0, 5.0)


def test_file_that_vanishes_in_the_stretch_leaves_no_figure_and_before_it_the_figure_stands(tmp_path: Path) -> None:
    file = tmp_path / "energy1_input"
    times = iter(range(0, 100, 10))
    one = Track(source=Source(label="xe card", unit="J", read=lambda: int(file.read_text()), counts=True))
    now: Callable[[], int] = lambda: next(times)  # noqa: E731
    for value in (10, 20, 30):
        file.write_text(str(value))
        one.take(now)
    file.unlink()
    one.take(now)
    file.write_text("60")
    one.take(now)
    assert growth(one, 0, 20) == 20.0
    for found in (growth(one, 5, 40), peak(one, 5, 40), mean(one, 5, 40)):
        assert isinstance(found, Missing)
        assert "1 of 4 readings failed" in found.detail
        assert "No such file" in found.detail


def test_what_is_no_number_is_a_reading_that_failed() -> None:
    one = Track(source=Source(label="x", unit="W", read=lambda: float("N/A")))
    one.take(lambda: 5)
    found = mean(one, 0, 10)
    assert isinstance(found, Missing)
    assert "could not convert" in found.detail
