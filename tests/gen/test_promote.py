"""Evidence moves between hosts and into pull requests byte for byte, checked, and without replacing anything."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path

import pytest

from gen.promote import import_runs, promote
from gen.records import Record
from gen.records.record import EvidenceRef
from gen.records.text import render_draft
from gen.words import Status
from probes.archive import seal, write_run
from probes.errors import HostError, InputError, UsageError
from probes.evidence import Run, RunKind
from tests.gen.ledger import NOVEMBER, record
from tests.gen.specimens import devices_run, endpoint_run, micro_run, run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "adr" / "local" / "evidence").mkdir(parents=True)
    return tmp_path


def local(root: Path, *runs: Run) -> list[Path]:
    return [write_run(one, root / "adr" / "local" / "evidence") for one in runs]


def draft(root: Path, name: str, *runs: Run) -> Record:
    cited = tuple(EvidenceRef(id=one.id, sha256=one.content_sha256) for one in runs)
    drafted = record(name=name, status=Status.PROPOSED, evidence=cited)
    (root / "adr" / "local" / f"{name}.md").write_text(render_draft(drafted), encoding="utf-8")
    return drafted


def test_a_promoted_run_keeps_its_bytes_and_takes_the_draft_it_completes_along(root: Path) -> None:
    (path,) = local(root, devices_run())
    one = draft(root, "2026-07-10-one", devices_run())
    moved = promote(root, path.stem, [one])
    assert moved.copied == (f"adr/evidence/{path.name}", "adr/2026-07-10-one.md")
    assert (root / "adr" / "evidence" / path.name).read_bytes() == path.read_bytes()
    assert (root / "adr" / "2026-07-10-one.md").read_bytes() == (root / "adr" / "local" / "2026-07-10-one.md").read_bytes()


def test_a_draft_waits_until_all_of_its_evidence_is_promoted(root: Path) -> None:
    paths = local(root, devices_run(), micro_run())
    both = draft(root, "2026-07-10-both", devices_run(), micro_run())
    first = promote(root, paths[0].stem, [both])
    assert first.left == (f"adr/local/2026-07-10-both.md also cites {paths[1].stem}; promote that too",)
    assert "adr/2026-07-10-both.md" in promote(root, paths[1].stem, [both]).copied


def test_promoting_twice_copies_nothing_and_keeps_what_people_wrote(root: Path) -> None:
    (path,) = local(root, devices_run())
    one = draft(root, "2026-07-10-one", devices_run())
    promote(root, path.stem, [one])
    edited = root / "adr" / "2026-07-10-one.md"
    edited.write_text(edited.read_text(encoding="utf-8").replace("Text.", "Mine."), encoding="utf-8")
    again = promote(root, path.stem, [one])
    assert again.copied == ()
    assert "Mine." in edited.read_text(encoding="utf-8")


def test_a_damaged_run_is_not_promoted(root: Path) -> None:
    (path,) = local(root, devices_run())
    path.write_text(path.read_text(encoding="utf-8").replace("Example CPU 3000", "Faster CPU"), encoding="utf-8")
    with pytest.raises(InputError, match="evidence is never edited"):
        promote(root, path.stem, [])
    assert not (root / "adr" / "evidence").exists()


@pytest.mark.parametrize("name", ["", "..", "../../fleet", "2026", "/etc/passwd"])
def test_only_the_exact_name_of_a_local_run_is_promoted(root: Path, name: str) -> None:
    local(root, devices_run())
    with pytest.raises(UsageError, match="no local run or draft is called"):
        promote(root, name, [])


def test_a_near_miss_is_answered_with_the_name_meant(root: Path) -> None:
    (path,) = local(root, devices_run())
    with pytest.raises(UsageError, match=f"did you mean {path.stem}"):
        promote(root, path.stem[:-1], [])


def test_a_promoted_run_of_other_content_is_never_replaced(root: Path) -> None:
    (path,) = local(root, devices_run())
    other = root / "adr" / "evidence" / path.name
    other.parent.mkdir()
    other.write_text("{}")
    with pytest.raises(InputError, match="which has the same name"):
        promote(root, path.stem, [])
    assert other.read_text() == "{}"


def test_a_run_is_known_by_its_name_its_file_and_its_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = local(root, devices_run())
    assert promote(root, path.stem, []).copied == (f"adr/evidence/{path.name}",)
    for form in (path.name, f"adr/local/evidence/{path.name}", f"adr/evidence/{path.name}", str(path)):
        assert promote(root, form, []).present == (f"adr/evidence/{path.name}",)
    monkeypatch.chdir(path.parent)
    assert promote(root, f"./{path.name}", []).present == (f"adr/evidence/{path.name}",)


def test_a_file_of_that_name_elsewhere_is_not_what_is_promoted(root: Path, tmp_path: Path) -> None:
    (path,) = local(root, devices_run())
    elsewhere = write_run(devices_run(), tmp_path / "stick")
    with pytest.raises(UsageError, match="no local run or draft is called"):
        promote(root, str(elsewhere), [])
    assert path.is_file()
    assert not (root / "adr" / "evidence").exists()


def test_a_draft_is_promoted_by_name_with_the_runs_it_cites(root: Path) -> None:
    paths = local(root, devices_run(), micro_run())
    both, none = draft(root, "2026-07-10-both", devices_run(), micro_run()), draft(root, "2026-07-10-none")
    moved = promote(root, "adr/local/2026-07-10-none.md", [both, none])
    assert (moved.copied, moved.left) == (("adr/2026-07-10-none.md",), ())
    moved = promote(root, both.name, [both, none])
    assert moved.copied == (*(f"adr/evidence/{path.name}" for path in paths), "adr/2026-07-10-both.md")
    again = promote(root, both.name, [none])
    assert (again.copied, again.present) == ((), ("adr/2026-07-10-both.md",))


def test_a_draft_whose_evidence_is_gone_or_damaged_is_not_promoted(root: Path) -> None:
    (path,) = local(root, devices_run())
    both = draft(root, "2026-07-10-both", devices_run(), micro_run())
    with pytest.raises(InputError, match=f"adr/local/{both.name}.md: cites {micro_run().id}, which is not there"):
        promote(root, both.name, [both])
    path.write_text("{}")
    one = draft(root, "2026-07-10-one", devices_run())
    with pytest.raises(InputError, match="schema: is None"):
        promote(root, one.name, [one])
    assert not (root / "adr" / "evidence").exists()
    assert not list((root / "adr").glob("*.md"))


def test_a_promoted_draft_says_which_other_draft_it_speaks_of(root: Path) -> None:
    old, new = draft(root, "2026-07-10-old"), draft(root, "2026-07-10-new")
    new = new.model_copy(update={"supersedes": (old.name,)})
    left = promote(root, new.name, [old, new]).left
    assert left == (f"adr/{new.name}.md takes the place of {old.name}, which lies in adr/local only; promote that too",)


def test_what_is_no_file_is_told_and_never_waited_for(root: Path, tmp_path: Path) -> None:
    """A pipe has no writer here: reading it would never return."""
    (path,) = local(root, devices_run())
    pipe = path.with_name("20261130T000000Z-pipe.json")
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"adr/local/evidence/20261130T000000Z-pipe\.json: is (not a plain|no regular) file"):
        promote(root, pipe.stem, [])
    with pytest.raises(InputError, match=r"is (not a plain|no regular) file"):
        import_runs(root, [pipe], NOVEMBER)
    (root / "adr" / "evidence").mkdir()
    os.mkfifo(root / "adr" / "evidence" / path.name)
    with pytest.raises(HostError, match="is not a plain file; expected a file, or nothing"):
        promote(root, path.stem, [])


def test_a_file_in_the_place_of_the_folder_of_evidence_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "adr" / "local").mkdir(parents=True)
    (tmp_path / "adr" / "local" / "evidence").write_text("x")
    with pytest.raises(HostError, match=r"evidence: cannot be read \(Not a directory\); expected a readable folder"):
        promote(tmp_path, "x", [])


def test_importing_the_same_file_twice_is_fine(root: Path, tmp_path: Path) -> None:
    files = [write_run(one, tmp_path / "stick") for one in (devices_run(), endpoint_run())]
    assert len(import_runs(root, files, NOVEMBER).copied) == 2
    again = import_runs(root, [*files, files[0]], NOVEMBER)
    assert (again.copied, len(again.present)) == ((), 3)


def test_the_same_name_with_other_content_is_refused_and_nothing_is_copied(root: Path, tmp_path: Path) -> None:
    import_runs(root, [write_run(devices_run(), tmp_path / "a")], NOVEMBER)
    other = seal(devices_run().model_copy(update={"native": {"other": True}}))
    files = [write_run(endpoint_run(), tmp_path / "b"), write_run(other, tmp_path / "b")]
    with pytest.raises(InputError, match=f"differs from adr/local/evidence/{other.id}.json"):
        import_runs(root, files, NOVEMBER)
    assert [path.stem for path in (root / "adr" / "local" / "evidence").iterdir()] == [other.id]


def test_a_run_that_is_promoted_already_is_not_imported_beside_it(root: Path, tmp_path: Path) -> None:
    write_run(devices_run(), root / "adr" / "evidence")
    moved = import_runs(root, [write_run(devices_run(), tmp_path / "stick")], NOVEMBER)
    assert moved.present == (f"adr/evidence/{devices_run().id}.json",)


def test_every_bad_file_is_told_before_any_good_one_is_copied(root: Path, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    good = write_run(micro_run(), stick)
    edited = write_run(endpoint_run(), stick)
    edited.write_text(edited.read_text(encoding="utf-8").replace('"samples": [', '"samples": [1, '), encoding="utf-8")
    renamed = stick / "20260101T000000Z-copy (1).json"
    renamed.write_bytes(good.read_bytes())
    torn = stick / "torn.json"
    torn.write_bytes(good.read_bytes()[:100])
    odd = write_run(run(RunKind.MICRO, "x", id="a|b [c](d)"), stick)
    with pytest.raises(InputError) as caught:
        import_runs(root, [good, edited, renamed, torn, odd, stick / "absent.json", stick], NOVEMBER)
    said = str(caught.value)
    for part in (
        "does not match the content",
        "expected the file's name",
        "is not JSON",
        "is 'a|b [c](d)'",
        "absent.json: cannot",
    ):
        assert part in said
    assert not list((root / "adr" / "local" / "evidence").iterdir())


def test_evidence_from_the_future_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="check the clock of bench, or give --today"):
        import_runs(root, [write_run(devices_run(), tmp_path)], date(2026, 11, 27))


def test_a_read_only_folder_is_one_message(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_run(devices_run(), tmp_path / "stick")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(HostError, match="Read-only file system"):
        import_runs(root, [file], NOVEMBER)


def test_the_schema_of_another_version_is_named(root: Path, tmp_path: Path) -> None:
    file = write_run(devices_run(), tmp_path / "stick")
    document = json.loads(file.read_text(encoding="utf-8")) | {"schema": "inference-adr/run/9"}
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match="schema: is 'inference-adr/run/9'; expected 'inference-adr/run/1'"):
        import_runs(root, [file], NOVEMBER)
