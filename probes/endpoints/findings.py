"""What examining one endpoint brought, and the one state that it comes to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from probes.endpoints.address import Address
from probes.endpoints.asking import Asked
from probes.endpoints.detect import Detection, key_words
from probes.endpoints.metrics import Scrape
from probes.endpoints.reading import NOWHERE, words_of
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Missing, MissingReason, Scope
from probes.fleet import ProbeLimits, RuntimeName, ServiceKind
from probes.load.answer import Ending

MAX_TOKENS = 32
# src/audio, src/image_gen, src/rerank/rerank_utils.cpp and src/tokenize of model_server @7e4df0c7, in this order.
_OTHER_GRAPHS = re.compile(r"Unsupported URI: |(?:query|documents) field is missing in request|\binput field is required")
_WORDS_SEARCHED = 2000


@dataclass(frozen=True, kw_only=True)
class Target:
    """One address to examine and what may be done to it.

    `shown_url` is what evidence says of the address: the reference it came from, or itself. `model` is
    the id that the inventory names. `place`, `key_place` and `load_place` are what messages call the address, the key and
    the leave to make the server load a model.
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
    load_place: str = "probing.may_load"

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
    """Choose the model to ask: the inventory's if the server has it ready, else the first that is.

    A model that asking would load is chosen only if the inventory allows that.
    """
    reading = detection.reading
    if reading is None or reading.state is not EndpointState.LISTED:
        return None
    allowed = (*reading.askable, *(reading.loadable if target.limits.may_load else ()))
    if target.model is not None:
        return target.model if target.model in allowed or not reading.models else None
    return next(iter(allowed), None)


def unasked(target: Target, detection: Detection, model: str | None) -> str:
    """Say why no text is asked for; '' when it may be."""
    if detection.reading is None or detection.state is not EndpointState.LISTED:
        return detection.detail or detection.state.value
    if target.kind is not ServiceKind.TEXT_GENERATION:
        return f"no text is asked of a service for {target.kind}"
    if not target.limits.requests:
        return "its limits allow no request for text"
    if model is not None:
        return ""
    reading = detection.reading
    if target.model is not None and target.model not in (*reading.askable, *reading.loadable):
        return f"the named model {target.model!r} is not among those that can be asked"
    return f"{reading.why_not}; {target.load_place} allows it" if reading.loadable else reading.why_not


def conclude(findings: Findings) -> tuple[EndpointState, str]:
    """Come to one state with the words for it; a listed model counts as generating once it has generated."""
    target, detection, asked = findings.target, findings.detection, findings.asked
    notes = [_mismatch(findings), "TLS not verified" if target.insecure and findings.address.secure else "", _twice(findings)]
    if not asked:
        state, detail = detection.state, detection.detail
        if state is EndpointState.LISTED:
            notes.insert(0, unasked(target, detection, findings.model))
    elif _for_something_else(asked[0]):
        state, detail = EndpointState.LISTED, f"{findings.model} is for something else than text: {asked[0].answer.words}"
    elif _no_such_path(findings, asked[0]):
        state, detail = EndpointState.LISTED, f"it has no path for text: {asked[0].answer.words}"
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
        EndpointState.NEEDS_LOGIN: MissingReason.REFUSED,
        EndpointState.NEEDS_KEY: MissingReason.REFUSED,
        EndpointState.ANSWERS_ERROR: MissingReason.FAILED,
        EndpointState.FAILED: MissingReason.FAILED,
        EndpointState.HANGS: MissingReason.FAILED,
        EndpointState.EMPTY: MissingReason.SKIPPED,
        EndpointState.LISTED: MissingReason.SKIPPED,
    }
    return Missing(missing=reasons.get(state, MissingReason.NOT_MEASURED), detail=detail or state.value)


def _for_something_else(asked: Asked) -> bool:
    """Tell a graph of OVMS for speech, images, ranks or embeddings, which nothing shows before it is asked."""
    return asked.status == 400 and _OTHER_GRAPHS.search(asked.answer.words[:_WORDS_SEARCHED]) is not None


def _no_such_path(findings: Findings, asked: Asked) -> bool:
    """Tell by its words that the server knows the path for text as little as the one that no server has."""
    nowhere = findings.detection.replies.get(NOWHERE)
    if not isinstance(nowhere, Reply) or asked.status != nowhere.status or asked.status not in {404, 405, 501}:
        return False
    return asked.answer.words == f"HTTP {nowhere.status}: {words_of(nowhere)}"


def _of_request(findings: Findings, asked: Asked) -> str:
    if asked.state is EndpointState.GENERATING:
        return ""
    if asked.state is EndpointState.NEEDS_KEY:
        return key_words(asked.answer.words, has_key=findings.target.key is not None)
    if asked.answer.ending is Ending.COMPLETE:
        return f"{findings.model} answered without a single token"
    return f"{findings.model}: {asked.answer.words}"


def _twice(findings: Findings) -> str:
    """Recommend what spares a connection that is tried twice; the address itself is the user's."""
    local = findings.address.host == "localhost" and findings.detection.reading is not None
    return "localhost may be tried as IPv6 first, which can take seconds; 127.0.0.1 spares that" if local else ""


def _mismatch(findings: Findings) -> str:
    """Tell an inventory that names another runtime; the fallback names none, so it contradicts none."""
    reading, expected = findings.detection.reading, findings.target.expected
    silent = reading is None or expected in {None, RuntimeName.OPENAI_COMPATIBLE, RuntimeName.OPENVINO}
    if silent or reading is None or reading.runtime in {expected, RuntimeName.OPENAI_COMPATIBLE}:
        return ""
    return f"{reading.runtime} answers where the inventory says {expected}"
