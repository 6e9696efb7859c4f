"""Everything that can be wrong at once: each fault is a finding with its place and its fix, and none hides another."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import gen.__main__ as command_line
from gen.knowledge import read_knowledge
from gen.records import Record, render_record
from gen.records.record import EvidenceRef, Move
from gen.words import Status
from probes.archive import seal, write_run
from probes.evidence import Run
from tests.gen.ledger import JULY, NOVEMBER, ROOT, assessment, checkout, knowledge, record
from tests.gen.specimens import devices_run, endpoint_run, micro_run

Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path / "checkout")


@pytest.fixture
def main(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Main:
    monkeypatch.chdir(root)
    monkeypatch.setattr("gen.corpus.load_knowledge", knowledge)

    def run(*argv: str) -> tuple[int, str, str]:
        code = command_line.main([*argv, "--today", NOVEMBER.isoformat()])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def write(root: Path, one: Record, text: str | None = None) -> str:
    (root / "adr" / f"{one.name}.md").write_text(text or render_record(one), encoding="utf-8")
    return f"adr/{one.name}.md"


def cites(run: Run) -> EvidenceRef:
    return EvidenceRef(id=run.id, sha256=run.content_sha256)


def project(name: str, **changes: object) -> Record:
    return record(name=name, technique=None, decision=None, assessment=None, scope="project", contract={}, **changes)


def test_all_of_it_at_once_is_told_each_with_place_and_fix(main: Main, root: Path) -> None:
    evidence = root / "adr" / "evidence"
    edited, replaced, gone = devices_run(), endpoint_run(), micro_run()
    path = write_run(edited, evidence)
    path.write_text(path.read_text(encoding="utf-8").replace("Example CPU 3000", "Faster CPU"), encoding="utf-8")
    write_run(seal(replaced.model_copy(update={"subject": "embedded", "native": {"other": "content"}})), evidence)
    loop = {"status": Status.SUPERSEDED}
    circle = [
        project("2026-07-10-loop-a", superseded_by="2026-07-10-loop-b", supersedes=("2026-07-10-loop-b",), **loop),
        project("2026-07-10-loop-b", superseded_by="2026-07-10-loop-a", supersedes=("2026-07-10-loop-a",), **loop),
    ]
    back = (Move(status=Status.REJECTED, on=JULY, by="x"), Move(status=Status.ACCEPTED, on=JULY, by="x"))
    magic, merged = record(name="2026-07-10-magic"), project("2026-07-10-merged")
    no_technique = render_record(magic).replace("technique: automatic-prefix-caching", "technique: magic", 1)
    conflict = render_record(merged) + "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> b\n"
    write(root, record())
    write(root, circle[1])
    wanted = {
        "IA001 edited evidence": f"adr/evidence/{edited.id}.json: content_sha256",
        "IA002 evidence edited": write(root, project("2026-07-10-cites-edited", evidence=(cites(edited),))),
        "IA002 evidence gone": write(root, project("2026-07-10-cites-gone", evidence=(cites(gone),))),
        "IA003 evidence replaced": write(root, project("2026-07-10-cites-replaced", evidence=(cites(replaced),))),
        "IA005 two in force": write(root, record(name="2026-07-11-twin", date=JULY.replace(day=11))),
        "IA008 loop": write(root, circle[0]),
        "IA010 illegal move": write(root, project("2026-07-10-back-again", history=back)),
        "IA001 unknown technique": write(root, magic, no_technique) + ":5: technique",
        "IA001 merge conflict": write(root, merged, conflict),
    }
    code, out, err = main("check", "--json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    for what, place in wanted.items():
        rule = what.split()[0]
        hits = [one for one in found if one["rule"] == rule and one["place"].startswith(place)]
        assert hits, (what, [(one["rule"], one["place"]) for one in found])
        assert all(one["message"] and one["fix"] and one["severity"] == "error" for one in hits)
    said = {one["message"] for one in found}
    assert f"cites {edited.id}, which is damaged" in said
    assert f"cites {gone.id}, which is not there" in said


@pytest.mark.parametrize(
    ("file", "old", "new", "place", "said"),
    [
        (
            "facts.yaml",
            "    source: ovms-v2026.0\n",
            "",
            r"gen/knowledge/facts\.yaml:\d+: facts\.\d+\.source",
            "is missing",
        ),
        ("sources.yaml", "{id: orca,", "{id: orka,", r"gen/knowledge/techniques\.yaml: [\w.-]+: source", "is 'orca'"),
    ],
)
def test_a_fact_without_a_source_is_a_finding_and_stops_no_other(  # noqa: PLR0917 (three fixtures, four words of a case)
    main: Main, root: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, place: str, said: str
) -> None:
    folder = root / "knowledge"
    shutil.copytree(ROOT / "gen" / "knowledge", folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr("gen.corpus.load_knowledge", lambda: _raise(folder))
    monkeypatch.setattr("gen.corpus.read_knowledge", lambda: read_knowledge(folder))
    write(root, project("2026-07-10-cites-gone", evidence=(cites(micro_run()),)))
    code, out, _ = main("check", "--json")
    found = json.loads(out)
    assert code == 1
    hit = next((one for one in found if re.match(place, one["place"])), None)
    assert hit, [one["place"] for one in found]
    assert hit["rule"] == "IA001"
    assert said in hit["message"]
    assert hit["fix"]
    assert "IA002" in {one["rule"] for one in found}, "the records are checked all the same"
    assert main("matrix")[0] == 2, "and nothing is decided without it"


def _raise(folder: Path) -> object:
    from gen.knowledge import load_knowledge

    return load_knowledge(folder)


def test_an_edit_of_evidence_that_keeps_its_hash_right_is_seen_by_the_record_that_cites_it(main: Main, root: Path) -> None:
    run = devices_run()
    write_run(seal(run.model_copy(update={"subject": "gpu"})), root / "adr" / "evidence")
    write(root, project("2026-07-10-cites", evidence=(cites(run),)))
    code, out, _ = main("check")
    assert code == 1
    assert f"IA003 error: cites {run.id} with hash {run.content_sha256[:12]}…" in out


def test_a_snapshot_of_a_technique_that_is_none_is_told_with_its_line(main: Main, root: Path) -> None:
    text = render_record(record(assessment=assessment(on=JULY)))
    write(root, record(), text.replace('"technique": "automatic-prefix-caching"', '"technique": "magic"', 1))
    code, out, _ = main("check")
    assert code == 1
    assert re.search(
        r"adr/2026-07-10-automatic-prefix-caching-fleet\.md:\d+: assessment\.technique: IA001 error: is 'magic'", out
    )
