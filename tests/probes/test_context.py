"""A run holds what was said without the keys, and keeps the words of its schema whatever the keys are."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from probes.context import Context
from probes.evidence import (
    Arm,
    Capability,
    CapabilityState,
    Device,
    Direction,
    Endpoint,
    EndpointState,
    Metric,
    Missing,
    MissingReason,
    ModelFacts,
    ModelState,
    Per,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Setting,
    Technique,
)
from probes.redaction import Redactor, vocabulary

START = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def full(context: Context, said: str = "") -> Run:
    """A run with every kind of field, in which everything that came from outside says `said`."""
    why = Missing(missing=MissingReason.NOT_APPLICABLE, detail=said)
    provenance = Provenance(kind=ProvenanceKind.OBSERVED, date=START.date(), source=f"a file: {said}")
    arms = (Arm(name="baseline", role="baseline", settings={"cache_size": said}), Arm(name="candidate", role="candidate"))
    metrics = tuple(
        Metric(name="ttft_s", unit="s", direction=Direction.LOWER, per=Per.REPETITION, arm=arm.name, samples=(1.0,))
        for arm in arms
    )
    absent = Metric(name="power_w", unit="W", direction=Direction.LOWER, per=Per.RUN, missing=why)
    state = EndpointState.GENERATING
    return context.run(
        RunKind.SURVEY,
        "endpoint",
        START,
        server=why,
        device=Device(name=said or "CPU", full_name=said, properties={"FULL_DEVICE_NAME": said, "nested": [{"x": said}, 1]}),
        runtime=Runtime(name="openvino-genai (embedded)", version=said),
        model=ModelFacts(id=said, revision=said, sha256=why),
        endpoint=Endpoint(url=said, state=state, detail=said, models=(ModelState(id=said, state=said, detail=said),)),
        survey={"baseline": Endpoint(url=why, state=state, detail=said)},
        settings=(
            Setting(technique=Technique.KV_CACHE, control="cache_size", value=said, provenance=provenance),
            Setting(technique=Technique.KV_CACHE, control="dynamic_split_fuse", value=True, provenance=provenance),
        ),
        arms=arms,
        metrics=(*metrics, absent),
        capabilities=(
            Capability(
                name="KV_CACHE_PRECISION",
                technique=Technique.KV_CACHE,
                requested="u8",
                state=CapabilityState.ACCEPTED,
                words=said,
                effect=said,
            ),
        ),
        native={"requests": [{"text": said}]},
    )


WORDS = sorted(
    {word for word in vocabulary(Run.model_json_schema()) if len(word) >= 8}
    | {"20261130T120000Z-local-abc123-survey-endpoint", "abc123abc123", "local-abc123", "KV_CACHE_PRECISION", "cache_size"}
)


@pytest.mark.parametrize("secret", WORDS)
def test_a_key_that_is_a_word_of_the_schema_changes_no_run(context: Context, secret: str) -> None:
    with_secret = full(replace(context, redact=Redactor(secrets=[secret])))
    assert with_secret == full(replace(context, redact=Redactor())).model_copy(update={"ended_at": with_secret.ended_at})


def test_all_words_of_the_schema_are_told_from_what_was_said(context: Context) -> None:
    said = "Incorrect key: canary-that-sings"
    run = full(replace(context, redact=Redactor(secrets=["canary-that-sings", *WORDS])), said)
    text = run.model_dump_json()
    assert "canary" not in text
    assert text.count("Incorrect key: [redacted]") == full(replace(context, redact=Redactor()), said).model_dump_json().count(
        said
    )
    assert (run.subject, list(run.survey), [arm.name for arm in run.arms]) == (
        "endpoint",
        ["baseline"],
        ["baseline", "candidate"],
    )


def test_the_keys_of_what_a_runtime_said_lose_a_long_secret_only(context: Context) -> None:
    redacting = replace(context, redact=Redactor(secrets=["a-canary-that-sings", "requests!"]))
    run = redacting.run(RunKind.MICRO, "x", START, native={"a-canary-that-sings": "requests!", "requests!": 1})
    assert json.loads(run.model_dump_json())["native"] == {"[redacted]": "[redacted]", "requests!": 1}
