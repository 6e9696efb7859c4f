"""A change of an assessment drafts one record, noise drafts none, and the same inputs draft the same bytes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from gen.assess import assess
from gen.assessment import Assessment
from gen.changes import Draft, compare, propose
from gen.check import check_records
from gen.contract import standing
from gen.findings import Rule
from gen.records import Record, parse_record
from gen.records.record import Move
from gen.words import Decision, State, Status
from probes.errors import UsageError
from probes.evidence import ProvenanceKind, Technique
from probes.fleet import Declared
from tests.gen.compared import FASTER, two_sides
from tests.gen.ledger import JULY, NOVEMBER, assessment, cell, conflict, disabled, fact, inventory, ledger, record
from tests.gen.specimens import FINGERPRINT, devices_run, endpoint_run, micro_run

LOCAL = f"local-{FINGERPRINT}"
MEASURED = (devices_run(), endpoint_run(), micro_run())


def one(drafts: tuple[Draft, ...]) -> Draft:
    assert len(drafts) == 1
    return drafts[0]


def read(draft: Draft) -> Record:
    return parse_record(draft.name, draft.text, draft.path)


def answered(draft: Draft, status: Status, on: date = NOVEMBER) -> Record:
    """The draft after somebody accepted or rejected it."""
    return read(draft).model_copy(
        update={"status": status, "history": (Move(status=status, on=on, by="x"),), "untouched": False}
    )


def test_what_stands_without_a_record_is_drafted_once() -> None:
    draft = one(compare(ledger(), [assessment()], NOVEMBER))
    assert (draft.name, draft.path) == (
        "2026-07-10-automatic-prefix-caching-fleet",
        "adr/2026-07-10-automatic-prefix-caching-fleet.md",
    )
    assert read(draft).status is Status.PROPOSED
    assert read(draft).untouched
    assert compare(ledger(read(draft)), [assessment()], NOVEMBER) == ()


@pytest.mark.parametrize(
    "noise",
    [
        {"on": NOVEMBER + timedelta(days=100)},
        {"state_text": "Other words"},
        {"decision_text": "Other words"},
        {"why": ("Other words",)},
        {"would_change": ()},
        {"evidence": ("20261130T000000Z-other",)},
        {"facts": (fact("fleet.clients.paperclip.stable_prefix", day=NOVEMBER, text="new words, 3 % faster"),)},
        {"facts": (fact("fleet.clients.paperclip.stable_prefix", provenance=ProvenanceKind.OBSERVED),)},
    ],
)
def test_noise_drafts_nothing(noise: dict[str, Any]) -> None:
    known = {"20261130T000000Z-other": devices_run()}
    runs = tuple(run.model_copy(update={"id": name}) for name, run in known.items())
    assert compare(ledger(record(), runs=runs), [assessment(**noise)], NOVEMBER) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": State.PARTLY}, "**State**: enabled → partly enabled"),
        ({"decision": Decision.TUNE}, "**Decision**: keep → tune"),
        ({"next_step": "Measure it"}, "**Next step**: none → Measure it"),
        ({"conflicts": (conflict(),)}, "**New price**: EAGLE-3 runs without prefix caching"),
        (
            {"cells": (cell(drift=("declared on, seen off",), facts=(fact(),)),)},
            "**New drift on text-8b**: declared on, seen off",
        ),
        ({"cells": (cell(facts=(fact(value="false"),)),)}, "**Moved fact**: text-8b/enable_prefix_caching is true → "),
        ({"facts": ()}, "**No longer known**: fleet.clients.paperclip.stable_prefix is true"),
        (
            {"cells": (cell(facts=(fact(),)), cell(service="text-4b"))},
            "**Service text-4b**: not assessed → applies, enabled, keep",
        ),
        ({"cells": ()}, "**Service text-8b**: applies, enabled, keep → not assessed"),
    ],
)
def test_each_change_drafts_one_record_that_names_it(change: dict[str, Any], said: str) -> None:
    draft = one(compare(ledger(record()), [assessment(**change)], NOVEMBER))
    assert said in draft.text
    assert read(draft).supersedes == (record().name,)
    assert read(draft).body.count("\n- **") >= 1


def test_a_draft_is_dated_by_the_newest_fact_that_moved_and_not_by_the_day_it_was_made() -> None:
    moved = disabled(day=date(2026, 9, 3))
    first, second = (
        one(compare(ledger(record()), [moved.model_copy(update={"on": day})], day)) for day in (NOVEMBER, date(2027, 5, 1))
    )
    assert first.name == "2026-09-03-automatic-prefix-caching-fleet"
    assert first == second


def test_a_first_record_is_no_older_than_the_fleet_or_the_machine_it_speaks_of() -> None:
    old = assessment(facts=(fact(day=date(2025, 1, 1)),), cells=())
    assert one(compare(ledger(), [old], NOVEMBER)).name.startswith("2026-07-10-")
    local = old.model_copy(update={"scope": LOCAL})
    assert one(compare(ledger(local_runs=MEASURED), [local], NOVEMBER)).name.startswith("2026-11-28-")
    bare = assessment(facts=(), cells=())
    assert one(compare(ledger(), [bare], NOVEMBER)).name.startswith("2026-07-10-")


OCTOBER = date(2026, 10, 6)


def held_since_october() -> Record:
    """A record whose newest fact is of October and whose other fact is of July."""
    facts = (fact("fleet.releases.newest", day=OCTOBER),)
    stored = assessment(on=OCTOBER, facts=facts, cells=(cell(facts=(fact(),)),))
    return record(name="2026-10-06-automatic-prefix-caching-fleet", date=OCTOBER, assessment=stored)


@pytest.mark.parametrize(
    ("now", "day"),
    [
        # The declared value went back to the default of July, which is older than what stands.
        ({"cells": (cell(state=State.UNKNOWN, facts=(fact(value="unknown", day=JULY),)),)}, OCTOBER),
        # The declaration is gone altogether, and with it its date.
        ({"cells": (cell(state=State.UNKNOWN),)}, OCTOBER),
        # The newest fact is gone: it was known in October.
        ({"facts": ()}, OCTOBER),
        ({"facts": (), "cells": ()}, OCTOBER),
        # No fact moved at all.
        ({"next_step": "Wait"}, OCTOBER),
        # Something newer moved beside what is gone.
        ({"facts": (), "cells": (cell(facts=(fact(value="false", day=NOVEMBER),)),)}, NOVEMBER),
        # Declared ahead of time.
        ({"cells": (cell(facts=(fact(value="false", day=date(2027, 3, 1)),)),)}, NOVEMBER),
    ],
)
def test_a_draft_is_no_older_than_the_record_it_changes_and_no_newer_than_today(now: dict[str, Any], day: date) -> None:
    held = held_since_october()
    assert held.assessment is not None
    changed = held.assessment.model_copy(update=now)
    draft = one(compare(ledger(held), [changed], NOVEMBER))
    assert read(draft).date == day
    assert draft.name.startswith(f"{day}-automatic-prefix-caching-fleet")
    assert draft.name != held.name
    assert compare(ledger(held, read(draft)), [changed], NOVEMBER) == ()


def test_a_setting_that_left_the_inventory_is_dated_by_the_day_it_was_last_known() -> None:
    held = record()
    later = fact("text-8b/max_num_seqs", value="16", day=date(2026, 9, 3))
    stored = assessment(on=JULY, cells=(cell(facts=(fact(), later)),))
    draft = one(compare(ledger(held.model_copy(update={"assessment": stored})), [assessment()], NOVEMBER))
    assert draft.name == "2026-09-03-automatic-prefix-caching-fleet"


def test_a_change_back_to_what_is_in_force_drafts_nothing() -> None:
    draft = one(compare(ledger(record()), [disabled()], NOVEMBER))
    assert compare(ledger(record(), read(draft)), [assessment()], NOVEMBER) == ()


def test_what_was_rejected_is_not_proposed_again_until_something_else_is_in_force() -> None:
    rejected = answered(one(compare(ledger(record()), [disabled()], NOVEMBER)), Status.REJECTED)
    assert compare(ledger(record(), rejected), [disabled()], NOVEMBER) == ()
    old = record(status=Status.SUPERSEDED, history=(Move(status=Status.SUPERSEDED, on=NOVEMBER, by="x"),))
    newer = record(
        name="2026-11-20-automatic-prefix-caching-fleet", date=date(2026, 11, 20), assessment=assessment(next_step="Wait")
    )
    again = one(compare(ledger(old, rejected, newer), [disabled()], NOVEMBER))
    assert again.name != rejected.name
    assert again.name.startswith(f"{rejected.name}-")


def test_once_accepted_a_draft_is_what_the_next_change_is_compared_with() -> None:
    accepted = answered(one(compare(ledger(record()), [disabled()], NOVEMBER)), Status.ACCEPTED)
    old = record(status=Status.SUPERSEDED, history=(Move(status=Status.SUPERSEDED, on=NOVEMBER, by="x"),))
    assert compare(ledger(old, accepted), [disabled()], NOVEMBER) == ()
    back = one(compare(ledger(old, accepted), [assessment(cells=(cell(facts=(fact(day=NOVEMBER),)),))], NOVEMBER))
    assert back.before == accepted.name
    forth, _, rest = back.text.partition("## How to carry it out")[2].partition("## How to roll back")
    assert "    enable_prefix_caching: true\n" in forth
    assert "    enable_prefix_caching: false\n" in rest


def test_a_draft_nobody_touched_is_drafted_anew_under_its_name_and_an_edited_one_is_left_alone() -> None:
    draft = one(compare(ledger(record()), [disabled()], NOVEMBER))
    more = disabled().model_copy(update={"next_step": "Ask why"})
    assert one(compare(ledger(record(), read(draft)), [more], NOVEMBER)).name == draft.name
    edited = parse_record(
        draft.name, draft.text.replace("None is known.", "We know.").replace("Agents share", "All share"), "x"
    )
    assert not edited.untouched
    beside = one(compare(ledger(record(), edited), [more], NOVEMBER))
    assert beside.name.startswith(f"{draft.name}-")
    assert read(beside).supersedes == (record().name, draft.name)
    assert compare(ledger(record(), edited, read(beside)), [more], NOVEMBER) == ()


def test_two_checkouts_with_the_same_files_draft_the_same_bytes() -> None:
    edited = record(name="2026-11-30-automatic-prefix-caching-fleet", date=NOVEMBER, status=Status.REJECTED, body="Mine.")
    drafts = [compare(ledger(*records), [disabled()], NOVEMBER) for records in ((record(), edited), (edited, record()))]
    assert drafts[0] == drafts[1]
    assert drafts[0][0].name.startswith("2026-11-30-automatic-prefix-caching-fleet-")


def test_a_draft_is_blind_to_records_of_a_later_day() -> None:
    later = record(name="2026-11-30-automatic-prefix-caching-fleet", date=NOVEMBER, assessment=disabled())
    assert one(compare(ledger(later), [assessment()], JULY)).before is None


def test_two_techniques_or_scopes_never_answer_for_each_other() -> None:
    other = assessment(scope=LOCAL)
    assert one(compare(ledger(record()), [other], NOVEMBER)).folder == "adr/local"
    batching = assessment(technique=Technique.CONTINUOUS_BATCHING)
    assert one(compare(ledger(record()), [batching], NOVEMBER)).technique is Technique.CONTINUOUS_BATCHING


def test_a_draft_says_everything_a_reviewer_needs() -> None:
    told = assessment(
        scope=LOCAL,
        evidence=(micro_run().id,),
        conflicts=(conflict(),),
        next_step="Watch the hit rate",
    )
    text = one(compare(ledger(local_runs=(micro_run(),)), [told], NOVEMBER)).text
    for section in (
        "## Context and problem statement",
        "## Decision drivers",
        "## Considered options",
        "## Decision outcome",
        "### Consequences",
        "### Confirmation",
        "## What is known",
        "## Measurement contract",
        "## Evidence",
        "## How to roll back",
        "## How to measure again",
        "## Sources",
    ):
        assert text.count(f"\n{section}\n") == 1
    assert "Price: EAGLE-3 runs without prefix caching. (source `ovms-docs`, checked 2026-11-30)" in text
    assert "| Time to first token | 412 ms → 81 ms, ratio 0.181 to 0.214: **better** |" in text
    assert "| Power | *no sensor* | nothing |" in text
    assert "| Decode speed per request | 60.8 tok/s → 60.9 tok/s, ratio 0.966 to 1.03: **same** |" in text
    assert f"[{micro_run().id}](evidence/{micro_run().id}.json)" in text
    assert "    nox -s probe -- micro\n" in text
    assert (
        read(one(compare(ledger(local_runs=(micro_run(),)), [told], NOVEMBER))).evidence[0].sha256 == micro_run().content_sha256
    )


def test_a_first_record_has_nothing_to_compare_with_and_a_later_one_says_what_changed() -> None:
    first, later = (one(compare(ledger(*known), [disabled()], NOVEMBER)).text for known in ((), (record(),)))
    assert "## What changed" not in first
    assert later.count("\n## What changed\n") == 1


def test_a_draft_names_the_command_that_confirms_it_and_when_it_no_longer_holds() -> None:
    both = two_sides()
    told = assessment(scope=LOCAL, decision=Decision.ENABLE, evidence=(both.id,))
    draft = one(compare(ledger(local_runs=(both,)), [told], NOVEMBER))
    section = draft.text.partition("### Confirmation\n\n")[2].partition("\n\n")[0]
    assert section.startswith(f"`nox -s confirm -- {draft.name}` measures again what this rests on. ")
    assert (
        "no quantity gets worse and none that is better or the same here stops being so, by the gates (5 % for times" in section
    )
    assert "else roll it back" in section
    assert f"`nox -s confirm -- {draft.name}`" not in one(compare(ledger(), [assessment(cells=())], NOVEMBER)).text


def test_the_consequences_say_what_was_measured_what_is_open_and_what_nobody_measured() -> None:
    loud = FASTER | {"memory_bytes": (3e8, 6e8, 4e8, 4.2e8, 3.9e8, 4.1e8), "decode_tok_s": (40.0,) * 6}
    both = two_sides(candidate=loud)
    told = assessment(scope=LOCAL, decision=Decision.ENABLE, evidence=(both.id,))
    text = one(compare(ledger(local_runs=(both,)), [told], NOVEMBER)).text
    lines = text.partition("### Consequences\n\n")[2].partition("\n\n")[0].splitlines()
    assert "- On embedded: enable_prefix_caching: false → true." in lines
    assert "- Measured better: Time to first token (0.185 to 0.214 times)." in lines
    assert "- Measured worse: Decode speed per request (0.646 to 0.668 times)." in lines
    assert any(line.startswith("- Measured and open: VRAM, or memory") for line in lines)
    assert "- Not measured: Power." in lines
    owed = "Before it is accepted, measure or acknowledge (IA013): decode-rate (worse), memory (inconclusive), power (missing)."
    assert owed in text
    assert "To settle what is open, give about `--repetitions " in text
    assert "It speaks for one machine alone" in text
    assert "**Enable.** " in text


def test_a_decision_that_opens_with_its_own_word_says_it_once() -> None:
    def outcome(words: str) -> str:
        told = assessment(decision=Decision.ENABLE, decision_text=words)
        return one(compare(ledger(), [told], NOVEMBER)).text.partition("## Decision outcome\n\n")[2].partition("\n")[0]

    assert outcome("Enable it on two services. Mind the order") == "**Enable** it on two services. Mind the order."
    assert outcome("Enable. Mind the order") == "**Enable**. Mind the order."
    assert outcome("Enabled services stay") == "**Enable.** Enabled services stay."
    assert outcome("Do it") == "**Enable.** Do it."


@pytest.mark.parametrize("decision", [Decision.ENABLE, Decision.TUNE])
def test_a_draft_claims_no_comparison_that_no_cited_run_holds(decision: Decision) -> None:
    """What the draft says is owed is what the checks find once somebody accepts it."""
    told = assessment(scope=LOCAL, decision=decision)
    without = one(compare(ledger(local_runs=MEASURED), [told], NOVEMBER))
    assert "Benchmark first: still owed: no cited run compares baseline with candidate" in without.text
    assert "No cited run has both: measure them before it is accepted, or acknowledge IA013 about comparison." in without.text
    with_both = one(compare(ledger(local_runs=MEASURED), [told.model_copy(update={"evidence": (micro_run().id,)})], NOVEMBER))
    assert "Benchmark first: done; the cited runs compare baseline and candidate (1 better, 1 same)." in with_both.text
    assert "No cited run has both" not in with_both.text
    owed = ["error-rate", "memory", "p95-latency", "power", "quality", "throughput"]
    for draft, about in ((without, ["comparison"]), (with_both, owed)):
        accepted = ledger(local_runs=MEASURED, local_records=(answered(draft, Status.ACCEPTED),))
        found = check_records(accepted, NOVEMBER)
        assert [finding.about for finding in found if finding.rule is Rule.CONTRACT_VERDICT] == about


def test_a_change_that_nobody_compared_says_how_to_compare_it() -> None:
    service = inventory().services["text-8b"]
    off: dict[str, Any] = {"enable_prefix_caching": Declared(value=False, as_of=NOVEMBER)}
    changed = service.model_copy(update={"settings": dict(service.settings) | off})
    edited = inventory().model_copy(update={"services": dict(inventory().services) | {"text-8b": changed}})
    (draft,) = [one for one in propose(ledger(fleet=edited), NOVEMBER, "fleet") if one.technique is Technique.PREFIX_CACHING]
    assert (
        "To compare first, start a second instance of text-8b with `enable_prefix_caching=true` beside it, then: "
        "`nox -s compare -- text-8b ADDRESS --allow-load`." in draft.text
    )


@pytest.mark.parametrize("decision", list(Decision))
def test_no_draft_without_a_run_speaks_of_evidence(decision: Decision) -> None:
    text = one(compare(ledger(), [assessment(decision=decision)], NOVEMBER)).text
    options = text.partition("## Considered options")[2].partition("##")[0]
    assert "evidence" not in options
    assert "cited runs compare" not in options


def test_text_from_a_server_stays_text_in_a_draft() -> None:
    evil = "<script>alert(1)</script> | [c](javascript:x) ![p](http://evil.invalid) `x`\n---\n## Heading\n"
    evil += "<!-- inference-adr:end assessment -->"
    draft = one(compare(ledger(), [assessment(state_text=evil, why=(evil,), cells=(cell(summary=evil),))], NOVEMBER))
    record_ = read(draft)
    assert record_.assessment is not None
    assert record_.assessment.state_text == evil
    assert "<script" not in record_.body
    assert "](javascript" not in record_.body.replace("\\]", "")
    assert "\n## Heading" not in record_.body
    assert not any(line.startswith("---") for line in record_.body.splitlines())


def test_a_second_probe_of_the_same_machine_drafts_nothing() -> None:
    checkout = ledger(local_runs=MEASURED)
    drafts = propose(checkout, NOVEMBER, "local")
    assert len(drafts) == 7
    assert {draft.scope for draft in drafts} == {LOCAL}
    assert propose(replace(checkout, local_records=tuple(map(read, drafts))), NOVEMBER, "local") == ()


def test_what_was_measured_on_both_sides_is_not_mixed_with_a_later_look_at_one() -> None:
    both, later = two_sides(), endpoint_run()
    assert later.started_at > both.started_at
    told = assessment(scope=LOCAL, evidence=(both.id, later.id))
    drafted = read(one(compare(ledger(local_runs=(both, later)), [told], NOVEMBER)))
    assert drafted.contract == standing([both], inventory().policies.gates)
    assert f"All of it is from `{both.id}`." in drafted.body


def test_a_machine_of_which_only_promoted_runs_are_here_is_drafted_only_when_named() -> None:
    """What the repository ships to compare with is no decision that anybody here has to make."""
    reference = ledger(runs=MEASURED)
    assert propose(reference, NOVEMBER, "local") == ()
    assert {draft.scope for draft in propose(reference, NOVEMBER)} == {"fleet"}
    drafts = propose(reference, NOVEMBER, LOCAL)
    assert len(drafts) == 7
    measured_again = replace(reference, runs=MEASURED[:1], local_runs=MEASURED[1:])
    assert len(propose(measured_again, NOVEMBER, "local")) == 7
    decided = replace(reference, records=(read(drafts[0]),))
    assert len(propose(decided, NOVEMBER, "local")) == 6


def test_the_fleet_is_judged_by_what_is_committed_alone() -> None:
    here, elsewhere = ledger(local_runs=MEASURED), ledger()
    assert propose(here, NOVEMBER, "fleet") == propose(elsewhere, NOVEMBER, "fleet")


def test_seven_baselines_in_july_and_nothing_the_second_time() -> None:
    drafts = propose(ledger(), JULY, "fleet")
    assert len(drafts) == 7
    assert all(draft.name.startswith("20") and draft.name[:10] <= "2026-07-10" for draft in drafts)
    standing = tuple(answered(draft, Status.ACCEPTED, on=JULY) for draft in drafts)
    assert propose(ledger(*standing), JULY, "fleet") == ()


def test_one_declared_setting_drafts_one_record() -> None:
    standing = tuple(answered(draft, Status.ACCEPTED) for draft in propose(ledger(), NOVEMBER, "fleet"))
    service = inventory().services["text-8b"]
    off: dict[str, Any] = {"enable_prefix_caching": Declared(value=False, as_of=NOVEMBER)}
    changed = service.model_copy(update={"settings": dict(service.settings) | off})
    edited = inventory().model_copy(update={"services": dict(inventory().services) | {"text-8b": changed}})
    drafts = propose(ledger(*standing, fleet=edited), NOVEMBER, "fleet")
    assert one(drafts).name == "2026-11-30-automatic-prefix-caching-fleet"
    assert "text-8b" in drafts[0].text
    assert propose(ledger(*standing, read(drafts[0]), fleet=edited), NOVEMBER, "fleet") == ()


def test_a_scope_nothing_is_known_of_is_told_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"expected one of fleet, local$"):
        propose(ledger(), NOVEMBER, "cluster")


def test_the_snapshot_of_a_draft_has_the_key_of_the_assessment() -> None:
    real: Assessment
    for real in assess(ledger(), "fleet", NOVEMBER):
        stored = read(one(compare(ledger(), [real], NOVEMBER))).assessment
        assert stored is not None
        assert stored.key() == real.key()
