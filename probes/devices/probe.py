"""The device probe: one run per OpenVINO device, with its properties and what it proved to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from probes.child import Outcome, run_child
from probes.context import Context
from probes.devices.capabilities import CHECKED
from probes.devices.engine import RUNTIME
from probes.devices.journal import Journal
from probes.devices.proof import Attempt, Means, Proof, prove
from probes.devices.properties import Check, absence
from probes.devices.trial import try_settings
from probes.devices.words import runtime_words
from probes.drafts import proof as speculation
from probes.drafts.capabilities import not_tried
from probes.evidence import CapabilityState, Decoding, Device, Missing, MissingReason, Run, RunKind, Runtime, slug
from probes.model import ModelFiles, genai_version
from probes.schema import Model

_LOOK_TIMEOUT_S = 60.0
_LOOK_MEMORY_BYTES = 2 * 2**30


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long the trials of one device may take and, after them, its drafts; in seconds."""

    trials_s: float
    drafts_s: float


# What a quarter of an hour for devices and micro leaves for a device.
WHOLE = Budget(trials_s=260.0, drafts_s=70.0)
# What six minutes for all parts leave for a device, and two minutes.
BESIDE_OTHER_PARTS = Budget(trials_s=165.0, drafts_s=75.0)
QUICK = Budget(trials_s=40.0, drafts_s=25.0)


class Listing(Model):
    """What the runtime lists: devices, why a known plugin has none, and versions."""

    devices: tuple[str, ...] = ()
    absent: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}


def probe_devices(
    context: Context,
    model: ModelFiles,
    devices: Sequence[str] | None = None,
    *,
    budget: Budget = WHOLE,
    attempt: Attempt = try_settings,
) -> list[Run]:
    """Probe the named devices, or all that OpenVINO has, each within a budget.

    A device that is not there, has no driver or takes the runtime down becomes a run that says so. What the
    budget leaves out is skipped, and the next start within an hour goes on from there, as after a kill.
    """
    context.say("Listing OpenVINO devices")
    started_at = context.clock()
    listed = run_child("probes.devices.properties:list_devices", {}, timeout_s=_LOOK_TIMEOUT_S, memory_bytes=_LOOK_MEMORY_BYTES)
    if listed.outcome is not Outcome.OK:
        words = f"{listed.outcome}: {runtime_words(listed.words)}"
        return [_unread(context, "openvino", started_at, words, Listing(), reason="the runtime does not list devices")]
    listing = Listing.model_validate_json(json.dumps(listed.value))
    named = listing.devices if devices is None else tuple(dict.fromkeys(devices))
    if not named:
        return [_unread(context, "openvino", started_at, "OpenVINO has no device here", listing, reason="no device")]
    return [_probe_device(context, model, device, listing, budget=budget, attempt=attempt) for device in named]


def _probe_device(context: Context, model: ModelFiles, name: str, listing: Listing, *, budget: Budget, attempt: Attempt) -> Run:
    started_at = context.clock()
    context.say(f"{name}: reading properties")
    read = run_child(
        "probes.devices.properties:read_properties",
        {"device": name},
        timeout_s=_LOOK_TIMEOUT_S,
        memory_bytes=_LOOK_MEMORY_BYTES,
    )
    sent: list[Any] = list(read.sent)
    if not sent:
        words = runtime_words(read.words)
        reason = absence(words) if read.outcome is Outcome.RAISED else read.outcome.value
        return _unread(context, name, started_at, words, listing, reason=reason)
    device = Device(
        name=name,
        full_name=sent[0]["full_name"],
        properties={entry["name"]: entry["value"] for entry in sent[1:]},
    )
    journal = _journal(context, device, model, listing)
    means = Means(attempt=attempt, budget_s=budget.trials_s, journal=journal)
    proof = prove(context, name, model.ir, _checks(name), means)
    drafts = _prove_drafts(context, name, model.ir, proof, budget.drafts_s)
    run = context.run(
        RunKind.DEVICES,
        slug(name),
        started_at,
        invalid=(f"the device stopped working: {proof.lost}",) if proof.lost else (),
        server=context.client,
        device=device,
        runtime=_runtime(),
        model=model.facts,
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos=True),
        capabilities=(*proof.capabilities, *drafts.capabilities),
        native={
            **_native(listing),
            "plugin": read.value if read.outcome is Outcome.OK else f"{read.outcome}: {runtime_words(read.words)}",
            **proof.native,
            "speculation": drafts.native,
        },
    )
    if not proof.resumable:
        journal.end()
    return run


def _checks(device: str) -> dict[str, Check]:
    """Offer values to the plugin's check; what it was not asked because it crashed is not refused."""
    result = run_child(
        "probes.devices.properties:check_properties",
        {"device": device, "asked": {name: [*values] for name, values in CHECKED.items()}},
        timeout_s=_LOOK_TIMEOUT_S,
        memory_bytes=_LOOK_MEMORY_BYTES,
    )
    sent: list[Any] = list(result.sent)
    checks = {entry["name"]: Check.model_validate_json(json.dumps(entry["check"])) for entry in sent}
    broken = f"{result.outcome}: {runtime_words(result.words)}"
    return {name: checks.get(name, Check(complaint=broken)) for name in CHECKED}


def _journal(context: Context, device: Device, model: ModelFiles, listing: Listing) -> Journal:
    """Name the journal by all that may change what a trial shows."""
    files = [(model.ir / f"openvino_model.{kind}") for kind in ("xml", "bin")]
    return Journal.of(
        context.cache / "unfinished",
        {
            "machine": context.client.fingerprint,
            "quick": context.quick,
            "device": [device.name, device.full_name],
            "versions": {**listing.versions, "tool": context.tool.model_dump_json(exclude={"command"})},
            "model": [[str(file), *_state(file)] for file in files],
        },
    )


def _prove_drafts(context: Context, device: str, ir: Path, proof: Proof, budget_s: float) -> speculation.Proof:
    """Try drafts where the engine runs at all."""
    tried = [capability for capability in proof.capabilities if capability.seconds is not None]
    broken = next((capability.words for capability in proof.capabilities if capability.state is CapabilityState.FAILED), "")
    if not tried or proof.lost:
        return speculation.Proof(capabilities=(not_tried(proof.lost or broken),), native={})
    return speculation.prove(ir, device, quick=context.quick, say=context.say, budget_s=budget_s)


def _state(file: Path) -> list[int]:
    return [file.stat().st_size, file.stat().st_mtime_ns] if file.exists() else []


def _unread(context: Context, name: str, started_at: datetime, words: str, listing: Listing, *, reason: str) -> Run:
    """Report a device that could not even be asked for its properties."""
    missing = {"no driver": MissingReason.NOT_CONFIGURED, "no device": MissingReason.NOT_APPLICABLE}
    return context.run(
        RunKind.DEVICES,
        slug(name),
        started_at,
        invalid=(reason,),
        server=context.client,
        device=Missing(missing=missing.get(reason, MissingReason.FAILED), detail=f"{name}: {reason}: {words}"),
        runtime=_runtime(),
        native=_native(listing),
    )


def _runtime() -> Runtime:
    return Runtime(name=RUNTIME, version=genai_version())


def _native(listing: Listing) -> dict[str, JsonValue]:
    return {"versions": {**listing.versions}, "absent": {name: {**why} for name, why in listing.absent.items()}}
