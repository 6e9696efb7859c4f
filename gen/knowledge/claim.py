"""What articles say about techniques: hypotheses with a figure, the conditions it was said under, and what would answer it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gen.knowledge.schema import DeviceKind, Engine, Id, Known, Sentence
from probes.evidence import Scalar, Technique
from probes.schema import Model


class Figure(Model):
    """The claimed number. `times` is how many times better, whichever way the metric improves; no `high` means at least."""

    low: float
    high: float | None = None
    unit: Literal["times", "share", "tok/s", "GiB"]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.high is not None and self.high < self.low:
            raise ValueError("a high that is not below low")
        return self


class Conditions(Model):
    """Under what it was said. A run under another device, engine or model does not speak against it."""

    text: Sentence
    devices: tuple[DeviceKind, ...] = ()
    engines: tuple[Engine, ...] = ()
    model: str = ""


class Answered(Model):
    """The benchmark that speaks to a claim: its metric on the candidate that has all these settings, any without them.

    `baseline` names the precision that a `kv_bytes_per_token` is held against.
    """

    subject: str
    metric: str
    candidate: dict[str, Scalar] = {}
    baseline: str = ""
    reads: Literal["improvement", "value"] = "improvement"


class Arithmetic(Model):
    """A KV cache that follows from a published shape, without any measurement."""

    layers: Annotated[int, Field(gt=0)]
    kv_heads: Annotated[int, Field(gt=0)]
    head_size: Annotated[int, Field(gt=0)]
    precision: str
    sequences: Annotated[int, Field(gt=0)]
    context_tokens: Annotated[int, Field(gt=0)]


class Claim(Known):
    """One hypothesis. Without `answered` and `arithmetic`, `needs` says what would measure it."""

    technique: Technique | None = None
    text: Sentence
    figure: Figure
    conditions: Conditions
    answered: Answered | None = None
    arithmetic: Arithmetic | None = None
    needs: Sentence
    beside: tuple[Id, ...] = ()

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.answered is not None and self.arithmetic is not None:
            raise ValueError("answered by a benchmark or by arithmetic, and not both")
        return self


class ClaimFile(Model):
    claims: tuple[Claim, ...]
