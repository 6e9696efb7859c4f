"""Whether two sides may be compared: everything they ran under, and where it differs."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from gen.markdown import visible
from probes.errors import UsageError
from probes.evidence import Arm, Decoding, Load, Metric, Missing, MissingReason, ModelFacts, Run, Runtime, Scalar, Served

# Answers or prompts that differ by more than this cost differently, whatever serves them.
LENGTH_TOLERANCE = 0.05
_LENGTHS = {"prompt-length": "prompt_tokens", "answer-length": "completion_tokens"}
# What changes by itself when the first of these is changed on purpose.
_IMPLIES = {
    "host": ("driver", "device"),
    "device": ("driver",),
    "runtime": ("runtime-version",),
    "model": ("model-revision", "model-weights", "model-quantization", "prompt-length"),
}
CONDITIONS = (
    "asked-from",
    "host",
    "driver",
    "device",
    "runtime",
    "runtime-version",
    "model",
    "model-revision",
    "model-weights",
    "model-quantization",
    "prompt-set",
    "load",
    "concurrency",
    "max-tokens",
    "decoding",
    *_LENGTHS,
    "first-token",
    "token-source",
)
# Only what measures a stream over the network has these; elsewhere there is nothing unknown about them.
_OF_STREAMS = frozenset({"first-token", "token-source"})


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison: a run, or one arm of it."""

    run: Run
    arm: Arm | None = None

    @property
    def label(self) -> str:
        """Name the side for people."""
        return self.run.id if self.arm is None else f"{self.run.id} ({self.arm.name})"

    def metric(self, name: str) -> Metric | None:
        """Find a metric of this side."""
        return self.run.metric(name, self.arm.name if self.arm else "")

    @property
    def repeats_exactly(self) -> bool:
        """Tell whether every task was answered with the same text each time it was asked: its score has no noise then."""
        agreed, scored = self.metric("quality_repeat_agreement"), self.metric("task_quality")
        return bool(agreed and agreed.samples and min(agreed.samples) >= 1 and scored and len(scored.samples) > 1)

    @property
    def quality_tasks(self) -> str | None:
        """Identify the tasks that were scored; None where nobody says."""
        told = self.run.native.get("quality")
        mine = told.get(self.arm.name if self.arm else "side") if isinstance(told, dict) else None
        tasks = mine.get("tasks_sha256") if isinstance(mine, dict) else None
        return tasks if isinstance(tasks, str) else None

    @cached_property
    def settings(self) -> dict[str, Scalar]:
        """Everything known to be set on this side."""
        shared = self.run.settings if self._served is None else self._served.settings
        return {one.control: one.value for one in shared} | (self.arm.settings if self.arm else {})

    @cached_property
    def conditions(self) -> dict[str, Scalar | None]:
        """Everything else it ran under, by name; None for what nobody knows."""
        run, served = self.run, self._served or self.run
        server = None if isinstance(served.server, Missing) else served.server
        device = None if isinstance(served.device, Missing) else served.device
        return {
            "asked-from": run.client.fingerprint,
            "host": None if server is None else server.fingerprint,
            "driver": None if server is None else _known(server.driver),
            "device": None if device is None else device.full_name,
            **_runtime(served.runtime),
            **_model(served.model),
            **_load(run.load),
            "decoding": _decoding(run.decoding),
            **{name: self._length(metric) for name, metric in _LENGTHS.items()},
            "first-token": self._told("first_token"),
            "token-source": self._told("token_source"),
        }

    def _told(self, what: str) -> str | None:
        """Read how the instrument took a side's numbers.

        A first event of one server is no first output of another, and tokens that a server counts are no chunks.
        """
        told = self.run.native.get(what)
        mine = told.get(self.arm.name if self.arm else "side") if isinstance(told, dict) else told
        return mine if isinstance(mine, str) else None

    @property
    def _served(self) -> Served | None:
        return self.arm.served if self.arm else None

    def _length(self, name: str) -> float | None:
        found = self.metric(name)
        return statistics.median(found.samples) if found is not None and found.samples else None


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing in which two sides differ; a side that was not started with a setting has None."""

    name: str
    baseline: Scalar | None
    candidate: Scalar | None

    def __str__(self) -> str:
        return visible(f"{self.name}: {_shown(self.baseline)} against {_shown(self.candidate)}")


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """How alike two sides are. `under_test` is what was changed on purpose, `apart` what must not differ and does.

    `unknown` names what nobody knows of one side or of both, and what could therefore differ unseen.
    """

    under_test: tuple[Difference, ...] = ()
    apart: tuple[Difference, ...] = ()
    unknown: tuple[str, ...] = field(default=())

    @property
    def why_not(self) -> str:
        """Say why the sides are not comparable; '' when they are."""
        return f"the sides differ in {'; '.join(map(str, self.apart))}" if self.apart else ""

    @property
    def same_thing(self) -> bool:
        """Tell whether nothing at all is known to differ, so that what is measured is noise."""
        return not (self.under_test or self.apart)


def likeness(baseline: Side, candidate: Side, changes: Collection[str] = ()) -> Likeness:
    """Hold two sides against each other; `changes` names what is changed on purpose.

    With no word on that, settings are what is under test; conditions never are unless they are named.

    Raises:
        UsageError: a name that is neither a condition nor a setting of either side.
    """
    known = {*CONDITIONS, *baseline.settings, *candidate.settings}
    if unknown := sorted(set(changes) - known):
        expected = ", ".join([*CONDITIONS, *sorted({*baseline.settings, *candidate.settings})])
        raise UsageError(f"--changes {unknown[0]}: is neither a condition nor a setting of these runs; expected {expected}")
    named = {*changes, *(name for one in changes for name in _IMPLIES.get(one, ()))}
    settings = tuple(_settings(baseline, candidate))
    conditions = tuple(_conditions(baseline, candidate))
    meant = [one for one in settings if not changes or one.name in named] + [one for one in conditions if one.name in named]
    return Likeness(
        under_test=tuple(meant),
        apart=tuple(one for one in (*conditions, *settings) if one not in meant),
        unknown=(*_unknown(baseline, candidate), *_untold(baseline, candidate)),
    )


def sides_of(run: Run) -> tuple[Side, Side] | None:
    """Give the two sides of a run that has both; the first candidate counts."""
    arms = {arm.role: Side(run=run, arm=arm) for arm in reversed(run.arms)}
    return (arms["baseline"], arms["candidate"]) if len(arms) == 2 else None


def _settings(one: Side, two: Side) -> Iterator[Difference]:
    """Arms of one run are read alike: what only one of them has was set there, and is a difference."""
    alone = _one_sided(one, two) if one.arm and two.arm and one.run.id == two.run.id else ()
    for name in dict.fromkeys((*one.settings, *two.settings)):
        left, right = one.settings.get(name), two.settings.get(name)
        if left != right and (None not in {left, right} or name in alone):
            yield Difference(name=name, baseline=left, candidate=right)


def _untold(one: Side, two: Side) -> Iterator[str]:
    """Of two runs, a setting that only one of them tells is not known to differ."""
    if one.run.id != two.run.id:
        yield from _one_sided(one, two)


def _one_sided(one: Side, two: Side) -> tuple[str, ...]:
    """Name the settings that only one side tells. Another runtime has other controls: nothing is missing there."""
    if one.conditions["runtime"] != two.conditions["runtime"]:
        return ()
    every = dict.fromkeys((*one.settings, *two.settings))
    return tuple(name for name in every if name not in one.settings or name not in two.settings)


def _unknown(one: Side, two: Side) -> Iterator[str]:
    for name in CONDITIONS:
        if name not in _OF_STREAMS and None in {one.conditions[name], two.conditions[name]}:
            yield name


def _conditions(one: Side, two: Side) -> Iterable[Difference]:
    for name in CONDITIONS:
        left, right = one.conditions[name], two.conditions[name]
        if left is not None and right is not None and not _alike(name, left, right):
            yield Difference(name=name, baseline=left, candidate=right)


def _alike(name: str, left: Scalar, right: Scalar) -> bool:
    if name in _LENGTHS and isinstance(left, float) and isinstance(right, float):
        return abs(left - right) <= LENGTH_TOLERANCE * max(left, right)
    return left == right


def _runtime(runtime: Runtime | Missing) -> dict[str, Scalar | None]:
    if isinstance(runtime, Missing):
        return {"runtime": None, "runtime-version": None}
    return {"runtime": runtime.name, "runtime-version": _known(runtime.version)}


def _model(model: ModelFacts | Missing) -> dict[str, Scalar | None]:
    if isinstance(model, Missing):
        return dict.fromkeys(("model", "model-revision", "model-weights", "model-quantization"))
    return {
        "model": model.id,
        "model-revision": _known(model.revision),
        "model-weights": _known(model.sha256),
        "model-quantization": _known(model.quantization),
    }


def _load(load: Load | Missing) -> dict[str, Scalar | None]:
    if isinstance(load, Missing):
        return dict.fromkeys(("prompt-set", "load", "concurrency", "max-tokens"))
    return {
        "prompt-set": load.prompt_set_sha256,
        "load": load.schedule,
        "concurrency": load.concurrency,
        "max-tokens": load.max_tokens,
    }


def _decoding(decoding: Decoding | Missing) -> str | None:
    if isinstance(decoding, Missing):
        return None
    words = ["sampling" if decoding.do_sample else "greedy", f"temperature {decoding.temperature:g}"]
    words += ["ignoring end of sequence"] if decoding.ignore_eos else []
    return ", ".join(words + ([] if decoding.seed is None else [f"seed {decoding.seed}"]))


def _known(value: str | Missing) -> str | None:
    """Give what is known; that something cannot be there is known, too."""
    if isinstance(value, Missing):
        return value.missing.value if value.missing is MissingReason.NOT_APPLICABLE else None
    return value


def _shown(value: Scalar | None) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 64 else f"{text[:12]}…"
