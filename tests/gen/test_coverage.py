"""Coverage follows from what a service is and does, not from its name."""

from __future__ import annotations

from datetime import date

import pytest

from gen.coverage import WorkloadCoverage, bearing, bearing_on_kind, coverage
from gen.site import pages
from gen.words import Applicability
from probes.evidence import Technique
from probes.fleet import ServiceKind, Slo
from tests.gen import specimens
from tests.gen.ledger import inventory, knowledge
from tests.gen.reading import read
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


def test_the_page_shows_an_slo_with_its_day_and_source_and_none_where_none_is() -> None:
    fleet = specimens.fleet()
    slo = Slo(ttft_s=0.5, decode_tok_s=20, as_of=date(2026, 7, 1), source="the team's page")
    chat = fleet.workloads["agents-and-chat"].model_copy(update={"slo": slo})
    inventory = fleet.model_copy(update={"workloads": {**fleet.workloads, "agents-and-chat": chat}})
    page = pages(specimens.corpus(fleet=inventory), TODAY)["coverage.md"]
    told = " ".join(read(page.split("---\n", 2)[2]).text.split())
    assert "SLO: ttft_s 0.5, decode_tok_s 20; declared 2026-07-01 by the team's page" in told
    assert told.count("SLO:") == 1


def test_the_page_of_a_load_says_what_goodput_was_held_against_and_who_counted_its_tokens() -> None:
    told = {"slo": {"bounds": {"ttft_s": 0.5}, "origin": "the SLO of workload <b>chat</b>"}, "token_source": {"side": "usage"}}
    run = specimens.micro_run()
    sites = (pages(specimens.corpus(local_runs=(one,)), TODAY) for one in (run.model_copy(update={"native": told}), run))
    shown, plain = (next(text for path, text in site.items() if path.startswith("runs/2026")) for site in sites)
    words = " ".join(read(shown.split("---\n", 2)[2]).text.split())
    assert "against the SLO of workload <b>chat</b>: ttft_s 0.5" in words
    assert "tokens counted by usage" in words
    assert "tokens counted by" not in read(plain.split("---\n", 2)[2]).text
