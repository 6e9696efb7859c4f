"""What a reviewer asks of a run made elsewhere: which host, whether its clock can be right, what it compares with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from gen.comparability import Side, likeness
from gen.spread import quantity
from probes.evidence import Host, Missing, ProvenanceKind, Run

_STAMP = re.compile(r"(\d{8}T\d{6}Z)-")
# A name is given when a run begins, the start is stamped when it measures: these are seconds, a wrong clock is not.
_TOLERANCE = timedelta(minutes=10)
_SEEN = frozenset({ProvenanceKind.MEASURED, ProvenanceKind.OBSERVED, ProvenanceKind.INFERRED})


def host_facts(host: Host | Missing) -> str:
    """Describe a machine in one line: what it is, and what of it moves timings."""
    if isinstance(host, Missing):
        return f"{host.missing.value}{f': {host.detail}' if host.detail else ''}"
    cores = "" if isinstance(host.physical_cores, Missing) else f"{host.physical_cores} cores"
    memory = "" if isinstance(host.memory_bytes, Missing) else quantity(host.memory_bytes, "bytes")
    driver = "" if isinstance(host.driver, Missing) else f"driver {host.driver}"
    facts = (host.cpu, cores, memory, host.os, f"kernel {host.kernel}", driver)
    return f"{host.alias} ({', '.join(filter(None, facts))}; {host.fingerprint})"


def clock_remarks(run: Run, today: date) -> tuple[str, ...]:
    """Say where the times in a run contradict each other or the day it arrives; nothing where they agree."""
    return tuple(_remarks(run, today))


def _remarks(run: Run, today: date) -> Iterator[str]:
    end = run.ended_at.astimezone(UTC)
    if end.date() > today:
        yield f"ended at {end.isoformat()}, after {today}"
    stamp = _STAMP.match(run.id)
    if stamp is not None:
        named = datetime.strptime(stamp[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(named - run.started_at) > _TOLERANCE:
            yield f"its name says {named.isoformat()} and its start {run.started_at.astimezone(UTC).isoformat()}"
    days = {one.provenance.date for one in run.settings if one.provenance.kind in _SEEN}
    # Whoever looks does so while the run goes on; a day either side allows for midnight in another zone.
    odd = sorted(day for day in days if not run.date - timedelta(days=1) <= day <= end.date() + timedelta(days=1))
    if odd:
        yield f"saw settings on {odd[0]}, and it ran on {run.date}"


def likeness_remark(run: Run, others: Iterable[Run]) -> str:
    """Say what a run may be compared with: the newest other valid one of its kind and subject, or why with none."""
    kin = [
        one
        for one in others
        if one.id != run.id and (one.kind, one.subject) == (run.kind, run.subject) and one.validity.valid and not one.arms
    ]
    if run.arms:
        return "holds both sides itself"
    if not kin:
        return "nothing of its kind and subject is here to compare with"
    newest = max(kin, key=lambda one: (one.started_at, one.id))
    found = likeness(Side(run=newest), Side(run=run))
    apart = [*found.apart, *found.under_test]
    if not apart:
        return f"comparable with {newest.id}"
    return f"differs from {newest.id} in {'; '.join(map(str, apart))}"
