"""The command line: what it prints, what it writes, its exit codes, and one clear message for each misuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import jsonschema
import pytest

import gen.__main__ as command_line
from gen.commands.reports import SCHEMAS, schema_text
from gen.output import MANIFEST, write_pages
from gen.records import read_records
from gen.words import Status
from probes.archive import write_run
from probes.errors import HostError, InputError
from tests.gen.ledger import ROOT, checkout, knowledge
from tests.gen.specimens import devices_run, endpoint_run, micro_run

Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path / "checkout")


@pytest.fixture
def main(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Main:
    """Run a command in a checkout on 2026-11-30 and give its exit code, output and messages."""
    for name in ("INFERENCE_ADR_TODAY", "SOURCE_DATE_EPOCH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(root)
    monkeypatch.setattr("gen.corpus.load_knowledge", knowledge)

    def run(*argv: str, today: str | None = "2026-11-30") -> tuple[int, str, str]:
        code = command_line.main([*argv, *(("--today", today) if today else ())])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def texts(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_decision_lives_from_proposal_to_its_successor(main: Main, root: Path) -> None:
    code, out, _ = main("records", "propose", "--scope", "fleet", "--write", today="2026-07-10")
    assert (code, out.splitlines()[-1]) == (0, "7 records drafted.")
    drafted = texts(root / "adr")
    assert main("records", "propose", "--scope", "fleet", "--write", today="2026-07-10")[1] == "0 records drafted.\n"
    assert texts(root / "adr") == drafted
    names = [record.name for record in read_records(root / "adr")[0]]
    for name in names:
        code, out, err = main("records", "accept", name, "--by", "platform team", "--on", "2026-07-10", today="2026-07-10")
        assert (code, out, err) == (0, f"{name}: accepted\n", "")
    assert main("check", today="2026-07-10")[0] == 0
    accepted = texts(root / "adr")
    assert main("records", "propose", "--scope", "fleet", "--write", today="2026-07-10")[1] == "0 records drafted.\n"
    assert texts(root / "adr") == accepted

    fleet = (root / "fleet.yml").read_text(encoding="utf-8")
    off = "enable_prefix_caching: {value: false, as_of: 2026-07-11}"
    (root / "fleet.yml").write_text(fleet.replace("enable_prefix_caching: true", off, 1), encoding="utf-8")
    code, out, _ = main("records", "propose", "--scope", "fleet", "--write", today="2026-07-12")
    new = "2026-07-11-automatic-prefix-caching-fleet"
    assert out.splitlines()[-1] == "1 record drafted."
    code, out, err = main("records", "accept", new, "--by", "platform team", today="2026-07-12")
    assert (code, out) == (2, "")
    assert "IA013 error: decides enable, and no cited run compares baseline with candidate" in err
    seen = "acknowledgements:\n  - {rule: IA013, about: comparison, by: x, date: 2026-07-12, reason: back to what stood}\n"
    path = root / "adr" / f"{new}.md"
    path.write_text(path.read_text(encoding="utf-8").replace("supersedes:", f"{seen}supersedes:", 1), encoding="utf-8")
    code, out, _ = main("records", "accept", new, "--by", "platform team", today="2026-07-12")
    old = next(name for name in names if "prefix-caching" in name)
    assert out == f"{old}: superseded\n{new}: accepted\n"
    assert main("check", today="2026-07-12")[0] == 0
    assert "superseded" in main("records", "list", "--technique", "automatic-prefix-caching")[1]


def test_proposing_without_write_writes_nothing(main: Main, root: Path) -> None:
    code, out, _ = main("records", "propose")
    assert (code, out.splitlines()[-1]) == (0, "7 records to draft; --write writes them.")
    assert texts(root / "adr") == {}


def test_a_rejection_needs_a_reason_and_ends_the_matter(main: Main, root: Path) -> None:
    main("records", "propose", "--write")
    name = read_records(root / "adr")[0][0].name
    assert "--why" in main("records", "reject", name, "--by", "x")[2]
    assert main("records", "reject", name, "--by", "x", "--why", "No power sensor")[:2] == (0, f"{name}: rejected\n")
    assert main("records", "propose")[1] == "0 records to draft; --write writes them.\n"
    code, _, err = main("records", "accept", name, "--by", "x")
    assert (code, err) == (2, f"gen: {name} is rejected and can become nothing, not accepted\n")


def test_evidence_travels_from_another_host_into_a_pull_request(main: Main, root: Path, tmp_path: Path) -> None:
    files = [str(write_run(run, tmp_path / "stick")) for run in (devices_run(), endpoint_run(), micro_run())]
    code, out, _ = main("records", "import", *files)
    assert (code, out.count("copied   adr/local/evidence/")) == (0, 3)
    assert main("records", "import", *files)[1].count("present  adr/local/evidence/") == 3
    main("records", "propose", "--scope", "local", "--write")
    assert len(read_records(root / "adr" / "local")[0]) == 7
    for run in (devices_run(), endpoint_run(), micro_run()):
        assert main("records", "promote", run.id)[0] == 0
    promoted = read_records(root / "adr")[0]
    assert {record.name for record in promoted} == {r.name for r in read_records(root / "adr" / "local")[0] if r.evidence}
    assert main("check")[0] == 0
    assert main("records", "propose", "--scope", "local")[1] == "0 records to draft; --write writes them.\n"


def test_a_record_about_the_project_is_started_by_its_title(main: Main, root: Path) -> None:
    assert main("records", "new", "KV キャッシュ: u8")[:2] == (0, "adr/2026-11-30-kv-u8.md\n")
    (record,) = read_records(root / "adr")[0]
    assert (record.title, record.status, record.scope) == ("KV キャッシュ: u8", Status.PROPOSED, "project")
    code, _, err = main("records", "new", "KV キャッシュ: u8")
    assert (code, "never overwritten" in err) == (2, True)
    assert main("records", "accept", record.name, "--by", "x")[0] == 0


def test_show_prints_a_record_without_its_generated_block(main: Main, root: Path) -> None:
    main("records", "propose", "--write")
    name = read_records(root / "adr")[0][0].name
    code, out, _ = main("records", "show", f"adr/{name}.md")
    assert code == 0
    assert out.startswith("---\ntitle:")
    assert "```json" not in out
    assert json.loads(main("records", "show", name, "--json")[1])["assessment"]["scope"] == "fleet"
    assert len(json.loads(main("records", "list", "--json")[1])) == 7


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["recrods"],
            "'recrods' is not one of pages, matrix, summary, check, compare, whatif, confirm, review, schema, records; "
            "did you mean records?",
        ),
        (["records", "acept"], "did you mean accept?"),
        (["records", "list", "--status", "acepted"], "did you mean accepted?"),
        (["records", "show", "2026-07-10-quantization-flet"], "no record is called '2026-07-10-quantization-flet'"),
        (["records", "accept", "1", "--by", "x"], "no record is called '1'; nox -s adr -- list shows them"),
        (["records", "propose", "--scope", "cluster"], "nothing is known of it; expected one of fleet, local"),
        (["records", "promote", "x"], "no local run or draft is called 'x'; 0 in adr/local: none"),
        (["records", "import", "absent.json"], "absent.json: cannot be read (No such file or directory)"),
        (["records", "new", " "], "TITLE: is ' '; expected one line of words"),
        (["matrix", "--scope", "x"], "--scope: is 'x'; expected one of fleet"),
        (["schema", "flet"], "did you mean fleet?"),
        (["check", "--json", "--github"], "not allowed with"),
        (["pages"], "--out"),
        ([], "COMMAND"),
        (["matrix", "--nope"], "unrecognized arguments: --nope"),
    ],
)
def test_each_misuse_is_one_message_and_exit_code_2(main: Main, argv: Sequence[str], said: str) -> None:
    code, out, err = main(*argv)
    assert (code, out) == (2, "")
    assert said in err
    assert all(line.startswith("gen: ") for line in err.splitlines())


@pytest.mark.parametrize(
    "value", ["yesterday", "2026-13-01", "20261301", "20260710", "2026-W28-5", "２026-07-10", " 2026-07-10"]
)
def test_a_day_that_is_none_or_written_otherwise_is_told(main: Main, value: str) -> None:
    code, _, err = main("matrix", today=value)
    assert (code, f"--today: is {value!r}; expected a date such as 2026-07-10" in err) == (2, True)
    code, _, err = main("records", "accept", "x", "--by", "x", "--on", value)
    assert (code, f"--on: is {value!r}; expected a date such as 2026-07-10" in err) == (2, True)


@pytest.mark.parametrize("argv", [["matrix", "--js"], ["check", "--git"], ["records", "list", "--stat", "accepted"], ["--ver"]])
def test_no_option_is_taken_for_another(main: Main, argv: Sequence[str]) -> None:
    code, out, err = main(*argv)
    assert (code, out) == (2, "")
    assert argv[-1] in err or argv[-2] in err


def test_nobody_decides_tomorrow(main: Main, root: Path) -> None:
    main("records", "propose", "--write")
    name = read_records(root / "adr")[0][0].name
    assert "expected a day up to today" in main("records", "accept", name, "--by", "x", "--on", "2026-12-01")[2]
    assert "--by: is ' '" in main("records", "accept", name, "--by", " ")[2]


def test_a_broken_inventory_is_told_with_line_and_field(main: Main, root: Path) -> None:
    (root / "fleet.yml").write_text((root / "fleet.yml").read_text(encoding="utf-8").replace("hosts:", "hots:", 1))
    code, _, err = main("matrix")
    assert code == 2
    assert "gen: fleet.yml:9: hots: is not a known field" in err.replace("fleet.yml:10", "fleet.yml:9")


def test_a_wrong_key_of_a_mapping_is_told_with_file_field_and_what_is_expected(main: Main, root: Path) -> None:
    fleet = root / "fleet.yml"
    text = fleet.read_text(encoding="utf-8")
    fleet.write_text(text.replace("trackers:\n  speculative-decoding:", "trackers:\n  speculative:", 1), encoding="utf-8")
    _, _, err = main("matrix")
    assert "trackers.speculative: is the key 'speculative'; expected one of 'quantization', " in err
    fleet.write_text(text.replace("  text-8b:\n", "  Text 8B:\n", 1), encoding="utf-8")
    _, _, err = main("matrix")
    assert "services.Text 8B: is the key 'Text 8B'; expected a key of the pattern ^[a-z0-9]" in err


def test_outside_a_checkout_the_way_out_is_told(main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, _, err = main("matrix")
    assert (code, "expected a checkout, or --root DIR" in err) == (2, True)


def test_the_checkout_is_found_from_a_folder_inside_it(main: Main, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "adr")
    assert main("records", "list")[:2] == (0, "No record matches.\n")


def test_a_damaged_record_is_listed_as_such_beside_the_good_ones(main: Main, root: Path) -> None:
    main("records", "propose", "--write")
    (root / "adr" / "2026-07-10-bad.md").write_text("# Use MQTT\n")
    code, out, err = main("records", "list")
    assert (code, len(out.splitlines())) == (2, 7)
    assert "adr/2026-07-10-bad.md: has no front matter" in err
    assert main("check")[0] == 1
    assert main("records", "propose")[0] == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["accept", "--by", "x"],
        ["reject", "--by", "x", "--why", "y"],
        ["deprecate", "--by", "x", "--why", "y"],
        ["show"],
        ["promote"],
    ],
)
@pytest.mark.parametrize("form", ["{}", "{}.md", "adr/{}.md"])
def test_a_damaged_record_is_called_damaged_and_how(main: Main, root: Path, argv: Sequence[str], form: str) -> None:
    name = "2026-07-10-bad"
    (root / "adr" / f"{name}.md").write_text("---\ntitle: x\nstatus: acepted\ndate: 2026-07-10\nscope: project\n---\n")
    before = texts(root / "adr")
    code, out, err = main("records", argv[0], form.format(name), *argv[1:])
    assert (code, out) == (2, "")
    assert f"adr/{name}.md:" in err
    assert "review-by" in err
    assert "no record is called" not in err
    assert texts(root / "adr") == before


def test_a_damaged_record_on_either_side_of_a_supersession_is_told(main: Main, root: Path) -> None:
    main("records", "new", "Good")
    (root / "adr" / "2026-07-10-bad.md").write_bytes(b"\xff")
    for pair in (("2026-07-10-bad", "2026-11-30-good"), ("2026-11-30-good", "2026-07-10-bad")):
        code, _, err = main("records", "supersede", *pair, "--by", "x")
        assert (code, err) == (2, "gen: adr/2026-07-10-bad.md: is not UTF-8 (byte 0); expected text in UTF-8\n")


def test_a_damaged_record_in_adr_is_never_passed_over_for_a_local_one(main: Main, root: Path) -> None:
    main("records", "new", "Same")
    shared = root / "adr" / "2026-11-30-same.md"
    local = root / "adr" / "local" / shared.name
    local.parent.mkdir()
    local.write_bytes(shared.read_bytes())
    shared.write_text("torn")
    code, _, err = main("records", "reject", "2026-11-30-same", "--by", "x", "--why", "y")
    assert (code, "gen: adr/2026-11-30-same.md: has no front matter" in err) == (2, True)


@pytest.mark.parametrize("command", [["matrix"], ["matrix", "--json"], ["summary"], ["records", "list", "--json"]])
def test_what_shows_the_rest_tells_what_it_left_out_and_ends_with_2(main: Main, root: Path, command: Sequence[str]) -> None:
    sound = main(*command)
    assert (sound[0], sound[2]) == (0, "")
    (root / "adr" / "2026-07-10-bad.md").write_text("# Use MQTT\n")
    evidence = root / "adr" / "evidence"
    evidence.mkdir()
    (evidence / "20260710T000000Z-x.json").write_text("{")
    code, out, err = main(*command)
    assert (code, out) == (2, sound[1])
    assert "gen: left out: adr/2026-07-10-bad.md: has no front matter" in err
    assert "20260710T000000Z-x.json: is not JSON" in err


COMMANDS = (
    ["matrix"],
    ["summary"],
    ["check"],
    ["pages", "--out", "pages"],
    ["records", "list"],
    ["records", "propose"],
    ["records", "accept", "x", "--by", "x"],
    ["records", "reject", "x", "--by", "x", "--why", "y"],
    ["records", "show", "x"],
    ["records", "promote", "x"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_file_in_the_place_of_a_folder_is_told_by_every_command(main: Main, root: Path, command: Sequence[str]) -> None:
    (root / "adr" / "local").write_text("x")
    code, out, err = main(*command)
    said = out if command == ["check"] else err
    assert "adr/local: cannot be read (Not a directory)" in said.replace("adr/local: IA001 error: ", "adr/local: ")
    assert code == (1 if command == ["check"] else 2)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_pipe_a_folder_and_a_link_named_like_records_are_told(main: Main, root: Path, command: Sequence[str]) -> None:
    local = root / "adr" / "local"
    (local / "2026-11-30-folder.md").mkdir(parents=True)
    os.mkfifo(local / "2026-11-30-pipe.md")
    (local / "2026-11-30-link.md").symlink_to(root / "fleet.yml")
    code, out, err = main(*command)
    assert code == (1 if command == ["check"] else 2)
    if command[1:2] not in (["accept"], ["reject"], ["show"]):  # these look for a name first
        for name in ("folder", "pipe", "link"):
            assert f"adr/local/2026-11-30-{name}.md:" in out + err
    assert main("records", "show", "2026-11-30-pipe")[2].startswith("gen: adr/local/2026-11-30-pipe.md: is not a plain file")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_folder_nobody_may_read_is_told(
    main: Main, root: Path, command: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not bind whoever may do everything, as in a container; hence a stand-in for the refusal."""
    (root / "adr" / "local").mkdir(parents=True)
    listing = os.listdir

    def refuse(path: os.PathLike[str]) -> list[str]:
        if Path(path) == root / "adr" / "local":
            raise PermissionError(13, "Permission denied", str(path))
        return listing(path)

    monkeypatch.setattr("os.listdir", refuse)
    code, out, err = main(*command)
    assert code == (1 if command == ["check"] else 2)
    assert "Permission denied" in (out if command == ["check"] else err)


def test_check_counts_errors_and_with_strict_also_warnings(main: Main) -> None:
    code, out, _ = main("check")
    assert (code, out.splitlines()[-1].startswith("0 errors, ")) == (0, True)
    assert main("check", "--strict")[0] == 1
    assert json.loads(main("check", "--json")[1])[0]["severity"] == "warning"
    assert main("check", "--github")[1].startswith("::warning file=")
    assert main("check", "--due", "--markdown")[1].startswith("| Rule | Severity | Where | What | Fix |")


def test_the_matrix_has_seven_rows_and_its_json_every_fact(main: Main) -> None:
    code, out, _ = main("matrix")
    assert code == 0
    for title in ("Quantization", "Automatic prefix caching", "Speculative decoding"):
        assert title in out
    assert len(json.loads(main("matrix", "--json", "--scope", "fleet")[1])) == 7


def test_the_summary_shows_the_machine_and_the_way_to_the_site(main: Main, root: Path) -> None:
    assert "No machine has been measured yet" in main("summary")[1]
    write_run(devices_run(), root / "adr" / "local" / "evidence")
    (root / "site").mkdir()
    assert "No site in site yet" in main("summary", "--site", "site")[1]
    (root / "site" / "index.html").touch()
    out = main("summary", "--site", "site")[1]
    assert "local-abc123abc123" in out
    assert out.replace("\n", "").endswith(f"First page: {root / 'site' / 'index.html'}")


def test_pages_are_written_once_and_stale_ones_removed(main: Main, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    code, said, _ = main("pages", "--out", str(out))
    assert (code, ", 0 unchanged, 0 removed" in said) == (0, True)
    first = texts(out)
    assert "index.md" in first
    assert " 0 pages written" in main("pages", "--out", str(out))[1]
    assert texts(out) == first


def test_a_page_that_is_generated_no_more_goes_and_other_peoples_files_stay(tmp_path: Path) -> None:
    write_pages({"a.md": "a", "deep/b.md": "b", "c.md": "c"}, tmp_path)
    (tmp_path / "mine.md").write_text("mine")
    (tmp_path / "c.md").write_text("edited")
    done = write_pages({"a.md": "a2"}, tmp_path)
    assert (done.written, done.removed) == (1, 1)
    assert {name: content for name, content in texts(tmp_path).items() if name != MANIFEST} == {
        "a.md": b"a2",
        "c.md": b"edited",
        "mine.md": b"mine",
    }
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("path", ["../x.md", "/etc/x.md", "a/../../x.md", "a\\b.md", "", "link/x.md"])
def test_no_page_leaves_its_folder(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match=r"leave the folder|link out of the folder"):
        write_pages({path: "x", "good.md": "y"}, folder)
    assert not (folder / "good.md").exists()


def test_a_hand_written_page_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("mine")
    with pytest.raises(InputError, match="was not written by this command"):
        write_pages({"index.md": "generated"}, tmp_path)
    assert (tmp_path / "index.md").read_text() == "mine"


def test_pages_are_never_scattered_over_the_repository(tmp_path: Path) -> None:
    (tmp_path / "fleet.yml").write_text("schema: x")
    with pytest.raises(InputError, match="is the repository itself; expected a folder for pages alone"):
        write_pages({"index.md": "generated"}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.yml"]


def test_a_list_of_pages_from_elsewhere_deletes_nothing_outside(tmp_path: Path) -> None:
    victim = tmp_path / "victim.md"
    victim.write_text("x")
    folder = tmp_path / "out"
    write_pages({"../victim.md"[3:]: "x"}, folder)
    manifest = folder / MANIFEST
    manifest.write_text(manifest.read_text().replace("victim.md", "../victim.md"))
    write_pages({}, folder)
    assert victim.exists()


def test_a_file_in_the_place_of_the_folder_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(HostError, match="cannot be written"):
        write_pages({"a.md": "x"}, tmp_path / "out")


def test_links_that_lead_to_themselves_and_pipes_are_one_message_each(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(HostError, match="loop: cannot be written"):
        write_pages({"a.md": "x"}, tmp_path / "loop")
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(InputError, match=r"a\.md: was not written by this command"):
        write_pages({"a.md": "x"}, tmp_path)
    os.mkfifo(tmp_path / MANIFEST)
    with pytest.raises(InputError, match="is not a plain file; expected the list of an earlier run"):
        write_pages({"b.md": "x"}, tmp_path)


def test_a_page_that_cannot_be_read_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions do not bind whoever may do everything, as in a container; hence a stand-in for the refusal."""
    (tmp_path / "a.md").write_text("mine")
    reading = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "a.md":
            raise PermissionError(13, "Permission denied", str(path))
        return reading(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(HostError, match=r"a\.md: cannot be read \(Permission denied\)"):
        write_pages({"a.md": "x"}, tmp_path)


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_the_schemas_for_editors_are_those_of_the_models(name: str) -> None:
    """Refresh them with `python -m gen schema --out docs/schema`."""
    stored = (ROOT / "docs" / "schema" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert stored == schema_text(name)
    jsonschema.Draft202012Validator.check_schema(json.loads(stored))


def test_every_command_has_help_that_says_what_it_does() -> None:
    done = subprocess.run([sys.executable, "-m", "gen", "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for part in ("pages", "matrix", "summary", "check", "schema", "records", "exit codes:", "130"):
        assert part in done.stdout


def test_ctrl_c_is_exit_code_130_and_says_that_files_are_whole(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "run", interrupted)
    code, _, err = main("matrix")
    assert (code, err) == (130, "gen: stopped; what was written until then is whole\n")


def test_a_reader_that_closes_the_pipe_early_is_no_failure() -> None:
    script = f"{sys.executable} -m gen matrix --json --root {ROOT} | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert (done.returncode, done.stderr) == (0, "")


def test_the_day_is_read_once_and_given_by_option_variable_or_clock(root: Path) -> None:
    def first(environ: dict[str, str], *argv: str) -> str:
        outcome = command_line.run(["records", "new", "T", "--root", str(root), *argv], environ, date(2026, 1, 1), root)
        (root / str(outcome.shown[0])).unlink()
        return str(outcome.shown[0])

    assert first({}) == "adr/2026-01-01-t.md"
    assert first({"SOURCE_DATE_EPOCH": "1782864000"}) == "adr/2026-07-01-t.md"
    assert first({"SOURCE_DATE_EPOCH": "1782864000"}, "--today", "2026-02-02") == "adr/2026-02-02-t.md"
