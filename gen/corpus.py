"""Everything the generators read, read once: inventory, evidence, knowledge, records."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from gen.knowledge import Knowledge, load_knowledge, read_knowledge
from gen.records import Record, read_records
from probes.archive import read_run_files, read_runs
from probes.errors import Problem
from probes.evidence import FleetScope, LocalScope, Run
from probes.fleet import Fleet, load_fleet


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """All inputs of a build. `problems` are damaged files: told by `check`, fatal to a build.

    `texts` are the evidence files by run, where they were kept to be published.
    """

    fleet: Fleet
    knowledge: Knowledge
    runs: tuple[Run, ...]
    local_runs: tuple[Run, ...]
    records: tuple[Record, ...]
    local_records: tuple[Record, ...]
    problems: tuple[Problem, ...]
    texts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def run_by_id(self) -> Mapping[str, Run]:
        """Every run, committed or not."""
        return {run.id: run for run in self.local_runs + self.runs}

    @cached_property
    def record_by_name(self) -> Mapping[str, Record]:
        """Every record; one that lies in `adr/` comes before a draft of its name."""
        return {record.name: record for record in self.local_records + self.records}

    @cached_property
    def _by_machine(self) -> Mapping[str, tuple[Run, ...]]:
        found: dict[str, dict[str, Run]] = {}
        for run in self.runs + self.local_runs:
            if isinstance(run.scope, LocalScope):
                found.setdefault(run.scope.fingerprint, {})[run.id] = run
        order = {name: sorted(some.values(), key=lambda run: (run.started_at, run.id)) for name, some in found.items()}
        return {name: tuple(some) for name, some in order.items()}

    @cached_property
    def _by_service(self) -> Mapping[str, tuple[Run, ...]]:
        found: dict[str, list[Run]] = {}
        for run in self.runs:
            if isinstance(run.scope, FleetScope):
                found.setdefault(run.scope.service, []).append(run)
        return {name: tuple(some) for name, some in found.items()}

    def scope_runs(self, fingerprint: str) -> tuple[Run, ...]:
        """Give every run of one machine, promoted or not, oldest first."""
        return self._by_machine.get(fingerprint, ())

    def service_runs(self, service: str) -> tuple[Run, ...]:
        """Give the committed runs against one service of the inventory, oldest first."""
        return self._by_service.get(service, ())

    def fingerprints(self) -> tuple[str, ...]:
        """Give every machine that has evidence, the one measured last first."""
        last = {name: runs[-1].started_at for name, runs in self._by_machine.items()}
        return tuple(sorted(last, key=lambda print_: (last[print_], print_), reverse=True))


class Memory(Protocol):
    """Where texts may be kept from one build to the next, and found again or not."""

    def take(self, key: str) -> str | None: ...

    def put(self, key: str, made: str) -> None: ...


def read_corpus(root: Path, knowledge: Knowledge | None = None, *, texts: bool = False, memory: Memory | None = None) -> Corpus:
    """Read a repository checkout; the only reader of `gen`. `knowledge` is one that was read already.

    What publishes evidence asks for its `texts`; nobody else needs to hold them. A `memory` spares it the proof that files
    which have not changed since say what their hashes say.

    Raises:
        InputError: the inventory or the knowledge base cannot be understood at all.
    """
    with _uncollected():
        kept: dict[str, str] = {}
        runs, run_problems = _runs(root / "adr" / "evidence", kept if texts else None, memory)
        local_runs, local_problems = _runs(root / "adr" / "local" / "evidence", kept if texts else None, memory)
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
        texts=kept,
    )


def _runs(folder: Path, texts: dict[str, str] | None, memory: Memory | None) -> tuple[tuple[Run, ...], tuple[Problem, ...]]:
    """Read a folder of evidence; the text of a run that was read before, from `adr/`, stays the one that counts."""
    if texts is None:
        return read_runs(folder)
    key = f"evidence of {folder.parent.name}"
    known = _recalled(memory.take(key)) if memory is not None else {}
    files, problems = read_run_files(folder, known)
    for file in files:
        texts.setdefault(file.run.id, file.text)
    sound = {file.text_sha256: file.run.content_sha256 for file in files}
    if memory is not None and sound != known:
        memory.put(key, json.dumps(sound))
    return tuple(file.run for file in files), problems


def _recalled(kept: str | None) -> dict[str, str]:
    try:
        found = json.loads(kept or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


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
