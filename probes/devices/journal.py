"""Trials that an interrupted device probe has finished, so that the next start goes on where it ended.

The journal is no cache: it is deleted when a probe ends, and what is older than an hour is forgotten,
because a machine may have changed by then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import JsonValue, ValidationError

from probes.child import Outcome
from probes.devices.trial import Observation, Trial, Tried, as_json
from probes.errors import HostError
from probes.schema import Model

LIFETIME = timedelta(hours=1)


class _Entry(Model):
    """One line: a trial by its digest, when it ended, and how."""

    trial: str
    at: datetime
    outcome: Outcome
    observation: Observation | None
    loaded: bool
    words: str
    seconds: float
    peak_rss_bytes: int


@dataclass(frozen=True, kw_only=True)
class Journal:
    """The file of one device, runtime, model and version of this tool."""

    path: Path

    @classmethod
    def of(cls, folder: Path, identity: Mapping[str, JsonValue]) -> Journal:
        """Name the journal of what `identity` tells apart; a probe of anything else has another one."""
        return cls(path=folder / f"{_digest(identity)}.jsonl")

    def read(self, now: datetime) -> dict[str, Tried]:
        """Give the trials that are young enough, by digest; a line that a kill cut short is passed over."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return {}
        found = {}
        for line in lines:
            with contextlib.suppress(ValidationError):
                entry = _Entry.model_validate_json(line)
                if timedelta(0) <= now - entry.at <= LIFETIME:
                    values = {name: getattr(entry, name) for name in Tried.__dataclass_fields__}
                    found[entry.trial] = Tried(**values)
        return found

    def keep(self, trial: Trial, tried: Tried, now: datetime) -> None:
        """Append one finished trial.

        Raises:
            HostError: the cache folder cannot be written.
        """
        values = {**asdict(tried), "observation": tried.observation}
        line = _Entry(trial=digest(trial), at=now, **values).model_dump_json() + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            raise HostError(
                f"{exc.filename or self.path}: cannot be written ({exc.strerror}); expected a cache folder"
            ) from exc

    def end(self) -> None:
        """Forget the journal of a probe that has come to its end."""
        with contextlib.suppress(OSError):
            self.path.unlink()


def digest(trial: Trial) -> str:
    """Tell a trial from every other."""
    return _digest(as_json(trial))


def _digest(value: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
