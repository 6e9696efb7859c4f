"""How the speed of memory is measured: past the caches, on any device, and counted as it moves."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from probes.micro.bandwidth import LARGEST_BYTES, SMALLEST_BYTES, DeviceMemory, Memory, buffer_bytes, last_cache_bytes


def cache(root: Path, core: int, level: str, size: str, *, shared: str) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{core}/cache/index{level}"
    folder.mkdir(parents=True)
    for name, value in (("level", level), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(f"{value}\n")


def test_each_shared_cache_of_the_last_level_counts_once(tmp_path: Path) -> None:
    for core in range(4):
        cache(tmp_path, core, "2", "512K", shared=str(core))
        cache(tmp_path, core, "3", "32768K", shared="0-1" if core < 2 else "2-3")
    assert last_cache_bytes(tmp_path) == 2 * 32 * 2**20


@pytest.mark.parametrize(("level", "size"), [("three", "32M"), ("3", ""), ("3", "32Q"), ("3", "lots")])
def test_a_cache_that_cannot_be_read_is_passed_over(tmp_path: Path, level: str, size: str) -> None:
    cache(tmp_path, 0, level, size, shared="0")
    assert last_cache_bytes(tmp_path) is None


def test_the_buffer_is_larger_than_the_cache_and_never_takes_the_memory() -> None:
    assert buffer_bytes(None) == buffer_bytes(2**20) == SMALLEST_BYTES
    assert buffer_bytes(2**28) == 2**29
    assert buffer_bytes(2**40) == LARGEST_BYTES


def test_every_byte_of_memory_is_copied() -> None:
    with contextlib.closing(Memory(2**20)) as memory:
        assert memory.read_s() > 0
        assert not memory.copied
        assert memory.copy_s() > 0
        assert memory.copied


@pytest.mark.engine
def test_a_device_adds_to_a_buffer_that_it_keeps() -> None:
    """The state grows by one at each pass, so each pass wrote it and the next one read it."""
    memory = DeviceMemory("CPU", 2**20)
    first = memory.value
    assert memory.copy_s() > 0
    assert memory.copy_s() > 0
    assert memory.value == first + 2
