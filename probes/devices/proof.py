"""All requests made of one device: its trials one after the other within a budget, and what they prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from pydantic import JsonValue

from probes.child import Outcome
from probes.context import Context
from probes.devices.capabilities import Request, default_trial, requests
from probes.devices.journal import Journal, digest
from probes.devices.judgement import Proofs, failure, judge, refusal
from probes.devices.properties import Check
from probes.devices.trial import Trial, Tried
from probes.evidence import Capability
from probes.schema import Model


class Proof(Model):
    """Capabilities, the native words behind them, and why the device stopped working before the end, if it did.

    `resumable` says that the budget left something for the next start.
    """

    capabilities: tuple[Capability, ...]
    native: dict[str, JsonValue]
    lost: str = ""
    resumable: bool = False


Attempt = Callable[[Trial, Path], Tried]


@dataclass(frozen=True, kw_only=True)
class Means:
    """How a trial is carried out, how long all of them may take, and where the finished ones are kept."""

    attempt: Attempt
    budget_s: float
    journal: Journal


def prove(context: Context, device: str, ir: Path, checks: Mapping[str, Check], means: Means) -> Proof:
    """Try settings one child at a time, default settings first; without those nothing else is tried."""
    refused = {name: check.refused for name, check in checks.items()}
    asked = requests(device, checks)
    if context.quick:
        # What the plugin's check refuses costs nothing.
        asked = tuple(request for request in asked if request.quick or refusal(request, refused) is not None)
    trials = _trials(device, asked, refused)
    finished = means.journal.read(context.clock())
    tried = _try_all(context, device, ir, means, trials=trials, finished=finished)
    lost = _lost(device, ir, means, tried)
    skipped = f"the budget of {means.budget_s:g} s was spent"
    proofs = Proofs(requests=asked, tried=tried, refused=refused, skipped=skipped, lost=lost)
    return Proof(
        capabilities=tuple(judge(request, proofs) for request in asked),
        lost=next(iter(lost.values()), ""),
        resumable=not lost and set(tried) != set(trials) and not failure(default_trial(device), tried),
        native={
            "value_check": {name: check.model_dump(mode="json") for name, check in checks.items()},
            "trials": {trials[trial]: _shown(result) for trial, result in tried.items()},
            "resumed": [name for trial, name in trials.items() if digest(trial) in finished],
        },
    )


def _trials(device: str, asked: Sequence[Request], refused: Mapping[str, Mapping[str, str]]) -> dict[Trial, str]:
    """Name the trials in the order they run, each once: what a request is held against comes before it."""
    trials = {default_trial(device): "default settings"}
    for request in asked:
        if refusal(request, refused) is None:
            own = _named(request)
            trials.setdefault(request.against, own if request.against == request.trial else f"for comparison: {own}")
            trials.setdefault(request.trial, own)
    return trials


def _try_all(
    context: Context, device: str, ir: Path, means: Means, *, trials: Mapping[Trial, str], finished: Mapping[str, Tried]
) -> dict[Trial, Tried]:
    """Run what is not finished yet while there is time; the default is always tried."""
    started, default = context.clock(), default_trial(device)
    tried: dict[Trial, Tried] = {}
    try:
        for number, (trial, name) in enumerate(trials.items(), start=1):
            if (known := finished.get(digest(trial))) is not None:
                tried[trial] = known
            elif trial == default or (context.clock() - started).total_seconds() < means.budget_s:
                context.say(f"{device}: [{number}/{len(trials)}] {name}")
                tried[trial] = means.attempt(trial, ir)
                means.journal.keep(trial, tried[trial], context.clock())
            if failure(default, tried):
                break
    except KeyboardInterrupt:
        context.say(
            f"{device}: {len(tried)} of {len(trials)} trials are kept; within an hour the same command goes on from there"
        )
        raise
    return tried


def _lost(device: str, ir: Path, means: Means, tried: Mapping[Trial, Tried]) -> dict[Trial, str]:
    """Find refusals that are none: those after which not even default settings run any more.

    Only the last trials are in doubt, because whatever answers later shows that the device was there.
    """
    default = default_trial(device)
    last = list(takewhile(lambda trial: tried[trial].outcome is Outcome.RAISED, reversed(list(tried))))
    if not last or default in last:
        return {}
    words = failure(default, {default: means.attempt(default, ir)})
    return dict.fromkeys(last, words) if words else {}


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
