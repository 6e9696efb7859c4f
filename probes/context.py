"""What every probe needs to know about where it runs, and the one place that assembles a Run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from probes.evidence import (
    Arm,
    Capability,
    FleetScope,
    Host,
    Load,
    LocalScope,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    Run,
    RunKind,
    Runtime,
    Scope,
    Setting,
    Tool,
    Validity,
    run_id,
)
from probes.redaction import Redactor, redacted

_UNASKED = Missing(missing=MissingReason.NOT_APPLICABLE)
_MAY_BE_ABSENT = ("server", "device", "runtime", "model", "serving_sha256", "load", "decoding")
# Text that this program chose: names, codes and hashes. Everything else of type `str` came from somewhere else.
_OWN_WORDS: Final[Mapping[type[BaseModel], Collection[str]]] = {
    Run: {"id", "content_sha256", "subject", "serving_sha256"},
    LocalScope: {"fingerprint"},
    FleetScope: {"service"},
    Tool: {"version", "git_revision"},
    Host: {"alias", "fingerprint", "isa"},
    Runtime: {"name"},
    ModelFacts: {"sha256"},
    Load: {"schedule", "prompt_set_sha256"},
    Validity: {"reasons"},
    Arm: {"name"},
    Metric: {"name", "unit", "arm"},
    Setting: {"control"},
    Capability: {"name", "requested"},
}


@dataclass(frozen=True, kw_only=True)
class Context:
    """One invocation of the probes on one machine. `say` takes one line for the person watching."""

    root: Path
    evidence: Path
    cache: Path
    client: Host
    tool: Tool
    redact: Redactor
    clock: Callable[[], datetime]
    say: Callable[[str], None]
    quick: bool = False

    @property
    def local(self) -> LocalScope:
        """The scope of everything measured on this machine itself."""
        return LocalScope(fingerprint=self.client.fingerprint)

    def run(
        self,
        kind: RunKind,
        subject: str,
        started_at: datetime,
        *,
        scope: Scope | None = None,
        invalid: tuple[str, ...] = (),
        **fields: Any,
    ) -> Run:
        """Assemble a redacted run that ends now; `fields` are fields of Run, absent ones not applicable.

        `invalid` lists reason codes; none means that the run is valid.
        """
        values: dict[str, Any] = dict.fromkeys(_MAY_BE_ABSENT, _UNASKED) | fields
        run = Run(
            id=run_id(started_at, self.client.alias, f"{kind}-{subject}"),
            kind=kind,
            subject=subject,
            started_at=started_at,
            ended_at=self.clock(),
            scope=scope or self.local,
            tool=self.tool,
            client=self.client,
            validity=Validity(valid=not invalid, reasons=invalid),
            **values,
        )
        return Run.model_validate_json(redacted(run, self.redact, _OWN_WORDS).model_dump_json())
