"""The users' fleet: the table of July, the next steps of November, and what each single fact moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from gen.assess import assess, scopes
from gen.assessment import Assessment
from gen.corpus import Corpus
from gen.techniques import RULES
from gen.words import Applicability, Decision, State
from probes.errors import UsageError
from probes.evidence import ProvenanceKind, Scalar, Technique
from probes.fleet import Declared, Device, Fleet, RuntimeName, Service, Topology
from tests.gen.ledger import JULY, NOVEMBER, inventory, ledger

TEXT = ("text-8b", "text-8b-b580", "text-30b", "text-gpt-oss", "text-27b", "text-4b")
SPECULATIVE = Technique.SPECULATIVE_DECODING
Rows = dict[Technique, Assessment]


def rows(fleet: Fleet | None = None, on: date = JULY, corpus: Corpus | None = None) -> Rows:
    made = corpus or ledger(**({} if fleet is None else {"fleet": fleet}))
    return {row.technique: row for row in assess(made, "fleet", on)}


def told(row: Assessment) -> str:
    return " ".join((row.state_text, row.decision_text, *row.why, row.next_step, *(c.text for c in row.conflicts)))


def with_service(name: str, fleet: Fleet | None = None, **changes: Any) -> Fleet:
    base = fleet or inventory()
    service = base.services[name].model_copy(update=changes)
    return base.model_copy(update={"services": {**base.services, name: service}})


def with_setting(name: str, control: str, value: Scalar | None, day: date = JULY) -> Fleet:
    kept = {key: entry for key, entry in inventory().services[name].settings.items() if key != control}
    declared = {} if value is None else {control: Declared(value=value, as_of=day, source="test")}
    return with_service(name, settings={**kept, **declared})


def moved(before: Rows, after: Rows) -> set[tuple[Technique, str]]:
    """Name every row and cell that differs in anything but its date, texts included."""
    found = set()
    for technique, row in after.items():
        old = before[technique]
        if _row(row) != _row(old):
            found.add((technique, "row"))
        cells = {cell.service: cell for cell in old.cells}
        found |= {(technique, cell.service) for cell in row.cells if cell != cells.get(cell.service)}
    return found


def _row(row: Assessment) -> Assessment:
    return row.model_copy(update={"cells": ()})


def techniques_of(moves: set[tuple[Technique, str]]) -> set[Technique]:
    return {technique for technique, _ in moves}


# The table


def test_seven_rows_in_the_order_of_the_matrix() -> None:
    assert [row.technique for row in assess(ledger(), "fleet", JULY)] == list(Technique) == list(RULES)


@pytest.mark.parametrize(
    ("technique", "state", "decision", "content"),
    [
        (
            Technique.QUANTIZATION,
            State.ENABLED,
            Decision.KEEP,
            ("INT4 weights and u8 KV cache on all six OVMS text services", "task-corpus evaluation first"),
        ),
        (
            Technique.PREFIX_CACHING,
            State.ENABLED,
            Decision.KEEP,
            ("on all six OVMS text services", "stable instructions before per-run content", "Paperclip agents"),
        ),
        (
            Technique.DISAGGREGATION,
            State.DISABLED,
            Decision.DO_NOT_DEPLOY,
            (
                "Not deployed",
                "heterogeneous in runtime, model and place",
                "a compatible target model in two pools",
                "a KV-transfer path",
            ),
        ),
        (
            Technique.FLASH_ATTENTION,
            State.ENABLED,
            Decision.NO_CHANGE,
            (
                "OVMS has no switch",
                "OpenVINO selects the attention kernel",
                "CUDA, xFormers and Triton kernels do not apply to Intel Arc",
                "No configuration change; track XAttention and kernel releases",
            ),
        ),
        (
            Technique.CONTINUOUS_BATCHING,
            State.ENABLED,
            Decision.KEEP,
            (
                "at most 16 sequences and 2048 tokens per batch on all six OVMS text services",
                "admission caps",
                "Tune from measurements only",
                "GPU hangs after over-commit on Intel Arc Pro B60",
            ),
        ),
        (
            Technique.KV_CACHE,
            State.ENABLED,
            Decision.KEEP,
            (
                "A static pool of 2 GiB on 8B text and 8B text on B580; a static pool of 4 GiB on 30B text",
                "KV cache in u8",
                "Bounded concurrency",
                "Alerts on queue and KV cache",
                "demand-based eviction per GPU",
                "cache and queue measurements, not towards 100 % use",
            ),
        ),
        (
            SPECULATIVE,
            State.DISABLED,
            Decision.BENCHMARK_FIRST,
            (
                "Not deployed",
                "OVMS supports EAGLE-3 on Intel CPU and GPU",
                "Qwen3-8B",
                "Benchmark on the Intel Arc B580",
                "tracked in #2244",
                "VRAM harms coexistence with Jellyfin",
                "the gain is negligible",
            ),
        ),
    ],
)
def test_the_table_of_july(technique: Technique, state: State, decision: Decision, content: tuple[str, ...]) -> None:
    row = rows()[technique]
    assert (row.state, row.decision) == (state, decision)
    for part in content:
        assert part in told(row)
    assert row.next_step
    assert row.would_change


def test_in_july_nothing_later_is_known() -> None:
    for row in rows().values():
        assert all(fact.date <= JULY for fact in row.all_facts()), row.technique
        assert "2026.4" not in told(row)
        newest = row.newest_change(None)
        assert newest is not None
        assert newest <= JULY


def test_the_benchmark_of_july_is_held_to_what_the_release_documents() -> None:
    row = rows()[SPECULATIVE]
    assert "without prefix caching and one request at a time, which is all that OVMS 2026.2 documents" in row.next_step
    assert {c.id for c in row.conflicts} == {
        "ovms.eagle3.prefix-caching-unsupported",
        "ovms.eagle3.one-request",
        "ovms.eagle3.greedy-only",
        "ovms.eagle3.no-moe",
    }


def test_in_november_newer_releases_change_the_next_step_of_speculative_decoding_and_say_why() -> None:
    before, after = rows(on=JULY), rows(on=NOVEMBER)
    row = after[SPECULATIVE]
    assert row.decision is Decision.BENCHMARK_FIRST
    assert row.next_step != before[SPECULATIVE].next_step
    for part in ("OVMS 2026.4.1 (2026-10-06)", "tree and chain drafting", "MTP (preview)", "DFlash (preview)"):
        assert part in row.next_step
    assert "no longer lists EAGLE-3's limits" in told(row)
    assert row.newest_change(before[SPECULATIVE]) == date(2026, 10, 6)
    changed = {technique for technique in Technique if after[technique].key() != before[technique].key()}
    assert changed == {SPECULATIVE}


@pytest.mark.parametrize(
    ("on", "mentioned"),
    [
        (date(2026, 9, 16), set()),
        (date(2026, 9, 17), {"2026.4.0"}),
        (date(2026, 10, 5), {"2026.4.0"}),
        (date(2026, 10, 6), {"2026.4.1"}),
    ],
)
def test_a_release_counts_from_the_day_it_came_out(on: date, mentioned: set[str]) -> None:
    step = rows(on=on)[SPECULATIVE].next_step
    assert {version for version in ("2026.4.0", "2026.4.1") if version in step} == mentioned


def test_every_fact_has_a_place_and_every_price_a_source() -> None:
    corpus = ledger()
    for day in (JULY, NOVEMBER):
        for row in rows(on=day).values():
            for fact in row.all_facts():
                assert fact.text.endswith("."), fact
                if fact.ref.kind == "source":
                    assert fact.ref.target in corpus.knowledge.sources
            assert all(conflict.source in corpus.knowledge.sources for conflict in row.conflicts)


def test_every_service_has_a_cell_in_every_row_and_no_cell_is_blank() -> None:
    for row in rows().values():
        assert [cell.service for cell in row.cells] == list(inventory().services)
        assert all(cell.summary for cell in row.cells)


def test_what_cannot_apply_says_why_and_workstations_are_left_to_their_hosts() -> None:
    cells = {(row.technique, cell.service): cell for row in rows().values() for cell in row.cells}
    embedding = cells[Technique.PREFIX_CACHING, "embedding"]
    assert (embedding.state, embedding.decision) == (State.NOT_APPLICABLE, Decision.NOT_APPLICABLE)
    assert "no KV cache outlives a request" in embedding.summary
    assert cells[Technique.QUANTIZATION, "embedding"].decision is Decision.KEEP
    coder = cells[Technique.FLASH_ATTENTION, "coder"]
    assert coder.applicability is Applicability.ON_HOST
    assert "OLLAMA_FLASH_ATTENTION" in coder.summary
    assert cells[Technique.DISAGGREGATION, "coder"].state is State.UNSUPPORTED
    assert all(cells[technique, "jellyfin"].state is State.NOT_APPLICABLE for technique in Technique)


def test_the_same_corpus_gives_the_same_assessments() -> None:
    assert rows() == rows()


def test_an_unknown_scope_is_told_with_those_there_are() -> None:
    assert scopes(ledger()) == ("fleet",)
    with pytest.raises(UsageError, match="scope 'local-ffff' is not one of fleet"):
        assess(ledger(), "local-ffff", JULY)


# What one fact moves


@pytest.mark.parametrize("name", TEXT)
def test_prefix_caching_off_on_one_service_moves_its_cell_and_the_row_and_nothing_else(name: str) -> None:
    after = rows(with_setting(name, "enable_prefix_caching", value=False))
    assert moved(rows(), after) == {(Technique.PREFIX_CACHING, "row"), (Technique.PREFIX_CACHING, name)}
    row = after[Technique.PREFIX_CACHING]
    title = inventory().services[name].title
    assert (row.state, row.decision) == (State.PARTLY, Decision.ENABLE)
    assert row.decision_text.startswith(f"Enable it on {title}; keep it on the other five.")
    assert "five of six" in row.state_text
    assert row.newest_change(rows()[Technique.PREFIX_CACHING]) == JULY


def test_a_changed_setting_dates_the_change() -> None:
    later = date(2026, 8, 1)
    after = rows(with_setting("text-4b", "enable_prefix_caching", value=False, day=later), on=NOVEMBER)
    assert after[Technique.PREFIX_CACHING].newest_change(rows()[Technique.PREFIX_CACHING]) == later


def settings() -> Iterator[tuple[str, str]]:
    for name, service in inventory().services.items():
        yield from ((name, control) for control in service.settings)


OTHER: dict[str, Scalar] = {
    "weight_precision": "FP16",
    "KV_CACHE_PRECISION": "f16",
    "enable_prefix_caching": False,
    "max_num_seqs": 32,
    "max_num_batched_tokens": 4096,
    "cache_size": 8,
}
MOVES = {
    "weight_precision": {Technique.QUANTIZATION},
    "KV_CACHE_PRECISION": {Technique.QUANTIZATION, Technique.KV_CACHE},
    "enable_prefix_caching": {Technique.PREFIX_CACHING},
    "max_num_seqs": {Technique.CONTINUOUS_BATCHING},
    "max_num_batched_tokens": {Technique.CONTINUOUS_BATCHING},
    "cache_size": {Technique.KV_CACHE},
}


@pytest.mark.parametrize(("name", "control"), list(settings()))
def test_every_declared_setting_moves_the_cells_that_rest_on_it_and_no_other(name: str, control: str) -> None:
    moves = moved(rows(), rows(with_setting(name, control, OTHER[control])))
    expected = MOVES[control]
    assert moves == {(technique, name) for technique in expected} | {(technique, "row") for technique in expected}


@pytest.mark.parametrize(
    ("weights", "kv", "state"),
    [
        ("INT4", "u8", State.ENABLED),
        ("FP16", "u8", State.PARTLY),
        ("INT4", "f16", State.PARTLY),
        ("FP16", "f16", State.DISABLED),
    ],
)
def test_what_is_quantized_of_weights_and_cache_is_told_from_both(weights: str, kv: str, state: State) -> None:
    given = {"weight_precision": weights, "KV_CACHE_PRECISION": kv}
    declared = {control: Declared(value=value, as_of=JULY, source="test") for control, value in given.items()}
    kept = {**inventory().services["text-27b"].settings, **declared}
    row = rows(with_service("text-27b", settings=kept))[Technique.QUANTIZATION]
    (found,) = [cell for cell in row.cells if cell.service == "text-27b"]
    assert (found.state, found.summary) == (state, f"{weights} weights and {kv} KV cache.")


# Concurrency that nobody bounds is a fact about the KV cache as well; by how much it is bounded is not.
WITHOUT = {**MOVES, "max_num_seqs": {Technique.CONTINUOUS_BATCHING, Technique.KV_CACHE}}


@pytest.mark.parametrize(("name", "control"), list(settings()))
def test_leaving_a_setting_out_moves_the_same_cells(name: str, control: str) -> None:
    moves = moved(rows(), rows(with_setting(name, control, None)))
    assert techniques_of(moves) == WITHOUT[control]
    assert {service for _, service in moves} <= {"row", name}


def test_the_pace_of_change_is_the_declaration_and_not_the_day_of_asking() -> None:
    one, other = rows(on=JULY), rows(on=date(2026, 7, 20))
    assert {t: row.key() for t, row in one.items()} == {t: row.key() for t, row in other.items()}


def test_an_unquantized_model_is_compared_on_the_task_corpus_first() -> None:
    row = rows(with_setting("text-27b", "weight_precision", "BF16"))[Technique.QUANTIZATION]
    assert (row.state, row.decision) == (State.PARTLY, Decision.BENCHMARK_FIRST)
    assert "27B text" in row.decision_text
    assert "task corpus" in row.decision_text


def test_a_pool_without_a_size_is_given_one() -> None:
    row = rows(with_setting("text-30b", "cache_size", 0))[Technique.KV_CACHE]
    assert row.decision is Decision.TUNE
    assert "30B text" in row.decision_text
    assert "ovms.dynamic-pool.memory" in {conflict.id for conflict in row.conflicts}


def test_a_missing_bound_is_set_because_the_default_is_known() -> None:
    row = rows(with_setting("text-4b", "max_num_seqs", None))[Technique.CONTINUOUS_BATCHING]
    assert row.decision is Decision.TUNE
    assert "Unset, max_num_seqs is 256." in told(row)


def test_a_stateful_pipeline_batches_nothing() -> None:
    row = rows(with_setting("text-4b", "pipeline_type", "LM"))[Technique.CONTINUOUS_BATCHING]
    cell = next(cell for cell in row.cells if cell.service == "text-4b")
    assert cell.state is State.DISABLED
    assert row.state is State.PARTLY
    assert "ovms.stateful.one-request" in {conflict.id for conflict in row.conflicts}


def test_an_applied_sequence_bound_is_told_from_one_that_the_scheduler_ignores() -> None:
    price = "openvino-genai.split-fuse.sequence-bound"
    before = rows()[Technique.CONTINUOUS_BATCHING]
    assert price in {conflict.id for conflict in before.conflicts}
    fleet = inventory()
    for name in TEXT:
        service = fleet.services[name]
        fleet = with_service(name, fleet, settings={**service.settings, "dynamic_split_fuse": False})
    after = rows(fleet)[Technique.CONTINUOUS_BATCHING]
    assert price not in {conflict.id for conflict in after.conflicts}


def test_sparse_attention_is_benchmarked_before_it_is_relied_on() -> None:
    fleet = with_setting("text-30b", "sparse_attention_config", "XATTENTION")
    assert techniques_of(moved(rows(), rows(fleet))) == {Technique.FLASH_ATTENTION}
    row = rows(fleet)[Technique.FLASH_ATTENTION]
    assert row.decision is Decision.BENCHMARK_FIRST
    assert "30B text" in row.decision_text


def test_without_jellyfin_only_speculative_decoding_changes() -> None:
    after = rows(inventory().model_copy(update={"co_tenants": ()}))
    assert moved(rows(), after) == {(SPECULATIVE, "row")}
    assert "Jellyfin" not in told(after[SPECULATIVE])
    assert "the gain is negligible" in told(after[SPECULATIVE])
    assert after[SPECULATIVE].decision is Decision.BENCHMARK_FIRST


def test_without_a_tracker_only_its_mention_goes() -> None:
    after = rows(inventory().model_copy(update={"trackers": {}}))
    assert moved(rows(), after) == {(SPECULATIVE, "row")}
    assert "#2244" not in told(after[SPECULATIVE])


def test_without_the_incident_batching_forgets_it_and_nothing_else_moves() -> None:
    operations = inventory().operations.model_copy(update={"incidents": ()})
    after = rows(inventory().model_copy(update={"operations": operations}))
    assert moved(rows(), after) == {(Technique.CONTINUOUS_BATCHING, "row")}
    assert "hangs" not in told(after[Technique.CONTINUOUS_BATCHING])


def test_without_alerts_eviction_and_headroom_only_the_kv_row_changes() -> None:
    operations = inventory().operations.model_copy(update={"alerts": (), "eviction": None, "reliability_headroom": False})
    after = rows(inventory().model_copy(update={"operations": operations}))
    assert moved(rows(), after) == {(Technique.KV_CACHE, "row")}
    assert "100 %" not in after[Technique.KV_CACHE].decision_text


def test_clients_without_a_stable_prefix_take_the_reason_away() -> None:
    clients = {name: c.model_copy(update={"stable_prefix": False}) for name, c in inventory().clients.items()}
    fleet = inventory().model_copy(update={"clients": clients})
    assert moved(rows(), rows(fleet)) == {(Technique.PREFIX_CACHING, "row")}
    off = with_service("text-4b", fleet, settings={**fleet.services["text-4b"].settings, "enable_prefix_caching": False})
    cell = next(c for c in rows(off)[Technique.PREFIX_CACHING].cells if c.service == "text-4b")
    assert cell.decision is Decision.BENCHMARK_FIRST


def pools(**changes: Any) -> Fleet:
    declared = {"compatible_pools": (("text-8b",), ("text-8b-b580",)), "interconnect_gbit_s": 100.0, "kv_transfer": "NIXL"}
    return inventory().model_copy(update={"topology": Topology.model_validate(declared | changes)})


def test_two_identical_pools_with_a_link_and_a_kv_path_change_disaggregation_only() -> None:
    after = rows(pools())
    assert techniques_of(moved(rows(), after)) == {Technique.DISAGGREGATION}
    row = after[Technique.DISAGGREGATION]
    assert row.decision is Decision.BENCHMARK_FIRST
    assert "8B text and 8B text on B580" in row.decision_text
    doubt = next(conflict for conflict in row.conflicts if conflict.id == "ovms.disaggregation.no-control")
    assert "documents know of none" in doubt.text
    others = {cell.decision for cell in row.cells if cell.service in TEXT[2:]}
    assert others == {Decision.DO_NOT_DEPLOY}


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"interconnect_gbit_s": None}, "a link between them is lacking"),
        ({"kv_transfer": None}, "a KV-transfer path is lacking"),
        ({"compatible_pools": (("text-8b",),)}, "a compatible target model in two pools is lacking"),
        ({"compatible_pools": (("text-8b", "text-30b"),)}, "one model in both pools is lacking"),
        ({"compatible_pools": (("text-8b",), ("coder",))}, "one runtime in both pools is lacking"),
    ],
)
def test_each_thing_that_is_lacking_is_named(changes: dict[str, Any], lacking: str) -> None:
    row = rows(pools(**changes))[Technique.DISAGGREGATION]
    assert row.decision is Decision.DO_NOT_DEPLOY
    assert lacking in row.decision_text


def test_a_runtime_that_can_split_has_no_doubt_to_state() -> None:
    fleet = pools()
    for name in ("text-8b", "text-8b-b580"):
        fleet = with_service(name, fleet, runtime=RuntimeName.VLLM, runtime_version="0.12.0", settings={})
    row = rows(fleet)[Technique.DISAGGREGATION]
    assert row.decision is Decision.BENCHMARK_FIRST
    cell = next(cell for cell in row.cells if cell.service == "text-8b")
    assert (cell.state, cell.decision) == (State.DISABLED, Decision.BENCHMARK_FIRST)
    assert "vllm.disaggregation.no-throughput" in {conflict.id for conflict in row.conflicts}


def test_an_updated_runtime_moves_what_its_release_changes() -> None:
    """What its documents no longer say is tested first before an update and after it, until somebody has."""
    fleet = with_service("text-8b-b580", runtime_version="2026.4.1")
    before, after = rows(on=NOVEMBER), rows(fleet, on=NOVEMBER)
    assert moved(before, after) == {(SPECULATIVE, "row"), (Technique.PREFIX_CACHING, "row")}
    step = after[SPECULATIVE].next_step
    assert step.startswith("Test first whether EAGLE-3 works with prefix caching and concurrent requests")
    assert "Then benchmark EAGLE-3, MTP and DFlash on 8B text on B580, baseline against candidate" in step
    assert "beside" not in step
    assert "which is all that" not in step
    assert "no longer lists EAGLE-3's limits" in told(after[SPECULATIVE])


def test_a_release_moves_the_same_rows_on_whichever_service_it_runs() -> None:
    """The methods that do not run beside prefix caching are those of any service, and not of the first."""
    for service in ("text-8b", "text-4b"):
        after = rows(with_service(service, runtime_version="2026.4.1"), on=NOVEMBER)
        assert moved(rows(on=NOVEMBER), after) == {(Technique.PREFIX_CACHING, "row")}
        assert any("DFlash refuses to start" in one for one in after[Technique.PREFIX_CACHING].would_change)


def test_a_service_on_a_card_with_incidents_is_not_where_a_benchmark_starts() -> None:
    hurt = inventory().operations.incidents[0].model_copy(update={"devices": ("b60", "b580-1", "b580-2")})
    operations = inventory().operations.model_copy(update={"incidents": (hurt,)})
    row = rows(inventory().model_copy(update={"operations": operations}))[SPECULATIVE]
    assert "without a declared incident" not in told(row)


def test_a_known_card_is_named_and_its_tenant_is_certain() -> None:
    fleet = with_service("text-8b-b580", device="b580-1")
    tenant = fleet.co_tenants[0].model_copy(update={"device": "b580-1"})
    row = rows(fleet.model_copy(update={"co_tenants": (tenant,)}))[SPECULATIVE]
    assert "Jellyfin shares the card of 8B text on B580" in told(row)
    apart = fleet.co_tenants[0].model_copy(update={"device": "b580-2"})
    row = rows(fleet.model_copy(update={"co_tenants": (apart,)}))[SPECULATIVE]
    assert "Jellyfin" not in told(row)


# Fleets of other shapes


def test_a_fleet_without_text_services_is_not_applicable_throughout() -> None:
    services = {name: s for name, s in inventory().services.items() if name in {"embedding", "jellyfin", "coder"}}
    fleet = inventory().model_copy(update={"services": services, "workloads": {}})
    for row in rows(fleet).values():
        assert (row.state, row.decision) == (State.NOT_APPLICABLE, Decision.NOT_APPLICABLE)
        assert row.newest_change(None) == JULY


def unknown_runtime(**changes: Any) -> Fleet:
    stranger = Service.model_validate(
        {
            "title": "Stranger",
            "kind": "text generation",
            "runtime": "openai-compatible",
            "runtime_version": {"unknown": "which?"},
            "host": {"unknown": "where?"},
            "device": {"unknown": "which card?"},
            **changes,
        },
        strict=False,
    )
    return inventory().model_copy(update={"services": {"stranger": stranger}, "workloads": {}})


def test_a_runtime_that_nobody_knows_is_unknown_and_not_wrong() -> None:
    for technique, row in rows(unknown_runtime()).items():
        assert row.state is State.UNKNOWN, technique
        assert row.decision in {Decision.INVESTIGATE, Decision.NO_CHANGE, Decision.DO_NOT_DEPLOY}, technique
        cell = row.cells[0]
        assert "not identified" in cell.summary


@pytest.mark.parametrize("runtime", [r for r in RuntimeName if r is not RuntimeName.NONE])
@pytest.mark.parametrize("version", ["2026.2", "latest", "0.0.1", None])
def test_every_runtime_and_release_is_assessed_without_an_error(runtime: RuntimeName, version: str | None) -> None:
    known = {"unknown": "which?"} if version is None else version
    settings = {"enable_prefix_caching": True, "max_num_seqs": "many", "cache_size": 1.5, "made_up": 3}
    fleet = unknown_runtime(runtime=runtime.value, runtime_version=known, settings=settings)
    for day in (date(2020, 1, 1), JULY, NOVEMBER):
        for row in rows(fleet, on=day).values():
            assert row.decision_text
            assert row.state_text


def test_sentences_name_what_this_fleet_names() -> None:
    """Another fleet gets other words from the same rules: no name of this one is written into them."""
    renamed = {name: s.model_copy(update={"title": f"Service {n}"}) for n, (name, s) in enumerate(inventory().services.items())}
    clients = {name: c.model_copy(update={"title": f"Client {n}"}) for n, (name, c) in enumerate(inventory().clients.items())}
    devices = {
        name: Device(title=f"Card {n}", vendor=d.vendor, host=d.host) for n, (name, d) in enumerate(inventory().devices.items())
    }
    fleet = inventory().model_copy(
        update={"services": renamed, "clients": clients, "devices": devices, "trackers": {SPECULATIVE: "T-1"}}
    )
    everything = " ".join(told(row) + " ".join(cell.summary for cell in row.cells) for row in rows(fleet, on=NOVEMBER).values())
    for word in ("Paperclip", "Jellyfin", "B60", "B580", "2244", "8B text", "gpt-oss"):
        assert word not in everything.replace("Arc Pro B70", ""), word


def test_declared_facts_carry_their_declaration() -> None:
    row = rows()[Technique.PREFIX_CACHING]
    fact = next(fact for fact in row.all_facts() if fact.id == "text-8b/enable_prefix_caching")
    assert (fact.provenance, fact.date, fact.ref.target) == (ProvenanceKind.DECLARED, JULY, "text-8b/enable_prefix_caching")


def test_a_kernel_that_is_switched_off_is_compared_with_it_on() -> None:
    fleet = with_service("text-4b", runtime=RuntimeName.LLAMACPP, runtime_version="b10519", settings={"flash_attn": "off"})
    row = rows(fleet)[Technique.FLASH_ATTENTION]
    cell = next(cell for cell in row.cells if cell.service == "text-4b")
    assert (cell.state, cell.decision) == (State.DISABLED, Decision.BENCHMARK_FIRST)
    assert row.state is State.PARTLY


def test_a_price_that_the_settings_spare_is_not_charged() -> None:
    after = rows(with_setting("text-30b", "KV_CACHE_PRECISION", "u4"))[Technique.QUANTIZATION]
    assert [conflict.id for conflict in after.conflicts] == ["ovms.kv-int4.gpu-only"]
    assert rows()[Technique.QUANTIZATION].conflicts == ()


@pytest.mark.parametrize("host", ["home-workstation", "office-workstation"])
def test_moving_a_service_to_another_host_moves_only_what_rests_on_places(host: str) -> None:
    moves = moved(rows(), rows(with_service("text-4b", host=host)))
    assert techniques_of(moves) <= {Technique.DISAGGREGATION}
