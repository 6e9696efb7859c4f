"""The settings of the embedded service: the names OVMS uses for them, and what each may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, ValidationError

from probes.errors import UsageError
from probes.evidence import Scalar
from probes.schema import Model, problems_of

Count = Annotated[int, Field(ge=1)]


class Settings(Model):
    """What the service was asked to run with; None leaves the choice to the runtime.

    `cache_size` is in GiB, and 0 lets the cache grow. A count of 0 is refused here because the runtime
    does not: with `max_num_batched_tokens` 0 it generates nothing, for ever and without a word (2026.4.1).
    """

    device: str = "CPU"
    kv_cache_precision: str | None = Field(default=None, alias="KV_CACHE_PRECISION")
    enable_prefix_caching: bool | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Count | None = None
    cache_size: Annotated[int, Field(ge=0)] | None = None
    dynamic_split_fuse: bool | None = None


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
