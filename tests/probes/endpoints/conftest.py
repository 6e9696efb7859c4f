"""The embedded service, started once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from probes.endpoints.embedded.server import EmbeddedAddress, running
from probes.evidence import Scalar
from probes.model import ModelFiles

# With a quantized KV cache, the tokens of a greedy answer depend on what else is in the batch; with f32 they do not.
SETTINGS: dict[str, Scalar] = {
    "KV_CACHE_PRECISION": "f32",
    "enable_prefix_caching": True,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 256,
    "cache_size": 1,
}


@pytest.fixture(scope="session")
def embedded(model_cache: Path, model_files: ModelFiles) -> Iterator[EmbeddedAddress]:
    """A running service; it finds the model that `model_files` converted."""
    with running(SETTINGS, model_cache) as address:
        assert address.model == model_files.facts.id
        yield address


@pytest.fixture
def client(embedded: EmbeddedAddress) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=embedded.url, timeout=60, trust_env=False) as client:
        yield client
