"""Releases compare as numbers, whatever a runtime glues to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.versions import known_version, parse_version


def test_a_later_release_is_not_the_one_that_sorts_later_as_text() -> None:
    assert parse_version("2026.20") > parse_version("2026.3")
    assert parse_version("b10519") > parse_version("b6700")


@pytest.mark.parametrize(
    ("printed", "release"),
    [
        ("v2026.2", "2026.2"),
        ("2026.4", "2026.4.0"),
        ("2026.4.1-22982-e213a147257", "2026.4.1"),
        ("2026.4.1.0-3408-ab01d1771e4", "2026.4.1"),
        ("2025.4.0.61d4ad1c", "2025.4"),
        ("2024.4.28219825c", "2024.4"),
        ("2026.2.0.1a2b3c4d", "2026.2"),
        ("2025.4.0.12345678", "2025.4"),
        ("2026.5-b1234abc", "2026.5"),
    ],
)
def test_build_numbers_and_hashes_do_not_make_another_release(printed: str, release: str) -> None:
    assert parse_version(printed) == parse_version(release)


def test_a_pre_release_comes_before_its_release_and_in_order() -> None:
    order = ["2026.4.0.dev20260801", "2026.4.0rc2", "2026.4.0-rc10", "2026.4.0", "2026.4.1rc1"]
    assert [parse_version(text) for text in order] == sorted(parse_version(text) for text in reversed(order))


@pytest.mark.parametrize(
    "text",
    ["", "latest", "weekly", "ovms", "7e4df0c7", "a1b2c3d", "e213a147257", "1234567", "d123456", "20260821", "main-2026"],
)
def test_what_is_no_release_number_is_told_as_such(text: str) -> None:
    with pytest.raises(ValueError, match="is not a release number"):
        parse_version(text)
    assert known_version(text) is None
    assert known_version(None) is None


@pytest.mark.parametrize("text", ["0.0.0", "b0-unknown", "0", "v0.0", "0.1.dev1", "0.1.dev17+g1234567"])
def test_a_build_that_nobody_stamped_compares_with_nothing(text: str) -> None:
    assert known_version(text) is None


@given(st.lists(st.integers(0, 99999), min_size=1, max_size=4))
def test_reading_back_what_was_written_changes_nothing(numbers: list[int]) -> None:
    text = ".".join(map(str, numbers))
    assert parse_version(f"v{text}") == parse_version(text) == parse_version(f"{text}.0")
