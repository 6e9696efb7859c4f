"""Memory of a process and its descendants, as the operating system counts it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import psutil

_HIGH_WATER = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def tree_rss_bytes(pid: int) -> int:
    """Sum the resident memory of a process and its descendants; 0 once the process is gone.

    Pages that processes share, such as mapped model files, count once per process.
    """
    try:
        root = psutil.Process(pid)
        members = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0
    return sum(_rss_bytes(member) for member in members)


def own_peak_rss_bytes(root: Path = Path("/")) -> int:
    """Read the largest resident set this process has had.

    On Linux from VmHWM: ru_maxrss of a freshly started process still holds the peak of the
    process that started it (kernel, fs/exec.c: exec_mmap keeps signal->maxrss).
    """
    try:
        peak = high_water_bytes((root / "proc/self/status").read_text())
    except OSError:
        peak = None
    if peak is not None:
        return peak
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def high_water_bytes(status: str) -> int | None:
    """Find VmHWM in the text of /proc/PID/status."""
    found = _HIGH_WATER.search(status)
    return int(found[1]) * 1024 if found else None


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
