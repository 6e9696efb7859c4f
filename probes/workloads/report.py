"""What a workload hands to the probe from its child process."""

from __future__ import annotations

from probes.evidence import CapabilityState
from probes.schema import Model


class Attempt(Model):
    """One file that OpenVINO was asked to load, and what came of it."""

    file: str
    state: CapabilityState
    words: str = ""
    effect: str = ""


class Structure(Model):
    """A network as OpenVINO compiled it: `kind` by its operations, `why` in counts, `states` the variables it keeps."""

    kind: str
    why: str
    states: int
    precision: str
    executes_on: tuple[str, ...]
    full_device_name: str


class Turn(Model):
    """One repetition of one arm: how long each of its requests took."""

    arm: str
    seconds: tuple[float, ...]


class Report(Model):
    """Everything measured. `left_out` are arms without turns and why; `warmup_requests` came before the first turn."""

    attempts: tuple[Attempt, ...]
    structure: Structure | None
    dimensions: int = 0
    turns: tuple[Turn, ...]
    left_out: dict[str, str]
    warmup_requests: int
