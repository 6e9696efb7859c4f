"""What must never reach a file, a page or a terminal: keys, and the paths of one machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

M = TypeVar("M", bound=BaseModel)

_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^/\s@]+@", re.IGNORECASE)
_QUERY = re.compile(r"(\bhttps?://[^\s?#\"']+)\?[^\s#\"']+", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_KEYLIKE = re.compile(r"\b(sk|hf|ghp|glpat)[-_][A-Za-z0-9_-]{12,}")
# Shorter ones guard nothing and would tear words apart.
_MIN_SECRET = 8
_LONG_SECRET = 16


class Redactor:
    """Replaces secrets by '[redacted]' and machine paths by names that mean the same anywhere."""

    def __init__(
        self, *, secrets: Iterable[str] = (), paths: Mapping[str, str] | None = None, common: Collection[str] = ()
    ) -> None:
        """`common` are words that stand in evidence anyway: a secret that is one of them cannot be told from them."""
        kept = {secret for secret in secrets if not weakness(secret, common)}
        self._secrets = sorted(kept, key=len, reverse=True)
        # The longest path first, or '~' would hide that a file lies in the repository.
        self._paths = sorted((paths or {}).items(), key=lambda item: len(item[0]), reverse=True)

    def text(self, text: str) -> str:
        """Redact one string."""
        for secret in self._secrets:
            # A short one as a whole word only: a dummy key must not eat a part of a model's or a machine's name.
            pattern = re.escape(secret) if len(secret) >= _LONG_SECRET else rf"(?<![\w-]){re.escape(secret)}(?![\w-])"
            text = re.sub(pattern, "[redacted]", text)
        return self._patterns(text)

    def key(self, key: str) -> str:
        """Redact the key of a mapping: a short secret may be the name of a field, a long one never is."""
        for secret in self._secrets:
            if len(secret) >= _LONG_SECRET:
                key = key.replace(secret, "[redacted]")
        return self._patterns(key)

    def _patterns(self, text: str) -> str:
        for path, name in self._paths:
            text = re.sub(rf"{re.escape(path)}(?=[/\\\s\"':,)\]]|$)", name, text)
        text = _USERINFO.sub(r"\1[redacted]@", text)
        text = _QUERY.sub(r"\1?[redacted]", text)
        text = _BEARER.sub(r"\1 [redacted]", text)
        return _KEYLIKE.sub("[redacted]", text)

    def json(self, value: JsonValue) -> JsonValue:
        """Redact every string of a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.key(key): self.json(item) for key, item in value.items()}
        return value


def redacted(model: M, redact: Redactor, own: Mapping[type[BaseModel], Collection[str]]) -> M:
    """Redact the free text of a model and leave the words of its schema alone.

    Free text is what a field of plain `str` or of JSON holds. Enums, literals, identifiers with a pattern,
    numbers, dates and the names of fields are words of the schema; so are the fields that `own` lists.
    """
    names = own.get(type(model), ())
    changed = {
        name: _walked(getattr(model, name), redact, own, free="" if name in names else _free(field))
        for name, field in type(model).model_fields.items()
    }
    return model.model_copy(update=changed)


def weakness(secret: str, common: Collection[str]) -> str:
    """Say why a secret is not redacted, '' when it is."""
    if len(secret) < _MIN_SECRET:
        return f"has fewer than {_MIN_SECRET} characters"
    return "is a word that stands in every evidence file" if secret in common else ""


def vocabulary(schema: JsonValue) -> frozenset[str]:
    """Collect the words of a JSON Schema: the names of its fields and the values of its enums."""
    return frozenset(_words(schema))


def _words(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _words(item)
    elif isinstance(schema, dict):
        for key, item in schema.items():
            if key == "properties" and isinstance(item, dict):
                yield from item
            if key in {"enum", "const"}:
                yield from (word for word in (item if isinstance(item, list) else [item]) if isinstance(word, str))
            yield from _words(item)


def _walked(value: Any, redact: Redactor, own: Mapping[type[BaseModel], Collection[str]], *, free: str) -> Any:
    if isinstance(value, BaseModel):
        return redacted(value, redact, own)
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return redact.text(value) if free else value
    if isinstance(value, list | tuple):
        return type(value)(_walked(item, redact, own, free=free) for item in value)
    if isinstance(value, dict):
        name = redact.key if free == "json" else str
        return {name(key): _walked(item, redact, own, free=free) for key, item in value.items()}
    return value


def _free(field: FieldInfo) -> str:
    """Tell whether a field holds free text: 'json', 'text', or '' when its words are those of the schema."""
    leaves = set() if _is_identifier(field.metadata) else set(_leaves(field.annotation))
    return "json" if JsonValue in leaves else "text" if str in leaves else ""


def _leaves(annotation: Any) -> Iterator[Any]:
    parts = () if annotation is JsonValue else get_args(annotation)
    if not parts:
        yield annotation
    elif get_origin(annotation) is not Annotated:
        for part in parts:
            yield from _leaves(part)
    elif not _is_identifier(parts[1:]):
        yield from _leaves(parts[0])


def _is_identifier(metadata: Iterable[Any]) -> bool:
    return any(getattr(one, "pattern", None) for one in metadata)


def machine_paths(*, home: Path | None, repository: Path, environment: Path, cache: Path) -> dict[str, str]:
    """Name the folders that differ from machine to machine."""
    named = {repository: "<repository>", environment: "<environment>", cache: "<cache>"}
    if home is not None:
        named = {home: "~"} | named
    return {str(path): name for path, name in named.items() if len(path.parts) > 1}
