"""A library with the functions of NVML, its units and its errors, for machines that have no such card."""

# ruff: noqa: ARG002, N802 - the names and arguments are the library's
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pynvml


@dataclass(frozen=True)
class Process:
    pid: int
    usedGpuMemory: int | None  # noqa: N815


@dataclass(frozen=True)
class Memory:
    used: int


@dataclass(frozen=True)
class Event:
    eventData: int  # noqa: N815


@dataclass
class FakeNvml:
    """Two cards at most; `refused` are functions that this driver does not support."""

    processes: list[list[Process]] = field(default_factory=lambda: [[]])
    used: int = 9 * 2**30
    energy_mj: int = 0
    step_mj: int = 0
    power_mw: int = 250_000
    refused: set[str] = field(default_factory=set)
    xids: list[int] = field(default_factory=list)
    broken: int | None = None
    open: bool = False

    def _ask(self, name: str) -> None:
        if name in self.refused:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlInit(self) -> None:
        if self.broken is not None:
            raise pynvml.NVMLError(self.broken)
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return len(self.processes)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return index

    def nvmlDeviceGetName(self, handle: Any) -> str | bytes:
        return f"NVIDIA GeForce RTX 4090 #{handle}"

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Process]:
        self._ask("processes")
        return self.processes[handle]

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Memory:
        self._ask("memory")
        return Memory(self.used)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:
        self._ask("energy")
        self.energy_mj += self.step_mj
        return self.energy_mj

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:
        self._ask("power")
        return self.power_mw

    def nvmlEventSetCreate(self) -> Any:
        self._ask("events")
        return object()

    def nvmlDeviceRegisterEvents(self, handle: Any, types: int, events: Any) -> None:
        assert types == pynvml.nvmlEventTypeXidCriticalError

    def nvmlEventSetWait_v2(self, events: Any, timeout_ms: int) -> Event:
        if not self.xids:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        return Event(self.xids.pop(0))

    def nvmlEventSetFree(self, events: Any) -> None:
        assert events is not None
