"""Fake folders of a machine: files as the kernel writes them, under a root of their own."""

from __future__ import annotations

from pathlib import Path

# As in the kernel's documentation of each driver (gpu/xe/xe-drm-usage-stats, gpu/i915, drm-usage-stats).
XE = """pos:	0
flags:	0100002
mnt_id:	26
ino:	685
drm-driver:	xe
drm-client-id:	3
drm-pdev:	{card}
drm-total-system:	0
drm-shared-system:	0
drm-active-system:	0
drm-resident-system:	0
drm-total-vram0:	{total} KiB
drm-shared-vram0:	0
drm-resident-vram0:	{resident} KiB
drm-active-vram0:	0
drm-cycles-ccs:	28257900
drm-total-cycles-ccs:	7655183225
"""
I915 = """pos:	0
drm-driver:	i915
drm-client-id:	7
drm-pdev:	{card}
drm-total-system0:	125 MiB
drm-resident-system0:	125 MiB
drm-total-local0:	4096 MiB
drm-resident-local0:	2048 MiB
drm-engine-compute:	1288864723 ns
"""
# Before Linux 6.5 the driver told of engines only.
I915_OLD = """pos:	0
drm-driver:	i915
drm-client-id:	7
drm-pdev:	{card}
drm-engine-render:	25662044495 ns
drm-engine-copy:	0 ns
"""
AMD = """drm-driver:	amdgpu
drm-client-id:	49
drm-pdev:	0000:0b:00.0
drm-memory-vram:	262144 KiB
drm-memory-gtt: 	1024 KiB
"""


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if text.endswith("\n") else f"{text}\n")
    return root


def opened(root: Path, pid: int, fd: int, target: str, info: str = "pos:\t0\n") -> None:
    """Let a process have a file open."""
    folder = root / f"proc/{pid}"
    (folder / "fd").mkdir(parents=True, exist_ok=True)
    (folder / "fd" / str(fd)).symlink_to(target)
    tree(root, {f"proc/{pid}/fdinfo/{fd}": info})


def hwmon(root: Path, number: int, card: str, energy_uj: int, driver: str = "xe") -> Path:
    """Give a card an energy counter; gives its file."""
    folder = f"sys/class/hwmon/hwmon{number}"
    tree(root, {f"{folder}/name": driver, f"{folder}/energy1_input": str(energy_uj), f"{folder}/energy1_label": "card"})
    device = root / "sys/devices" / card
    device.mkdir(parents=True, exist_ok=True)
    (root / folder / "device").symlink_to(device)
    return root / folder / "energy1_input"


def rapl(root: Path, energy_uj: int, *, range_uj: int = 262_143_328_850) -> Path:
    """Give the processor an energy counter; gives its file."""
    folder = "sys/class/powercap/intel-rapl:0"
    tree(
        root,
        {f"{folder}/name": "package-0", f"{folder}/energy_uj": str(energy_uj), f"{folder}/max_energy_range_uj": str(range_uj)},
    )
    return root / folder / "energy_uj"


def graphics(root: Path, vendor: str = "0x8086", device: str = "0xe20b") -> None:
    """Put a graphics card on the PCI bus."""
    slot = "sys/bus/pci/devices/0000:03:00.0"
    tree(root, {f"{slot}/vendor": vendor, f"{slot}/device": device, f"{slot}/class": "0x030000"})


def program(folder: Path, *lines: str, then: str = "exec sleep 30") -> Path:
    """Make an xpu-smi that keeps what it was asked, and says lines."""
    path = folder / "xpu-smi"
    said = "\n".join(f"echo '{line}'" for line in lines)
    path.write_text(f'#!/bin/sh\necho "$@" > {folder}/asked\n{said}\n{then}\n')
    path.chmod(0o755)
    return path
