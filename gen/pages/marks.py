"""The small signs on every page: chips of state and decision, provenance, dates, missing values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from gen.markdown import NOTHING, Markdown, line, link, span, text
from gen.paths import relative
from gen.recheck import Unverified
from gen.words import Applicability, Decision, State, Status, Verdict
from probes.evidence import CapabilityState, EndpointState, Missing, MissingReason, ProvenanceKind, Scalar, slug
from probes.fleet import Freshness, Unknown

Chip = State | Decision | Status | Applicability | Verdict | CapabilityState | EndpointState

# What a chip looks like: each tone also has a shape of its own, so that nothing hangs on colour.
_TONES: dict[str, tuple[Chip, ...]] = {
    "good": (
        State.ENABLED,
        Decision.KEEP,
        Status.ACCEPTED,
        Applicability.APPLIES,
        Verdict.BETTER,
        CapabilityState.EFFECTIVE,
        EndpointState.GENERATING,
    ),
    "part": (
        State.PARTLY,
        Applicability.DIFFERENT,
        Applicability.ON_HOST,
        Verdict.SAME,
        CapabilityState.ACCEPTED,
        EndpointState.LISTED,
        EndpointState.LOADING,
        EndpointState.EMPTY,
    ),
    "act": (Decision.ENABLE, Decision.TUNE, Decision.BENCHMARK_FIRST, Status.PROPOSED),
    "alarm": (
        Decision.INVESTIGATE,
        Verdict.WORSE,
        Verdict.NOT_COMPARABLE,
        CapabilityState.FAILED,
        EndpointState.FAILED,
        EndpointState.HANGS,
        EndpointState.ANSWERS_ERROR,
    ),
    "off": (
        State.DISABLED,
        State.UNSUPPORTED,
        Decision.DO_NOT_DEPLOY,
        Status.REJECTED,
        Applicability.DOES_NOT_APPLY,
        CapabilityState.REFUSED,
    ),
}


def chip(word: Chip, target: str = "") -> Markdown:
    """Show a word of a closed set as a chip, linked to its why where there is one."""
    # By identity: words of different sets may be spelled alike.
    tone = next((name for name, words in _TONES.items() if any(other is word for other in words)), "quiet")
    classes = ("chip", f"chip-{tone}", f"chip-{slug(word.value)}")
    return link(text(word.value), target, *classes) if target else span(text(word.value), *classes)


def known(kind: ProvenanceKind) -> Markdown:
    """Say how something is known, by a sign and a word."""
    return span(text(kind.value), "known", f"known-{kind.value}")


def legend(here: str) -> Markdown:
    """Explain the signs in a line where a page first needs them, with the way to the whole."""
    signs = line(*(known(kind) for kind in ProvenanceKind), by=" › ")
    how = link(text("how to read them"), relative("how-to-read.md#how-something-is-known", here))
    return span(line(text("How things are known, the strongest first:"), signs, how), "note", "legend")


def dated(day: date, today: date, stale_after_days: int | None = None) -> Markdown:
    """Write an absolute date; one past its age limit says so, and a script may add the age."""
    limit = "" if stale_after_days is None else f' data-stale-after="{stale_after_days}"'
    stamp = Markdown(f'<time datetime="{day.isoformat()}"{limit}>{day.isoformat()}</time>')
    stale = stale_after_days is not None and (today - day).days > stale_after_days
    return line(stamp, span(text("stale"), "stale")) if stale else stamp


def unverified(found: Iterable[Unverified]) -> Markdown:
    """Name each running release for which a piece of knowledge was not checked; nothing where there is none."""
    told = {(one.by.version, one.checked.release): one for one in found}
    return line(*map(_unverified, told.values()), by="<br>") if told else NOTHING


def _unverified(one: Unverified) -> Markdown:
    checked = f"checked for {one.checked.release}" if one.checked.release else "checked for no release that its source names"
    doubt = "" if one.comparable else ", which names no release"
    return line(span(text(f"unverified for {one.by.version}{doubt}"), "unverified"), span(text(f"({checked})"), "note"))


def age_limit(kind: ProvenanceKind, freshness: Freshness) -> int:
    """Give the days after which something known in this way looks stale."""
    if kind is ProvenanceKind.DECLARED:
        return freshness.declaration_days
    return freshness.source_days if kind is ProvenanceKind.DOCUMENTED else freshness.evidence_days


def absent(missing: Missing) -> Markdown:
    """Show a missing value by its reason, with the detail in the words of who missed it."""
    reason = span(text(missing.missing.value), "absent")
    return line(reason, span(text(missing.detail), "detail")) if missing.detail else reason


def not_measured(detail: str = "") -> Markdown:
    """Show what nobody has measured yet."""
    return absent(Missing(missing=MissingReason.NOT_MEASURED, detail=detail))


def unknown(question: Unknown | str) -> Markdown:
    """Show an open question where its answer belongs."""
    asked = question if isinstance(question, str) else question.unknown
    return line(span(text("unknown"), "absent"), span(text(asked), "question"))


def scalar(value: Scalar) -> Markdown:
    """Write a setting's value as a configuration file would."""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return Markdown(f"<code>{text(shown)}</code>")
