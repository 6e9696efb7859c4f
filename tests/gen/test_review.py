"""A reviewer's summary: what moved and nothing else, what a change must not do said first, and a base that is none told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import gen.__main__ as command_line
from gen.changes import propose
from gen.contract import ContractMetric, standing
from gen.records import Record, parse_record, render_record
from gen.records.record import Move
from gen.review import RecordChange, Review, review
from gen.review_text import MOST_ROWS, as_markdown
from gen.words import Status
from probes.archive import write_run
from probes.evidence import Missing, MissingReason, Run, Technique
from probes.fleet import Declared
from tests.gen.compared import two_sides
from tests.gen.ledger import JULY, NOVEMBER, checkout, inventory, knowledge, ledger, record
from tests.gen.specimens import micro_run, small_fleet

Main = Callable[..., tuple[int, str, str]]


def switched_off(service: str = "text-4b") -> dict[str, object]:
    """The inventory with prefix caching declared off on one service."""
    services = dict(inventory().services)
    off = {**services[service].settings, "enable_prefix_caching": Declared(value=False, as_of=NOVEMBER)}
    services[service] = services[service].model_copy(update={"settings": off})
    return {"fleet": inventory().model_copy(update={"services": services})}


def told(found: Review, *runs: Run) -> str:
    return as_markdown(found, "origin/main", {run.id: run for run in runs})


def moved(record: Record, status: Status, **changes: object) -> Record:
    move = Move(status=status, on=NOVEMBER, by="x", why="y")
    return record.model_copy(update={"status": status, "history": (*record.history, move), **changes})


def test_nothing_changed_is_said_as_such() -> None:
    found = review(ledger(record()), ledger(record()), NOVEMBER)
    assert (found.cells, found.rows, found.records, found.new, found.fixed) == ((), (), (), (), ())
    text = told(found)
    assert "No cell of any scope moves." in text
    assert "No record is added or changed." in text


def test_one_declaration_moves_its_cell_and_its_row_alone() -> None:
    found = review(ledger(), ledger(**switched_off()), NOVEMBER)
    assert {(one.scope, one.technique, one.service) for one in found.cells} == {
        ("fleet", Technique.PREFIX_CACHING, "the whole scope"),
        ("fleet", Technique.PREFIX_CACHING, "text-4b"),
    }
    assert "| fleet | Automatic prefix caching | text-4b | enabled, keep | disabled, enable |" in told(found)
    back = review(ledger(**switched_off()), ledger(), NOVEMBER)
    assert [(one.before, one.after) for one in back.cells] == [(one.after, one.before) for one in found.cells]


def test_a_machine_that_is_new_and_one_that_is_gone_are_told_as_such() -> None:
    found = review(ledger(), ledger(runs=(micro_run(),)), NOVEMBER)
    assert {one.before for one in found.cells} == {""}
    assert "*not there*" in told(found)
    assert [run.id for run in found.added_runs] == [micro_run().id]
    gone = review(ledger(runs=(micro_run(),)), ledger(), NOVEMBER)
    assert [run.id for run in gone.lost_runs] == [micro_run().id]
    assert f"evidence {micro_run().id} was taken away" in told(gone).replace("\\", "")


def test_what_git_ignores_is_no_part_of_a_change() -> None:
    found = review(ledger(), ledger(local_runs=(micro_run(),), local_records=(record(),)), NOVEMBER)
    assert (found.cells, found.records, found.added_runs, found.new) == ((), (), (), ())


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        (None, record(status=Status.PROPOSED), ""),
        (None, moved(record(status=Status.PROPOSED), Status.ACCEPTED), ""),
        (None, record(), "no move leads from proposed to accepted"),
        (record(status=Status.PROPOSED), moved(record(status=Status.PROPOSED), Status.REJECTED), ""),
        (record(status=Status.PROPOSED), record(status=Status.REJECTED), "no move leads from proposed to rejected"),
        (
            moved(record(), Status.REJECTED),
            moved(moved(record(), Status.REJECTED), Status.ACCEPTED),
            "rejected cannot become accepted",
        ),
        (moved(record(), Status.ACCEPTED), record(), "its history was rewritten"),
        (record(), record(body="Other words"), ""),
        (record(), record(evidence=(), assessment=None, body="x"), "what was decided has been rewritten"),
        (record(), None, "records are superseded or deprecated, never taken away"),
    ],
)
def test_a_status_that_no_legal_move_led_to_is_told_first(before: Record | None, after: Record | None, fault: str) -> None:
    assert RecordChange(name=record().name, before=before, after=after).fault == fault
    sides = (ledger(*filter(None, (before,))), ledger(*filter(None, (after,))))
    (change,) = review(*sides, NOVEMBER).records
    assert change.fault == fault
    text = told(review(*sides, NOVEMBER))
    assert (f"**{record().name}: {fault}.**" in text) == bool(fault)


def test_the_contract_of_a_new_record_shows_sides_intervals_and_what_is_missing() -> None:
    run = two_sides()
    new = record(status=Status.PROPOSED, contract=standing([run], inventory().policies.gates), evidence=())
    text = told(review(ledger(), ledger(new, runs=(run,)), NOVEMBER), run)
    row = next(line for line in text.splitlines() if line.startswith("| Time to first token"))
    assert "**better**" in row
    assert " times |" in row
    assert "- Power: *no sensor*, no RAPL here." in text


def test_a_new_decision_says_what_it_would_change() -> None:
    after = ledger(**switched_off())
    (draft,) = [one for one in propose(after, NOVEMBER, "fleet") if one.technique is Technique.PREFIX_CACHING]
    new = parse_record(draft.name, draft.text, draft.path)
    text = told(review(ledger(), ledger(new, **switched_off()), NOVEMBER)).replace("\\", "")
    assert "- text-4b: enable_prefix_caching: false → true (the decision enables it)" in text
    assert "All 8 quantities are missing: *not measured*, no valid run is cited." in text


def test_a_metric_without_value_and_reason_is_named() -> None:
    new = record(status=Status.PROPOSED, contract={ContractMetric.TTFT: Missing(missing=MissingReason.NO_SENSOR)})
    text = told(review(ledger(), ledger(new), NOVEMBER))
    assert "- Task quality: **no value and no reason**" in text


def test_findings_are_those_that_came_and_those_that_went() -> None:
    damaged = record(supersedes=("2026-01-01-gone",))
    came = review(ledger(), ledger(damaged), NOVEMBER)
    assert "IA006" in {finding.rule.number for finding in came.new}
    assert "1 of the new findings is an error" in told(came)
    went = review(ledger(damaged), ledger(), NOVEMBER)
    assert "IA006" in {finding.rule.number for finding in went.fixed}


def test_a_change_too_long_for_a_summary_is_cut_and_says_so() -> None:
    many = tuple(
        record(name=f"2026-07-10-n{number}", technique=None, decision=None, assessment=None, scope="project", contract={})
        for number in range(MOST_ROWS + 5)
    )
    text = told(review(ledger(), ledger(*many), NOVEMBER))
    assert "And 5 more." in text


def test_hostile_words_break_no_table() -> None:
    hostile = "a|b\n<script>alert(1)</script> `x`"
    found = review(ledger(), replace(ledger(record(supersedes=("2026-01-01-gone",))), fleet=small_fleet()), NOVEMBER)
    bad = replace(found.new[0], message=hostile)
    text = as_markdown(replace(found, new=(bad,)), "origin/main", {})
    assert "<script>" not in text
    assert "a\\|b" in text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with the real inventory, in git."""
    root = checkout(tmp_path / "checkout")
    git(root, "init", "--quiet", "--initial-branch=main")
    commit(root, "begin")
    return root


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.invalid", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", str(root), *who, *words], capture_output=True, text=True, check=True).stdout  # noqa: S603, S607


def commit(root: Path, message: str) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD").strip()


@pytest.fixture
def main(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Main:
    monkeypatch.chdir(root)
    for name in ("gen.corpus.load_knowledge", "gen.commands.review.load_knowledge"):
        monkeypatch.setattr(name, lambda *_: knowledge())

    def run(*argv: str) -> tuple[int, str, str]:
        code = command_line.main(["review", *argv, "--today", NOVEMBER.isoformat()])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_branch_is_held_against_where_it_left_its_base(main: Main, root: Path) -> None:
    git(root, "checkout", "--quiet", "-b", "mine")
    (root / "adr" / f"{record().name}.md").write_text(render_record(record(status=Status.PROPOSED)), encoding="utf-8")
    write_run(micro_run(), root / "adr" / "evidence")
    commit(root, "mine")
    git(root, "checkout", "--quiet", "main")
    (root / "adr").mkdir(exist_ok=True)
    (root / "adr" / "2026-07-10-theirs.md").write_text("broken", encoding="utf-8")
    commit(root, "theirs")
    git(root, "checkout", "--quiet", "mine")
    code, out, err = main("--base", "main")
    assert (code, err) == (0, "")
    assert f"`{record().name}` | added | proposed | legal" in out
    assert "1 evidence file is added" in out
    assert "theirs" not in out
    assert "nox -s review -- main" in out


def test_a_folder_is_a_base_too(main: Main, root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "other")
    (root / "adr" / f"{record().name}.md").write_text(render_record(record()), encoding="utf-8")
    code, out, _ = main("--base", str(tmp_path / "other"))
    assert code == 0
    assert "1 record is added" in out


def test_the_same_base_gives_the_same_bytes(main: Main) -> None:
    assert main("--base", "HEAD") == main("--base", "HEAD")


@pytest.mark.parametrize("base", ["nope", "", "HEAD~99", "--upload-pack=x", "HEAD:fleet.yml", "a b", "adr", "..", "\n"])
def test_a_base_that_is_none_is_one_message(main: Main, root: Path, base: str) -> None:
    code, out, err = main(f"--base={base}")
    assert (code, out) == (2, "")
    assert "expected a folder with a fleet.yml, or a commit, branch or tag that git knows here" in err
    assert "Traceback" not in err


def test_a_base_whose_inventory_is_broken_or_absent_is_one_message(main: Main, root: Path) -> None:
    text = (root / "fleet.yml").read_text(encoding="utf-8")
    (root / "fleet.yml").write_text(text.replace("hosts:", "hots:", 1), encoding="utf-8")
    broken = commit(root, "broken")
    (root / "fleet.yml").unlink()
    absent = commit(root, "absent")
    (root / "fleet.yml").write_text(text, encoding="utf-8")
    commit(root, "whole")
    code, _, err = main("--base", broken)
    assert (code, f"gen: base {broken}" in err, "hots: is not a known field" in err) == (2, True, True)
    code, _, err = main("--base", absent)
    assert (code, "holds no fleet.yml at" in err) == (2, True)


def test_a_checkout_without_git_and_a_damaged_record_are_no_traceback(main: Main, root: Path) -> None:
    (root / "adr" / "2026-07-10-bad.md").write_text("# Use MQTT\n", encoding="utf-8")
    code, out, _ = main("--base", "HEAD")
    assert code == 0
    assert "IA001" in out
    shutil.rmtree(root / ".git")
    code, _, err = main("--base", "HEAD")
    assert (code, "'HEAD': is no base to compare with" in err) == (2, True)


def test_a_change_of_july_is_dated_in_july() -> None:
    assert review(ledger(), ledger(), JULY).today == JULY


def test_two_branches_that_each_decide_alone_are_told_apart_once_merged(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git merges two new files without a word; each branch was green, and the merge result is not."""
    monkeypatch.chdir(root)
    monkeypatch.setattr("gen.corpus.load_knowledge", knowledge)
    ours, theirs = record(), record(name="2026-07-11-automatic-prefix-caching-fleet", date=JULY.replace(day=11))

    def check() -> tuple[int, str]:
        code = command_line.main(["check", "--today", NOVEMBER.isoformat()])
        return code, capsys.readouterr().out

    for branch, one in (("ours", ours), ("theirs", theirs)):
        git(root, "checkout", "--quiet", "-b", branch, "main")
        (root / "adr").mkdir(exist_ok=True)
        (root / "adr" / f"{one.name}.md").write_text(render_record(one), encoding="utf-8")
        commit(root, branch)
        assert check()[0] == 0
    git(root, "merge", "--quiet", "--no-edit", "ours")
    code, out = check()
    assert code == 1
    assert f"adr/{theirs.name}.md: IA005 error: " in out
    assert f"and so is {ours.name}" in out
    assert f"nox -s adr -- supersede {ours.name} {theirs.name} --by WHO" in out
