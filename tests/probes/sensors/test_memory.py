"""Resident memory of real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from probes.sensors.memory import high_water_bytes, own_peak_rss_bytes, tree_rss_bytes


def test_high_water_mark_is_read_in_bytes() -> None:
    assert high_water_bytes("VmPeak:\t  200 kB\nVmHWM:\t    1024 kB\nVmRSS:\t 900 kB\n") == 1024 * 1024
    assert high_water_bytes("Name:\tpython\n") is None


def test_own_peak_is_at_least_what_is_held_now() -> None:
    assert own_peak_rss_bytes() >= 0.9 * psutil.Process().memory_info().rss


def test_without_procfs_the_peak_comes_from_the_kernel_call(tmp_path: Path) -> None:
    assert own_peak_rss_bytes(tmp_path) > 2**20


def test_descendants_count_and_a_gone_process_holds_nothing() -> None:
    hold = "held = bytearray(b'x') * 60_000_000; print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        process.stdout.readline()
        assert tree_rss_bytes(process.pid) > 60_000_000
        assert tree_rss_bytes(os.getpid()) > tree_rss_bytes(process.pid)
        process.communicate(b"\n")
    assert tree_rss_bytes(process.pid) == 0
