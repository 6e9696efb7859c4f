"""NVML in its own units and errors: what the driver refuses is a reason, never 0."""

from __future__ import annotations

import pynvml
import pytest

from probes.evidence import Missing, MissingReason
from probes.sensors.nvidia import Nvidia, open_nvidia
from tests.probes.sensors.nvml import FakeNvml, Process


def opened(library: FakeNvml) -> Nvidia:
    found = open_nvidia(library)
    assert isinstance(found, Nvidia)
    return found


def test_machine_without_the_driver_has_no_sensor() -> None:
    """The real library, which says so on a machine like this one; a machine with a card has one."""
    found = open_nvidia()
    if isinstance(found, Nvidia):
        found.close()
        return
    assert found.missing is MissingReason.NO_SENSOR
    assert found.detail.startswith("NVML: ")


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
def test_words_of_the_library_are_the_reason(error: int) -> None:
    found = open_nvidia(FakeNvml(broken=error))
    assert isinstance(found, Missing)
    assert found.detail == f"NVML: {pynvml.NVMLError(error)}"


def test_driver_without_a_card_has_no_sensor_and_is_let_go() -> None:
    library = FakeNvml(processes=[])
    found = open_nvidia(library)
    assert isinstance(found, Missing)
    assert (found.detail, library.open) == ("NVML: no card", False)


def test_memory_is_that_of_the_servers_processes() -> None:
    nvidia = opened(FakeNvml(processes=[[Process(10, 3 * 2**30), Process(11, 2**30), Process(99, 2**33)]]))
    source = nvidia.memory(nvidia.cards[0], [10, 11])
    assert (source.read(), source.unit) == (4 * 2**30, "B")
    assert "processes of the server" in source.label


@pytest.mark.parametrize("processes", [[], [Process(10, None)]])
def test_whole_card_stands_in_where_the_driver_hides_processes_and_says_so(processes: list[Process]) -> None:
    nvidia = opened(FakeNvml(processes=[processes], used=5 * 2**30))
    source = nvidia.memory(nvidia.cards[0], [10])
    assert (source.read(), "whole card" in source.label) == (5 * 2**30, True)


def test_memory_that_is_gone_is_no_zero() -> None:
    library = FakeNvml(processes=[[Process(10, 2**30)]])
    nvidia = opened(library)
    source = nvidia.memory(nvidia.cards[0], [10])
    library.processes = [[]]
    with pytest.raises(ValueError, match="no memory on it any more"):
        source.read()


def test_energy_is_counted_and_power_stands_in_on_old_cards() -> None:
    nvidia = opened(FakeNvml(energy_mj=7_000))
    counter = nvidia.energy(nvidia.cards[0])
    assert (counter.read(), counter.unit, counter.counts) == (7.0, "J", True)
    old = opened(FakeNvml(refused={"energy"}))
    power = old.energy(old.cards[0])
    assert (power.read(), power.unit, power.counts) == (250.0, "W", False)


def test_refusal_while_reading_is_a_reading_that_failed() -> None:
    library = FakeNvml(refused={"energy"})
    nvidia = opened(library)
    power = nvidia.energy(nvidia.cards[0])
    library.refused.add("power")
    with pytest.raises(ValueError, match="Not Supported"):
        power.read()


def test_xid_errors_are_taken_once() -> None:
    nvidia = opened(FakeNvml(xids=[79, 31]))
    assert nvidia.watch() is None
    assert (nvidia.xids(), nvidia.xids()) == ([79, 31], [])
    nvidia.close()


def test_xid_errors_that_the_driver_does_not_tell_are_no_sensor() -> None:
    missing = opened(FakeNvml(refused={"events"})).watch()
    assert missing is not None
    assert missing.missing is MissingReason.NO_SENSOR
