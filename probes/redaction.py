"""What must never reach a file, a page or a terminal: keys, and the paths of one machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import JsonValue

_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^/\s@]+@", re.IGNORECASE)
_QUERY = re.compile(r"(\bhttps?://[^\s?#\"']+)\?[^\s#\"']+", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_KEYLIKE = re.compile(r"\b(sk|hf|ghp|glpat)[-_][A-Za-z0-9_-]{12,}")
# Shorter ones, and words of the schema, guard nothing and would tear words apart.
_MIN_SECRET = 8
_LONG_SECRET = 16


class Redactor:
    """Replaces secrets by '[redacted]' and machine paths by names that mean the same anywhere."""

    def __init__(self, *, secrets: Iterable[str] = (), paths: Mapping[str, str] | None = None) -> None:
        self._secrets = sorted({s for s in secrets if len(s) >= _MIN_SECRET}, key=len, reverse=True)
        # The longest path first, or '~' would hide that a file lies in the repository.
        self._paths = sorted((paths or {}).items(), key=lambda item: len(item[0]), reverse=True)

    def text(self, text: str) -> str:
        """Redact one string."""
        for secret in self._secrets:
            # A short one as a whole word only: a dummy key must not eat a part of a model's or a machine's name.
            pattern = re.escape(secret) if len(secret) >= _LONG_SECRET else rf"(?<![\w-]){re.escape(secret)}(?![\w-])"
            text = re.sub(pattern, "[redacted]", text)
        for path, name in self._paths:
            text = re.sub(rf"{re.escape(path)}(?=[/\\\s\"':,)\]]|$)", name, text)
        text = _USERINFO.sub(r"\1[redacted]@", text)
        text = _QUERY.sub(r"\1?[redacted]", text)
        text = _BEARER.sub(r"\1 [redacted]", text)
        return _KEYLIKE.sub("[redacted]", text)

    def json(self, value: JsonValue) -> JsonValue:
        """Redact every string of a JSON value, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.json(item) for key, item in value.items()}
        return value


def machine_paths(*, home: Path, repository: Path, environment: Path, cache: Path) -> dict[str, str]:
    """Name the folders that differ from machine to machine."""
    named = {home: "~", repository: "<repository>", environment: "<environment>", cache: "<cache>"}
    return {str(path): name for path, name in named.items() if len(path.parts) > 1}
