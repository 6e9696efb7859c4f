"""Energy counters of processors and Intel cards, and the average power between two readings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from probes.evidence import Missing, MissingReason

_GPU_DRIVERS = ("xe", "i915")
# The card before the package: on one driver sensor 1 is the card, on another the package, so the label decides.
_GPU_LABELS = ("card", "pkg")


@dataclass(frozen=True, kw_only=True)
class Counter:
    """One energy counter in microjoules; `wraps_at_uj` is its largest value where the kernel tells it."""

    label: str
    file: Path
    wraps_at_uj: int | None


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """The counters that together are one device. Sensors of different labels are never compared."""

    counters: tuple[Counter, ...]

    @property
    def label(self) -> str:
        return " + ".join(counter.label for counter in self.counters)


@dataclass(frozen=True, kw_only=True)
class Energy:
    """One reading of a sensor: when, and each counter's value in microjoules."""

    at_s: float
    microjoules: tuple[int, ...]


def find_sensor(device: str, root: Path = Path("/"), *, card: str = "") -> Sensor | Missing:
    """Find the energy counters of an OpenVINO device: RAPL packages for CPU, the card's hwmon for GPU.

    `card` is the PCI address of the one that is meant, where there are several.
    """
    if device == "CPU":
        return _rapl(root)
    if device.partition(".")[0] == "GPU":
        return _hwmon(root, card)
    return _no_sensor(f"no energy counter is known for {device}")


def read_energy(sensor: Sensor, clock: Callable[[], float] = time.monotonic) -> Energy | Missing:
    """Read all counters of a sensor at once."""
    try:
        values = tuple(int(counter.file.read_text()) for counter in sensor.counters)
    except (OSError, ValueError) as exc:
        return _no_sensor(f"{sensor.label}: {exc}")
    return Energy(at_s=clock(), microjoules=values)


def average_power_w(sensor: Sensor, before: Energy, after: Energy) -> float | Missing:
    """Divide the energy between two readings by the time between them.

    A counter that did not move says that it does not count, as in many virtual machines and on some
    cards; it never says 0 W.
    """
    elapsed_s = after.at_s - before.at_s
    if elapsed_s <= 0:
        return _no_sensor(f"{sensor.label}: no time passed between the readings")
    total_uj = 0
    for counter, first, last in zip(sensor.counters, before.microjoules, after.microjoules, strict=True):
        used = last - first
        if used < 0 and counter.wraps_at_uj is not None:
            used += counter.wraps_at_uj + 1
        if used <= 0:
            return _no_sensor(f"{counter.label}: the counter {'stands still' if used == 0 else 'went backwards'}")
        total_uj += used
    return total_uj / 1e6 / elapsed_s


def _rapl(root: Path) -> Sensor | Missing:
    """Take the package zones: their sub-zones are parts of them, and psys is the whole machine."""
    zones = sorted((root / "sys/class/powercap").glob("intel-rapl:[0-9]*"))
    packages = [zone for zone in zones if (_line(zone / "name") or "").startswith("package")]
    counters = [
        Counter(
            label=f"RAPL {_line(zone / 'name')}", file=zone / "energy_uj", wraps_at_uj=_number(zone / "max_energy_range_uj")
        )
        for zone in packages
    ]
    if not counters:
        return _no_sensor("no RAPL package in /sys/class/powercap")
    return _readable(Sensor(counters=tuple(counters)))


def _hwmon(root: Path, card: str) -> Sensor | Missing:
    cards = [
        counter
        for folder in sorted((root / "sys/class/hwmon").glob("hwmon*"))
        if _line(folder / "name") in _GPU_DRIVERS and card in {"", (folder / "device").resolve().name}
        if (counter := _card(folder)) is not None
    ]
    if not cards:
        which = f"the Intel GPU at {card}" if card else "an Intel GPU"
        return _no_sensor(f"no energy counter of {which} in /sys/class/hwmon")
    if len(cards) > 1:
        return _no_sensor(f"{len(cards)} cards have energy counters, and nothing says which of them ran")
    return _readable(Sensor(counters=(cards[0],)))


def _card(folder: Path) -> Counter | None:
    labelled: dict[str, Path] = {}
    for file in sorted(folder.glob("energy*_input")):
        labelled.setdefault(_line(folder / f"{file.name.removesuffix('_input')}_label") or "card", file)
    for label in _GPU_LABELS:
        if label in labelled:
            return Counter(label=f"{_line(folder / 'name')} {label}", file=labelled[label], wraps_at_uj=None)
    return None


def _readable(sensor: Sensor) -> Sensor | Missing:
    """Try a reading: RAPL counters are readable by root only since CVE-2020-8694."""
    reading = read_energy(sensor)
    return reading if isinstance(reading, Missing) else sensor


def _no_sensor(detail: str) -> Missing:
    return Missing(missing=MissingReason.NO_SENSOR, detail=detail)


def _number(path: Path) -> int | None:
    text = _line(path)
    return int(text) if text is not None and text.isdigit() else None


def _line(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None
