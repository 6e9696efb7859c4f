"""One probe run from plan to evidence files: each part writes as soon as it knows something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from probes.archive import write_run
from probes.context import Context
from probes.declared.probe import probe_declared
from probes.declared.shape import read_shape
from probes.devices import probe as devices
from probes.endpoints.embedded.server import running
from probes.endpoints.probe import INTERRUPTED, Target, probe_endpoint, survey
from probes.errors import ProbeError
from probes.evidence import Endpoint, EndpointState, KindClaim, Provenance, ProvenanceKind, Run, RunKind
from probes.files import ensure_writable
from probes.fleet import Fleet, RuntimeName
from probes.micro.catalogue import Extent, of_extent
from probes.micro.probe import probe_micro
from probes.model import prepare_model
from probes.plan import EMBEDDED, Part, Plan
from probes.workloads.probe import probe_workloads

_BUDGETS = {Extent.QUICK: devices.QUICK, Extent.CORE: devices.BESIDE_OTHER_PARTS, Extent.WHOLE: devices.WHOLE}
_STARTED_HERE = "http://127.0.0.1 (started for the run)"


@dataclass
class Result:
    """The files a run left behind, in the order they were written."""

    written: list[Path] = field(default_factory=list)
    interrupted: bool = False


def run_plan(plan: Plan, fleet: Fleet, context: Context, environ: Mapping[str, str], *, inventory: Path = Path()) -> Result:
    """Carry out a plan; Ctrl-C ends it after the children are gone and keeps what is written.

    `inventory` is the folder that paths of the inventory start from.

    Raises:
        HostError: the model cannot be prepared or the evidence folder cannot be written.
        InputError: a file that declares a service cannot be understood; nothing has been measured then.
    """
    ensure_writable(context.evidence)
    result = Result()
    try:
        for part in plan.parts:
            for runs in _part(part, plan, fleet, context, environ, inventory=inventory):
                result.written.extend(write_run(run, context.evidence) for run in runs)
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _part(
    part: Part, plan: Plan, fleet: Fleet, context: Context, environ: Mapping[str, str], *, inventory: Path
) -> Iterable[list[Run]]:
    if part is Part.DECLARED:
        yield probe_declared(context, fleet, inventory, environ, plan.declared)
    elif part is Part.DEVICES:
        yield devices.probe_devices(context, prepare_model(context.cache), budget=_BUDGETS[plan.extent])
    elif part is Part.MICRO:
        model = prepare_model(context.cache)
        # One at a time, so that Ctrl-C in the second keeps the first.
        for one in of_extent(plan.extent):
            yield probe_micro(context, model, only=(one.subject,), extent=plan.extent)
    elif part is Part.WORKLOADS:
        model = prepare_model(context.cache)
        yield from ([run] for run in probe_workloads(context, plan.workloads, model.ir))
    else:
        if plan.embedded:
            yield [_embedded(fleet, context)]
        if plan.services:
            reached, seen = survey(context, fleet, environ, plan.services)
            yield [*reached, seen]
            if INTERRUPTED in seen.validity.reasons:
                raise KeyboardInterrupt


def _embedded(fleet: Fleet, context: Context) -> Run:
    model = prepare_model(context.cache)
    context.say("Starting the embedded service on 127.0.0.1")
    started_at = context.clock()
    try:
        with running(fleet.embedded.settings, context.cache) as address:
            context.say("Asking the embedded service")
            target = Target(
                subject=EMBEDDED,
                url=address.url,
                scope=context.local,
                limits=fleet.embedded.probing,
                shown_url=_STARTED_HERE,
                expected=RuntimeName.OPENVINO_GENAI_EMBEDDED,
            )
            run = probe_endpoint(context, target)
    except ProbeError as exc:
        # What the engine refuses says nothing about the other services, which are asked all the same.
        words = f"it does not start with embedded.settings of the inventory: {exc}"
        context.say(f"{EMBEDDED}: failed ({words})")
        return context.run(
            RunKind.ENDPOINT,
            EMBEDDED,
            started_at,
            server=context.client,
            model=model.facts,
            endpoint=Endpoint(url=_STARTED_HERE, state=EndpointState.FAILED, detail=words),
            invalid=("the embedded service did not start",),
        )
    # No path of OVMS tells what the model is and how its weights are stored; here it is known, because this process
    # started the service.
    observed = Provenance(kind=ProvenanceKind.OBSERVED, date=run.date, source=run.id)
    served = tuple(
        KindClaim(kind=told.value, where=told.where, provenance=observed)
        for told in read_shape(model.ir, "the served model").kinds
    )
    return run.model_copy(update={"model": model.facts, "kinds": (*served, *run.kinds)})
