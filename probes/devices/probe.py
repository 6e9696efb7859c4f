"""The device probe: one run per OpenVINO device, with its properties and what it proved to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from probes.child import Outcome, run_child
from probes.context import Context
from probes.devices.capabilities import (
    ALWAYS_ASKED,
    KV_PRECISION,
    QUICK_PRECISIONS,
    Reference,
    Request,
    default_trial,
    failure,
    judge,
    precision_requests,
    prefix_requests,
    sequence_requests,
)
from probes.devices.engine import RUNTIME
from probes.devices.properties import absence
from probes.devices.trial import Trial, Tried, try_settings
from probes.devices.words import runtime_words
from probes.drafts import proof as speculation
from probes.drafts.capabilities import not_tried
from probes.evidence import Capability, CapabilityState, Decoding, Device, Missing, MissingReason, Run, RunKind, Runtime, slug
from probes.model import ModelFiles, genai_version
from probes.schema import Model

_LOOK_TIMEOUT_S = 60.0
_LOOK_MEMORY_BYTES = 2 * 2**30


class Listing(Model):
    """What the runtime lists: devices, why a known plugin has none, and versions."""

    devices: tuple[str, ...] = ()
    absent: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}


class Check(Model):
    """What the plugin's own check said about the values of one property."""

    listed: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    refused: dict[str, str] = {}
    complaint: str = ""


class Proof(Model):
    """Capabilities, and the native words behind them."""

    capabilities: tuple[Capability, ...]
    native: dict[str, JsonValue]


def probe_devices(context: Context, model: ModelFiles, devices: Sequence[str] | None = None) -> list[Run]:
    """Probe the named devices, or all that OpenVINO has.

    A device that is not there, has no driver or takes the runtime down becomes a run that says so.
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
    return [_probe_device(context, model, device, listing) for device in named]


def _probe_device(context: Context, model: ModelFiles, name: str, listing: Listing) -> Run:
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
    proof = _prove(context, name, model.ir)
    drafts = _prove_drafts(context, name, model.ir, proof)
    return context.run(
        RunKind.DEVICES,
        slug(name),
        started_at,
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


def _prove(context: Context, device: str, ir: Path) -> Proof:
    """Try settings one child at a time, default settings first; without those nothing else is tried."""
    check = _check(device)
    default = default_trial(device)
    requests = [*precision_requests(device, check.candidates or ALWAYS_ASKED), *prefix_requests(device)]
    if context.quick:
        requests = [request for request in requests if _is_quick(request, check)]
    else:
        requests += sequence_requests(device)
    open_trials = {request.trial: _named(request) for request in requests if _refusal(request, check) is None}
    tried: dict[Trial, Tried] = {}
    trials = {default: "default settings", **{trial: name for trial, name in open_trials.items() if trial != default}}
    for number, (trial, name) in enumerate(trials.items(), start=1):
        context.say(f"{device}: [{number}/{len(trials)}] {name}")
        tried[trial] = try_settings(trial, ir)
        if failure(default, tried):
            break
    references = [
        Reference(name="the default" if trial == default else trials[trial], observation=result.observation)
        for trial, result in tried.items()
        if result.observation is not None and not failure(default, tried) and _comparable(trial, default)
    ]
    return Proof(
        capabilities=tuple(
            judge(request, refusal=_refusal(request, check), tried=tried, references=references) for request in requests
        ),
        native={
            "value_check": {KV_PRECISION: check.model_dump(mode="json")},
            "trials": {trials[trial]: _shown(result) for trial, result in tried.items()},
        },
    )


def _prove_drafts(context: Context, device: str, ir: Path, proof: Proof) -> speculation.Proof:
    """Try drafts where the engine runs at all."""
    tried = [capability for capability in proof.capabilities if capability.seconds is not None]
    broken = next((capability.words for capability in proof.capabilities if capability.state is CapabilityState.FAILED), "")
    if not tried:
        return speculation.Proof(capabilities=(not_tried(broken),), native={})
    return speculation.prove(ir, device, quick=context.quick, say=context.say)


def _check(device: str) -> Check:
    """Offer all values to the plugin's check; one that takes the process down refuses nothing."""
    result = run_child(
        "probes.devices.properties:check_values",
        {"device": device, "name": KV_PRECISION, "values": list(ALWAYS_ASKED)},
        timeout_s=_LOOK_TIMEOUT_S,
        memory_bytes=_LOOK_MEMORY_BYTES,
    )
    if result.outcome is not Outcome.OK:
        return Check(complaint=f"{result.outcome}: {runtime_words(result.words)}")
    return Check.model_validate_json(json.dumps(result.value))


def _refusal(request: Request, check: Check) -> str | None:
    return check.refused.get(request.requested) if request.name == KV_PRECISION else None


def _is_quick(request: Request, check: Check) -> bool:
    """Keep what costs nothing because the check refuses it, and the few settings that fleets use."""
    return request.name != KV_PRECISION or request.requested in QUICK_PRECISIONS or request.requested in check.refused


def _comparable(trial: Trial, default: Trial) -> bool:
    """Tell whether a trial differs from the default in plugin properties only."""
    return trial.scheduler == default.scheduler


def _named(request: Request) -> str:
    return f"{request.name}={request.requested}"


def _shown(tried: Tried) -> JsonValue:
    shown: JsonValue = {
        "outcome": tried.outcome.value,
        "words": tried.words,
        "loaded": tried.loaded,
        "seconds": round(tried.seconds, 3),
        "peak_rss_bytes": tried.peak_rss_bytes,
        "observation": None if tried.observation is None else tried.observation.model_dump(mode="json"),
    }
    return shown


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
