"""On what a server runs, by what its processes hold, and the sensors of that device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from probes.accelerators import read_accelerators
from probes.evidence import Missing, MissingReason
from probes.sensors import drm
from probes.sensors.nvidia import Card, Nvidia
from probes.sensors.power import Sensor, find_sensor
from probes.sensors.track import Source, no_sensor
from probes.sensors.xpu_smi import XpuSmi, start_xpu_smi

_NO_CARD: Final = Missing(missing=MissingReason.NOT_APPLICABLE, detail="the server holds no memory on a graphics card")


@dataclass(frozen=True, kw_only=True)
class Devices:
    """The sensors of the server's device. `on_card` None means that nothing tells where it computes."""

    vram: tuple[Source, ...] | Missing
    gpu: tuple[Source, ...] | Missing
    on_card: bool | None
    helpers: tuple[XpuSmi, ...] = field(default=())


def cpu_energy(root: Path = Path("/")) -> tuple[Source, ...] | Missing:
    """Give the energy counters of the processors' packages, in joules."""
    sensor = find_sensor("CPU", root)
    return sensor if isinstance(sensor, Missing) else _joules(sensor)


def find_devices(
    pids: Collection[int],
    why_unknown: Missing | None,
    nvidia: Nvidia | Missing,
    root: Path = Path("/"),
    xpu_smi: Path | None = None,
) -> Devices:
    """Find the cards that processes hold memory on; `why_unknown` says why the processes are not known."""
    if why_unknown is not None:
        if isinstance(nvidia, Missing) and not any(one.kind == "GPU" for one in read_accelerators(root)):
            return Devices(vram=_no_cards(), gpu=_no_cards(), on_card=False)
        return Devices(vram=why_unknown, gpu=why_unknown, on_card=None)
    if not isinstance(nvidia, Missing):
        cards = [card for card in nvidia.cards if card.pids & set(pids)]
        if not cards and _open_nvidia(pids, root):
            # In a container the library names processes by other numbers.
            cards = list(nvidia.cards) if len(nvidia.cards) == 1 else []
            if not cards:
                unclear = no_sensor(f"the server uses one of {len(nvidia.cards)} NVIDIA cards, and nothing says which")
                return Devices(vram=unclear, gpu=unclear, on_card=True)
        if cards:
            return _nvidia(nvidia, cards, pids)
    return _by_files(pids, root, xpu_smi)


def _nvidia(nvidia: Nvidia, cards: Sequence[Card], pids: Collection[int]) -> Devices:
    return Devices(
        vram=tuple(nvidia.memory(card, pids) for card in cards),
        gpu=tuple(nvidia.energy(card) for card in cards),
        on_card=True,
    )


def _by_files(pids: Collection[int], root: Path, xpu_smi: Path | None) -> Devices:
    """Find the cards by the DRM files that processes have open."""
    clients = drm.clients(pids, root)
    held = {one.card for one in clients if one.on_card_bytes}
    if held:
        return _drm(sorted(held), pids, root, xpu_smi)
    silent = {one.card for one in clients if not one.tells_memory and one.card}
    if silent:
        return _silent(sorted(silent), root, xpu_smi)
    return Devices(vram=_NO_CARD, gpu=_NO_CARD, on_card=False)


def _drm(cards: Sequence[str], pids: Collection[int], root: Path, xpu_smi: Path | None) -> Devices:
    """Take memory from the processes' own DRM files and energy from each card's hwmon, or else power from xpu-smi."""
    wanted = tuple(pids)
    vram = tuple(Source(label=f"DRM {card}", unit="B", read=partial(drm.on_card_bytes, wanted, card, root)) for card in cards)
    helpers: dict[str, XpuSmi | Missing] = {}
    gpu = _energy(cards, root, xpu_smi, helpers)
    return Devices(vram=vram, gpu=gpu, on_card=True, helpers=_running(helpers))


def _silent(cards: Sequence[str], root: Path, xpu_smi: Path | None) -> Devices:
    """Take what is in use on the whole card from xpu-smi where the driver tells of no process's memory.

    A server opens cards that it does not compute on, so nothing tells whether it does.
    """
    helpers = {card: start_xpu_smi(card, xpu_smi) for card in cards}
    absent = next((one for one in helpers.values() if isinstance(one, Missing)), None)
    vram: tuple[Source, ...] | Missing = tuple(one.memory for one in _running(helpers))
    if absent is not None:
        vram = no_sensor(f"the driver of {', '.join(cards)} tells of no process's memory; {absent.detail}")
    gpu = _energy(cards, root, xpu_smi, helpers)
    return Devices(vram=vram, gpu=gpu, on_card=None, helpers=_running(helpers))


def _energy(
    cards: Sequence[str], root: Path, xpu_smi: Path | None, helpers: dict[str, XpuSmi | Missing]
) -> tuple[Source, ...] | Missing:
    """Find the energy of each card, or else its power by xpu-smi, of which `helpers` keeps those that run."""
    found: list[Source] = []
    missing: Missing | None = None
    for card in cards:
        sensor = find_sensor("GPU", root, card=card)
        if not isinstance(sensor, Missing):
            found.extend(_joules(sensor))
            continue
        if card not in helpers:
            helpers[card] = start_xpu_smi(card, xpu_smi)
        helper = helpers[card]
        if isinstance(helper, Missing):
            missing = no_sensor(f"{sensor.detail}; {helper.detail}")
        else:
            found.append(helper.power)
    return missing or tuple(found)


def _running(helpers: Mapping[str, XpuSmi | Missing]) -> tuple[XpuSmi, ...]:
    return tuple(one for one in helpers.values() if isinstance(one, XpuSmi))


def _joules(sensor: Sensor) -> tuple[Source, ...]:
    return tuple(
        Source(
            label=counter.label,
            unit="J",
            read=partial(_read_joules, counter.file),
            counts=True,
            wraps_at=None if counter.wraps_at_uj is None else (counter.wraps_at_uj + 1) / 1e6,
        )
        for counter in sensor.counters
    )


def _read_joules(file: Path) -> float:
    return int(file.read_text()) / 1e6


def _open_nvidia(pids: Collection[int], root: Path) -> bool:
    for pid in pids:
        try:
            targets = [str(entry.readlink()) for entry in (root / "proc" / str(pid) / "fd").iterdir()]
        except OSError:
            continue
        if any(target.startswith("/dev/nvidia") and target[-1].isdigit() for target in targets):
            return True
    return False


def _no_cards() -> Missing:
    return Missing(missing=MissingReason.NOT_APPLICABLE, detail="this machine has no graphics card")
