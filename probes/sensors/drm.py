"""Memory on graphics cards by process, as Linux tells it for each open DRM file.

Keys and units are those of the kernel's drm-usage-stats: resident bytes per memory region; `vram0` on xe, `local0` on
i915 and `vram` on amdgpu lie on the card, everything else is memory of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_REGION: Final = re.compile(r"^drm-(resident|total|memory)-((?:vram|local)\d*):\s*(\d+)(?:\s+(KiB|MiB))?\s*$", re.MULTILINE)
_ANY: Final = re.compile(r"^drm-(resident|total|memory)-", re.MULTILINE)
_FIELD: Final = re.compile(r"^(drm-driver|drm-pdev|drm-client-id):\s*(\S+)\s*$", re.MULTILINE)
_UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20}
# The first that a driver writes counts; total includes what was moved out to the machine's memory.
_KINDS: Final = ("resident", "memory", "total")


@dataclass(frozen=True, kw_only=True)
class Client:
    """One client of one card; several open files of a process may be the same client.

    `tells_memory` is false where the driver of the card tells of no memory at all, as older kernels do.
    """

    driver: str
    card: str
    id: str
    on_card_bytes: int | None
    tells_memory: bool


def parse(fdinfo: str) -> Client | None:
    """Read /proc/PID/fdinfo/FD; None for a file that is no DRM client."""
    fields = dict(_FIELD.findall(fdinfo))
    if "drm-driver" not in fields or "drm-client-id" not in fields:
        return None
    regions: dict[str, dict[str, int]] = {}
    for kind, region, number, unit in _REGION.findall(fdinfo):
        regions.setdefault(region, {})[kind] = int(number) * _UNITS[unit]
    held = [next(sizes[kind] for kind in _KINDS if kind in sizes) for sizes in regions.values()]
    return Client(
        driver=fields["drm-driver"],
        card=fields.get("drm-pdev", ""),
        id=fields["drm-client-id"],
        on_card_bytes=sum(held) if held else None,
        tells_memory=bool(_ANY.search(fdinfo)),
    )


def clients(pids: Iterable[int], root: Path = Path("/")) -> tuple[Client, ...]:
    """List the DRM clients of processes, each once; those that are gone or not ours to read have none."""
    found: dict[tuple[str, str], Client] = {}
    for pid in pids:
        for info in _open_cards(root / "proc" / str(pid)):
            try:
                client = parse(info.read_text(encoding="ascii", errors="replace"))
            except OSError:
                continue
            if client is not None:
                found[client.card, client.id] = client
    return tuple(found.values())


def on_card_bytes(pids: Iterable[int], card: str, root: Path = Path("/")) -> int:
    """Sum what processes hold on one card.

    Raises:
        ValueError: they hold no file of that card any more.
    """
    held = [one.on_card_bytes for one in clients(pids, root) if one.card == card and one.on_card_bytes is not None]
    if not held:
        raise ValueError(f"the server has no memory on card {card} any more")
    return sum(held)


def _open_cards(process: Path) -> Iterable[Path]:
    """Give the fdinfo files of what a process has open under /dev/dri; reading those of all files would cost."""
    try:
        entries = list((process / "fd").iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith("/dev/dri/"):
            yield process / "fdinfo" / entry.name
