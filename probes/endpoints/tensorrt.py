"""TensorRT-LLM's server as its HTTP answers show it.

Paths and shapes are those of github:NVIDIA/TensorRT-LLM @00057725 tensorrt_llm/serve/openai_server.py, metrics those of
@050f80de tensorrt_llm/metrics/collector.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.metrics import Scrape, scrape
from probes.endpoints.reading import (
    Reading,
    Replies,
    Seen,
    Silent,
    document,
    of_list,
    owned_by,
    silences,
    unversioned,
)
from probes.evidence import Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import count, string

# /metrics and /perf_metrics empty themselves with each reading, and their one reader is somebody else's.
VERSION, PROMETHEUS = "/version", "/prometheus/metrics"
_BATCH, _KV_CACHE, _SPECULATION = (
    "trtllm_max_batch_size_static",
    "trtllm_kv_cache_config_info",
    "trtllm_speculative_config_info",
)
_DEFAULTS_OF: Final = "TensorRT-LLM 1.4 (trtllm-serve manual @0434755f)"
_WHY_SILENT: Final = f"GET {PROMETHEUS} does not show it; it stands in the command line or its YAML file"
_CONTROLS: Final = (
    Silent(technique=Technique.QUANTIZATION, control="weight_precision", default="that of the checkpoint"),
    Silent(technique=Technique.QUANTIZATION, control="kv_cache_dtype", default="auto"),
    Silent(technique=Technique.PREFIX_CACHING, control="enable_block_reuse", default=True),
    Silent(technique=Technique.DISAGGREGATION, control="cache_transceiver_backend", default="off"),
    Silent(technique=Technique.FLASH_ATTENTION, control="attn_backend", default="TRTLLM"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="max_batch_size"),
    Silent(technique=Technique.KV_CACHE, control="free_gpu_memory_fraction", default=0.9),
    Silent(technique=Technique.SPECULATIVE_DECODING, control="speculative_config", default="none"),
)


class TensorRtLlm(Adapter):
    """Figures and settings come from its Prometheus path, which has to be switched on; `/metrics` is left to its reader."""

    runtime = RuntimeName.TENSORRT_LLM
    paths = (VERSION, PROMETHEUS)
    metrics = PROMETHEUS
    metrics_hint = (
        "set return_perf_metrics and enable_iter_perf_stats; GET /metrics is not read, because each reading empties it"
    )
    prefix_control = "enable_block_reuse"
    quantities = (
        live.running(live.gauge("trtllm_num_requests_running")),
        live.waiting(live.gauge("trtllm_num_requests_waiting")),
        live.cache_usage(live.fraction("trtllm_kv_cache_utilization")),
        live.prefix_hits(live.share_of("trtllm_prompt_cached_tokens_total", "trtllm_prompt_tokens_total")),
        live.drafted(live.growth("trtllm_spec_decode_num_draft_tokens_total")),
        live.accepted(
            live.share_of("trtllm_spec_decode_num_accepted_tokens_total", "trtllm_spec_decode_num_draft_tokens_total")
        ),
        live.server_time(live.mean_growth("trtllm_e2e_request_latency_seconds")),
    )

    def recognises(self, replies: Replies) -> bool:
        """Look for models it owns."""
        return "tensorrt_llm" in owned_by(replies)

    def read(self, replies: Replies, api: str) -> Reading:
        """Read version, model and what the Prometheus path shows of the configuration."""
        seen = tuple(_seen(scrape(replies[PROMETHEUS]))) if PROMETHEUS in replies else ()
        version = string(document(replies, VERSION).get("version")) or unversioned(f"GET {VERSION} gave no version")
        not_told = silences(_CONTROLS, _WHY_SILENT, default_of=_DEFAULTS_OF, seen=seen)
        return of_list(RuntimeName.TENSORRT_LLM, version, replies, api, seen=seen, not_told=not_told)


def _seen(metrics: Scrape) -> Iterator[Seen]:
    batch = [count(sample.value) for sample in metrics.named(_BATCH)]
    if batch and batch[0]:
        where = f"GET {PROMETHEUS} {_BATCH}"
        yield Seen(technique=Technique.CONTINUOUS_BATCHING, control="max_batch_size", value=batch[0], where=where)
    for sample in metrics.named(_KV_CACHE)[:1]:
        reuse = {"true": True, "false": False}.get(sample.labels.get("enable_block_reuse", "").lower())
        if reuse is not None:
            where = f"GET {PROMETHEUS} {_KV_CACHE} enable_block_reuse"
            yield Seen(technique=Technique.PREFIX_CACHING, control="enable_block_reuse", value=reuse, where=where)
    if metrics.named(_SPECULATION):
        where = f"GET {PROMETHEUS} has {_SPECULATION}"
        yield Seen(technique=Technique.SPECULATIVE_DECODING, control="speculative_config", value="configured", where=where)
