"""What speaks against a request that is on its way: no first answer, a stream that stalls or crawls, a time that is up."""

from __future__ import annotations

from typing import Final, NamedTuple

from probes.load.arriving import Arriving, Over
from probes.load.request import Request
from probes.load.spool import End
from probes.load.task import Guards

_NS: Final = 10**9
_GRACE_NS: Final = 1 * _NS
# So many gaps in a row are no hiccup.
RECENT_GAPS: Final = 8


class Stop(NamedTuple):
    """Why a whole run has to stop: a reason code and its words."""

    reason: str
    words: str


def watch(answer: Arriving, request: Request, guards: Guards, now_ns: int) -> Over | Stop | None:
    """End a request that is past its time, or stop the run for one that a guard speaks against.

    A run that stops reads the answers on their way to their end, so a guard comes before the deadline that cuts one off.
    """
    since = now_ns - request.last_sent_ns
    if answer.over_ns:
        kept_open = now_ns - answer.over_ns > _GRACE_NS
        return Over(End.CLOSED, "kept open after its end", reuse=False) if kept_open else None
    if since > guards.timeout_s * _NS:
        return Over(End.TIMED_OUT, f"not finished within {guards.timeout_s:g} s", reuse=False)
    if not answer.begun:
        if since > guards.first_byte_s * _NS:
            return Stop("latency-guard", f"no answer began within {guards.first_byte_s:g} s")
    elif now_ns - answer.stamps[-1] > guards.stall_s * _NS:
        request.stalled = True
        return Stop("stalled-stream", f"a stream brought nothing for {guards.stall_s:g} s")
    elif (gap := answer.recent_gap_ns(RECENT_GAPS)) is not None and gap > guards.itl_s * _NS:
        words = f"the last {RECENT_GAPS} pieces of a stream came {gap / _NS:.3g} s apart, and {guards.itl_s:g} s are allowed"
        return Stop("latency-guard", words)
    return too_long(since, guards)


def too_long(taken_ns: int, guards: Guards) -> Stop | None:
    """Stop the run for an answer that takes longer than it may, or did."""
    if taken_ns <= guards.latency_s * _NS:
        return None
    return Stop("latency-guard", f"an answer took more than {guards.latency_s:g} s")
