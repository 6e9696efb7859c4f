"""What the small models of a machine are and brought: the newest run of each, and whether the seven techniques bear on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gen.coverage import Bearing, bearing_on_model
from gen.knowledge import Knowledge
from probes.evidence import Capability, KindClaim, Metric, Missing, Run, RunKind, Technique

_HEADLINE = ("_per_s", "real_time_factor")
# The settings by which arms of a workload differ.
_BATCH, _WEIGHTS = "batch_size", "compute_type"


@dataclass(frozen=True, kw_only=True)
class MeasuredWorkload:
    """One model on one machine. `last` is the newest run, which may say why there is none to use."""

    subject: str
    last: Run
    usable: Run | None

    @property
    def claim(self) -> KindClaim | None:
        """What the model was seen to be, by the last run that saw it."""
        seen = next((run for run in (self.last, self.usable) if run is not None and run.kinds), None)
        return None if seen is None else seen.kinds[0]

    def bearing(self, technique: Technique, knowledge: Knowledge) -> Bearing | None:
        """Say how a technique bears on it; None where nothing tells what it is."""
        return None if self.claim is None else bearing_on_model(self.claim.kind, technique, knowledge)

    def shown(self, technique: Technique) -> tuple[Capability, ...]:
        """Give what running the model showed about a technique."""
        run = self.usable or self.last
        return tuple(one for one in run.capabilities if one.technique is technique)

    def headlines(self) -> tuple[Metric, ...]:
        """Give what it brings per second in each arm, then how long a request of the first takes, and its memory."""
        if self.usable is None:
            return ()
        run, baseline = self.usable, next((arm.name for arm in self.usable.arms if arm.role == "baseline"), "")
        rates = (one for one in run.metrics if one.name.endswith(_HEADLINE))
        others = (run.metric("latency_s", baseline), run.metric("memory_bytes"))
        return (*rates, *(one for one in others if one is not None))

    def weights(self) -> tuple[tuple[str, Metric], ...]:
        """Give what it brings with its weights in each precision that was measured, one input a request."""
        if self.usable is None:
            return ()
        told = [(arm, str(arm.settings[_WEIGHTS])) for arm in self.usable.arms if _WEIGHTS in arm.settings]
        alone = [(precision, arm.name) for arm, precision in told if arm.settings.get(_BATCH) == 1]
        rates = {one.arm: one for one in self.usable.metrics if one.name.endswith(_HEADLINE) and one.samples}
        return tuple((precision, rates[arm]) for precision, arm in alone if arm in rates)

    @property
    def engine(self) -> str:
        """Name what ran it."""
        run = self.usable or self.last
        return "" if isinstance(run.runtime, Missing) else run.runtime.name


def measured_workloads(runs: Iterable[Run]) -> tuple[MeasuredWorkload, ...]:
    """Collect the workloads among the runs of one machine, in the order of their names."""
    of_kind = sorted((run for run in runs if run.kind is RunKind.WORKLOAD), key=lambda run: (run.started_at, run.id))
    last = {run.subject: run for run in of_kind}
    usable: dict[str, Run] = {}
    for run in of_kind:
        # A quick run leaves arms out, so that it never takes the place of a whole one of the same model.
        held = usable.get(run.subject)
        if run.validity.valid and not (run.quick and held is not None and not held.quick and held.model == run.model):
            usable[run.subject] = run
    return tuple(MeasuredWorkload(subject=name, last=last[name], usable=usable.get(name)) for name in sorted(last))
