"""The commands of records as a newcomer uses them: due, check, export, config, import and promote, and the ignore list."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gen.__main__ as command_line
from gen.arrival import clock_remarks, likeness_remark
from gen.check import check
from gen.corpus import read_corpus
from gen.findings import Finding, Rule, as_annotation
from gen.records import read_records, render_record
from gen.records.record import EvidenceRef
from gen.words import Status
from probes import strictyaml
from probes.archive import seal, write_run
from probes.errors import InputError
from probes.evidence import Endpoint, EndpointState, FleetScope, ProvenanceKind, Run, RunKind
from probes.fleet import Fleet, Ignored
from tests.gen.compared import one_side, setting
from tests.gen.ledger import JULY, NOVEMBER, checkout, inventory, knowledge, ledger, record
from tests.gen.specimens import FINGERPRINT, devices_run, endpoint_run, micro_run

Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path / "checkout")


@pytest.fixture
def main(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Main:
    monkeypatch.chdir(root)
    monkeypatch.setattr("gen.corpus.load_knowledge", knowledge)

    def run(*argv: str, today: date = NOVEMBER) -> tuple[int, str, str]:
        code = command_line.main(["records", *argv, "--today", today.isoformat()])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def write(root: Path, name: str, text: str) -> None:
    (root / "adr" / f"{name}.md").write_text(text, encoding="utf-8")


def test_due_lists_whose_turn_has_come_and_nothing_that_is_wrong(main: Main, root: Path) -> None:
    write(root, record().name, render_record(record()))
    write(root, "2026-07-10-bad", "# Use MQTT\n")
    code, out, _ = main("due", "--json", today=date(2027, 6, 1))
    rules = {one["rule"] for one in json.loads(out)}
    assert code == 0
    assert "IA017" in rules
    assert "IA001" not in rules


def test_checking_one_record_tells_of_that_record_alone(main: Main, root: Path) -> None:
    cited = EvidenceRef(id=micro_run().id, sha256=micro_run().content_sha256)
    write(root, record().name, render_record(record(evidence=(cited,))))
    write(root, "2026-07-10-bad", "# Use MQTT\n")
    code, out, _ = main("check", record().name)
    assert (code, "IA002" in out, "IA001" in out) == (1, True, False)
    code, out, _ = main("check", "adr/2026-07-10-bad.md")
    assert (code, "IA001" in out, "IA002" in out) == (1, True, False)
    assert main("check")[1].count("error:") == 2
    code, out, err = main("check", "2026-07-10-bed")
    assert (code, out) == (2, "")
    assert "no record is called '2026-07-10-bed'; did you mean 2026-07-10-bad?" in err


def test_an_export_holds_every_record_and_says_where_and_whether_it_holds(main: Main, root: Path) -> None:
    write(root, record().name, render_record(record()))
    write(root, "2026-07-10-draft", render_record(record(name="2026-07-10-draft", status=Status.PROPOSED)))
    code, out, err = main("export")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["today"] == "2026-11-30"
    assert [(one["place"], one["in_force"]) for one in document["records"]] == [
        (f"adr/{record().name}.md", True),
        ("adr/2026-07-10-draft.md", False),
    ]
    assert main("export", "--out", "all.json")[1] == "all.json: 2 records\n"
    assert json.loads((root / "all.json").read_text(encoding="utf-8")) == document
    write(root, "2026-07-10-bad", "# Use MQTT\n")
    code, out, err = main("export")
    assert (code, len(json.loads(out)["records"])) == (2, 2)
    assert "left out: adr/2026-07-10-bad.md: has no front matter" in err


def test_a_decision_shows_its_change_and_its_way_back(main: Main, root: Path) -> None:
    fleet = (root / "fleet.yml").read_text(encoding="utf-8")
    off = "enable_prefix_caching: {value: false, as_of: 2026-11-29}"
    (root / "fleet.yml").write_text(fleet.replace("enable_prefix_caching: true", off, 1), encoding="utf-8")
    main("propose", "--scope", "fleet", "--write")
    name = next(one.name for one in read_records(root / "adr")[0] if "prefix-caching" in one.name)
    code, out, err = main("config", name)
    assert code == 0
    assert err == f"gen: {name} is proposed: nobody has decided it\n"
    forth, _, back = out.partition("# graph.pbtxt: the way back")
    assert "    enable_prefix_caching: true\n" in forth
    assert "--enable_prefix_caching false" in back
    (first, *_) = json.loads(main("config", name, "--json")[1])
    assert first["changes"] == [
        {"control": "enable_prefix_caching", "before": False, "after": True, "why": "the decision enables it"}
    ]
    assert main("config", "2026-11-30-quantization-fleet")[0] == 2
    other = next(one.name for one in read_records(root / "adr")[0] if "quantization" in one.name)
    assert main("config", other)[1] == f"{other} changes no setting of a runtime whose grammar is known.\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["config"], "NAME"),
        (["config", "x"], "no record is called 'x'"),
        (["due", "x"], "unrecognized arguments: x"),
        (["check", "--json", "--github"], "not allowed with"),
        (["export", "--out", "fleet.yml/x.json"], "cannot be written"),
        (["export", "--out", "fleet.yml"], "expected a file named *.json"),
        (["supersede", "x", "y"], "--by"),
        (["deprecate", "x", "--by", "y"], "--why"),
        (["reject", "x", "--by", "y", "--why", "a\nb"], "--why"),
        (["accept", "x", "--by", "y", "--on", "tomorrow"], "expected a date such as 2026-07-10"),
        (["new", "a\nb"], "expected one line of words"),
        (["list", "--technique", "magic"], "'magic' is not one of"),
        (["propose", "--scope", ""], "nothing is known of it"),
        (["promote", "../../etc/passwd"], "no local run or draft is called"),
    ],
)
def test_each_misuse_of_a_verb_is_one_message(main: Main, root: Path, argv: Sequence[str], said: str) -> None:
    if argv[0] == "reject":
        write(root, "2026-07-10-x", render_record(record(name="2026-07-10-x", status=Status.PROPOSED)))
        argv = [argv[0], "2026-07-10-x", *argv[2:]]
    code, out, err = main(*argv)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_an_import_says_which_host_whether_its_clock_agrees_and_what_it_compares_with(
    main: Main, root: Path, tmp_path: Path
) -> None:
    here = one_side()
    write_run(here, root / "adr" / "local" / "evidence")
    same, other = one_side(minute=5), one_side(minute=9, runtime=here.runtime.model_copy(update={"version": "2026.5"}))
    files = [str(write_run(run, tmp_path / "stick")) for run in (same, other)]
    code, out, err = main("import", *files)
    assert (code, err) == (0, "")
    assert f"{same.id}: contract embedded, valid, hash {same.content_sha256[:12]}" in out
    assert f"asked from   bench (Example CPU 3000, 2 cores, 24 GiB, Debian 12, kernel 6.1.0; {FINGERPRINT})" in out
    assert out.count("clock        its times agree") == 2
    assert "runtime-version: 2026.4.1.0 against 2026.5" in out or "runtime-version: 2026.5 against 2026.4.1.0" in out
    assert main("import", *files)[0] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("{}", "schema: is None"),
        ('{"schema": "inference-adr/run/99"}', "schema: is 'inference-adr/run/99'"),
        ("[]", "schema: is 'list'"),
        ("\x00", "is not JSON"),
    ],
)
def test_a_file_that_is_no_evidence_is_not_taken(main: Main, root: Path, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    good = write_run(devices_run(), tmp_path / "stick")
    code, out, err = main("import", str(good), str(tmp_path / "x.json"))
    assert (code, out) == (2, "")
    assert said in err
    assert not (root / "adr" / "local" / "evidence").exists(), "all of it, or nothing"


def test_an_edited_file_and_one_from_the_future_are_not_taken(main: Main, tmp_path: Path) -> None:
    edited = write_run(devices_run(), tmp_path)
    edited.write_text(edited.read_text(encoding="utf-8").replace("Example CPU 3000", "Faster CPU"), encoding="utf-8")
    ahead = write_run(micro_run(), tmp_path)
    code, _, err = main("import", str(edited), str(ahead), today=date(2026, 11, 1))
    assert code == 2
    assert "does not match the content" in err
    assert "check the clock of bench" in err


def test_times_that_contradict_each_other_are_told() -> None:
    run = one_side()
    assert clock_remarks(run, NOVEMBER) == ()
    misnamed = run.model_copy(update={"id": "20260101T000000Z-bench-contract-embedded"})
    assert "its name says 2026-01-01T00:00:00+00:00" in clock_remarks(misnamed, NOVEMBER)[0]
    seen = setting("enable_prefix_caching", value=True)
    odd = seen.model_copy(update={"provenance": seen.provenance.model_copy(update={"date": date(2026, 11, 20)})})
    assert clock_remarks(run.model_copy(update={"settings": (odd,)}), NOVEMBER) == (
        "saw settings on 2026-11-20, and it ran on 2026-11-28",
    )
    declared = odd.model_copy(update={"provenance": odd.provenance.model_copy(update={"kind": ProvenanceKind.DECLARED})})
    assert clock_remarks(run.model_copy(update={"settings": (declared,)}), NOVEMBER) == ()
    assert "after 2026-07-10" in clock_remarks(run, JULY)[0]


def test_a_run_compares_with_the_newest_of_its_kind_and_subject() -> None:
    run = one_side(minute=9)
    assert likeness_remark(run, [run]) == "nothing of its kind and subject is here to compare with"
    assert likeness_remark(run, [one_side(), one_side(minute=3)]) == f"comparable with {one_side(minute=3).id}"
    assert likeness_remark(run, [devices_run(), endpoint_run()]).startswith("nothing")
    assert likeness_remark(micro_run(), []) == "holds both sides itself"


def of_the_fleet() -> Run:
    """What somebody measured on the cluster: the service has prefix caching off."""
    seen = setting("enable_prefix_caching", value=False)
    values = endpoint_run().model_copy(
        update={
            "id": "20261128T091000Z-cluster-endpoint-text-4b",
            "subject": "text-4b",
            "scope": FleetScope(service="text-4b"),
            "settings": (seen.model_copy(update={"provenance": seen.provenance.model_copy(update={"source": "x"})}),),
            "endpoint": Endpoint(url="http://ovms:8000", state=EndpointState.GENERATING),
        }
    )
    return seal(values)


def test_a_run_of_the_fleet_is_promoted_together_with_the_records_that_it_moves(main: Main, root: Path, tmp_path: Path) -> None:
    main("propose", "--scope", "fleet", "--write", today=JULY)
    for one in read_records(root / "adr")[0]:
        assert main("accept", one.name, "--by", "x", today=JULY)[0] == 0
    main("propose", "--scope", "fleet", "--write")
    run = of_the_fleet()
    assert run.kind is RunKind.ENDPOINT
    main("import", str(write_run(run, tmp_path / "stick")))
    assert main("propose", "--scope", "fleet")[1] == "0 records to draft; --write writes them.\n", (
        "what is local moves no record"
    )
    code, out, err = main("promote", run.id)
    assert (code, err) == (0, "")
    assert f"copied   adr/evidence/{run.id}.json" in out
    (drafted,) = re.findall(r"drafted  (adr/\S*automatic-prefix-caching\S*\.md)", out)
    assert run.id in (root / drafted).read_text(encoding="utf-8")
    assert main("propose", "--scope", "fleet")[1] == "0 records to draft; --write writes them.\n"
    again = main("promote", run.id)[1]
    assert "drafted" not in again
    assert main("check")[0] == 0


def ignoring(**changes: object) -> Fleet:
    entry = {"rule": "IA019", "about": "fleet.yml", "by": "platform team", "reason": "moving house", "until": NOVEMBER}
    policies = inventory().policies.model_copy(update={"ignore": (Ignored.model_validate({**entry, **changes}),)})
    return inventory().model_copy(update={"policies": policies})


def rules(fleet: Fleet, today: date = NOVEMBER) -> set[Rule]:
    return {finding.rule for finding in check(ledger(fleet=fleet), today)}


def test_what_the_inventory_ignores_with_a_reason_is_passed_over_until_its_day() -> None:
    assert Rule.STALE_DECLARATION in rules(inventory())
    assert not {Rule.STALE_DECLARATION, Rule.IGNORES_NOTHING} & rules(ignoring())
    assert {Rule.STALE_DECLARATION, Rule.IGNORES_NOTHING} <= rules(ignoring(), NOVEMBER + timedelta(days=1))
    assert {Rule.STALE_DECLARATION, Rule.IGNORES_NOTHING} <= rules(ignoring(about="elsewhere.yml"))


def test_an_error_that_costs_trust_is_never_ignored() -> None:
    for rule in Rule:
        if not rule.may_be_ignored:
            assert Rule.NOT_IGNORABLE in rules(ignoring(rule=rule.number)), rule
    assert not Rule.DAMAGED.may_be_ignored
    assert not Rule.IGNORES_NOTHING.may_be_ignored
    assert Rule.UNKNOWN_CONTROL.may_be_ignored


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{rule: IA19, about: x, by: x, reason: x, until: 2026-12-31}", "rule: is 'IA19'"),
        ("{rule: IA019, about: x, by: x, until: 2026-12-31}", "reason: is missing"),
        ("{rule: IA019, about: x, by: x, reason: x}", "until: is missing"),
        ("{rule: IA019, about: x, by: x, reason: x, until: never}", "until: is 'never'"),
    ],
)
def test_an_entry_without_reason_or_end_is_refused(entry: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        strictyaml.loads(entry, Ignored, "fleet.yml")


@given(st.text(max_size=40), st.text(max_size=40))
def test_an_annotation_says_what_was_found_whatever_it_holds(message: str, fix: str) -> None:
    """Undone as the runner does: properties end at ',' and ':', the message at the line's end."""
    written = as_annotation(Finding(rule=Rule.DAMAGED, place="adr/a%,b.md:12", message=message, fix=fix))
    assert "\n" not in written
    assert "\r" not in written
    head, _, said = written.removeprefix("::").partition("::")
    kind, _, properties = head.partition(" ")
    given_ = dict(one.split("=", 1) for one in properties.split(","))
    assert kind == "error"
    assert (unquote(given_["file"]), given_["line"]) == ("adr/a%,b.md", "12")
    assert unquote(said) == f"{message}. Fix: {fix}."


def test_reading_a_checkout_leaves_the_collector_as_it_was(root: Path) -> None:
    assert gc.isenabled()
    read_corpus(root)
    assert gc.isenabled()
    gc.disable()
    try:
        read_corpus(root)
        assert not gc.isenabled()
    finally:
        gc.enable()
