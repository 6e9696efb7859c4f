"""The pages of planners and claims, and what was tried beside a documented price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gen.assess import assess
from gen.corpus import read_corpus
from gen.knowledge.claim import Figure
from gen.pages.atlas import Atlas, Spot
from gen.pages.claims import claimed
from gen.pages.planners import TITLES, place
from gen.pages.tried import tried
from gen.planners.plan import Planner
from gen.site import pages
from gen.view import FLEET
from probes.evidence import Capability, CapabilityState, Device, Run, RunKind, Runtime, Technique
from tests.gen.ledger import NOVEMBER, knowledge, ledger
from tests.gen.planners.test_kv_capacity import QWEN3_8B, reading
from tests.gen.reading import read
from tests.gen.specimens import ROOT, micro_run, run

TEXT = ("text-8b", "text-8b-b580", "text-30b", "text-gpt-oss", "text-27b", "text-4b")


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return pages(ledger(runs=(micro_run(), trial())), NOVEMBER)


def trial() -> Run:
    """A device that ran what the OVMS documents rule out."""
    ran = Capability(
        name="EAGLE-3",
        technique=Technique.SPECULATIVE_DECODING,
        requested="num_assistant_tokens=3; the same prompts again with prefix caching",
        state=CapabilityState.EFFECTIVE,
        effect="6 of 6 answers equal plain decoding | <b>",
    )
    skipped = ran.model_copy(update={"state": CapabilityState.SKIPPED, "requested": f"{ran.requested}, twice"})
    return run(
        RunKind.DEVICES,
        "cpu",
        runtime=Runtime(name="openvino-genai", version="2026.4.1"),
        device=Device(name="CPU", full_name="Example CPU 3000"),
        capabilities=(ran, skipped),
    )


def test_every_planner_has_a_section_and_every_text_service_its_place(site: dict[str, str]) -> None:
    seen = {value for _, name, value in read(site["planners.md"]).attributes if name == "id"}
    assert {planner.value for planner in Planner} <= seen
    for planner in Planner:
        for service in TEXT:
            assert place(planner, Spot(scope=FLEET, name=service)).partition("#")[2] in seen
    assert list(TITLES) == list(Planner)


def test_services_and_techniques_lead_to_their_plans(site: dict[str, str]) -> None:
    for service in TEXT:
        for planner in Planner:
            assert f"../{place(planner, Spot(scope=FLEET, name=service))}" in site[f"services/{service}.md"]
        assert f"python -m gen whatif {service} CONTROL=VALUE" in site[f"services/{service}.md"]
    assert "../planners.md#kv-capacity" in site["techniques/kv-cache-management.md"]
    assert "../planners.md#speculation" in site["techniques/speculative-decoding.md"]
    assert "Plans" not in read(site["services/embedding.md"]).text


def test_what_cannot_be_worked_out_is_folded_away_with_the_fields_that_are_missing(site: dict[str, str]) -> None:
    told = read(site["planners.md"]).text
    assert "Cannot be worked out yet, and what is missing: 8B text, 8B text on B580, 30B text" in told
    assert "layers, kv_heads and head_size" in told


def test_a_path_is_told_in_words(site: dict[str, str]) -> None:
    told = read(site["planners.md"]).text
    assert "yes, taken: Do two pools serve one model" in told
    assert "no, taken: Keep prefill and decode in one place." in told


def test_a_picture_says_in_words_what_it_draws() -> None:
    made = pages(ledger(runs=(reading(**QWEN3_8B),)), NOVEMBER)["planners.md"]
    assert "<title" in made
    told = read(made).text
    assert "tokens in the pool: 26816 tokens (25536 tokens to 28240 tokens)" in told
    assert "16 sequences at once: 1,676 tokens each fit (between 1,596 and 1,765)" in made
    assert "8B text: lines are the cache of so many sequences as they grow" in told


def test_what_a_pool_holds_is_a_reason_and_drafts_no_record() -> None:
    before, after = (assess(corpus, FLEET, NOVEMBER) for corpus in (ledger(), ledger(runs=(reading(**QWEN3_8B),))))
    assert [row.key() for row in before] == [row.key() for row in after]
    reasons = next(row for row in after if row.technique is Technique.KV_CACHE).why
    assert "8B text: 2 GiB hold 26816 tokens (25536 tokens to 28240 tokens), 3 sequences of 8192 tokens each." in reasons
    assert "What the pools of 8B text on B580 and 30B text hold cannot be worked out" in reasons[-1]


# Claims


def test_claims_show_conditions_measurement_and_relation(site: dict[str, str]) -> None:
    rows = {row[0].removeprefix("Claim ").strip(): row for row in read(site["claims.md"]).rows[1:]}
    assert len(rows) == len(knowledge().claims)
    row = next(row for claim, row in rows.items() if "ten times as long" in claim)
    assert "11 times" in row[2]
    assert "5.09 times (4.67 times to 5.53 times) below the claim (n = 7)" in row[3]
    assert row[1].strip().endswith("disagrees")
    unmeasured = next(row for claim, row in rows.items() if "scales to 80 to 95 %" in claim)
    assert "it would take two linked cards of one host" in unmeasured[3]
    assert unmeasured[1].strip().endswith("not measured here")


def test_what_is_disputed_stands_first(site: dict[str, str]) -> None:
    relations = [row[1].removeprefix("Relation ").strip() for row in read(site["claims.md"]).rows[1:]]
    order = ["disagrees", "better than claimed", "agrees", "other conditions", "not measured here"]
    assert relations == sorted(relations, key=order.index)


def test_figures_are_written_as_people_do() -> None:
    assert claimed(Figure(low=0.4, high=0.6, unit="share")) == "40 % to 60 %"
    assert claimed(Figure(low=2, high=2, unit="times")) == "2 times"
    assert claimed(Figure(low=10000, unit="tok/s")) == "at least 10000 tok/s"


# What was tried beside a documented price


def test_a_measurement_stands_beside_the_document_it_speaks_against(site: dict[str, str]) -> None:
    told = read(site["techniques/speculative-decoding.md"]).text
    start = told.index("OVMS 2026.0 to 2026.3 document EAGLE-3 without prefix caching")
    beside = told[start : start + 700]
    assert "effective" in beside
    assert "6 of 6 answers equal plain decoding | <b>" in beside
    assert "Example CPU 3000, openvino-genai 2026.4.1" in beside
    assert "twice" not in beside
    assert "6 of 6 answers" in read(site["knowledge/ovms.md"]).text


def test_of_two_trials_on_one_device_and_release_the_newer_speaks() -> None:
    older, newer = trial(), trial()
    refused = newer.capabilities[0].model_copy(update={"state": CapabilityState.REFUSED, "effect": "", "words": "no longer"})
    later = run(RunKind.DEVICES, "cpu", minute=5, runtime=older.runtime, device=older.device, capabilities=(refused,))
    corpus = replace(ledger(), runs=(older, later))
    conflict = next(one for one in knowledge().conflicts if one.id == "ovms.eagle3.prefix-caching-unsupported")
    shown = tried(Atlas(corpus=corpus, today=NOVEMBER), conflict, "techniques/x.md")
    assert "refused" in shown
    assert "effective" not in shown


def test_every_trial_of_the_knowledge_base_is_one_that_the_probe_makes() -> None:
    asked = {(one.name, one.requested) for made in read_corpus(ROOT).runs for one in made.capabilities}
    for conflict in knowledge().conflicts:
        for wanted in conflict.tried:
            assert any(name == wanted.name and wanted.asked in requested for name, requested in asked), conflict.id
