"""Resets and hangs of accelerators, as the kernel's log tells them while something runs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from probes.evidence import Missing
from probes.sensors.track import no_sensor

# What each driver says once or more when a device or engine had to be reset, hung or was given up. The words are those of
# the drivers' sources: xe_guc_submit.c, xe_gt.c, xe_device.c; i915_gpu_error.c, intel_reset.c; amdgpu_job.c,
# amdgpu_device.c; NVRM reports everything as Xid.
_RESET: Final = re.compile(
    r"\bxe \S+: .*(engine reset|gt\d*: .*reset (?:queued|started|done|failed)|timedout job|declared device .* wedged)"
    r"|\bi915 \S+: .*(gpu hang|resetting (?:chip|rcs|ccs|bcs|vcs|vecs))"
    r"|\bamdgpu\b.*(gpu reset begin|ring \S+ timeout|\S+ ring reset)"
    r"|\bnvrm: (xid)",
    re.IGNORECASE,
)
_DEVICE: Final = re.compile(r"\b(?:PCI:)?((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)", re.IGNORECASE)
# One reset writes many lines; those of a device this near to each other are one.
_ONE_INCIDENT_S: Final = 10.0
_RECORD_BYTES: Final = 8192
_PATIENCE_S: Final = 10.0
_WORDS_CHARACTERS: Final = 200
Ask = Callable[[Sequence[str]], str]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the log and its time, in seconds of a clock that only goes on."""

    at_s: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Incident:
    """A reset or hang of one device, in the driver's own words."""

    device: str
    words: str


class KernelLog:
    """What the kernel writes from the moment this is made: from /dev/kmsg, else from the journal."""

    def __init__(self, root: Path = Path("/"), *, ask: Ask | None = None, now_s: Callable[[], float] = time.time) -> None:
        self._ask = ask or (_journalctl if root == Path("/") and shutil.which("journalctl") else None)
        self._began_s = now_s()
        self._file: int | None = None
        self._why = ""
        try:
            self._file = os.open(root / "dev/kmsg", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as exc:
            self.close()
            self._why = f"/dev/kmsg: {exc.strerror}"

    def since(self) -> tuple[Incident, ...] | Missing:
        """Give the resets since the beginning, or say why nobody can tell."""
        if self._file is not None:
            return incidents(_records(self._file))
        if self._ask is None:
            return no_sensor(f"{self._why}, and there is no journal")
        try:
            said = self._ask(["--dmesg", "--output=short-unix", "--no-pager", f"--since=@{self._began_s:.0f}"])
        except (OSError, subprocess.SubprocessError) as exc:
            return no_sensor(f"{self._why}; the journal: {exc}")
        return incidents(_journal(said))

    def close(self) -> None:
        """Let go of the log."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None


def incidents(lines: Iterable[Line]) -> tuple[Incident, ...]:
    """Find the resets among the lines of a log; the many lines of one reset are one."""
    found: list[Incident] = []
    last: dict[str, float] = {}
    for line in lines:
        if not _RESET.search(line.text):
            continue
        match = _DEVICE.search(line.text)
        device = match.group(1).lower() if match else ""
        if device not in last or line.at_s - last[device] > _ONE_INCIDENT_S:
            found.append(Incident(device=device, words=" ".join(line.text.split())))
        last[device] = line.at_s
    return tuple(found)


def record(text: str) -> Line | None:
    """Read one record of /dev/kmsg: priority, number, microseconds and flags before the first semicolon."""
    head, semicolon, rest = text.partition(";")
    fields = head.split(",")
    if not semicolon or len(fields) < 3 or not fields[2].isdigit():
        return None
    return Line(at_s=int(fields[2]) / 1e6, text=rest.split("\n", 1)[0])


def _records(file: int) -> Iterable[Line]:
    """Read what is there; the kernel gives one record a read, and EPIPE for records that it has overwritten."""
    while True:
        try:
            piece = os.read(file, _RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:
            continue
        if not piece:
            return
        for text in piece.decode("utf-8", "replace").split("\n"):
            line = record(text)
            if line is not None:
                yield line


def _journal(said: str) -> Iterable[Line]:
    for text in said.splitlines():
        stamp, _, rest = text.partition(" ")
        with contextlib.suppress(ValueError):
            yield Line(at_s=float(stamp), text=rest)


def _journalctl(arguments: Sequence[str]) -> str:
    done = subprocess.run(  # noqa: S603
        ["journalctl", *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=True,
    )
    # It also exits 0 where there is no journal, and where this user is shown only their own messages.
    if complaint := done.stderr.strip():
        raise OSError(" ".join(complaint.split())[:_WORDS_CHARACTERS])
    return done.stdout
