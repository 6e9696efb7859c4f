"""What speaks against a request that is on its way: its deadline, a stream that stalls, an answer that does not begin."""

from __future__ import annotations

from typing import Final, NamedTuple

from probes.load.arriving import Arriving, Over
from probes.load.request import Request
from probes.load.spool import End
from probes.load.task import Guards

_NS: Final = 10**9
_GRACE_NS: Final = 1 * _NS


class Stop(NamedTuple):
    """Why a whole run has to stop: a reason code and its words."""

    reason: str
    words: str


def watch(answer: Arriving, request: Request, guards: Guards, now_ns: int) -> Over | Stop | None:
    """End a request that is past its time, or stop the run for one that a guard speaks against."""
    since = now_ns - request.last_sent_ns
    if answer.over_ns and now_ns - answer.over_ns > _GRACE_NS:
        return Over(End.CLOSED, "kept open after its end", reuse=False)
    if since > guards.timeout_s * _NS:
        return Over(End.TIMED_OUT, f"not finished within {guards.timeout_s:g} s", reuse=False)
    if not answer.begun:
        if since > guards.first_byte_s * _NS:
            return Stop("latency-guard", f"no answer began within {guards.first_byte_s:g} s")
    elif not answer.over_ns and now_ns - answer.stamps[-1] > guards.stall_s * _NS:
        request.stalled = True
        return Stop("stalled-stream", f"a stream brought nothing for {guards.stall_s:g} s")
    return None
