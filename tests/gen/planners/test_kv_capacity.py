"""What a pool holds, worked out by hand from published shapes and from what an engine counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.assess import view
from gen.corpus import read_corpus
from gen.planners import decode_roofline, disaggregation, kv_capacity
from gen.planners.kv_capacity import GIB, bytes_per_token, sequences_held, tokens_held
from gen.planners.plan import Plan, Span, exactly
from gen.view import ServiceView, View
from probes.evidence import FleetScope, ProvenanceKind, Run, RunKind
from tests.gen.ledger import NOVEMBER, ledger
from tests.gen.specimens import ROOT, run

QWEN3_8B = {"layers": 36, "kv_heads": 8, "head_size": 128}


def reading(service: str = "text-8b", /, **numbers: int) -> Run:
    """Make a reading of a model's files, as `probes declared` writes it."""
    document: dict[str, Any] = {
        name: {"value": value, "where": f"model/config.json: {name}"} for name, value in numbers.items()
    }
    return run(RunKind.DECLARED, service, scope=FleetScope(service=service), native={"files": [], "model": document})


def seen(*runs: Run, service: str = "text-8b") -> tuple[View, ServiceView]:
    corpus = ledger(runs=runs)
    one = view(corpus, "fleet", NOVEMBER)
    return one, next(item for item in one.services if item.name == service)


def planned(*runs: Run, service: str = "text-8b") -> Plan:
    return kv_capacity.plan(*seen(*runs, service=service))


@pytest.mark.parametrize(
    ("layers", "heads", "size", "precision", "expected"),
    [
        (32, 8, 128, "f16", 128 * 1024),  # Llama-3.1-8B
        (80, 8, 128, "bf16", 320 * 1024),  # Llama-3.1-70B
        (40, 40, 128, "fp16", 800 * 1024),  # Llama-2-13B, one KV head per head
        (30, 3, 64, "f32", 46_080),  # SmolLM2-135M
        (32, 8, 128, "fp8", 64 * 1024),
        (32, 8, 128, "q8_0", 32 * 8 * 128 * 2 * 34 // 32),
    ],
)
def test_bytes_of_a_token_from_published_shapes(layers: int, heads: int, size: int, precision: str, expected: int) -> None:
    for device in ("cpu", "gpu"):
        assert bytes_per_token(layers, heads, size, precision, device) == exactly(expected, "B")


def test_compressed_caches_on_a_cpu_are_sized_as_the_engine_counts_them() -> None:
    """Counted by OpenVINO GenAI 2026.4.1 for SmolLM2-135M: 13,680 bytes in u8 and 15,840 in u4, each beside 46,080 in f32."""
    assert bytes_per_token(30, 3, 64, "u8", "cpu") == exactly(13_680, "B")
    four = bytes_per_token(30, 3, 64, "U4", "cpu")
    assert four is not None
    assert (four.low, four.value, four.high) == (7_920, 15_840, 15_840)


def test_on_a_card_the_layout_of_keys_bounds_the_answer() -> None:
    """Values take 128 + 4 bytes; keys 128 + 4 by token, or 128 x 20 / 16 = 160 by channel: 264 to 292 for a head."""
    eight = bytes_per_token(32, 8, 128, "u8", "gpu")
    assert eight is not None
    assert (eight.low, eight.high) == (256 * 264, 256 * 292)
    four = bytes_per_token(32, 8, 128, "u4", "gpu")
    assert four is not None
    assert (four.low, four.high) == (256 * (68 + 68), 256 * (68 + 96))


def test_a_precision_of_an_unknown_layout_is_not_guessed() -> None:
    assert bytes_per_token(32, 8, 128, "u3", "cpu") is None
    assert bytes_per_token(32, 8, 128, "turbo3", "gpu") is None


def test_two_gib_hold_sixteen_thousand_tokens_of_llama_8b() -> None:
    tokens = tokens_held(exactly(2 * GIB, "B"), exactly(128 * 1024, "B"), 16)
    assert tokens == exactly(16_384, "tokens")
    assert sequences_held(tokens, 2048, 16) == exactly(8, "sequences")
    assert sequences_held(tokens, 2049, 16) == exactly(7, "sequences")


def test_the_embedded_pool_is_the_one_that_the_engine_reported() -> None:
    """The committed run saw cache_size 1 become a pool of 1,073,387,520 bytes: 2452 blocks of 32 tokens of 13,680 bytes."""
    tokens = tokens_held(exactly(GIB, "B"), exactly(13_680, "B"), 32)
    assert tokens.value == 2452 * 32 == 1_073_387_520 / 13_680


@given(
    pool=st.integers(1, 64),
    size=st.integers(1_000, 1_000_000),
    more=st.integers(0, 500_000),
    block=st.sampled_from([16, 32]),
    context=st.integers(1, 100_000),
)
def test_laws_of_capacity(pool: int, size: int, more: int, block: int, context: int) -> None:
    memory = exactly(pool * GIB, "B")
    span = Span(low=size, value=size, high=size + more, unit="B")
    tokens = tokens_held(memory, span, block)
    assert tokens.low * (size + more) <= pool * GIB
    assert tokens.high * size <= pool * GIB
    assert tokens.value % block == 0
    assert tokens.low <= tokens.value <= tokens.high
    assert tokens_held(exactly((pool + 1) * GIB, "B"), span, block).value >= tokens.value
    assert sequences_held(tokens, context, block).value * context <= tokens.high


# The users' services


def test_the_fleet_says_which_fields_are_missing_and_guesses_none() -> None:
    for service, gaps in (
        ("text-8b", ["layers", "kv_heads", "head_size"]),
        ("text-4b", ["layers", "kv_heads", "head_size", "KV pool"]),
    ):
        plan = planned(service=service)
        assert not plan.worked
        assert [gap.name for gap in plan.gaps] == gaps
        assert f"services.{service}.config" in plan.gaps[0].fill
    assert planned(service="text-4b").gaps[-1].fill == "services.text-4b.settings: the pool's size"


def test_a_declared_shape_works_the_pool_out_with_the_place_of_each_number() -> None:
    """Qwen3-8B in u8 on a card: 36 x 8 x 264 to 292 = 76,032 to 84,096 bytes a token; 2 GiB are 1596 to 1765 blocks of 16."""
    plan = planned(reading(**QWEN3_8B))
    assert not plan.gaps
    per_token, tokens = plan.result(kv_capacity.PER_TOKEN), plan.result(kv_capacity.TOKENS)
    assert per_token is not None
    assert tokens is not None
    assert (per_token.low, per_token.high) == (76_032, 84_096)
    assert (tokens.low, tokens.high) == (1596 * 16, 1765 * 16)
    each = plan.result(kv_capacity.EACH)
    assert each is not None
    assert (each.low, each.high) == (1596, 1765)
    assert {one.source for one in plan.given} >= {"model/config.json: layers", "model/config.json: kv_heads"}


def test_no_planner_goes_beyond_the_context_that_a_model_was_trained_for() -> None:
    short = reading("text-8b-b580", **QWEN3_8B, context_tokens=4096)
    names = [
        one.name
        for planner in (kv_capacity, decode_roofline, disaggregation)
        for one in planner.plan(*seen(short, service="text-8b-b580")).worked
    ]
    assert "limit with 2048 tokens in the cache" in names
    assert not [name for name in names if "8192" in name or "32768" in name]


def test_one_missing_number_is_the_only_gap() -> None:
    plan = planned(reading(layers=36, head_size=128))
    assert [gap.name for gap in plan.gaps] == ["kv_heads"]


def test_a_reading_of_another_service_fills_nothing() -> None:
    assert not planned(reading("text-4b", **QWEN3_8B)).worked


def test_a_damaged_number_counts_as_missing() -> None:
    assert [gap.name for gap in planned(reading(layers=0, kv_heads=8, head_size=128)).gaps] == ["layers"]


def test_the_shipped_evidence_sizes_the_embedded_pool_by_what_the_engine_counted() -> None:
    corpus = read_corpus(ROOT)
    one = view(corpus, f"local-{corpus.fingerprints()[0]}", NOVEMBER)
    plan = kv_capacity.plan(one, one.services[0])
    tokens = plan.result(kv_capacity.TOKENS)
    assert plan.result(kv_capacity.PER_TOKEN) == exactly(13_680, "B")
    assert tokens == exactly(78_464, "tokens")
    assert plan.given[0].known is ProvenanceKind.MEASURED
