"""vLLM as its HTTP answers and metrics show it; bodies were captured from 0.32.0 on CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.metrics import Scrape, scrape
from probes.endpoints.reading import (
    METRICS,
    NotTold,
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
from probes.evidence import Scalar, Technique
from probes.fleet import RuntimeName
from probes.load.untrusted import string

VERSION = "/version"
_CACHE_CONFIG: Final = "vllm:cache_config_info"
_SPECULATION: Final = "vllm:spec_decode_num_drafts_total"
_DEFAULTS_OF: Final = "vLLM main of 2026 (vllm/config/scheduler.py @01230b40)"
_SILENT: Final = (
    Silent(technique=Technique.QUANTIZATION, control="weight_precision"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="max_num_seqs", default="128, or more as the device allows"),
    Silent(
        technique=Technique.CONTINUOUS_BATCHING, control="max_num_batched_tokens", default="2048, or more as the device allows"
    ),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="enable_chunked_prefill", default=True),
    Silent(technique=Technique.FLASH_ATTENTION, control="attention_backend", default="chosen by the platform"),
    Silent(technique=Technique.DISAGGREGATION, control="kv_transfer_config", default="none"),
)


class Vllm(Adapter):
    """One scrape tells most of the cache's configuration; batch bounds and kernels stay unknown."""

    runtime = RuntimeName.VLLM
    paths = (VERSION, METRICS)
    prefix_control = "enable_prefix_caching"
    quantities = (
        live.running(live.gauge("vllm:num_requests_running")),
        live.waiting(live.gauge("vllm:num_requests_waiting")),
        # Until 0.10 these names spoke of the GPU.
        live.cache_usage(live.fraction("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")),
        # Counted in tokens, and only whole blocks (128 tokens on CPU) hit: a short prompt hits nothing.
        live.prefix_hits(
            live.first(
                live.share_of("vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total"),
                live.share_of("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
            )
        ),
        live.drafted(live.growth("vllm:spec_decode_num_draft_tokens_total")),
        live.accepted(live.share_of("vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_draft_tokens_total")),
        live.server_time(live.mean_growth("vllm:e2e_request_latency_seconds")),
    )

    def recognises(self, replies: Replies) -> bool:
        """Look for models it owns."""
        return "vllm" in owned_by(replies)

    def read(self, replies: Replies, api: str) -> Reading:
        """Read the model list, and the cache's configuration from the labels of one metric."""
        seen = tuple(_seen(scrape(replies[METRICS]))) if METRICS in replies else ()
        version = string(document(replies, VERSION).get("version")) or unversioned(f"GET {VERSION} gave no version")
        not_told = tuple(_not_told({one.control for one in seen}))
        return of_list(RuntimeName.VLLM, version, replies, api, seen=seen, not_told=not_told)


@dataclass(frozen=True, kw_only=True)
class _Label:
    """A label of the cache's configuration and the control that it shows."""

    label: str
    control: str
    technique: Technique
    convert: Callable[[str], Scalar | None]


def _flag(text: str) -> bool | None:
    return {"True": True, "False": False}.get(text)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _fraction(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _word(text: str) -> str | None:
    return text if text not in {"", "None"} else None


_LABELS: Final = (
    _Label(label="cache_dtype", control="kv_cache_dtype", technique=Technique.QUANTIZATION, convert=_word),
    _Label(label="enable_prefix_caching", control="enable_prefix_caching", technique=Technique.PREFIX_CACHING, convert=_flag),
    _Label(label="gpu_memory_utilization", control="gpu_memory_utilization", technique=Technique.KV_CACHE, convert=_fraction),
    _Label(label="block_size", control="block_size", technique=Technique.KV_CACHE, convert=_whole),
    _Label(label="kv_cache_size_tokens", control="kv_cache_size_tokens", technique=Technique.KV_CACHE, convert=_whole),
)


def _seen(metrics: Scrape) -> Iterator[Seen]:
    for sample in metrics.named(_CACHE_CONFIG)[:1]:
        for one in _LABELS:
            value = one.convert(sample.labels.get(one.label, ""))
            if value is not None:
                where = f"GET {METRICS} {_CACHE_CONFIG} {one.label}"
                yield Seen(technique=one.technique, control=one.control, value=value, where=where)
    if metrics.named(_SPECULATION):
        where = f"GET {METRICS} has {_SPECULATION}"
        yield Seen(technique=Technique.SPECULATIVE_DECODING, control="speculative_config", value="configured", where=where)


def _not_told(seen: set[str]) -> Iterator[NotTold]:
    yield from silences(_SILENT, "no path of vLLM reports it; it stands in the command line", default_of=_DEFAULTS_OF)
    for one in _LABELS:
        if one.control not in seen:
            yield NotTold(technique=one.technique, control=one.control, why=f"its metrics have no {_CACHE_CONFIG} with it")
    if "speculative_config" not in seen:
        why = f"its metrics have no {_SPECULATION}, which exists only while speculation is configured"
        yield NotTold(technique=Technique.SPECULATIVE_DECODING, control="speculative_config", why=why)
