"""The probe against real servers: what was set is what it says, and nothing it says is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from probes.context import Context
from probes.endpoints.embedded.server import EmbeddedAddress
from probes.endpoints.report import lines
from probes.evidence import EndpointState, Missing, MissingReason, ModelKind
from probes.fleet import ProbeLimits, RuntimeName
from tests.engines.llamacpp import llamacpp
from tests.probing import (
    missing,
    probe,
    samples,
    settings,
    state,
)

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llamacpp("n_parallel=2") as url:
        yield url


def test_real_llamacpp(context: Context, llama: str) -> None:
    run = probe(context, url=llama, limits=ProbeLimits(timeout_s=60), expected=RuntimeName.LLAMACPP)
    assert state(run) == (EndpointState.GENERATING, "")
    assert settings(run) == {
        "weight_precision": "Q4_1",
        "parallel": 2,
        "n_ctx_per_slot": 1024,
        "spec_type": "none",
        "cache_prompt": True,
    }
    assert samples(run, "completion_tokens") == (16, 16)
    # Its list says `completion` of every model, also of one for embeddings; that it wrote tokens says what it is.
    assert [(one.kind, one.where) for one in run.kinds] == [
        (ModelKind.GENERATOR, "it answered a request for text with 16 tokens")
    ]
    fresh, repeated = samples(run, "cached_prompt_tokens")
    assert fresh < repeated
    prompt_tokens = samples(run, "prompt_tokens")
    assert samples(run, "prefix_cache_hit_ratio")[0] == pytest.approx((fresh + repeated) / sum(prompt_tokens), abs=0.05)
    requests = run.native["requests"]
    assert isinstance(requests, list)
    for one, ttft_s in zip(requests, (*samples(run, "ttft_s"), *samples(run, "ttft_repeat_s")), strict=True):
        assert isinstance(one, dict)
        timings = one["timings"]
        assert isinstance(timings, dict)
        # The server's own clock: a client cannot have seen the first token before the prompt was processed.
        assert ttft_s > float(str(timings["prompt_ms"])) / 1000
        assert one["coalesced_share"] is not None
    assert any(line.startswith("  setting   parallel = 2 (observed") for line in lines(run))


def test_real_llamacpp_without_prompt_cache_is_not_said_to_have_one(context: Context) -> None:
    with llamacpp("n_parallel=1", "cache_prompt=False", "cache_ram_mib=0", "endpoint_metrics=False") as url:
        run = probe(context, url=f"{url}/v1", limits=ProbeLimits(timeout_s=60))
    assert state(run)[0] is EndpointState.GENERATING
    assert "cache_prompt" not in settings(run)
    assert missing(run, "requests_running").missing is MissingReason.NOT_CONFIGURED
    assert "start llama-server with --metrics" in missing(run, "requests_running").detail


def test_real_embedded_service(context: Context, embedded: EmbeddedAddress) -> None:
    expected = RuntimeName.OPENVINO_GENAI_EMBEDDED
    run = probe(context, url=embedded.url, scope=context.local, limits=ProbeLimits(timeout_s=60), expected=expected)
    assert state(run) == (EndpointState.GENERATING, "")
    assert not isinstance(run.runtime, Missing)
    assert (run.runtime.name, run.runtime.version) == (expected, embedded.genai_version)
    assert settings(run)["enable_prefix_caching"] is True
    assert (settings(run)["KV_CACHE_PRECISION"], settings(run)["cache_size"]) == ("f32", 1)
    assert run.server == context.client
    assert samples(run, "completion_tokens") == (16, 16)
    assert len(samples(run, "kv_cache_usage")) == len(samples(run, "server_latency_s")) == 1
    assert samples(run, "ttft_s")[0] <= samples(run, "t_first_text_s")[0]
