"""Reading the files that the inventory names, service by service, into evidence of what they declare."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from pydantic import JsonValue

from probes.archive import canonical
from probes.context import Context
from probes.declared.entry import Entry, Reading, settled
from probes.declared.reader import Source, read
from probes.declared.shape import ModelShape
from probes.errors import InputError, Problem
from probes.evidence import (
    FleetScope,
    KindClaim,
    Missing,
    MissingReason,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Setting,
)
from probes.fleet import ConfigFile, Fleet

MAX_UNREAD = 50
_REFERENCE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


@dataclass(frozen=True, kw_only=True)
class FileReading:
    """One file of the inventory and what it brought, or why it could not be looked at here."""

    file: ConfigFile
    reading: Reading | Missing
    sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What the files of one service declare together."""

    service: str
    files: tuple[FileReading, ...]

    @property
    def entries(self) -> tuple[tuple[Entry, date | None], ...]:
        """Every value with the day of its file; a default gives way to a value that another file sets."""
        every = [
            (entry, one.file.as_of) for one in self.files if isinstance(one.reading, Reading) for entry in one.reading.entries
        ]
        kept = {id(entry) for entry in settled(entry for entry, _ in every)}
        return tuple(pair for pair in every if id(pair[0]) in kept)

    @property
    def kinds(self) -> tuple[KindClaim, ...]:
        """What each file says that the model is, with the day of the file."""
        return tuple(
            KindClaim(
                kind=told.value,
                where=told.where,
                provenance=Provenance(kind=ProvenanceKind.DECLARED, date=_dated(one.file.as_of), source=told.where),
            )
            for one in self.files
            if isinstance(one.reading, Reading)
            for told in one.reading.kinds
        )

    @property
    def shape(self) -> ModelShape | None:
        """The model as its files describe it, the first named file before the others."""
        found: ModelShape | None = None
        for one in self.files:
            if isinstance(one.reading, Reading) and one.reading.shape is not None:
                found = one.reading.shape if found is None else found.filled(one.reading.shape)
        return found


def read_declared(
    fleet: Fleet, folder: Path, environ: Mapping[str, str], names: Sequence[str] | None = None
) -> tuple[Declaration, ...]:
    """Read the files of every service that names some; `folder` is the inventory's.

    Raises:
        InputError: everything that is wrong with any of them.
    """
    declared: list[Declaration] = []
    problems: list[Problem] = []
    for name, service in fleet.services.items():
        if not service.config or (names is not None and name not in names):
            continue
        files: list[FileReading] = []
        version = service.runtime_version if isinstance(service.runtime_version, str) else None
        for file in fleet.config_files(name):
            path = _resolved(file.path, folder, environ)
            if isinstance(path, Missing):
                files.append(FileReading(file=file, reading=path))
                continue
            try:
                source = Source(path=path, name=file.path, file=file, runtime=service.runtime, version=version)
                files.append(FileReading(file=file, reading=read(source), sha256=_fingerprint(path)))
            except InputError as exc:
                problems += exc.problems
        declared.append(Declaration(service=name, files=tuple(files)))
    if problems:
        raise InputError(problems)
    return tuple(declared)


def probe_declared(
    context: Context, fleet: Fleet, folder: Path, environ: Mapping[str, str], names: Sequence[str] | None = None
) -> list[Run]:
    """Write down what the files of each service declare, a run per service.

    Raises:
        InputError: everything that is wrong with any file; nothing is written then.
    """
    started_at = context.clock()
    return [_run(context, one, started_at) for one in read_declared(fleet, folder, environ, names)]


def _run(context: Context, declaration: Declaration, started_at: datetime) -> Run:
    settings = tuple(_setting(entry, day) for entry, day in declaration.entries)
    shape = declaration.shape
    native: dict[str, JsonValue] = {"files": [_told(one) for one in declaration.files]}
    if shape is not None:
        native["model"] = shape.document()
        native["kv_numbers_per_token"] = shape.kv_bytes_per_token(1)
    untold = Missing(missing=MissingReason.NOT_MEASURED, detail="no file shows a setting")
    values = {f"{one.control} {one.provenance.source}": one.value for one in settings}
    serving = hashlib.sha256(canonical({**values})).hexdigest() if settings else untold
    return context.run(
        RunKind.DECLARED,
        declaration.service,
        started_at,
        scope=FleetScope(service=declaration.service),
        serving_sha256=serving,
        settings=settings,
        kinds=declaration.kinds,
        native=native,
    )


def _dated(day: date | None) -> date:
    assert day is not None, "Fleet.config_files dates every file"  # noqa: S101
    return day


def _setting(entry: Entry, day: date | None) -> Setting:
    return Setting(
        technique=entry.technique,
        control=entry.control,
        value=entry.value,
        provenance=Provenance(kind=ProvenanceKind.DECLARED, date=_dated(day), source=entry.where),
        default_of=entry.default_of,
        without_effect=entry.without_effect,
    )


def _told(one: FileReading) -> JsonValue:
    told: dict[str, JsonValue] = {"path": one.file.path, "as_of": one.file.as_of.isoformat() if one.file.as_of else ""}
    told |= {key: value for key, value in (("container", one.file.container), ("entry", one.file.entry)) if value}
    if isinstance(one.reading, Missing):
        return told | {"missing": one.reading.missing.value, "detail": one.reading.detail}
    told["kind"] = one.reading.kind.value
    if one.sha256:
        told["sha256"] = one.sha256
    if one.reading.facts:
        told["facts"] = dict(one.reading.facts)
    if one.reading.unread:
        told["not_understood"] = list(one.reading.unread[:MAX_UNREAD])
    return told


def _resolved(path: str, folder: Path, environ: Mapping[str, str]) -> Path | Missing:
    """Find a file; a reference that is unset here means that this machine does not have it."""
    reference = _REFERENCE.match(path)
    if reference is None:
        return folder / path
    value = environ.get(reference.group(1), "").strip()
    if not value:
        return Missing(missing=MissingReason.NOT_CONFIGURED, detail=f"{reference.group(1)} is not set")
    return Path(os.path.normpath(f"{value}/{path[reference.end() :]}"))


def _fingerprint(path: Path) -> str:
    """Hash a file's bytes; a folder of weights is too much to read for that."""
    if not path.is_file() or path.suffix == ".gguf":
        return ""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
