"""The map of the fleet reads without a style sheet, and draws what is open as open."""

from __future__ import annotations

from datetime import date

import pytest

from gen.site import pages
from tests.gen.reading import html_of, read
from tests.gen.specimens import corpus

TODAY = date(2026, 11, 30)


@pytest.fixture(scope="module")
def fleet_page() -> str:
    return pages(corpus(), TODAY)["fleet.md"].split("---\n", 2)[2]


def test_hosts_hold_cards_and_cards_hold_services_in_reading_order(fleet_page: str) -> None:
    seen = " ".join(read(fleet_page).text.split())
    order = (
        "GPU cluster",
        "Intel Arc Pro B60",
        "ComfyUI (diffusion)",
        "On a card that nobody has named",
        "8B text",
        "Home workstation",
        "NVIDIA GeForce RTX 4090",
        "Coder lane",
        "Host not settled",
        "Is this the office workstation's card",
    )
    places = [seen.index(words) for words in order]
    assert places == sorted(places)


def test_memory_is_documented_and_load_is_not_guessed(fleet_page: str) -> None:
    seen = " ".join(read(fleet_page).text.split())
    assert "24 GiB at 456 GB/s documented" in seen
    assert "load and memory in use: not measured" in seen
    assert "KV pool 4 GiB declared 2026-07-10 stale" in seen


def test_what_nobody_has_settled_stands_with_its_question(fleet_page: str) -> None:
    boxes = html_of(fleet_page).split("box-open")
    assert len(boxes) > 2
    assert "Which card serves the 8B model?" in boxes[1]
    assert "Which B580 does Jellyfin share?" in boxes[1]
    assert "does the cluster hold both B580s" in " ".join(boxes)
