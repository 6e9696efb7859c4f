"""All trials of one device: interrupted, out of time, lost on the way, and planted ones that break."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from probes.child import Outcome
from probes.context import Context
from probes.devices.capabilities import CHECKED, default_trial
from probes.devices.journal import LIFETIME, Journal
from probes.devices.proof import Attempt, Means, Proof, prove
from probes.devices.properties import Check
from probes.devices.trial import Bounds, Observation, Trial, Tried, try_settings
from probes.evidence import CapabilityState

DEFAULT = default_trial("CPU")
CHECKS = {"KV_CACHE_PRECISION": Check(candidates=tuple(CHECKED["KV_CACHE_PRECISION"]), refused={"i8": "Wrong value i8"})}
TOKENS = tuple(range(16))


def answered(trial: Trial) -> Tried:
    """Answer as an engine that takes every setting and changes nothing."""
    count = trial.times * trial.at_once
    observation = Observation(
        dump=None,
        tokens=(TOKENS,) * count,
        log_likelihoods=(-1.0,) * count,
        steps_to_first=(1,) * count,
        bytes_per_token=1,
        pool_bytes=(1, 1),
        files=(0, 0, 0),
    )
    return Tried(outcome=Outcome.OK, observation=observation, loaded=True, words="", seconds=1.0, peak_rss_bytes=1)


def raised(words: str) -> Tried:
    return Tried(outcome=Outcome.RAISED, observation=None, loaded=False, words=words, seconds=1.0, peak_rss_bytes=1)


class Engine:
    """Answer, and remember what was tried; from trial number `at` on do something else."""

    def __init__(self, then: Callable[[Trial], Tried] = answered, *, at: int | None = None) -> None:
        self.trials: list[Trial] = []
        self._then, self._at = then, at

    def __call__(self, trial: Trial, _ir: Path) -> Tried:
        self.trials.append(trial)
        return answered(trial) if self._at is None or len(self.trials) < self._at else self._then(trial)


def proof(context: Context, attempt: Attempt, *, budget_s: float = 3600) -> Proof:
    journal = Journal.of(context.cache, {"device": "CPU"})
    found = prove(context, "CPU", Path("model"), CHECKS, Means(attempt=attempt, budget_s=budget_s, journal=journal))
    if not found.resumable:
        journal.end()
    return found


def states(found: Proof) -> dict[str, CapabilityState]:
    return {f"{one.name}={one.requested}": one.state for one in found.capabilities}


def interrupted(_trial: Trial) -> Tried:
    raise KeyboardInterrupt


def test_every_trial_runs_once_and_the_default_first(context: Context) -> None:
    engine = Engine()
    found = proof(context, engine)
    assert engine.trials[0] == DEFAULT
    assert len(set(engine.trials)) == len(engine.trials)
    assert CapabilityState.SKIPPED not in states(found).values()
    assert states(found)["KV_CACHE_PRECISION=i8"] is CapabilityState.REFUSED
    assert all(dict(trial.properties).get("KV_CACHE_PRECISION") != "i8" for trial in engine.trials)


def test_what_an_interrupted_probe_finished_is_not_done_again(context: Context) -> None:
    said: list[str] = []
    first, second, third = Engine(interrupted, at=6), Engine(), Engine()
    with pytest.raises(KeyboardInterrupt):
        proof(replace(context, say=said.append), first)
    assert "CPU: 5 of " in said[-1]
    found = proof(context, second)
    assert not set(first.trials[:5]) & set(second.trials)
    assert second.trials[0] == first.trials[5]
    assert found.native["resumed"] == [line.partition("] ")[2] for line in said[:5]]
    assert states(found) == states(proof(context, third))
    assert third.trials[0] == DEFAULT, "a probe that has come to its end leaves nothing to go on from"


def test_an_hour_later_everything_is_done_again(context: Context) -> None:
    with pytest.raises(KeyboardInterrupt):
        proof(context, Engine(interrupted, at=6))
    late, now = Engine(), context.clock()
    proof(replace(context, clock=lambda: now + LIFETIME + timedelta(minutes=1)), late)
    assert late.trials[0] == DEFAULT


def test_a_spent_budget_skips_the_rest_and_the_next_start_goes_on_with_it(context: Context) -> None:
    first, second = Engine(), Engine()
    found = proof(context, first, budget_s=7.5)
    assert 3 <= len(first.trials) <= 5
    assert list(states(found).values()).count(CapabilityState.SKIPPED) > 20
    rest = proof(context, second)
    assert not set(first.trials) & set(second.trials)
    assert CapabilityState.SKIPPED not in states(rest).values()


def test_without_default_settings_nothing_else_is_tried_and_nothing_is_kept(context: Context) -> None:
    for _ in range(2):
        engine = Engine(lambda _trial: raised("Cannot load library libOpenCL.so.1"), at=1)
        found = proof(context, engine)
        assert engine.trials == [DEFAULT]
        assert set(states(found).values()) == {CapabilityState.FAILED, CapabilityState.REFUSED}


def test_a_device_that_vanishes_refuses_nothing(context: Context) -> None:
    engine = Engine(lambda _trial: raised("CL_DEVICE_NOT_AVAILABLE"), at=8)
    found = proof(context, engine)
    assert engine.trials[-1] == DEFAULT
    assert found.lost == "the engine raised: CL_DEVICE_NOT_AVAILABLE"
    refused = [name for name, state in states(found).items() if state is CapabilityState.REFUSED]
    assert refused == ["KV_CACHE_PRECISION=i8"], "only the check's own refusal stands"
    again = Engine()
    proof(context, again)
    assert again.trials[0] == DEFAULT, "nothing of a lost device is kept"


def test_a_refusal_at_the_very_end_stands_when_the_default_still_runs(context: Context) -> None:
    engine = Engine()
    proof(context, engine)
    last = engine.trials[-1]
    found = proof(context, lambda trial, _ir: raised("not on this GPU") if trial == last else answered(trial))
    assert found.lost == ""
    assert list(states(found).values())[-1] is CapabilityState.REFUSED


@pytest.mark.parametrize(
    ("target", "outcome", "words"),
    [
        ("crash", Outcome.CRASHED, "SIGABRT"),
        ("hang", Outcome.TIMED_OUT, "no end after 3 s"),
        ("eat", Outcome.OUT_OF_MEMORY, "the bound is"),
        ("choke", Outcome.OUT_OF_MEMORY, "CL_OUT_OF_HOST_MEMORY"),
    ],
)
@pytest.mark.usefixtures("planted")
def test_a_trial_that_breaks_is_an_outcome_and_the_next_one_runs(
    context: Context, target: str, outcome: Outcome, words: str
) -> None:
    bounds = Bounds(
        target=f"planted:{target}",
        timeout_s=3 if target == "hang" else 60,
        memory_bytes=2**28,
    )

    def attempt(trial: Trial, ir: Path) -> Tried:
        asked = dict(trial.properties).get("KV_CACHE_PRECISION")
        return try_settings(trial, ir, bounds) if asked == "u4" and trial.at_once == DEFAULT.at_once else answered(trial)

    found = proof(replace(context, quick=True), attempt)
    u4 = next(one for one in found.capabilities if one.requested == "u4")
    assert (u4.state, u4.words.partition(": ")[0]) == (CapabilityState.FAILED, f"the engine {outcome}")
    assert words in u4.words
    assert states(found)["KV_CACHE_PRECISION=f32"] is not CapabilityState.FAILED
