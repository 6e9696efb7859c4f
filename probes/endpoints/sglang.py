"""SGLang as its HTTP answers show it: github:sgl-project/sglang @0025436e, python/sglang/srt/entrypoints/http_server.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from probes.endpoints import live
from probes.endpoints.adapter import Adapter
from probes.endpoints.reading import (
    METRICS,
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

# The newer name and the older one.
INFO, OLD_INFO = "/server_info", "/get_server_info"
_DEFAULTS_OF: Final = "SGLang (docs/advanced_features/server_arguments.md @004813e1)"
_CONTROLS: Final = (
    Silent(technique=Technique.QUANTIZATION, control="weight_precision", default="that of the checkpoint"),
    Silent(technique=Technique.QUANTIZATION, control="kv_cache_dtype", default="auto"),
    Silent(technique=Technique.PREFIX_CACHING, control="radix_cache", default=True),
    Silent(technique=Technique.DISAGGREGATION, control="disaggregation_mode", default="null"),
    Silent(technique=Technique.FLASH_ATTENTION, control="attention_backend", default="auto"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="max_running_requests", default="auto"),
    Silent(technique=Technique.CONTINUOUS_BATCHING, control="chunked_prefill_size", default="auto"),
    Silent(technique=Technique.KV_CACHE, control="mem_fraction_static", default="auto"),
    Silent(technique=Technique.SPECULATIVE_DECODING, control="speculative_algorithm", default="none"),
)
# The names of the server's arguments, where they are not those of the controls.
_ARGUMENTS: Final = {"weight_precision": "quantization", "radix_cache": "disable_radix_cache"}
# Ranks of one model work on the same requests, and priorities are a breakdown of the sum beside them.
_ONCE: Final = {"tp_rank": "0", "pp_rank": "0", "priority": ""}
# Where `null` is a value: no drafting.
_NULL: Final = {"speculative_algorithm": "none"}


class SgLang(Adapter):
    """Its arguments are all on the wire, its keys among them. `/health` is not asked: it makes the model generate a token."""

    runtime = RuntimeName.SGLANG
    metrics_hint = "start sglang with --enable-metrics"
    private = frozenset({INFO, OLD_INFO})
    prefix_control = "radix_cache"
    quantities = (
        live.running(live.gauge("sglang:num_running_reqs", "sglang_num_running_reqs", once=_ONCE)),
        live.waiting(live.gauge("sglang:num_queue_reqs", "sglang_num_queue_reqs", once=_ONCE)),
        live.cache_usage(live.fraction("sglang:token_usage", "sglang_token_usage")),
        live.prefix_hits(live.share_of("sglang:cached_tokens_total", "sglang:prompt_tokens_total")),
        live.drafted(live.never("SGLang counts no drafted tokens; its spec_accept_length speaks of its last interval")),
        live.accepted(live.never("SGLang counts no accepted tokens; its spec_accept_rate is 0 also without drafts")),
        live.server_time(live.mean_growth("sglang:e2e_request_latency_seconds")),
    )

    def recognises(self, replies: Replies) -> bool:
        """Look for models it owns."""
        return "sglang" in owned_by(replies)

    def questions(self, replies: Replies) -> tuple[str, ...]:
        """Ask the older path only where the newer one did not answer."""
        return (INFO, METRICS) if document(replies, INFO) else (INFO, OLD_INFO, METRICS)

    def read(self, replies: Replies, api: str) -> Reading:
        """Read the arguments as the server runs with them."""
        path = INFO if document(replies, INFO) else OLD_INFO
        arguments = document(replies, path)
        seen = tuple(_seen(arguments, path))
        why = f"GET {path} does not say" if arguments else f"neither GET {INFO} nor GET {OLD_INFO} answered"
        version = string(arguments.get("version")) or unversioned(why)
        not_told = silences(_CONTROLS, why, default_of=_DEFAULTS_OF, seen=seen)
        return of_list(RuntimeName.SGLANG, version, replies, api, seen=seen, not_told=not_told)


def _seen(arguments: Mapping[str, JsonValue], path: str) -> Iterator[Seen]:
    for one in _CONTROLS:
        name = _ARGUMENTS.get(one.control, one.control)
        value = _value(one.control, arguments[name]) if name in arguments else None
        if value is not None:
            yield Seen(technique=one.technique, control=one.control, value=value, where=f"GET {path} {name}")


def _value(control: str, value: JsonValue) -> Scalar | None:
    if control == "radix_cache":
        return not value if isinstance(value, bool) else None
    if value is None:
        return _NULL.get(control)
    return value if isinstance(value, str | int | float) else None
