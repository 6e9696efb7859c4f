"""What this machine can tell about a server on it while the server is under load; of one elsewhere, nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil
import pynvml
from pydantic import JsonValue

from probes.accelerators import read_accelerators
from probes.evidence import Direction, Metric, Missing, MissingReason, Per
from probes.sensors.devices import Devices, cpu_energy, find_devices
from probes.sensors.kernel import KernelLog
from probes.sensors.listener import Listener, find_listener
from probes.sensors.nvidia import Nvidia, Nvml, open_nvidia
from probes.sensors.sampler import INTERVAL_S, Sampler
from probes.sensors.track import Source, Track, growth, mean, no_sensor, peak

_LOWER: Final = Direction.LOWER
UNITS: Final = {
    "memory_bytes": "B",
    "system_memory_bytes": "B",
    "vram_bytes": "B",
    "cpu_power_w": "W",
    "gpu_power_w": "W",
    "power_w": "W",
    "energy_per_token_j": "J/token",
    "device_resets": "resets",
}
_AT_MOST_POINTS: Final = 120
_READINGS_PER_FAMILY: Final = 6


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What the sensors said of one stretch: the metrics, and the readings behind them."""

    metrics: tuple[Metric, ...]
    native: dict[str, JsonValue]


class Watch:
    """The sensors of one server. Between `with` and its end they are read; what they said is asked for afterwards."""

    def __init__(
        self,
        listener: Listener,
        *,
        root: Path = Path("/"),
        library: Nvml = pynvml,
        xpu_smi: Path | None = None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._listener = listener
        self._nvidia: Nvidia | Missing = open_nvidia(library)
        pids = [process.pid for process in listener.members()]
        why = listener.why if listener.why is not None or pids else no_sensor("the server's process is gone")
        self._devices: Devices = find_devices(pids, why, self._nvidia, root, xpu_smi)
        self._accelerated = isinstance(self._nvidia, Nvidia) or bool(read_accelerators(root))
        self._cpu = cpu_energy(root)
        self._memory: Source | Missing = why or Source(label="RSS of the server's processes", unit="B", read=self._rss)
        self._log = KernelLog(root)
        self._xids = self._nvidia.watch() if isinstance(self._nvidia, Nvidia) else self._nvidia
        system = Source(label="memory of this machine in use", unit="B", read=_system_bytes)
        parts = (self._memory, system, self._devices.vram, self._devices.gpu, self._cpu)
        sources = [one for part in parts if not isinstance(part, Missing) for one in _several(part)]
        self._system = system
        self._interval_s = interval_s
        self._resets: float | Missing = no_sensor("the readings have not ended")
        self._words: list[str] = []
        self._family: list[psutil.Process] = []
        self._readings = 0
        self._sampler = Sampler(sources, interval_s=interval_s)

    def __enter__(self) -> Self:
        self._sampler.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self._sampler.__exit__(kind, exc, traceback)
        self._resets, self._words = self._count_resets()
        for helper in self._devices.helpers:
            helper.close()
        self._log.close()
        if isinstance(self._nvidia, Nvidia):
            self._nvidia.close()

    def figures(self, start_ns: int, end_ns: int, tok_s: float | None) -> Figures:
        """Say what was read from `start_ns` to `end_ns`; `tok_s` are tokens per second in that time, None if not known."""
        if end_ns <= start_ns:
            return absent(Missing(missing=MissingReason.NOT_MEASURED, detail="no request was measured"))
        span = (start_ns, end_ns)
        cpu, gpu = self._power(self._cpu, *span), self._power(self._devices.gpu, *span)
        power = {True: gpu, False: cpu, None: no_sensor("nothing tells whether the server computes on a card")}
        serving = power[self._devices.on_card]
        values: dict[str, float | Missing] = {
            "memory_bytes": self._most(self._memory, *span),
            "system_memory_bytes": self._most(self._system, *span),
            "vram_bytes": self._most(self._devices.vram, *span),
            "cpu_power_w": cpu,
            "gpu_power_w": gpu,
            "power_w": serving,
            "energy_per_token_j": _per_token(serving, tok_s),
            "device_resets": self._resets,
        }
        return Figures(metrics=tuple(_metric(name, value) for name, value in values.items()), native=self._native(start_ns))

    def _most(self, part: Source | tuple[Source, ...] | Missing, start_ns: int, end_ns: int) -> float | Missing:
        return _sum([peak(track, start_ns, end_ns) for track in self._tracks(part)], part)

    def _power(self, part: tuple[Source, ...] | Missing, start_ns: int, end_ns: int) -> float | Missing:
        seconds = (end_ns - start_ns) / 1e9
        found: list[float | Missing] = []
        for track in self._tracks(part):
            if not track.source.counts:
                found.append(mean(track, start_ns, end_ns))
                continue
            joules = growth(track, start_ns, end_ns)
            found.append(joules if isinstance(joules, Missing) else joules / seconds)
        return _sum(found, part)

    def _tracks(self, part: Source | tuple[Source, ...] | Missing) -> list[Track]:
        wanted = [] if isinstance(part, Missing) else [id(one) for one in _several(part)]
        return [track for track in self._sampler.tracks if id(track.source) in wanted]

    def _rss(self) -> float:
        """Sum over the processes; who they are is asked every few readings, which costs more than the sum."""
        if self._readings % _READINGS_PER_FAMILY == 0:
            self._family = self._listener.members()
        self._readings += 1
        held = 0
        for process in self._family:
            try:
                held += process.memory_info().rss
            except psutil.Error:
                continue
        if not held:
            raise ValueError("the server's process is gone")
        return float(held)

    def _count_resets(self) -> tuple[float | Missing, list[str]]:
        """Count what the kernel's log tells, and Xid errors where the log cannot be read."""
        if not self._accelerated:
            words = "this machine has no accelerator whose driver could report one"
            return Missing(missing=MissingReason.NOT_APPLICABLE, detail=words), []
        told = self._log.since()
        if not isinstance(told, Missing):
            return float(len(told)), [one.words for one in told]
        if isinstance(self._nvidia, Nvidia) and self._xids is None:
            xids = self._nvidia.xids()
            return float(len(xids)), [f"Xid {number}" for number in xids]
        return told, []

    def _native(self, start_ns: int) -> dict[str, JsonValue]:
        """Keep what was read as (seconds since the measured time began, value), thinned out where it is long."""
        readings: dict[str, JsonValue] = {}
        for track in self._sampler.tracks:
            step = -(-len(track.values) // _AT_MOST_POINTS) or 1
            points = list(zip(track.at_ns, track.values, strict=True))[::step]
            readings[track.source.label] = {
                "unit": track.source.unit,
                "readings": len(track.values),
                "failed": len(track.failures),
                "points": [[round((at - start_ns) / 1e9, 3), value] for at, value in points],
            }
        return {
            "interval_s": self._interval_s,
            "processes": len(self._listener.members()),
            "computes_on": {True: "card", False: "processor", None: None}[self._devices.on_card],
            "resets": list(self._words),
            "readings": readings,
        }


def watch_server(host: str, port: int) -> Watch | Missing:
    """Make the sensors of a server on this machine; `host` is a numeric address of it.

    A port that is held by a tunnel leads to another machine, of which nothing here tells anything.
    """
    listener = find_listener(host, port)
    if listener.elsewhere and listener.why is not None:
        return listener.why
    return Watch(listener)


def absent(why: Missing) -> Figures:
    """Give every metric of the sensors as missing for one reason."""
    return Figures(metrics=tuple(_metric(name, why) for name in UNITS), native={})


def elsewhere() -> Missing:
    """Say why nothing is read here about a server on another machine."""
    return no_sensor("the server runs on another machine; the sensors of this one say nothing about it")


def _metric(name: str, value: float | Missing) -> Metric:
    return Metric(
        name=name,
        unit=UNITS[name],
        direction=_LOWER,
        per=Per.RUN,
        samples=() if isinstance(value, Missing) else (value,),
        missing=value if isinstance(value, Missing) else None,
    )


def _per_token(power_w: float | Missing, tok_s: float | None) -> float | Missing:
    if isinstance(power_w, Missing):
        return power_w
    if not tok_s:
        return Missing(missing=MissingReason.NOT_MEASURED, detail="no tokens were counted in the measured time")
    return power_w / tok_s


def _sum(values: Sequence[float | Missing], part: object) -> float | Missing:
    if isinstance(part, Missing):
        return part
    known = [value for value in values if not isinstance(value, Missing)]
    if len(known) < len(values):
        return next(value for value in values if isinstance(value, Missing))
    return sum(known)


def _several(part: Source | tuple[Source, ...]) -> tuple[Source, ...]:
    return (part,) if isinstance(part, Source) else part


def _system_bytes() -> float:
    memory = psutil.virtual_memory()
    return float(memory.total - memory.available)
