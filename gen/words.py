"""The closed sets of words that pages and records are written in."""

from __future__ import annotations

from enum import StrEnum

from probes.evidence import Technique

TECHNIQUE_TITLES = {
    Technique.QUANTIZATION: "Quantization",
    Technique.PREFIX_CACHING: "Automatic prefix caching",
    Technique.DISAGGREGATION: "Disaggregated prefill/decode",
    Technique.FLASH_ATTENTION: "Flash attention",
    Technique.CONTINUOUS_BATCHING: "Continuous batching",
    Technique.KV_CACHE: "KV-cache management",
    Technique.SPECULATIVE_DECODING: "Speculative decoding",
}


class State(StrEnum):
    """Whether a technique is on. `PARTLY` is for a scope whose services differ."""

    ENABLED = "enabled"
    PARTLY = "partly enabled"
    DISABLED = "disabled"
    UNSUPPORTED = "unsupported"
    NOT_APPLICABLE = "not applicable"
    NOT_REACHABLE = "not reachable"
    UNKNOWN = "unknown"


class Decision(StrEnum):
    """What to do about a technique."""

    KEEP = "keep"
    ENABLE = "enable"
    TUNE = "tune"
    BENCHMARK_FIRST = "benchmark first"
    DO_NOT_DEPLOY = "do not deploy"
    NO_CHANGE = "no change"
    NOT_APPLICABLE = "not applicable"
    INVESTIGATE = "investigate"


class Status(StrEnum):
    """The life of a record (MADR 4)."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DEPRECATED = "deprecated"
    SUPERSEDED = "superseded"


class Verdict(StrEnum):
    """The outcome of comparing a candidate with a baseline on one metric."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"
    NOT_MEASURED = "not measured"


class Applicability(StrEnum):
    """How a technique bears on a kind of service."""

    APPLIES = "applies"
    DIFFERENT = "applies in another form"
    DOES_NOT_APPLY = "does not apply"
    ON_HOST = "settled on its host"
