"""Every rule finds what it is for, with place and fix, and no finding stops another."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from gen.acceptance import accepted
from gen.audit import Books, audit
from gen.changes import compare
from gen.check import check, check_records
from gen.contract import Compared, ContractMetric, Measured
from gen.corpus import Corpus, read_corpus
from gen.findings import DUE, Finding, Rule, Severity, as_annotation, as_json, as_markdown
from gen.records import Record, parse_record, render_record
from gen.records.lifecycle import RecordFile
from gen.records.record import Acknowledgement, Confirm, EvidenceRef, Move, Probe
from gen.words import Decision, State, Status, Verdict
from probes.archive import seal
from probes.errors import Problem, UsageError
from probes.evidence import Missing, MissingReason, Validity
from probes.fleet import Declared
from tests.gen.ledger import JULY, NOVEMBER, ROOT, assessment, contract, disabled, inventory, ledger, record
from tests.gen.specimens import devices_run, micro_run

ALPHA, BETA, GAMMA = "2026-07-10-alpha", "2026-07-10-beta", "2026-07-10-gamma"
RUN = devices_run()
CITED = EvidenceRef(id=RUN.id, sha256=RUN.content_sha256)


def found(rule: Rule, *records: Record, today: date = NOVEMBER, **changes: Any) -> list[Finding]:
    return [finding for finding in check_records(ledger(*records, **changes), today) if finding.rule is rule]


def side(value: float) -> Measured:
    return Measured(value=value, unit="s", samples=7, run=RUN.id)


def compared(verdict: Verdict) -> dict[ContractMetric, Any]:
    entry = Compared(baseline=side(1.0), candidate=side(1.1), verdict=verdict, low=0.9, high=1.2, more_runs=5)
    others = dict.fromkeys(ContractMetric, Missing(missing=MissingReason.NOT_APPLICABLE))
    return {**others, ContractMetric.TTFT: entry}


def tuned(**changes: Any) -> Record:
    return record(assessment=assessment(decision=Decision.TUNE), **changes)


def test_a_sound_record_has_no_finding() -> None:
    assert check_records(ledger(record(evidence=(CITED,)), runs=(RUN,)), NOVEMBER) == ()


def test_evidence_that_is_gone_local_or_altered() -> None:
    cited = record(evidence=(CITED,))
    (gone,) = found(Rule.EVIDENCE_ABSENT, cited)
    assert gone.place == f"adr/{cited.name}.md"
    assert "which is not there" in gone.message
    (local,) = found(Rule.EVIDENCE_ABSENT, cited, local_runs=(RUN,))
    assert local.fix == f"nox -s adr -- promote {RUN.id}"
    altered = seal(RUN.model_copy(update={"native": {"other": 1}}))
    (changed,) = found(Rule.EVIDENCE_ALTERED, cited, runs=(altered,))
    assert RUN.content_sha256[:12] in changed.message
    assert found(Rule.EVIDENCE_ABSENT, records=(), local_records=(cited,), local_runs=(RUN,)) == []


def test_evidence_that_is_damaged_where_it_should_be_and_whole_in_another_place() -> None:
    """A damaged file is never written over, so it has to go before the whole one can take its place."""
    broken = Problem(place=f"adr/evidence/{RUN.id}.json: content_sha256", found="does not match", expected="another")
    (alone,) = found(Rule.EVIDENCE_ABSENT, record(evidence=(CITED,)), problems=(broken,))
    assert (alone.message, alone.fix[:19]) == (f"cites {RUN.id}, which is damaged", "bring the file back")
    (both,) = found(Rule.EVIDENCE_ABSENT, record(evidence=(CITED,)), problems=(broken,), local_runs=(RUN,))
    assert both.message == alone.message
    assert both.fix == f"take the damaged file out of adr/evidence, then nox -s adr -- promote {RUN.id}"


def test_invalid_evidence_can_be_acknowledged_and_altered_evidence_cannot() -> None:
    invalid = seal(RUN.model_copy(update={"validity": Validity(valid=False, reasons=("host busy",))}))
    ref = EvidenceRef(id=invalid.id, sha256=invalid.content_sha256)
    seen = Acknowledgement(rule="IA004", about=invalid.id, by="x", date=NOVEMBER, reason="known")
    assert len(found(Rule.EVIDENCE_INVALID, record(evidence=(ref,)), runs=(invalid,))) == 1
    assert found(Rule.EVIDENCE_INVALID, record(evidence=(ref,), acknowledgements=(seen,)), runs=(invalid,)) == []
    wrong = seen.model_copy(update={"rule": "IA003"})
    assert len(found(Rule.EVIDENCE_ALTERED, record(evidence=(CITED,), acknowledgements=(wrong,)), runs=(invalid,))) == 1
    assert len(found(Rule.ACKNOWLEDGEMENT, record(acknowledgements=(wrong,)))) == 1


def test_two_records_in_force_for_one_technique_and_scope() -> None:
    (finding,) = found(Rule.TWO_IN_FORCE, record(), record(name=ALPHA), record(name=BETA, status=Status.PROPOSED))
    assert finding.fix == f"nox -s adr -- supersede {ALPHA} {record().name} --by WHO"
    other_scope = record(name=ALPHA, scope="local-abc123abc123", assessment=assessment(scope="local-abc123abc123"))
    assert found(Rule.TWO_IN_FORCE, record(), other_scope) == []


def test_a_supersession_that_only_one_side_tells() -> None:
    new = record(name=BETA, supersedes=(ALPHA,))
    (finding,) = found(Rule.LINK_ONE_SIDED, record(name=ALPHA, technique=None, decision=None, assessment=None), new)
    assert "which is still accepted" in finding.message
    old = record(name=ALPHA, status=Status.SUPERSEDED, superseded_by=BETA)
    assert found(Rule.LINK_ONE_SIDED, old, new) == []
    (silent,) = found(Rule.LINK_ONE_SIDED, old, record(name=BETA))
    assert "does not say so" in silent.message
    (half,) = found(Rule.LINK_ONE_SIDED, old, new.model_copy(update={"status": Status.PROPOSED}))
    assert half.fix == f"finish what was begun: nox -s adr -- accept {BETA} --by WHO"
    assert len(found(Rule.LINK_ONE_SIDED, record(name=ALPHA, status=Status.SUPERSEDED))) == 1


def test_a_circle_of_supersessions_is_told_once() -> None:
    circle = [
        record(name=name, status=Status.SUPERSEDED, superseded_by=after)
        for name, after in ((ALPHA, BETA), (BETA, GAMMA), (GAMMA, ALPHA))
    ]
    (finding,) = found(Rule.LINK_LOOP, *circle)
    assert finding.message == f"leads back to itself: {ALPHA} → {BETA} → {GAMMA} → {ALPHA}"
    tail = record(name="2026-07-10-tail", status=Status.SUPERSEDED, superseded_by=ALPHA)
    assert len(found(Rule.LINK_LOOP, *circle, tail)) == 1
    assert len(found(Rule.LINK_LOOP, record(name=ALPHA, status=Status.SUPERSEDED, superseded_by=ALPHA))) == 1


def test_links_name_records_that_exist_and_say_what_they_open() -> None:
    body = f"See [{ALPHA}]({BETA}.md), [one](0004-kv-u8.md), [gone](2026-01-01-use-u8-for-kv.md) and [web](https://x.y/{GAMMA}.md)."
    records = record(name=GAMMA, body=body, supersedes=("2026-01-02-lost",)), record(name=ALPHA), record(name=BETA)
    assert [f.message for f in found(Rule.LINK_TEXT, *records)] == [f"says {ALPHA} and links to {BETA}"]
    assert [f.about for f in found(Rule.LINK_BROKEN, *records)] == ["2026-01-01-use-u8-for-kv", "2026-01-02-lost"]


def test_a_shared_record_that_hangs_on_one_that_git_ignores() -> None:
    local = record(name=ALPHA, status=Status.SUPERSEDED, superseded_by=GAMMA)
    (finding,) = found(Rule.LINK_BROKEN, record(name=GAMMA, supersedes=(ALPHA,)), local_records=(local,))
    assert (finding.message, finding.fix) == (f"names {ALPHA}, which lies in adr/local only", f"nox -s adr -- promote {ALPHA}")
    assert found(Rule.LINK_BROKEN, local_records=(local, record(name=GAMMA, supersedes=(ALPHA,)))) == []


def test_an_illegal_history() -> None:
    accepted_, rejected = (Move(status=status, on=NOVEMBER, by="x") for status in (Status.ACCEPTED, Status.REJECTED))
    assert len(found(Rule.ILLEGAL_HISTORY, record(status=Status.REJECTED, history=(accepted_, rejected)))) == 1
    (ends,) = found(Rule.ILLEGAL_HISTORY, record(history=(rejected,)))
    assert "is accepted, and its history ends with rejected" in ends.message
    early = accepted_.model_copy(update={"on": date(2026, 1, 1)})
    assert len(found(Rule.ILLEGAL_HISTORY, record(history=(early,)))) == 1


def test_a_front_matter_that_says_something_else_than_the_assessment() -> None:
    (finding,) = found(Rule.SNAPSHOT, record(decision=Decision.TUNE))
    assert finding.message == "says decision tune, and its assessment says keep"
    assert len(found(Rule.SNAPSHOT, record(assessment=None))) == 1


def test_a_contract_metric_needs_a_value_or_a_reason_that_says_something() -> None:
    gap = {metric: entry for metric, entry in contract().items() if metric is not ContractMetric.POWER}
    assert [f.about for f in found(Rule.CONTRACT_GAP, record(contract=gap))] == ["power"]
    mute = contract() | {ContractMetric.QUALITY: Missing(missing=MissingReason.NOT_MEASURED)}
    assert [f.about for f in found(Rule.CONTRACT_GAP, record(contract=mute))] == ["quality"]
    sensor = contract() | {ContractMetric.POWER: Missing(missing=MissingReason.NO_SENSOR)}
    assert found(Rule.CONTRACT_GAP, record(contract=sensor)) == []
    assert found(Rule.CONTRACT_GAP, record(contract={}, technique=None, decision=None, assessment=None, scope="project")) == []


def test_a_comparison_must_carry_the_change_or_be_acknowledged() -> None:
    for verdict in (Verdict.INCONCLUSIVE, Verdict.WORSE, Verdict.NOT_COMPARABLE):
        assert [f.about for f in found(Rule.CONTRACT_VERDICT, tuned(contract=compared(verdict)))] == ["ttft"]
    assert found(Rule.CONTRACT_VERDICT, tuned(contract=compared(Verdict.BETTER))) == []
    assert found(Rule.CONTRACT_VERDICT, record(contract=compared(Verdict.WORSE))) == []
    seen = Acknowledgement(rule="IA013", about="ttft", by="x", date=NOVEMBER, reason="worth it")
    assert found(Rule.CONTRACT_VERDICT, tuned(contract=compared(Verdict.WORSE), acknowledgements=(seen,))) == []


def test_what_a_comparison_could_not_measure_is_acknowledged_by_name() -> None:
    """A reason excuses what stands; where a setting changes, somebody has to say that it may change without it."""
    sensor = Missing(missing=MissingReason.NO_SENSOR, detail="no RAPL package")
    whole = compared(Verdict.BETTER)
    lacking = {**whole, ContractMetric.POWER: sensor}
    assert found(Rule.CONTRACT_VERDICT, tuned(contract=whole)) == []
    (finding,) = found(Rule.CONTRACT_VERDICT, tuned(contract=lacking))
    assert (finding.about, finding.message) == (
        "power",
        "decides tune, and contract.power is missing (no sensor: no RAPL package)",
    )
    assert finding.fix == "measure it, or acknowledge IA013 about power"
    assert found(Rule.CONTRACT_VERDICT, tuned(contract=lacking, status=Status.PROPOSED)) == []
    seen = Acknowledgement(rule="IA013", about="power", by="x", date=NOVEMBER, reason="this card has no sensor")
    assert found(Rule.CONTRACT_VERDICT, tuned(contract=lacking, acknowledgements=(seen,))) == []


def test_a_change_that_no_run_compares_is_not_accepted_unless_acknowledged() -> None:
    (finding,) = found(Rule.CONTRACT_VERDICT, tuned())
    assert (finding.about, finding.message) == ("comparison", "decides tune, and no cited run compares baseline with candidate")
    assert found(Rule.CONTRACT_VERDICT, tuned(status=Status.PROPOSED)) == []
    seen = Acknowledgement(rule="IA013", about="comparison", by="x", date=NOVEMBER, reason="back to what was measured in May")
    assert found(Rule.CONTRACT_VERDICT, tuned(acknowledgements=(seen,))) == []


def test_a_record_past_its_review_and_one_that_rests_on_old_runs() -> None:
    cited = record(evidence=(CITED,))
    late = date(2027, 6, 1)
    assert [f.message for f in found(Rule.PAST_REVIEW, cited, runs=(RUN,), today=late)] == ["was to be reviewed by 2027-01-06"]
    assert len(found(Rule.STALE_EVIDENCE, cited, runs=(RUN,), today=late)) == 1
    assert found(Rule.STALE_EVIDENCE, cited, runs=(RUN,)) == []
    closed = cited.model_copy(update={"status": Status.REJECTED})
    assert found(Rule.PAST_REVIEW, closed, runs=(RUN,), today=late) == []


def test_a_record_about_a_service_that_is_not_there() -> None:
    confirm = Confirm(probe=Probe.ENDPOINTS, service="text-9b")
    assert [f.about for f in found(Rule.UNKNOWN_SERVICE, record(confirm=confirm))] == ["text-9b"]
    scoped = record(scope="fleet/text-8b", assessment=assessment(scope="fleet/text-8b"))
    assert found(Rule.UNKNOWN_SERVICE, scoped) == []


def test_a_setting_that_the_runtime_does_not_have() -> None:
    service = inventory().services["text-8b"]
    settings: dict[str, Any] = dict(service.settings) | {"enable_prefix_cashing": True}
    services = dict(inventory().services) | {"text-8b": service.model_copy(update={"settings": settings})}
    edited = inventory().model_copy(update={"services": services})
    (finding,) = [f for f in check(ledger(fleet=edited), NOVEMBER) if f.rule is Rule.UNKNOWN_CONTROL]
    assert "services.text-8b.settings.enable_prefix_cashing is not a known control of ovms" in finding.message
    assert "enable_prefix_caching" in finding.fix
    assert not [f for f in check(ledger(), NOVEMBER) if f.rule is Rule.UNKNOWN_CONTROL]


def wrong(rule: Rule, settings: dict[str, Any], today: date = NOVEMBER) -> list[str]:
    service = inventory().services["text-8b"]
    changed = service.model_copy(update={"settings": dict(service.settings) | settings})
    fleet = inventory().model_copy(update={"services": dict(inventory().services) | {"text-8b": changed}})
    return [finding.message for finding in check(ledger(fleet=fleet), today) if finding.rule is rule]


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ("enable_prefix_caching", "no"),
        ("enable_prefix_caching", "false"),
        ("enable_prefix_caching", "yep"),
        ("max_num_seqs", "many"),
        ("max_num_seqs", "16"),
        ("max_num_seqs", True),
    ],
)
def test_a_value_that_its_control_cannot_have(control: str, value: Any) -> None:
    assert wrong(Rule.WRONG_VALUE, {control: value}) == [f"services.text-8b.settings.{control} is {value!r}"]


@pytest.mark.parametrize(
    ("control", "value"), [("enable_prefix_caching", "off"), ("max_num_seqs", 16), ("KV_CACHE_PRECISION", "u4")]
)
def test_a_value_that_its_control_can_have(control: str, value: Any) -> None:
    assert wrong(Rule.WRONG_VALUE, {control: value}) == []


def test_a_declaration_of_tomorrow_would_never_look_stale() -> None:
    declared = Declared(value=True, as_of=date(2030, 2, 20))
    (message,) = wrong(Rule.FUTURE_DECLARATION, {"enable_prefix_caching": declared})
    assert "is declared on 2030-02-20, after today" in message


def test_old_declarations_and_sources_are_due_and_no_error() -> None:
    later = check(ledger(), date(2027, 6, 1))
    due = {f.rule for f in later if f.rule in DUE}
    assert {Rule.STALE_DECLARATION, Rule.STALE_SOURCE, Rule.UNDRAFTED} <= due
    assert not [f for f in later if f.severity is Severity.ERROR]


def test_a_damaged_file_is_an_error_and_nothing_is_called_undrafted_while_it_is() -> None:
    problem = Problem(place="adr/2026-07-10-x.md:3", found="is not valid YAML", expected="")
    findings = check(ledger(problems=(problem,)), NOVEMBER)
    assert findings[0].rule is Rule.DAMAGED
    assert str(findings[0]).startswith("adr/2026-07-10-x.md:3: IA001 error: is not valid YAML. Fix: ")
    assert Rule.UNDRAFTED not in {f.rule for f in findings}


def test_what_moved_without_a_draft_is_told_with_the_command() -> None:
    undrafted = [f for f in check(ledger(), NOVEMBER) if f.rule is Rule.UNDRAFTED]
    assert len(undrafted) == 7
    assert undrafted[0].fix == "nox -s adr -- propose --scope fleet --write"


def test_nothing_of_a_reference_machine_or_of_the_repository_as_it_is_waits_for_a_draft() -> None:
    undrafted = [f for f in check(ledger(runs=(RUN, micro_run())), NOVEMBER) if f.rule is Rule.UNDRAFTED]
    assert {f.fix for f in undrafted} == {"nox -s adr -- propose --scope fleet --write"}
    shipped = replace(read_corpus(ROOT), local_runs=(), local_records=())
    found_there = check(shipped, max(NOVEMBER, *(run.date for run in shipped.runs)))
    assert {f.rule for f in found_there} <= {Rule.STALE_DECLARATION, Rule.UNVERIFIED}


def test_runs_of_tomorrow_and_names_that_differ_by_case() -> None:
    twin = RUN.model_copy(update={"id": RUN.id.upper()})
    rules = {f.rule for f in check(ledger(runs=(RUN, twin)), date(2026, 11, 1))}
    assert {Rule.CASE, Rule.FUTURE} <= rules


def test_every_rule_has_its_own_number() -> None:
    numbers = [rule.number for rule in Rule]
    assert len(set(numbers)) == len(numbers)
    assert numbers == [f"IA{place:03}" for place in range(1, len(numbers) + 1)], "a gap reads like a rule that was lost"


def test_every_rule_says_what_it_finds_and_how_to_mend_it() -> None:
    for rule in Rule:
        assert rule.finds, rule
        assert rule.mend, rule
        assert not {rule.finds[-1], rule.mend[-1]} & set(".!"), rule


HOSTILE = Finding(rule=Rule.DAMAGED, place="adr/a,b.md:12: x", message="100 % | <b>\nnew\x1b[31m", fix="mend: it")


def test_an_annotation_keeps_to_the_form_that_the_runner_reads() -> None:
    written = as_annotation(HOSTILE)
    assert written.startswith("::error file=adr/a%2Cb.md,line=12,title=IA001 ")
    assert "::100 %25 | <b>%0Anew" in written
    assert "\n" not in written


def test_findings_as_json_and_as_markdown() -> None:
    assert json.loads(as_json([HOSTILE]))[0] == {
        "rule": "IA001",
        "severity": "error",
        "place": "adr/a,b.md:12: x",
        "about": "",
        "message": HOSTILE.message,
        "fix": "mend: it",
    }
    row = as_markdown([HOSTILE]).splitlines()[2]
    assert row.replace("\\|", "").count("|") == 6
    assert "\x1b" not in row + str(HOSTILE)
    assert as_markdown([]) == "Nothing was found.\n"


def files(checkout: Corpus, *records: Record) -> dict[str, RecordFile]:
    from pathlib import Path

    return {one.name: RecordFile(path=Path(f"{one.name}.md"), record=one, text=render_record(one)) for one in records}


def accepting(on: date = NOVEMBER) -> Move:
    return Move(status=Status.ACCEPTED, on=on, by="platform team")


def test_accepting_a_draft_puts_it_in_force_and_links_both_sides() -> None:
    (draft,) = compare(ledger(record()), [disabled()], NOVEMBER)
    proposed = parse_record(draft.name, draft.text, draft.path)
    checkout = ledger(record(), proposed)
    texts = accepted(checkout, files(checkout, record(), proposed), draft.name, accepting())
    assert list(texts) == [record().name, draft.name]
    after = [parse_record(name, text, name) for name, text in texts.items()]
    assert [one.status for one in after] == [Status.SUPERSEDED, Status.ACCEPTED]
    assert check_records(replace(checkout, records=tuple(after)), NOVEMBER) == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"contract": {}}, "IA012 error: contract.power has neither value nor reason"),
        ({"evidence": (CITED,)}, "IA002 error"),
        ({"decision": Decision.TUNE}, "IA011 error"),
        ({"contract": compared(Verdict.INCONCLUSIVE), "assessment": assessment(decision=Decision.TUNE)}, "IA013 error"),
    ],
)
def test_what_is_not_sound_is_not_accepted(changes: dict[str, Any], reason: str) -> None:
    proposed = record(status=Status.PROPOSED, **changes)
    checkout = ledger(proposed)
    with pytest.raises(UsageError, match="cannot be accepted as it is") as caught:
        accepted(checkout, files(checkout, proposed), proposed.name, accepting())
    assert reason in str(caught.value)


def test_another_records_fault_does_not_stop_a_sound_one() -> None:
    proposed, broken = record(status=Status.PROPOSED), record(name=ALPHA, scope="fleet/text-4b", evidence=(CITED,))
    checkout = ledger(proposed, broken)
    assert list(accepted(checkout, files(checkout, proposed, broken), proposed.name, accepting())) == [proposed.name]


def test_after_a_crash_between_two_files_accepting_again_finishes_the_work() -> None:
    old = record(status=Status.SUPERSEDED, superseded_by=BETA, history=(Move(status=Status.SUPERSEDED, on=NOVEMBER, by="x"),))
    proposed = record(name=BETA, status=Status.PROPOSED, supersedes=(old.name,), assessment=assessment(state=State.PARTLY))
    checkout = ledger(old, proposed)
    assert any(f.rule is Rule.LINK_ONE_SIDED for f in check_records(checkout, NOVEMBER))
    texts = accepted(checkout, files(checkout, old, proposed), BETA, accepting())
    after = (old, parse_record(BETA, texts[BETA], BETA))
    assert check_records(replace(checkout, records=after), NOVEMBER) == ()


def test_a_local_record_is_placed_in_its_folder() -> None:
    local = record(evidence=(CITED,))
    checkout = ledger(local_records=(local,))
    assert audit(Books(corpus=checkout), local, JULY)[0].place == f"adr/local/{local.name}.md"
    assert micro_run().id != RUN.id
