"""Everything the generators read, read once: inventory, evidence, knowledge, records."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gen.knowledge import Knowledge, load_knowledge, read_knowledge
from gen.records import Record, read_records
from probes.archive import read_runs
from probes.errors import Problem
from probes.evidence import LocalScope, Run
from probes.fleet import Fleet, load_fleet


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """All inputs of a build. `problems` are damaged files: told by `check`, fatal to a build."""

    fleet: Fleet
    knowledge: Knowledge
    runs: tuple[Run, ...]
    local_runs: tuple[Run, ...]
    records: tuple[Record, ...]
    local_records: tuple[Record, ...]
    problems: tuple[Problem, ...]

    def scope_runs(self, fingerprint: str) -> tuple[Run, ...]:
        """Give every run of one machine, promoted or not, oldest first."""
        mine = [
            r for r in self.runs + self.local_runs if isinstance(r.scope, LocalScope) and r.scope.fingerprint == fingerprint
        ]
        return tuple(sorted({run.id: run for run in mine}.values(), key=lambda run: (run.started_at, run.id)))

    def fingerprints(self) -> tuple[str, ...]:
        """Give every machine that has evidence, the one measured last first."""
        last = {r.scope.fingerprint: r.started_at for r in self.runs + self.local_runs if isinstance(r.scope, LocalScope)}
        return tuple(sorted(last, key=lambda print_: (last[print_], print_), reverse=True))


def read_corpus(root: Path, knowledge: Knowledge | None = None) -> Corpus:
    """Read a repository checkout; the only reader of `gen`. `knowledge` is one that was read already.

    Raises:
        InputError: the inventory or the knowledge base cannot be understood at all.
    """
    with _uncollected():
        runs, run_problems = read_runs(root / "adr" / "evidence")
        local_runs, local_problems = read_runs(root / "adr" / "local" / "evidence")
        records, record_problems = read_records(root / "adr")
        local_records, local_record_problems = read_records(root / "adr" / "local")
    promoted = {run.id for run in runs}
    shared = {record.name for record in records}
    return Corpus(
        fleet=load_fleet(root / "fleet.yml"),
        knowledge=knowledge or load_knowledge(),
        runs=runs,
        local_runs=tuple(run for run in local_runs if run.id not in promoted),
        records=records,
        # A promoted draft lives on in `adr/`; what is left of it here says nothing any more.
        local_records=tuple(record for record in local_records if record.name not in shared),
        problems=run_problems + local_problems + record_problems + local_record_problems,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Read without the collector, and keep it from walking what was read: it holds no cycles.

    With ten thousand runs in memory each full collection takes a second, and finds nothing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def read_for_check(root: Path) -> Corpus:
    """Read a checkout whose knowledge base may be broken: its problems are told beside all others.

    Nothing but a check may use it, for a rule without its knowledge decides something else.

    Raises:
        InputError: the inventory cannot be understood, by whose limits everything is checked.
    """
    knowledge, problems = read_knowledge()
    corpus = read_corpus(root, knowledge)
    return replace(corpus, problems=corpus.problems + problems)
