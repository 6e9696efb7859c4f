"""The seven rules, in the order of the matrix."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from gen.assessment import Assessment
from gen.techniques import (
    continuous_batching,
    disaggregation,
    flash_attention,
    kv_cache,
    prefix_caching,
    quantization,
    speculative_decoding,
)
from gen.view import View
from probes.evidence import Technique

Rule = Callable[[View], Assessment]

RULES: MappingProxyType[Technique, Rule] = MappingProxyType(
    {
        Technique.QUANTIZATION: quantization.assess,
        Technique.PREFIX_CACHING: prefix_caching.assess,
        Technique.DISAGGREGATION: disaggregation.assess,
        Technique.FLASH_ATTENTION: flash_attention.assess,
        Technique.CONTINUOUS_BATCHING: continuous_batching.assess,
        Technique.KV_CACHE: kv_cache.assess,
        Technique.SPECULATIVE_DECODING: speculative_decoding.assess,
    }
)
