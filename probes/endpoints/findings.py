"""What examining one endpoint brought, and the one state that it comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from probes.endpoints.address import Address
from probes.endpoints.asking import Asked
from probes.endpoints.detect import Detection, key_words
from probes.endpoints.metrics import Scrape
from probes.evidence import EndpointState, Missing, MissingReason, Scope
from probes.fleet import ProbeLimits, RuntimeName, ServiceKind
from probes.load.answer import Ending

MAX_TOKENS = 32


@dataclass(frozen=True, kw_only=True)
class Target:
    """One address to examine and what may be done to it.

    `shown_url` is what evidence says of the address: the reference it came from, or itself. `model` is
    the id that the inventory names. `place` and `key_place` name the address and the key in messages.
    """

    subject: str
    url: str
    scope: Scope
    limits: ProbeLimits
    shown_url: str
    expected: RuntimeName | None
    key: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    insecure: bool = False
    model: str | None = None
    kind: ServiceKind = ServiceKind.TEXT_GENERATION
    place: str = "url"
    key_place: str = ""

    @property
    def max_tokens(self) -> int:
        """How many tokens one request may bring."""
        return min(self.limits.max_tokens, MAX_TOKENS)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Everything that came back. `model` is the one that was asked, or would have been."""

    target: Target
    address: Address
    started_at: datetime
    detection: Detection
    model: str | None = None
    asked: tuple[Asked, ...] = ()
    before: Scrape | None = None
    after: Scrape | None = None


def pick_model(target: Target, detection: Detection) -> str | None:
    """Choose the model to ask: the inventory's if the server has it ready, else the first that is."""
    reading = detection.reading
    if reading is None or reading.state is not EndpointState.LISTED:
        return None
    if target.model is not None:
        return target.model if target.model in reading.askable or not reading.models else None
    return next(iter(reading.askable), None)


def unasked(target: Target, detection: Detection, model: str | None) -> str:
    """Say why no text is asked for; '' when it may be."""
    if detection.reading is None or detection.state is not EndpointState.LISTED:
        return detection.detail or detection.state.value
    if target.kind is not ServiceKind.TEXT_GENERATION:
        return f"no text is asked of a service for {target.kind}"
    if not target.limits.requests:
        return "its limits allow no request for text"
    if model is None and target.model is not None and target.model not in detection.reading.askable:
        return f"the inventory's model {target.model!r} is not among those that can be asked"
    return "" if model is not None else detection.reading.why_not


def conclude(findings: Findings) -> tuple[EndpointState, str]:
    """Come to one state with the words for it; a listed model counts as generating once it has generated."""
    target, detection, asked = findings.target, findings.detection, findings.asked
    notes = [_mismatch(findings), "TLS not verified" if target.insecure and findings.address.secure else ""]
    if not asked:
        state, detail = detection.state, detection.detail
        if state is EndpointState.LISTED:
            notes.insert(0, unasked(target, detection, findings.model))
    else:
        state, detail = asked[0].state, _of_request(findings, asked[0])
        if len(asked) > 1 and asked[1].answer.ending is not Ending.COMPLETE:
            notes.insert(0, f"the second request failed: {asked[1].answer.words}")
        if state is EndpointState.GENERATING:
            notes.insert(0, detection.detail)
    return state, "; ".join(dict.fromkeys(filter(None, (detail, *notes))))


def why_unmeasured(findings: Findings) -> Missing:
    """Give the reason that stands in place of every number when no request was sent."""
    state, detail = conclude(findings)
    reasons = {
        EndpointState.NOT_REACHABLE: MissingReason.NOT_REACHABLE,
        EndpointState.NOT_AN_INFERENCE_SERVER: MissingReason.NOT_APPLICABLE,
        EndpointState.NEEDS_KEY: MissingReason.REFUSED,
        EndpointState.FAILED: MissingReason.FAILED,
        EndpointState.LISTED: MissingReason.SKIPPED,
    }
    return Missing(missing=reasons.get(state, MissingReason.NOT_MEASURED), detail=detail or state.value)


def _of_request(findings: Findings, asked: Asked) -> str:
    if asked.state is EndpointState.GENERATING:
        return ""
    if asked.state is EndpointState.NEEDS_KEY:
        return key_words(asked.answer.words, has_key=findings.target.key is not None)
    if asked.answer.ending is Ending.COMPLETE:
        return f"{findings.model} answered without a single token"
    return f"{findings.model}: {asked.answer.words}"


def _mismatch(findings: Findings) -> str:
    """Tell an inventory that names another runtime; the fallback names none, so it contradicts none."""
    reading, expected = findings.detection.reading, findings.target.expected
    silent = reading is None or expected in {None, RuntimeName.OPENAI_COMPATIBLE, RuntimeName.OPENVINO}
    if silent or reading is None or reading.runtime in {expected, RuntimeName.OPENAI_COMPATIBLE}:
        return ""
    return f"{reading.runtime} answers where the inventory says {expected}"
