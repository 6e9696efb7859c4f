"""Accelerators from a recorded PCI tree."""

from __future__ import annotations

from pathlib import Path

from probes.accelerators import driver_words, read_accelerators
from probes.host import read_host


def card(root: Path, slot: str, ids: tuple[str, str, str], driver: str | None = None) -> None:
    folder = root / "sys/bus/pci/devices" / slot
    folder.mkdir(parents=True)
    for name, value in zip(("vendor", "device", "class"), ids, strict=True):
        (folder / name).write_text(f"{value}\n")
    if driver:
        module = root / "sys/bus/pci/drivers" / driver
        module.mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(module)


def test_cards_by_name_with_their_drivers(tmp_path: Path) -> None:
    card(tmp_path, "0000:03:00.0", ("0x8086", "0xe20b", "0x030000"), "xe")
    card(tmp_path, "0000:04:00.0", ("0x10de", "0x2684", "0x030000"), "nvidia")
    card(tmp_path, "0000:00:0b.0", ("0x8086", "0x643e", "0x120000"))
    version = tmp_path / "sys/module/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("580.95.05\n")
    found = read_accelerators(tmp_path)
    assert [item.name for item in found] == ["Intel GPU 8086:e20b", "Intel NPU 8086:643e", "NVIDIA GPU 10de:2684"]
    assert driver_words(found) == (
        "Intel GPU 8086:e20b: xe (of the kernel); Intel NPU 8086:643e: no driver bound; NVIDIA GPU 10de:2684: nvidia 580.95.05"
    )


def test_virtual_and_management_displays_and_other_devices_are_none(tmp_path: Path) -> None:
    card(tmp_path, "0000:00:01.0", ("0x1af4", "0x1050", "0x030000"))  # virtio-gpu
    card(tmp_path, "0000:00:02.0", ("0x1a03", "0x2000", "0x030000"))  # ASPEED, the display of a server's management board
    card(tmp_path, "0000:00:03.0", ("0x8086", "0x1533", "0x020000"))  # a network card
    assert read_accelerators(tmp_path) == ()
    assert driver_words(()) is None


def test_no_pci_bus_is_no_accelerator(tmp_path: Path) -> None:
    assert read_accelerators(tmp_path) == ()


def test_a_second_card_of_a_kind_changes_the_fingerprint_and_a_driver_does_not(tmp_path: Path) -> None:
    bare, one, two, bound = (tmp_path / name for name in ("bare", "one", "two", "bound"))
    for root in (one, two):
        card(root, "0000:03:00.0", ("0x8086", "0xe20b", "0x030000"))
    card(two, "0000:04:00.0", ("0x8086", "0xe20b", "0x030000"))
    card(bound, "0000:03:00.0", ("0x8086", "0xe20b", "0x030000"), "xe")
    prints = {root: read_host(root=root).fingerprint for root in (bare, one, two, bound)}
    assert len({prints[bare], prints[one], prints[two]}) == 3
    assert prints[bound] == prints[one]
