"""Intel's xpu-smi as a sensor of power and memory, for cards whose driver gives no counter to everybody."""

from __future__ import annotations

import csv
import shutil
import subprocess
import threading
from pathlib import Path
from typing import IO, Final

from probes.evidence import Missing
from probes.sensors.track import Source, no_sensor

# The numbers of `xpu-smi dump --metrics` since 1.2; 2.0 still takes them. Columns are found by their titles.
_METRICS: Final = "1,18"
_POWER, _MEMORY = "GPU Power (W)", "GPU Memory Used (MiB)"
_FIRST_LINE_S: Final = 10.0


class XpuSmi:
    """A running `xpu-smi dump` of one card; its last line is what is read."""

    def __init__(self, program: str, card: str) -> None:
        """Start it; `card` is a PCI address or a number, '-1' every card.

        Raises:
            OSError: it cannot be started.
        """
        self._process = subprocess.Popen(  # noqa: S603
            [program, "dump", "-d", card, "-m", _METRICS, "-i", "1"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._columns: list[str] = []
        self._row: list[str] = []
        self._said = ""
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(self._process.stdout,), name="xpu-smi", daemon=True)
        self._thread.start()
        self._card = card

    @property
    def power(self) -> Source:
        """Power of the card, as xpu-smi averages it."""
        return Source(label=f"xpu-smi {self._card} power", unit="W", read=lambda: self._value(_POWER))

    @property
    def memory(self) -> Source:
        """Memory in use on the card, of every process."""
        return Source(label=f"xpu-smi {self._card}, whole card", unit="B", read=lambda: self._value(_MEMORY) * 2**20)

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _listen(self, source: IO[str] | None) -> None:
        for line in source or ():
            cells = [cell.strip() for cell in next(csv.reader([line]), [])]
            if not self._columns and "Timestamp" in cells:
                self._columns = cells
            elif self._columns and len(cells) == len(self._columns):
                self._row = cells
                self._first.set()
            elif line.strip():
                self._said = line.strip()
        self._first.set()

    def _value(self, column: str) -> float:
        """Read a column of the last line; N/A is no number, and raises as a reading that failed does."""
        self._first.wait(_FIRST_LINE_S)
        if self._process.poll() is not None:
            raise ValueError(f"xpu-smi ended{f': {self._said}' if self._said else ''}")
        if column not in self._columns or not self._row:
            raise ValueError(f"xpu-smi tells no {column}")
        return float(self._row[self._columns.index(column)])


def start_xpu_smi(card: str, program: Path | None = None) -> XpuSmi | Missing:
    """Start xpu-smi for a card, or say that it is not there."""
    found = str(program) if program is not None else shutil.which("xpu-smi")
    if found is None:
        return no_sensor("xpu-smi is not installed")
    try:
        return XpuSmi(found, card)
    except OSError as exc:
        return no_sensor(f"xpu-smi: {exc.strerror}")
