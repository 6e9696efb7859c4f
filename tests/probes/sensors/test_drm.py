"""Memory on a card by process, from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.sensors.drm import clients, on_card_bytes, parse
from tests.probes.sensors.trees import AMD, I915, XE, opened

CARD = "0000:03:00.0"


@pytest.mark.parametrize(
    ("text", "driver", "held"),
    [
        (XE.format(card=CARD, total=9000, resident=8192), "xe", 8192 * 2**10),
        (I915.format(card=CARD), "i915", 2048 * 2**20),
        (AMD, "amdgpu", 256 * 2**20),
    ],
)
def test_resident_memory_of_the_card_counts_and_that_of_the_machine_does_not(text: str, driver: str, held: int) -> None:
    client = parse(text)
    assert client is not None
    assert (client.driver, client.on_card_bytes) == (driver, held)


def test_integrated_graphics_have_no_memory_on_a_card() -> None:
    client = parse("drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:00:02.0\ndrm-resident-system0:\t12 MiB\n")
    assert client is not None
    assert client.on_card_bytes is None


def test_other_files_are_no_clients() -> None:
    assert parse("pos:\t0\nflags:\t02\n") is None


def test_client_that_a_process_has_open_twice_counts_once(tmp_path: Path) -> None:
    info = XE.format(card=CARD, total=9000, resident=1024)
    for fd in (5, 6):
        opened(tmp_path, 10, fd, "/dev/dri/renderD128", info)
    opened(tmp_path, 10, 7, "/dev/null")
    opened(tmp_path, 11, 5, "/dev/dri/renderD128", info.replace("drm-client-id:	3", "drm-client-id:	4"))
    opened(tmp_path, 12, 5, "/dev/dri/renderD129", info.replace(CARD, "0000:04:00.0"))
    assert len(clients([10, 11, 12, 99], tmp_path)) == 3
    assert on_card_bytes([10, 11, 12], CARD, tmp_path) == 2 * 2**20


def test_memory_that_went_away_is_no_zero(tmp_path: Path) -> None:
    opened(tmp_path, 10, 5, "/dev/dri/renderD128", XE.format(card=CARD, total=1, resident=1))
    (tmp_path / "proc/10/fdinfo/5").unlink()
    with pytest.raises(ValueError, match=r"no memory on card 0000:03:00\.0 any more"):
        on_card_bytes([10], CARD, tmp_path)
