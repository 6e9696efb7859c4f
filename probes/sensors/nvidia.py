"""NVIDIA cards through NVML: memory, energy or power, and the Xid errors of the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pynvml

from probes.evidence import Missing
from probes.sensors.track import Source, no_sensor

_AT_MOST_EVENTS: Final = 1000


class Nvml(Protocol):
    """The functions of the library that are used, by its own names; they raise `pynvml.NVMLError`."""

    def nvmlInit(self) -> None: ...  # noqa: N802
    def nvmlShutdown(self) -> None: ...  # noqa: N802
    def nvmlDeviceGetCount(self) -> int: ...  # noqa: N802
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any: ...  # noqa: N802
    def nvmlDeviceGetName(self, handle: Any) -> str | bytes: ...  # noqa: N802
    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> Collection[Any]: ...  # noqa: N802
    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any: ...  # noqa: N802
    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int: ...  # noqa: N802
    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int: ...  # noqa: N802
    def nvmlEventSetCreate(self) -> Any: ...  # noqa: N802
    def nvmlDeviceRegisterEvents(self, handle: Any, types: int, events: Any) -> None: ...  # noqa: N802
    def nvmlEventSetWait_v2(self, events: Any, timeout_ms: int) -> Any: ...  # noqa: N802
    def nvmlEventSetFree(self, events: Any) -> None: ...  # noqa: N802


@dataclass(frozen=True, kw_only=True)
class Card:
    """One card; `pids` are the processes that compute on it now."""

    handle: Any
    name: str
    pids: frozenset[int]


class Nvidia:
    """The cards of this machine. Everything that the library refuses is a reason or a failed reading, never 0."""

    def __init__(self, library: Nvml, cards: tuple[Card, ...]) -> None:
        self.cards = cards
        self._library = library
        self._events: Any = None

    def memory(self, card: Card, pids: Iterable[int]) -> Source:
        """Read what some processes hold on a card, or all of it in use where the library does not know it by process."""
        wanted = frozenset(pids)
        if self._held(card, wanted) is None:
            return Source(label=f"NVML {card.name}, whole card", unit="B", read=lambda: self._used(card))
        return Source(label=f"NVML {card.name}, processes of the server", unit="B", read=lambda: self._of(card, wanted))

    def energy(self, card: Card) -> Source:
        """Read the energy counter of a card; without one (before Volta) its power of the moment."""
        try:
            self._library.nvmlDeviceGetTotalEnergyConsumption(card.handle)
        except pynvml.NVMLError:
            return Source(label=f"NVML {card.name} power", unit="W", read=lambda: self._power_w(card))
        return Source(label=f"NVML {card.name} energy", unit="J", read=lambda: self._energy_j(card), counts=True)

    def watch(self) -> Missing | None:
        """Ask for the driver's Xid errors from now on, or say why they cannot be had."""
        library = self._library
        try:
            events = library.nvmlEventSetCreate()
            for card in self.cards:
                library.nvmlDeviceRegisterEvents(card.handle, pynvml.nvmlEventTypeXidCriticalError, events)
        except pynvml.NVMLError as exc:
            return no_sensor(f"NVML Xid events: {exc}")
        self._events = events
        return None

    def xids(self) -> list[int]:
        """Take the Xid errors that came since `watch`."""
        found: list[int] = []
        while self._events is not None and len(found) < _AT_MOST_EVENTS:
            try:
                event = self._library.nvmlEventSetWait_v2(self._events, 0)
            except pynvml.NVMLError:
                # A timeout says that there are no more.
                break
            found.append(int(event.eventData))
        return found

    def close(self) -> None:
        """Let go of the library."""
        with contextlib.suppress(pynvml.NVMLError):
            if self._events is not None:
                self._library.nvmlEventSetFree(self._events)
            self._library.nvmlShutdown()

    def _held(self, card: Card, pids: frozenset[int]) -> int | None:
        """Sum the memory of processes; None where the driver hides it, as for containers and on Windows."""
        try:
            running = self._library.nvmlDeviceGetComputeRunningProcesses(card.handle)
        except pynvml.NVMLError:
            return None
        held = [one.usedGpuMemory for one in running if one.pid in pids and one.usedGpuMemory is not None]
        return sum(held) if held else None

    def _of(self, card: Card, pids: frozenset[int]) -> float:
        held = self._held(card, pids)
        if held is None:
            raise ValueError("the server has no memory on it any more")
        return float(held)

    def _used(self, card: Card) -> float:
        try:
            return float(self._library.nvmlDeviceGetMemoryInfo(card.handle).used)
        except pynvml.NVMLError as exc:
            raise ValueError(str(exc)) from exc

    def _energy_j(self, card: Card) -> float:
        try:
            return self._library.nvmlDeviceGetTotalEnergyConsumption(card.handle) / 1e3
        except pynvml.NVMLError as exc:
            raise ValueError(str(exc)) from exc

    def _power_w(self, card: Card) -> float:
        try:
            return self._library.nvmlDeviceGetPowerUsage(card.handle) / 1e3
        except pynvml.NVMLError as exc:
            raise ValueError(str(exc)) from exc


def open_nvidia(library: Nvml = pynvml) -> Nvidia | Missing:
    """Load the driver's library and list the cards."""
    try:
        library.nvmlInit()
    except pynvml.NVMLError as exc:
        return no_sensor(f"NVML: {exc}")
    try:
        handles = [library.nvmlDeviceGetHandleByIndex(n) for n in range(library.nvmlDeviceGetCount())]
        cards = tuple(_card(library, handle) for handle in handles)
    except pynvml.NVMLError as exc:
        cards, words = (), str(exc)
    else:
        words = "no card"
    if not cards:
        with contextlib.suppress(pynvml.NVMLError):
            library.nvmlShutdown()
        return no_sensor(f"NVML: {words}")
    return Nvidia(library, cards)


def _card(library: Nvml, handle: Any) -> Card:
    name = library.nvmlDeviceGetName(handle)
    try:
        pids = frozenset(int(one.pid) for one in library.nvmlDeviceGetComputeRunningProcesses(handle))
    except pynvml.NVMLError:
        pids = frozenset()
    return Card(handle=handle, name=name.decode() if isinstance(name, bytes) else name, pids=pids)
