"""What one worker is told to do, as it travels from the command to the worker's process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from probes.load.arrivals import Arrivals


@dataclass(frozen=True, kw_only=True)
class Guards:
    """What makes a run stop at once. Seconds, and counts per worker.

    `timeout_s` alone ends a request; all others stop the run, whose requests on their way still have that time.
    """

    errors_in_a_row: int = 5
    timeout_s: float = 60.0
    stall_s: float = 10.0
    first_byte_s: float = 60.0
    itl_s: float = 60.0
    latency_s: float = 60.0
    backlog: int = 64


@dataclass(frozen=True, kw_only=True)
class Door:
    """Where to connect. `name` is checked against the certificate; '' as `ca_file` means the system's authorities."""

    family: int
    address: tuple[str | int, ...]
    name: str
    secure: bool = False
    ca_file: str = ""
    insecure: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """The share of the load that one of `workers` workers puts on.

    `bodies` are the two whole HTTP requests, unique and sharing, each cut where its mark goes; a mark has
    `mark` and eight digits, so that one Content-Length holds for all. Request n of worker w has the number
    w + n * workers over the whole run.
    """

    worker: int
    workers: int
    door: Door
    bodies: tuple[tuple[str, str], ...] = field(repr=False)
    mark: str
    shared: float
    arrivals: Arrivals
    ramp_s: tuple[float, ...]
    rate: float
    seed: int
    at_most: int
    in_flight: int
    retries: int
    guards: Guards
    spool: str
    stats: str

    def line(self) -> bytes:
        """Write the task as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"


def read_task(line: bytes) -> Task:
    """Read what `Task.line` wrote."""
    document: dict[str, Any] = json.loads(line)
    door = document.pop("door")
    return Task(
        door=Door(**(door | {"address": tuple(door["address"])})),
        bodies=tuple((before, after) for before, after in document.pop("bodies")),
        arrivals=Arrivals(document.pop("arrivals")),
        ramp_s=tuple(document.pop("ramp_s")),
        guards=Guards(**document.pop("guards")),
        **document,
    )
