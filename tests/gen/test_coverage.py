"""Coverage follows from what a service is and does, not from its name."""

from __future__ import annotations

from datetime import date

import pytest

from gen.assess import assess
from gen.coverage import WorkloadCoverage, bearing, bearing_on_kind, bearing_on_model, coverage
from gen.drift import drifts, fleet_view
from gen.site import pages
from gen.words import Applicability, Decision, State
from gen.workloads import measured_workloads
from probes.evidence import FleetScope, KindClaim, ModelKind, Provenance, ProvenanceKind, Run, RunKind, Technique
from probes.fleet import Fleet, ServiceKind, Slo
from tests.gen import specimens
from tests.gen.ledger import NOVEMBER, inventory, knowledge, ledger
from tests.gen.reading import read
from tests.gen.specimens import FINGERPRINT, START, absent_workload_run, corpus, endpoint_run, micro_run, run, workload_run
from tests.gen.test_site import TODAY

ROWS = {row.workload: row for row in coverage(inventory(), knowledge())}
LLM_ONLY = {Technique.PREFIX_CACHING, Technique.DISAGGREGATION, Technique.CONTINUOUS_BATCHING}
LLM_ONLY |= {Technique.KV_CACHE, Technique.SPECULATIVE_DECODING}


def applicable(row: WorkloadCoverage, *words: Applicability) -> set[Technique]:
    return {technique for technique, one in row.bearings if one.applicability in words}


def test_every_workload_answers_for_every_technique_with_a_reason() -> None:
    assert list(ROWS) == list(inventory().workloads)
    for row in ROWS.values():
        assert [technique for technique, _ in row.bearings] == list(Technique)
        assert all(one.why for _, one in row.bearings)
        assert row.summary


def test_all_techniques_bear_on_text() -> None:
    assert applicable(ROWS["agents-and-chat"], Applicability.APPLIES) == set(Technique)


@pytest.mark.parametrize("workload", ["embedding-and-vision", "diffusion", "speech-and-classifiers"])
def test_what_needs_an_autoregressive_llm_does_not_apply_elsewhere(workload: str) -> None:
    assert applicable(ROWS[workload], Applicability.DOES_NOT_APPLY) == LLM_ONLY


def test_diffusion_is_governed_by_its_scheduler_and_memory_limits() -> None:
    assert "B60 capacity scheduler and workload memory limits" in ROWS["diffusion"].summary


def test_workstations_are_settled_on_their_hosts_and_not_always_there() -> None:
    row = ROWS["workstations"]
    assert applicable(row, Applicability.ON_HOST) == set(Technique)
    assert "not always available" in row.summary
    assert "measured workloads" in row.summary


def test_renaming_a_service_changes_nothing_and_another_kind_everything() -> None:
    service = inventory().services["text-4b"]
    renamed = service.model_copy(update={"title": "ComfyUI Whisper embedding"})
    for technique in Technique:
        assert bearing(renamed, technique, knowledge()) == bearing(service, technique, knowledge())
        as_classifier = bearing(service.model_copy(update={"kind": ServiceKind.CLASSIFIER}), technique, knowledge())
        assert as_classifier == bearing_on_kind(ServiceKind.CLASSIFIER, technique, knowledge())


def test_services_that_differ_each_speak_for_themselves() -> None:
    fleet = inventory()
    mixed = fleet.workloads["diffusion"].model_copy(update={"services": ("comfyui", "text-4b")})
    row = coverage(fleet.model_copy(update={"workloads": {"mixed": mixed}}), knowledge())[0]
    found = dict(row.bearings)[Technique.PREFIX_CACHING]
    assert found.applicability is Applicability.DIFFERENT
    assert "ComfyUI (diffusion) (does not apply): " in found.why
    assert "4B text (applies): " in found.why


DOES_NOT, DIFFERENT, APPLIES = Applicability.DOES_NOT_APPLY, Applicability.DIFFERENT, Applicability.APPLIES
QUANTIZATION, PREFIX, DISAGGREGATION, ATTENTION, BATCHING, KV_CACHE, SPECULATIVE = Technique


@pytest.mark.parametrize(
    ("model", "applies", "in_another_form"),
    [
        (ModelKind.DECODER, set(Technique), set()),
        (ModelKind.MULTIMODAL_DECODER, set(Technique), set()),
        (ModelKind.GENERATOR, set(Technique), set()),
        (ModelKind.STATE_SPACE_DECODER, {QUANTIZATION, BATCHING, SPECULATIVE}, {PREFIX}),
        (ModelKind.ENCODER_DECODER, {QUANTIZATION, ATTENTION}, set()),
        (ModelKind.SPEECH_ENCODER_DECODER, {QUANTIZATION}, {ATTENTION}),
        (ModelKind.ENCODER, {QUANTIZATION}, {ATTENTION}),
        (ModelKind.FORWARD_ONLY, {QUANTIZATION}, {ATTENTION}),
        (ModelKind.FEED_FORWARD, {QUANTIZATION}, set()),
        (ModelKind.RECURRENT, {QUANTIZATION}, set()),
        (ModelKind.DIFFUSION, set(), {QUANTIZATION, ATTENTION}),
    ],
)
def test_a_technique_applies_to_what_a_model_is_made_of(
    model: ModelKind, applies: set[Technique], in_another_form: set[Technique]
) -> None:
    found = {technique: bearing_on_model(model, technique, knowledge()) for technique in Technique}
    assert {technique for technique, one in found.items() if one.applicability is APPLIES} == applies
    assert {technique for technique, one in found.items() if one.applicability is DIFFERENT} == in_another_form
    assert all(one.why for one in found.values())


def said(service: str, kind: ModelKind, how: ProvenanceKind, where: str, minute: int = 0) -> Run:
    """A run that says what the model of a service is: by its files, or by its answers."""
    claim = KindClaim(kind=kind, where=where, provenance=Provenance(kind=how, date=START.date(), source=where))
    sort = RunKind.DECLARED if how is ProvenanceKind.DECLARED else RunKind.ENDPOINT
    return run(sort, service, minute=minute, scope=FleetScope(service=service), kinds=(claim,))


def with_files(service: str, path: str) -> Fleet:
    fleet = inventory()
    entry = fleet.services[service].model_copy(update={"config": (path,)})
    return fleet.model_copy(update={"services": {**fleet.services, service: entry}})


def of_files(service: str, kind: ModelKind, path: str = "m") -> Run:
    return said(service, kind, ProvenanceKind.DECLARED, f"{path}/config.json: architectures X")


def test_a_model_whose_files_agree_with_the_inventory_changes_no_decision() -> None:
    fleet, before = with_files("text-4b", "m"), assess(ledger(), "fleet", NOVEMBER)
    made = ledger(fleet=fleet, runs=(of_files("text-4b", ModelKind.DECODER),))
    after = assess(made, "fleet", NOVEMBER)
    assert [row.decision for row in after] == [row.decision for row in before]
    assert after == before
    assert not [one for one in drifts(made, NOVEMBER) if one.control == "model kind"]


def test_a_classifier_that_is_a_transformer_has_attention_kernels_and_one_that_is_none_has_not() -> None:
    for kind, expected in ((ModelKind.ENCODER, DIFFERENT), (ModelKind.FEED_FORWARD, DOES_NOT)):
        made = ledger(fleet=with_files("classifiers", "m"), runs=(of_files("classifiers", kind),))
        known = {service.name: service.known for service in fleet_view(made, NOVEMBER).services}
        (row,) = (row for row in coverage(made.fleet, knowledge(), known) if row.workload == "speech-and-classifiers")
        found = bearing(made.fleet.services["classifiers"], ATTENTION, knowledge(), known["classifiers"])
        assert (found.applicability, known["classifiers"].model) == (expected, kind)
        assert applicable(row, DOES_NOT) == LLM_ONLY


def test_a_text_service_whose_files_are_an_encoder_is_a_drift_and_nothing_is_decided_about_it() -> None:
    made = ledger(fleet=with_files("text-4b", "m"), runs=(of_files("text-4b", ModelKind.ENCODER),))
    (drift,) = (one for one in drifts(made, NOVEMBER) if one.control == "model kind")
    assert str(drift) == (
        "4B text: model kind: declared text generation (2026-07-10),"
        " declared transformer encoder (m/config.json: architectures X, 2026-11-28)"
    )
    rows = {row.technique: row for row in assess(made, "fleet", NOVEMBER)}
    cells = {technique: next(c for c in row.cells if c.service == "text-4b") for technique, row in rows.items()}
    assert (cells[PREFIX].state, cells[PREFIX].decision) == (State.UNKNOWN, Decision.INVESTIGATE)
    assert "inventory text generation, declared transformer encoder (m/config.json" in cells[PREFIX].summary
    # Both kinds have weights to quantize, so that the disagreement does not matter there.
    assert cells[QUANTIZATION].state is not State.UNKNOWN
    # The five other text services are decided about as before.
    others = [cell for cell in rows[PREFIX].cells if cell.service.startswith("text-") and cell.service != "text-4b"]
    assert {cell.decision for cell in others} == {Decision.KEEP}


def test_what_answers_outranks_files_and_an_open_answer_does_not_hide_what_files_tell() -> None:
    fleet = with_files("text-4b", "m")
    answered = said("text-4b", ModelKind.GENERATOR, ProvenanceKind.OBSERVED, "it answered with 16 tokens", 5)
    both = ledger(fleet=fleet, runs=(of_files("text-4b", ModelKind.DECODER), answered))
    (known,) = (one.known for one in fleet_view(both, NOVEMBER).services if one.name == "text-4b")
    assert (known.model, known.drift(knowledge())) == (ModelKind.DECODER, ())
    against = ledger(fleet=fleet, runs=(of_files("text-4b", ModelKind.ENCODER), answered))
    (known,) = (one.known for one in fleet_view(against, NOVEMBER).services if one.name == "text-4b")
    assert known.model is ModelKind.GENERATOR
    assert known.drift(knowledge()) == (
        "what it is: declared transformer encoder (m/config.json: architectures X),"
        " observed token generator (it answered with 16 tokens)",
    )


def test_a_file_that_the_inventory_names_no_more_says_nothing() -> None:
    made = ledger(fleet=with_files("text-4b", "other"), runs=(of_files("text-4b", ModelKind.ENCODER),))
    (known,) = (one.known for one in fleet_view(made, NOVEMBER).services if one.name == "text-4b")
    assert (known.model, known.word) == (None, ServiceKind.TEXT_GENERATION)


def test_a_workload_says_nothing_of_the_machines_embedded_service() -> None:
    """Its weights, its release and its model are another's."""
    alone = corpus(local_runs=(endpoint_run(), micro_run()))
    beside = corpus(local_runs=(endpoint_run(), micro_run(), workload_run()))
    assert assess(beside, f"local-{FINGERPRINT}", NOVEMBER) == assess(alone, f"local-{FINGERPRINT}", NOVEMBER)


def test_a_workload_is_shown_by_its_newest_usable_run_and_an_absent_one_as_absent() -> None:
    absent, there = measured_workloads([absent_workload_run(), workload_run()])
    assert (absent.subject, absent.usable, absent.claim) == ("embedding", None, None)
    assert there.claim is not None
    assert [(one.name, one.arm) for one in there.headlines()] == [
        ("files_per_s", "one at a time"),
        ("files_per_s", "8 at once"),
        ("latency_s", "one at a time"),
        ("memory_bytes", ""),
    ]
    found = there.bearing(BATCHING, knowledge())
    assert found is not None
    assert found.applicability is DOES_NOT
    assert [one.requested for one in there.shown(BATCHING)] == ["ContinuousBatchingPipeline(model)"]
    # A later attempt that came to nothing hides no measurement.
    failed = run(RunKind.WORKLOAD, "file-classifier", minute=59, validity=absent_workload_run().validity)
    (kept,) = measured_workloads([workload_run(), failed])
    assert (kept.usable, kept.last) == (workload_run(), failed)


def test_the_page_shows_an_slo_with_its_day_and_source_and_none_where_none_is() -> None:
    fleet = specimens.fleet()
    slo = Slo(ttft_s=0.5, decode_tok_s=20, as_of=date(2026, 7, 1), source="the team's page")
    chat = fleet.workloads["agents-and-chat"].model_copy(update={"slo": slo})
    stated = fleet.model_copy(update={"workloads": {**fleet.workloads, "agents-and-chat": chat}})
    page = pages(specimens.corpus(fleet=stated), TODAY)["coverage.md"]
    told = " ".join(read(page.split("---\n", 2)[2]).text.split())
    assert "SLO: ttft_s 0.5, decode_tok_s 20; declared 2026-07-01 by the team's page" in told
    assert told.count("SLO:") == 1


def test_the_page_of_a_load_says_what_goodput_was_held_against_and_who_counted_its_tokens() -> None:
    told = {"slo": {"bounds": {"ttft_s": 0.5}, "origin": "the SLO of workload <b>chat</b>"}, "token_source": {"side": "usage"}}
    measured = specimens.micro_run()
    both = measured.model_copy(update={"native": told}), measured
    sites = (pages(specimens.corpus(local_runs=(one,)), TODAY) for one in both)
    shown, plain = (next(text for path, text in site.items() if path.startswith("runs/2026")) for site in sites)
    words = " ".join(read(shown.split("---\n", 2)[2]).text.split())
    assert "against the SLO of workload <b>chat</b>: ttft_s 0.5" in words
    assert "tokens counted by usage" in words
    assert "tokens counted by" not in read(plain.split("---\n", 2)[2]).text
