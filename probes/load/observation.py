"""A load run with everything round it: the sensors of the server's machine, and the server's own metrics."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue

from probes.endpoints.detect import Detection
from probes.endpoints.reading import Reading
from probes.evidence import Metric, Missing
from probes.fleet import RuntimeName
from probes.load.permission import is_this_machine
from probes.load.run import Finding, Gate, Shape, measure
from probes.load.series import Series
from probes.load.serverside import Scraper, authority, identify
from probes.load.task import Door
from probes.sensors.server import Figures, absent, elsewhere, watch_server


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was seen round one run. `here` says that the server runs on this machine."""

    reading: Reading | None
    here: bool
    series: tuple[Series, ...]
    native: dict[str, JsonValue]


class Observer:
    """Asks once what runs behind a gate, and then watches run after run."""

    def __init__(self, gate: Gate, door: Door, *, expected: RuntimeName | None = None, during: bool = True) -> None:
        """`during` False leaves out readings of the server's metrics while it is under load.

        Raises:
            InputError: the authority's file is none.
        """
        self.gate, self.door = gate, door
        self._tls = authority(gate)
        self._during = during
        self.detection: Detection = identify(gate, self._tls, expected)

    def measure(
        self,
        shape: Shape,
        started_at: datetime,
        hired: Sequence[subprocess.Popen[bytes]] = (),
        tokenizer: Path | None = None,
    ) -> tuple[Finding, Observation]:
        """Put a load on as `probes.load.run.measure` does, and watch.

        Raises:
            HostError: workers cannot be started, the folder for temporary files is full, or the tokenizer cannot be used.
        """
        host, port = str(self.door.address[0]), int(self.door.address[1])
        watch = watch_server(host, port) if is_this_machine(host) else elsewhere()
        scraper = Scraper(self.gate, self._tls, self.detection, during=self._during)
        with ExitStack() as stack:
            stack.enter_context(scraper)
            if not isinstance(watch, Missing):
                stack.enter_context(watch)
            finding = measure(self.gate, shape, self.door, started_at, hired, tokenizer=tokenizer)
        window = finding.window
        figures: Figures = (
            absent(watch) if isinstance(watch, Missing) else watch.figures(window.start_ns, window.end_ns, finding.tok_s)
        )
        told = scraper.told(window)
        return finding, Observation(
            reading=self.detection.reading,
            here=not isinstance(watch, Missing),
            series=(*(_series(metric) for metric in figures.metrics), *told.series),
            native={"sensors": figures.native, "server_metrics": told.native},
        )


def _series(metric: Metric) -> Series:
    return Series(
        name=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        per=metric.per,
        samples=metric.samples,
        missing=metric.missing,
    )
