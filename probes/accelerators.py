"""GPUs and NPUs as the PCI bus shows them, without asking any runtime or driver library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

VENDORS = {"0x8086": "Intel", "0x10de": "NVIDIA", "0x1002": "AMD"}
# PCI base classes: 03 display controllers, 12 processing accelerators (where Intel's NPU is found).
_BASE_CLASSES = {"03": "GPU", "12": "NPU"}


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One device; `driver` is the kernel module bound to it, None when none is."""

    kind: str
    vendor: str
    pci_id: str
    driver: str | None
    driver_version: str | None

    @property
    def name(self) -> str:
        """A name that does not depend on which drivers or name databases are installed."""
        return f"{self.vendor} {self.kind} {self.pci_id}"


def read_accelerators(root: Path = Path("/")) -> tuple[Accelerator, ...]:
    """List the accelerators of known vendors in order of name; virtual and management displays are none."""
    try:
        slots = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return ()
    found = [accelerator for slot in slots if (accelerator := _accelerator(root, slot)) is not None]
    return tuple(sorted(found, key=lambda item: item.name))


def driver_words(accelerators: tuple[Accelerator, ...]) -> str | None:
    """Say in one line which driver serves which accelerator; None when there is no accelerator."""
    return "; ".join(f"{item.name}: {_driver(item)}" for item in accelerators) or None


def _accelerator(root: Path, slot: Path) -> Accelerator | None:
    vendor, device, pci_class = (_line(slot / name) for name in ("vendor", "device", "class"))
    kind = _BASE_CLASSES.get((pci_class or "").removeprefix("0x")[:2])
    if kind is None or device is None or vendor not in VENDORS:
        return None
    link = slot / "driver"
    driver = link.resolve().name if link.exists() else None
    return Accelerator(
        kind=kind,
        vendor=VENDORS[vendor],
        pci_id=f"{vendor[2:]}:{device[2:]}",
        driver=driver,
        driver_version=_line(root / "sys/module" / driver / "version") if driver else None,
    )


def _driver(accelerator: Accelerator) -> str:
    if accelerator.driver is None:
        return "no driver bound"
    if accelerator.driver_version is None:
        return f"{accelerator.driver} (of the kernel)"
    return f"{accelerator.driver} {accelerator.driver_version}"


def _line(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None
