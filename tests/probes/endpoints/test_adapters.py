"""Each adapter reads what its runtime tells, and says of everything else that it is not told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.endpoints.adapter import Adapter
from probes.endpoints.adapters import ADAPTERS, FALLBACK
from probes.endpoints.live import live_metrics
from probes.endpoints.llamacpp import LlamaCpp
from probes.endpoints.metrics import parse
from probes.endpoints.openai import OpenAiCompatible
from probes.endpoints.ovms import EMBEDDED, OVMS, Phase, servable
from probes.endpoints.reading import NOWHERE, Reading, Replies
from probes.endpoints.vllm import Vllm
from probes.endpoints.wire import Reply
from probes.evidence import EndpointState, Metric, Missing, Technique
from probes.fleet import RuntimeName
from probes.load.answer import FirstToken
from tests.captures import Capture, capture


def answered(path: str, body: Any, status: int = 200, **more: str) -> Reply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(
        path=path,
        status=status,
        content_type="application/json",
        server=more.get("server", ""),
        encoding="",
        location="",
        body=raw,
        whole=True,
        connect_s=None,
        end_s=0.0,
    )


def replies(**bodies: Any) -> Replies:
    """Map paths, written with _ for /, to JSON bodies."""
    paths = {"/" + name.replace("_", "/"): body for name, body in bodies.items()}
    return {path: body if isinstance(body, Reply) else answered(path, body) for path, body in paths.items()}


def recorded(engine: str, *names: str) -> Replies:
    captures: list[Capture] = [capture(engine, name) for name in names]
    return {one.path: answered(one.path, one.body, one.status, server=one.headers.get("server", "")) for one in captures}


def settings(reading: Reading) -> dict[str, object]:
    return {one.control: one.value for one in reading.seen}


def figures(adapter: Adapter, before: str | bytes, after: str | bytes) -> dict[str, Metric]:
    first, last = (parse(text if isinstance(text, str) else text.decode()) for text in (before, after))
    return {metric.name: metric for metric in live_metrics(adapter.quantities, first, last, adapter.metrics_hint)}


def status(state: str, code: str = "OK", version: str = "1") -> dict[str, Any]:
    return {"version": version, "state": state, "status": {"error_code": code, "error_message": code}}


def config(**models: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: {"model_version_status": versions} for name, versions in models.items()}


def listing(*ids: str, owner: str = "OVMS") -> dict[str, Any]:
    return {"object": "list", "data": [{"id": one, "object": "model", "created": 1, "owned_by": owner} for one in ids]}


NAME = {"name": "OpenVINO Model Server", "version": "2026.2.0.abc"}


@pytest.mark.parametrize(
    ("state", "code", "phase"),
    [
        ("AVAILABLE", "OK", Phase.READY),
        ("START", "OK", Phase.LOADING),
        ("LOADING", "OK", Phase.LOADING),
        ("LOADING", "UNKNOWN", Phase.FAILED),
        ("LOADING", "FAILED_PRECONDITION", Phase.FAILED),
        ("UNLOADING", "OK", Phase.GONE),
        ("END", "OK", Phase.GONE),
        ("AVAILABLE", "UNKNOWN", Phase.UNKNOWN),
        ("SOMETHING", "OK", Phase.UNKNOWN),
        ("", "", Phase.UNKNOWN),
    ],
)
def test_ovms_state_means_what_its_error_code_makes_of_it(state: str, code: str, phase: Phase) -> None:
    one = servable("m", [status(state, code)])
    assert one.phase is phase
    assert one.word == (state or "no state")


def test_ovms_model_is_as_good_as_its_best_version() -> None:
    assert servable("m", [status("END"), status("AVAILABLE", version="2")]).phase is Phase.READY
    assert servable("m", []).phase is Phase.GONE
    assert servable("m", None).phase is Phase.GONE


@pytest.mark.parametrize(
    ("models", "state", "detail"),
    [
        (config(a=[status("AVAILABLE")]), EndpointState.LISTED, ""),
        (config(a=[status("LOADING")]), EndpointState.LOADING, "a is LOADING"),
        (
            config(a=[status("LOADING", "FAILED_PRECONDITION")]),
            EndpointState.FAILED,
            "a is LOADING: the LLM graph failed to load (error code FAILED_PRECONDITION); the reason is in the log",
        ),
        (config(a=[status("LOADING", "UNKNOWN")], b=[status("AVAILABLE")]), EndpointState.LISTED, "1 of 2 models available"),
        (config(a=[status("END")]), EndpointState.LISTED, "a is END: retired"),
        ({}, EndpointState.EMPTY, "the server lists no model"),
    ],
)
def test_ovms_state_of_the_server(models: dict[str, Any], state: EndpointState, detail: str) -> None:
    reading = OVMS.read(replies(v2=NAME, v1_config=models), "")
    assert (reading.state, reading.detail, reading.version) == (state, detail, "2026.2.0.abc")


def test_ovms_asks_only_what_is_available_and_listed() -> None:
    models = config(llm=[status("AVAILABLE")], resnet=[status("AVAILABLE")], late=[status("LOADING")])
    reading = OVMS.read(replies(v2=NAME, v1_config=models, v3_models=listing("llm", "llm")), "")
    assert reading.askable == ("llm",)
    assert {model.id: model.state for model in reading.models} == {"llm": "AVAILABLE", "resnet": "AVAILABLE", "late": "LOADING"}
    assert reading.api == "/v3"


def test_ovms_tells_no_setting_and_says_so_for_each() -> None:
    reading = OVMS.read(replies(v2=NAME, v1_config=config(a=[status("AVAILABLE")])), "/v1")
    assert reading.seen == ()
    assert {"enable_prefix_caching", "cache_size", "KV_CACHE_PRECISION"} <= {one.control for one in reading.not_told}
    assert reading.api == "/v1"


@pytest.mark.parametrize(
    ("version", "first"),
    [
        ("2025.4", FirstToken.FIRST_OUTPUT),
        ("2026.0.1", FirstToken.FIRST_OUTPUT),
        ("2026.1", FirstToken.FIRST_EVENT),
        ("2026.4.1.abc", FirstToken.FIRST_EVENT),
        ("nightly", FirstToken.FIRST_EVENT),
    ],
)
def test_ovms_empty_first_chunk_is_the_first_token_since_2026_1(version: str, first: FirstToken) -> None:
    assert OVMS.read(replies(v2={**NAME, "version": version}), "").first_token is first


def test_ovms_server_time_is_that_of_graphs_and_not_of_models() -> None:
    def metrics(total: int, count: int) -> str:
        name = "ovms_graph_processing_time_us"
        labels = '{method="Stream",name="llm"}'
        return f"ovms_request_time_us_sum 0\n{name}_sum{labels} {total}\n{name}_count{labels} {count}"

    before, after = metrics(0, 0), metrics(2900000, 20)
    assert figures(OVMS, before, after)["server_latency_s"].samples[0] == pytest.approx(0.145)
    assert figures(OVMS, before, before)["server_latency_s"].missing is not None


def test_embedded_service_is_never_taken_for_ovms_and_tells_its_settings() -> None:
    values = {"enable_prefix_caching": "true", "cache_size": "1", "KV_CACHE_PRECISION": "u8", "device": "CPU"}
    info = "inference_adr_embedded_setting_info"
    metrics = "\n".join(f'{info}{{setting="{name}",value="{value}"}} 1.0' for name, value in values.items())
    found = replies(
        v2={"name": "openvino-genai (embedded)", "version": "2026.4.1"},
        v3_models=listing("m", owner="inference-adr embedded"),
        metrics=answered("/metrics", metrics.encode()),
    )
    assert (EMBEDDED.recognises(found), OVMS.recognises(found)) == (True, False)
    reading = EMBEDDED.read(found, "")
    assert settings(reading) == {"enable_prefix_caching": True, "cache_size": 1, "KV_CACHE_PRECISION": "u8"}
    assert (reading.device, reading.runtime) == ("CPU", RuntimeName.OPENVINO_GENAI_EMBEDDED)
    assert reading.askable == ("m",)
    assert not {one.control for one in reading.not_told} & set(settings(reading))


def llamacpp_replies() -> Replies:
    return recorded("llamacpp", "get_models", "get_props", "get_slots", "get_health", "get_metrics")


def test_llamacpp_tells_weights_slots_context_and_speculation() -> None:
    reading = LlamaCpp().read(llamacpp_replies(), "")
    assert settings(reading) == {"weight_precision": "Q4_1", "parallel": 2, "n_ctx_per_slot": 2048, "spec_type": "none"}
    facts = reading.facts["smollm2-135m"]
    assert (facts.quantization, facts.bytes) == ("Q4_1", 96576768)
    assert (reading.askable, reading.api, reading.first_token) == (("smollm2-135m",), "/v1", FirstToken.FIRST_OUTPUT)
    assert isinstance(reading.version, Missing)
    assert "b0-unknown" in reading.version.detail
    assert {"flash_attn", "cache_type_k", "cont_batching"} <= {one.control for one in reading.not_told}


def test_llamacpp_that_drafts_is_not_said_to_draft_nothing() -> None:
    """Its /props says 'none' all the same, as a real server with a draft model does."""
    drafts = [{"id": 0, "n_ctx": 2048, "speculative": True, "is_processing": False}]
    reading = LlamaCpp().read({**llamacpp_replies(), "/slots": answered("/slots", drafts)}, "")
    assert "spec_type" not in settings(reading)
    (one,) = [one for one in reading.not_told if one.control == "spec_type"]
    assert one.why == "GET /slots says that slots draft, and no path says by which method"
    assert (one.default, one.default_of) == ("", "")


def test_llamacpp_says_why_its_prompt_cache_is_not_told_until_a_request_proves_it() -> None:
    (one,) = [one for one in LlamaCpp().read(llamacpp_replies(), "").not_told if one.control == "cache_prompt"]
    assert one.why.startswith("no path reports it; cached tokens of a repeated request would prove it on")
    assert one.default is True


def test_llamacpp_without_slots_does_not_tell_whether_it_drafts() -> None:
    refused = answered("/slots", {"error": {"code": 501, "message": "not supported"}}, 501)
    reading = LlamaCpp().read({**llamacpp_replies(), "/slots": refused}, "")
    assert "spec_type" not in settings(reading)


def test_llamacpp_that_loads_is_recognised_by_its_own_words() -> None:
    loading = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    found = {NOWHERE: answered("/x", loading, 503, server="llama.cpp")}
    assert LlamaCpp().recognises(found)
    reading = LlamaCpp().read(found, "")
    assert (reading.state, reading.askable) == (EndpointState.LOADING, ())
    assert not LlamaCpp().recognises({NOWHERE: answered("/x", loading, 503, server="nginx")})


def test_llamacpp_router_is_not_made_to_load_a_model() -> None:
    entries = [
        {"id": one, "owned_by": "llamacpp", "status": {"value": state}} for one, state in (("a", "unloaded"), ("b", "loaded"))
    ]
    reading = LlamaCpp().read(replies(v1_models={"object": "list", "data": entries}), "")
    assert reading.askable == ("b",)
    only = LlamaCpp().read(replies(v1_models={"object": "list", "data": entries[:1]}), "")
    assert (only.askable, only.why_not) == ((), "no model is loaded, and a request would load one")


def test_llamacpp_figures_come_from_its_metrics() -> None:
    found = figures(LlamaCpp(), capture("llamacpp", "get_metrics").body, capture("llamacpp", "get_metrics_after").body)
    assert found["prefix_cache_hit_ratio"].samples[0] == pytest.approx(358 / (358 + 62))
    assert (found["requests_running"].samples, found["draft_tokens"].samples) == ((0.0,), (0.0,))
    assert found["kv_cache_usage"].missing is not None
    assert found["draft_acceptance_ratio"].missing is not None


def test_vllm_tells_its_cache_in_the_labels_of_one_metric() -> None:
    found = recorded("vllm", "get_models", "get_version", "get_metrics_after")
    assert Vllm().recognises(found)
    reading = Vllm().read(found, "")
    assert settings(reading) == {
        "kv_cache_dtype": "auto",
        "enable_prefix_caching": True,
        "gpu_memory_utilization": 0.92,
        "block_size": 128,
        "kv_cache_size_tokens": 23296,
    }
    assert (reading.version, reading.askable) == ("0.32.0", ("smollm2-135m",))
    assert {"speculative_config", "max_num_seqs", "weight_precision"} <= {one.control for one in reading.not_told}


def test_vllm_speculation_is_seen_by_its_counters() -> None:
    metrics = b"vllm:spec_decode_num_drafts_total 34\n"
    found = {**recorded("vllm", "get_models"), "/metrics": answered("/metrics", metrics)}
    assert settings(Vllm().read(found, "")) == {"speculative_config": "configured"}


@pytest.mark.parametrize("value", ["nan", "-1", "2", "", "None", "lots"])
def test_vllm_label_that_makes_no_sense_is_not_told(value: str) -> None:
    metrics = f'vllm:cache_config_info{{gpu_memory_utilization="{value}",enable_prefix_caching="{value}"}} 1.0'.encode()
    reading = Vllm().read({"/metrics": answered("/metrics", metrics)}, "")
    assert settings(reading) == {}
    assert {"gpu_memory_utilization", "enable_prefix_caching"} <= {one.control for one in reading.not_told}


def test_vllm_figures_come_from_its_metrics() -> None:
    found = figures(Vllm(), capture("vllm", "get_metrics").body, capture("vllm", "get_metrics_after").body)
    assert found["prefix_cache_hit_ratio"].samples == (0.0,)
    assert found["kv_cache_usage"].samples == (0.0,)
    assert found["draft_tokens"].missing is not None
    assert found["server_latency_s"].samples[0] > 0


def test_fallback_knows_models_and_nothing_else() -> None:
    found = recorded("kernelloom", "get_models")
    reading = OpenAiCompatible().read(found, "")
    assert (reading.askable, reading.seen) == (("smollm2-135m",), ())
    assert {one.technique for one in reading.not_told} == set(Technique)


def test_fallback_reads_an_ollama_list_in_place_of_an_openai_one() -> None:
    found = recorded("ollama-openai-proxy", "get_models")
    assert OpenAiCompatible().recognises(found)
    assert OpenAiCompatible().read(found, "").askable == ("smollm2-135m",)


def test_fallback_does_not_make_an_ollama_behind_a_proxy_load_a_model() -> None:
    reading = OpenAiCompatible().read(replies(v1_models=listing("a", owner="library")), "")
    assert (reading.askable, reading.loadable) == ((), ("a",))
    assert reading.why_not.startswith("Ollama loads a model")


def test_server_without_a_list_is_recognised_by_a_chat_path_that_wants_a_post() -> None:
    path = "/v1/chat/completions"
    wants_post = {path: answered(path, {"detail": "Method Not Allowed"}, 405)}
    assert FALLBACK.recognises({NOWHERE: answered("/x", {}, 404), **wants_post})
    assert not FALLBACK.recognises({NOWHERE: answered("/x", {}, 405), **wants_post})


@pytest.mark.parametrize("engine", ["llamacpp", "vllm", "kernelloom", "ollama-openai-proxy"])
def test_each_real_server_is_recognised_by_its_own_adapter_only(engine: str) -> None:
    own = {"llamacpp": RuntimeName.LLAMACPP, "vllm": RuntimeName.VLLM}.get(engine)
    found = recorded(engine, "get_models")
    assert [name for name, adapter in ADAPTERS.items() if adapter.recognises(found)] == ([own] if own else [])


FIELDS = ["data", "models", "object", "id", "owned_by", "meta", "status", "value", "name", "version", "state", "ftype", "size"]
FIELDS += ["default_generation_settings", "params", "speculative.types", "model_version_status", "total_slots", "n_ctx"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
PATHS = ["/v1/models", "/v2", "/props", "/health", "/v1/config", "/version", "/metrics"]


@given(st.dictionaries(st.sampled_from(PATHS), JSON))
def test_no_answer_breaks_an_adapter(bodies: dict[str, Any]) -> None:
    found = {path: answered(path, body) for path, body in bodies.items()}
    for adapter in (*ADAPTERS.values(), FALLBACK):
        assert adapter.recognises(found) in {True, False}
        assert adapter.read(found, "").state in EndpointState
