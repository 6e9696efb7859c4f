"""What an adapter says of a server, held against what the server was started with: right, unknown, or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from probes.evidence import EndpointState, Missing, ModelKind, Run, Scalar, Technique, same_kind

TITLES = {
    Technique.QUANTIZATION: "quantization",
    Technique.PREFIX_CACHING: "prefix caching",
    Technique.DISAGGREGATION: "disaggregation",
    Technique.FLASH_ATTENTION: "flash attention",
    Technique.CONTINUOUS_BATCHING: "continuous batching",
    Technique.KV_CACHE: "KV cache",
    Technique.SPECULATIVE_DECODING: "speculative decoding",
}


_KIND = "kind of model"


class Outcome(StrEnum):
    """Whether a claim is true. Silence is allowed; a claim that nothing was set to check it against is not."""

    RIGHT = "right"
    UNKNOWN = "unknown"
    WRONG = "WRONG"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """One setting that a server was started with: how it was set, and its true value in the adapter's words."""

    technique: Technique
    control: str
    set_as: str
    value: Scalar


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One load figure and what must hold of it, as the server was set; no figure at all is allowed."""

    technique: Technique
    metric: str
    set_as: str
    holds: Callable[[float], bool]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A server as it is started, and everything that is true of it. `kind` is what the model is that it serves."""

    engine: str
    name: str
    runtime: str
    version: str | None
    state: EndpointState
    truths: tuple[Truth, ...] = ()
    figures: tuple[Figure, ...] = ()
    kind: ModelKind = ModelKind.DECODER
    start: tuple[str, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    configuration: str
    technique: str
    set_as: str
    says: str
    knows: str
    outcome: Outcome


def held(configuration: Configuration, run: Run) -> tuple[Row, ...]:
    """Hold every claim of a run against the truth, and every truth against the claims."""
    return tuple(_rows(configuration, run))


def table(rows: Sequence[Row]) -> str:
    """Print the rows, one line each, in columns."""
    heads = Row(
        configuration="configuration", technique="technique", set_as="what was set", says="what the adapter says",
        knows="how it knows", outcome=Outcome.RIGHT,
    )  # fmt: skip
    cells = [(one.configuration, one.technique, one.set_as, one.says, one.outcome.value, one.knows) for one in (heads, *rows)]
    cells[0] = (*cells[0][:4], "outcome", heads.knows)
    widths = [max(len(row[column]) for row in cells) for column in range(5)]
    lines = ["  ".join([*(text.ljust(width) for text, width in zip(row[:5], widths, strict=True)), row[5]]) for row in cells]
    lines.insert(1, "  ".join("-" * width for width in (*widths, len(heads.knows))))
    return "\n".join(line.rstrip() for line in lines)


def _rows(configuration: Configuration, run: Run) -> Iterator[Row]:
    name = f"{configuration.engine}: {configuration.name}"

    def row(technique: str, set_as: str, says: str, knows: str, outcome: Outcome) -> Row:
        return Row(configuration=name, technique=technique, set_as=set_as, says=says, knows=knows, outcome=outcome)

    yield from (row(*identity) for identity in _identity(configuration, run))
    for claim in run.kinds:
        outcome = Outcome.RIGHT if same_kind(claim.kind, configuration.kind) else Outcome.WRONG
        yield row(_KIND, configuration.kind.value, claim.kind.value, claim.where, outcome)
    if not run.kinds:
        yield row(_KIND, configuration.kind.value, "not told", "no answer tells it", Outcome.UNKNOWN)
    where, why = run.native.get("read_from"), _untold(run)
    sources = where if isinstance(where, dict) else {}
    seen = {setting.control: setting for setting in run.settings}
    for truth in configuration.truths:
        setting = seen.pop(truth.control, None)
        if setting is None:
            reason = why.get(truth.control) or why.get(truth.technique.value) or "it says nothing of it"
            yield row(TITLES[truth.technique], truth.set_as, "not told", reason, Outcome.UNKNOWN)
        else:
            right = type(setting.value) is type(truth.value) and setting.value == truth.value
            outcome = Outcome.RIGHT if right and setting.technique is truth.technique else Outcome.WRONG
            says = f"{truth.control} = {_shown(setting.value)}"
            yield row(TITLES[truth.technique], truth.set_as, says, str(sources.get(truth.control, "")), outcome)
    for control, setting in seen.items():
        says = f"{control} = {_shown(setting.value)}"
        yield row(TITLES[setting.technique], "nothing to check it against", says, str(sources.get(control, "")), Outcome.WRONG)
    told = {truth.technique for truth in configuration.truths} | {figure.technique for figure in configuration.figures}
    for technique in (one for one in Technique if one not in told):
        reason = why.get(technique.value) or "it says nothing of it"
        yield row(TITLES[technique], "nothing", "not told", reason, Outcome.UNKNOWN)
    for figure in configuration.figures:
        metric = run.metric(figure.metric)
        if metric is None or metric.missing is not None:
            reason = metric.missing.detail if metric is not None and metric.missing else "no such figure"
            yield row(TITLES[figure.technique], figure.set_as, f"{figure.metric}: none", reason, Outcome.UNKNOWN)
        else:
            says = f"{figure.metric} = {', '.join(f'{sample:.3g}' for sample in metric.samples)}"
            outcome = Outcome.RIGHT if all(map(figure.holds, metric.samples)) else Outcome.WRONG
            yield row(TITLES[figure.technique], figure.set_as, says, "its metrics, before and after the requests", outcome)


def _identity(configuration: Configuration, run: Run) -> Iterator[tuple[str, str, str, str, Outcome]]:
    """Hold name, version and state against the truth; a version may be unknown, a wrong one may not be said."""
    runtime = None if isinstance(run.runtime, Missing) else run.runtime
    named = runtime.name if runtime else "nothing"
    outcome = Outcome.RIGHT if named == configuration.runtime else Outcome.WRONG
    yield "identity", configuration.runtime, named, "the shape of its answers", outcome
    version = runtime.version if runtime else None
    if isinstance(version, str):
        outcome = Outcome.RIGHT if version == configuration.version else Outcome.WRONG
        yield "version", configuration.version or "none that it tells", version, "its own words", outcome
    else:
        reason = version.detail if isinstance(version, Missing) else ""
        yield "version", configuration.version or "none that it tells", "not told", reason, Outcome.UNKNOWN
    state, detail = (run.endpoint.state, run.endpoint.detail) if run.endpoint else (None, "")
    outcome = Outcome.RIGHT if state is configuration.state else Outcome.WRONG
    yield "state", configuration.state.value, state.value if state else "none", detail or "two small requests", outcome


def _untold(run: Run) -> dict[str, str]:
    """Give the reasons for silence by control and by technique; with the default that holds unless somebody set it."""
    listed = run.native.get("not_told")
    reasons: dict[str, str] = {}
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict):
            default = f"; {_shown(one['default'])} unless set, in {one['default_of']}" if "default" in one else ""
            reason = f"{one.get('why')}{default}"
            reasons[str(one.get("control") or one.get("technique"))] = reason
            # Of a technique the first of its controls speaks where nothing was set.
            reasons.setdefault(str(one.get("technique")), f"{one['control']}: {reason}" if one.get("control") else reason)
    return reasons


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
