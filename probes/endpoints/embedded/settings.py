"""The settings of the embedded service: the names OVMS uses for them, and what each may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from probes.errors import UsageError
from probes.evidence import Scalar
from probes.fleet import EmbeddedSettings as Settings
from probes.schema import problems_of

__all__ = ["KNOWN", "Settings", "parse_settings", "read_settings"]

KNOWN = tuple(field.alias or name for name, field in Settings.model_fields.items())


def read_settings(values: Mapping[str, Scalar]) -> Settings:
    """Check names and types; whether a value works is for the runtime to say.

    Raises:
        UsageError: with every unknown name and every value of the wrong type.
    """
    unknown = [name for name in values if name not in KNOWN]
    said = [f"setting {name}: is not known; expected one of {', '.join(KNOWN)}" for name in unknown]
    settings = Settings()
    try:
        settings = Settings.model_validate({name: value for name, value in values.items() if name in KNOWN})
    except ValidationError as exc:
        said += [str(problem) for problem in problems_of(exc, lambda path: f"setting {path[0]}")]
    if said:
        raise UsageError("\n".join(said))
    return settings


def parse_settings(words: Sequence[str]) -> dict[str, Scalar]:
    """Read NAME=VALUE words from a command line; a value is true, false, a whole number, or else text.

    Raises:
        UsageError: a word without '=', or a name given twice.
    """
    values: dict[str, Scalar] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--setting {word}: has no '='; expected NAME=VALUE such as enable_prefix_caching=false")
        if name in values:
            raise UsageError(f"--setting {name}: is given twice; expected one value")
        values[name] = _scalar(value)
    return values


def _scalar(text: str) -> Scalar:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    return int(text) if text.isascii() and text.isdigit() else text
