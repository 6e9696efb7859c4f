"""Real servers in known configurations: nothing that is said of them is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probes.context import Context
from probes.evidence import EndpointState, ModelKind, Technique
from probes.fleet import RuntimeName
from probes.model import ModelFiles
from tests.captures import capture, server
from tests.engines.check import check_embedded, check_llamacpp, main
from tests.engines.claims import TITLES, Configuration, Figure, Outcome, Truth, held, table
from tests.engines.configurations import EMBEDDED, LLAMACPP
from tests.probing import probe

CHATS = ("chat_stream_usage", "chat_stream_usage_repeat")
TRUTHS = tuple(
    Truth(technique=technique, control=control, set_as="…", value=value)
    for technique, control, value in (
        (Technique.QUANTIZATION, "weight_precision", "Q4_1"),
        (Technique.CONTINUOUS_BATCHING, "parallel", 2),
        (Technique.KV_CACHE, "n_ctx_per_slot", 2048),
        (Technique.SPECULATIVE_DECODING, "spec_type", "none"),
        (Technique.PREFIX_CACHING, "cache_prompt", True),
        (Technique.FLASH_ATTENTION, "flash_attn", "on"),
    )
)
CONFIGURATION = Configuration(
    engine="llama.cpp",
    name="recorded",
    runtime=RuntimeName.LLAMACPP,
    version=None,
    state=EndpointState.GENERATING,
    truths=TRUTHS,
)


@pytest.mark.engine
@pytest.mark.parametrize("configuration", LLAMACPP, ids=lambda one: one.name)
def test_nothing_said_of_a_real_llamacpp_is_wrong(configuration: Configuration) -> None:
    rows = check_llamacpp(configuration)
    assert not [row for row in rows if row.outcome is Outcome.WRONG], table(rows)
    assert sum(row.outcome is Outcome.RIGHT for row in rows) >= 5


@pytest.mark.engine
@pytest.mark.parametrize("configuration", EMBEDDED, ids=lambda one: one.name)
def test_nothing_said_of_the_embedded_service_is_wrong(
    configuration: Configuration, model_cache: Path, model_files: ModelFiles
) -> None:
    rows = check_embedded(configuration, model_cache)
    assert {row.outcome for row in rows if row.set_as != "nothing"} == {Outcome.RIGHT}, table(rows)


def outcomes(context: Context, configuration: Configuration) -> dict[str, Outcome]:
    gets = [capture("llamacpp", name) for name in ("get_models", "get_props", "get_slots", "get_health", "get_metrics")]
    run = probe(context, server(*gets, chat=[capture("llamacpp", name) for name in CHATS]))
    return {f"{row.technique}: {row.says}": row.outcome for row in held(configuration, run)}


def test_true_claims_are_right_and_silence_is_allowed(context: Context) -> None:
    found = outcomes(context, CONFIGURATION)
    assert set(found.values()) == {Outcome.RIGHT, Outcome.UNKNOWN}
    assert found["flash attention: not told"] is Outcome.UNKNOWN
    assert found["continuous batching: parallel = 2"] is Outcome.RIGHT


def test_every_technique_has_a_row_also_where_nothing_was_set(context: Context) -> None:
    run = probe(context, server(capture("llamacpp", "get_models"), chat=[capture("llamacpp", name) for name in CHATS]))
    rows = held(replace(CONFIGURATION, truths=TRUTHS[:1]), run)
    assert set(TITLES.values()) <= {row.technique for row in rows}
    (split,) = [row for row in rows if row.technique == "disaggregation"]
    assert (split.set_as, split.says, split.knows) == ("nothing", "not told", "llama-server has no such setting")
    (speculation,) = [row for row in rows if row.technique == "speculative decoding"]
    assert speculation.knows.startswith("draft_model: no path of llama-server reports it")


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"runtime": RuntimeName.VLLM}, "identity: llama.cpp"),
        ({"state": EndpointState.LOADING}, "state: generating"),
        ({"kind": ModelKind.ENCODER}, "kind of model: token generator"),
        ({"truths": TRUTHS[1:]}, "quantization: weight_precision = Q4_1"),
        ({"truths": (replace(TRUTHS[0], value="Q8_0"), *TRUTHS[1:])}, "quantization: weight_precision = Q4_1"),
        ({"truths": (*TRUTHS[:4], replace(TRUTHS[4], value=1))}, "prefix caching: cache_prompt = true"),
        ({"truths": (replace(TRUTHS[0], technique=Technique.KV_CACHE), *TRUTHS[1:])}, "KV cache: weight_precision = Q4_1"),
        (
            {"figures": (Figure(technique=Technique.KV_CACHE, metric="requests_running", set_as="…", holds=lambda n: n > 0),)},
            "KV cache: requests_running = 0",
        ),
    ],
)
def test_claim_that_is_not_true_or_cannot_be_checked_is_wrong(context: Context, changes: dict[str, object], wrong: str) -> None:
    found = outcomes(context, replace(CONFIGURATION, **changes))  # type: ignore[arg-type]
    assert [says for says, outcome in found.items() if outcome is Outcome.WRONG] == [wrong]


def test_engine_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triton"]) == 2
    assert capsys.readouterr().err.startswith("triton: is no engine; expected one of llama.cpp, embedded")
