"""A model in an installed package: found without importing the package, whose other dependencies may be absent."""

from __future__ import annotations

import base64
import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from probes.evidence import Missing, MissingReason
from probes.workloads.catalogue import INSTALL, WORKLOADS, Workload


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """The files of a model and what their package recorded: its version, and the hash of the file that runs."""

    revision: str
    files: tuple[Path, ...]
    sha256: str | Missing


def find(workload: Workload) -> Shipped | Missing:
    """Find the files of a workload, or say which package is missing and what installs it."""
    for name in workload.needs:
        if version_of(name) is None:
            return Missing(
                missing=MissingReason.NOT_CONFIGURED, detail=f"not installed: package {name}; `{INSTALL}` installs it"
            )
    package = importlib.metadata.distribution(workload.package)
    entries = {Path(str(file)).name: file for file in package.files or ()}
    named = [entries.get(name) for name in workload.files]
    found = [file for file in named if file is not None]
    if not found or named[-1] is None:
        detail = f"package {workload.package} {package.version} holds no {workload.files[-1]}"
        return Missing(missing=MissingReason.FAILED, detail=detail)
    recorded = found[-1].hash
    known = recorded is not None and recorded.mode == "sha256"
    digest = base64.urlsafe_b64decode(recorded.value + "=" * (-len(recorded.value) % 4)).hex() if known and recorded else ""
    return Shipped(
        revision=f"{workload.package} {package.version}",
        files=tuple(Path(str(file.locate())) for file in found),
        sha256=digest or Missing(missing=MissingReason.NOT_MEASURED, detail="the package records no SHA-256"),
    )


def version_of(name: str) -> str | None:
    """Give the version of an installed package without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def installed(workloads: Iterable[Workload] = WORKLOADS) -> tuple[str, ...]:
    """Name the workloads whose packages are there."""
    return tuple(one.subject for one in workloads if all(version_of(name) is not None for name in one.needs))
