"""What a service of the fleet says of itself overrules what was declared of it, and moves no other."""

from __future__ import annotations

from typing import Any

from gen.assess import assess
from gen.words import Decision, State
from probes.evidence import (
    Endpoint,
    EndpointState,
    FleetScope,
    Missing,
    MissingReason,
    ProvenanceKind,
    Run,
    Runtime,
    Scalar,
    Technique,
)
from tests.gen.ledger import NOVEMBER, inventory, ledger
from tests.gen.measured import (
    cell,
    endpoint,
    fleet,
    keys,
    moved,
)


def observed(seen: dict[str, Scalar], version: str = "2026.2.0.1a2b3c4d", **fields: Any) -> Run:
    scope = FleetScope(service="text-4b")
    ovms = Runtime(name="ovms", version=version)
    return endpoint(seen, subject="text-4b", **({"scope": scope, "runtime": ovms} | fields))


def test_what_a_service_says_of_itself_replaces_what_was_declared() -> None:
    rows = fleet(observed({"enable_prefix_caching": True}))
    fact = next(f for f in cell(rows, Technique.PREFIX_CACHING, "text-4b").facts)
    assert fact.provenance is ProvenanceKind.OBSERVED
    assert moved(rows) == {(Technique.PREFIX_CACHING, "text-4b")}


def test_a_service_that_differs_from_its_declaration_moves_its_cell_and_the_row() -> None:
    rows = fleet(observed({"enable_prefix_caching": False}))
    assert moved(rows) == {(Technique.PREFIX_CACHING, "row"), (Technique.PREFIX_CACHING, "text-4b")}
    assert rows[Technique.PREFIX_CACHING].decision is Decision.INVESTIGATE
    assert "4B text: enable_prefix_caching: declared true, observed false" in rows[Technique.PREFIX_CACHING].decision_text


def test_another_release_than_the_declared_one_puts_every_documented_fact_in_doubt() -> None:
    rows = fleet(observed({"enable_prefix_caching": True}, version="2026.4.1.0"))
    for technique in Technique:
        assert cell(rows, technique, "text-4b").drift == ("runtime_version: declared 2026.2, observed 2026.4.1.0",)
        assert rows[technique].decision is Decision.INVESTIGATE
        assert "runtime_version" in rows[technique].decision_text


def test_an_address_that_does_not_answer_leaves_the_declaration_standing() -> None:
    gone = Endpoint(url="http://127.0.0.1:1", state=EndpointState.NOT_REACHABLE, detail="refused")
    rows = fleet(observed({}, endpoint=gone, settings=(), runtime=Missing(missing=MissingReason.NOT_REACHABLE)))
    assert keys(rows) == keys(fleet())


def test_a_service_of_which_nothing_is_declared_and_that_does_not_answer_is_not_reachable() -> None:
    service = inventory().services["text-4b"].model_copy(update={"settings": {}})
    bare = inventory().model_copy(update={"services": {**inventory().services, "text-4b": service}})
    gone = Endpoint(url="http://127.0.0.1:1", state=EndpointState.NOT_REACHABLE, detail="refused")
    unseen = observed({}, endpoint=gone, settings=(), runtime=Missing(missing=MissingReason.NOT_REACHABLE))
    rows = {row.technique: row for row in assess(ledger(fleet=bare, runs=(unseen,)), "fleet", NOVEMBER)}
    found = cell(rows, Technique.PREFIX_CACHING, "text-4b")
    assert (found.state, found.decision) == (State.NOT_REACHABLE, Decision.INVESTIGATE)
    assert "not reachable (refused)" in found.summary


def test_a_draft_that_is_set_without_a_measurement_is_where_the_benchmark_starts() -> None:
    scope, ovms = FleetScope(service="text-30b"), Runtime(name="ovms", version="2026.2")
    seen = endpoint({"draft_models_path": "draft"}, subject="text-30b", scope=scope, runtime=ovms)
    row = fleet(seen)[Technique.SPECULATIVE_DECODING]
    assert row.state is State.PARTLY
    assert row.decision is Decision.BENCHMARK_FIRST
    assert row.decision_text.startswith("Benchmark on 30B text first")
