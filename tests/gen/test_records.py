"""Record files: what they hold survives, what is wrong with them is told, what people wrote is never touched."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gen.contract import Compared, ContractMetric, Measured
from gen.records import Record, in_force, parse_record, read_records, render_record, status_on
from gen.records.lifecycle import RecordFile, accept, close, supersede
from gen.records.naming import record_name, titled_name
from gen.records.record import NAME_PATTERN, Acknowledgement, Confirm, EvidenceRef, FrontMatter, Move, Probe
from gen.records.text import render_draft
from gen.words import Decision, Status, Verdict
from probes.errors import HostError, InputError, UsageError
from probes.evidence import Missing, MissingReason, Technique
from probes.files import write_atomic
from tests.gen.ledger import JULY, NOVEMBER, ROOT, assessment, conflict, fact, record

PLACE = "adr/2026-07-10-kv-cache-u8.md"
MINIMAL = """---
title: KV cache in u8
status: accepted
date: 2026-07-10
scope: project
review-by: 2027-01-06
---

# KV cache in u8

Because.
"""
HOSTILE_TITLES = [
    "a|b \"quoted\" 'single'",
    "---",
    "--- status: rejected",
    "# heading: with colon",
    "- dash",
    "KV キャッシュを u8 に",
    "🚀👩‍💻",
    "قرار: ذاكرة التخزين",
    "\u202egnp.exe\u202c",
    "{a: b}",
    "[x](javascript:alert(1))",
    "null",
    "true",
    "2026-07-10",
    "1e3",
    "back\\slash",
    "&anchor *alias !tag %directive @at `tick`",
    "x" * 300,
    "<<<<<<< HEAD",
    "\x85\u2028\ufeff",
    "${ENV}",
]
one_line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=60)
dates = st.dates(date(2020, 1, 1), date(2040, 1, 1))
missing = st.builds(Missing, missing=st.sampled_from(MissingReason), detail=one_line | st.just(""))
floats = st.floats(allow_nan=False, allow_infinity=False)
measured = st.builds(Measured, value=floats, unit=one_line, samples=st.integers(1, 10**6), run=one_line, arm=one_line)
compared = st.builds(
    lambda a, b, low, up, verdict: Compared(baseline=a, candidate=b, low=low, high=low + abs(up), verdict=verdict),
    measured,
    measured,
    st.floats(0, 10),
    st.floats(0, 10),
    st.sampled_from(Verdict),
)
moves = st.builds(
    lambda status, on, by, why: Move(status=status, on=on, by=by, why=why), st.sampled_from(Status), dates, one_line, one_line
)
# A line of a body that reads as the generator's marker or as a conflict is refused, not kept.
bodies = st.text(st.characters(exclude_categories=["Cs"]), max_size=200).filter(
    lambda text: not re.search(r"inference-adr:|^(<{7}|>{7}|\|{7})", text, re.MULTILINE)
)
records = st.builds(
    lambda day, **fields: record(date=day, name=record_name(day, Technique.PREFIX_CACHING, "fleet"), **fields),
    day=dates,
    title=one_line | st.sampled_from(HOSTILE_TITLES),
    status=st.sampled_from(Status),
    decision_makers=st.lists(one_line, max_size=3).map(tuple),
    evidence=st.lists(st.builds(EvidenceRef, id=one_line, sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True))).map(tuple),
    supersedes=st.lists(dates.map(lambda day: f"{day}-other"), max_size=2).map(tuple),
    superseded_by=st.none() | dates.map(lambda day: f"{day}-next"),
    review_by=dates,
    confirm=st.none() | st.builds(Confirm, probe=st.sampled_from(Probe), service=st.none() | one_line),
    contract=st.dictionaries(st.sampled_from(ContractMetric), missing | measured | compared),
    acknowledgements=st.lists(
        st.builds(Acknowledgement, rule=st.just("IA013"), about=one_line, by=one_line, date=dates, reason=one_line), max_size=2
    ).map(tuple),
    history=st.lists(moves, max_size=2).map(tuple),
    body=bodies,
    assessment=st.none() | one_line.map(lambda text: assessment(state_text=text, why=(text, text), conflicts=(conflict(),))),
)


def problems(text: str, name: str = "2026-07-10-kv-cache-u8") -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_record(name, text, f"adr/{name}.md")
    return [str(problem) for problem in caught.value.problems]


def file_of(text: str, name: str = "2026-07-10-kv-cache-u8") -> RecordFile:
    return RecordFile(path=Path(f"{name}.md"), record=parse_record(name, text, name), text=text)


def accepting(on: date = NOVEMBER) -> Move:
    return Move(status=Status.ACCEPTED, on=on, by="platform team")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
@given(records)
def test_what_is_written_is_what_is_read(original: Record) -> None:
    assert parse_record(original.name, render_record(original), PLACE) == original


@pytest.mark.parametrize("title", HOSTILE_TITLES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_hostile_title_survives_reading_writing_and_accepting(title: str, line_end: str) -> None:
    draft = record(title=title, status=Status.PROPOSED)
    text = "\ufeff" + render_record(draft).replace("\n", line_end)
    file = RecordFile(path=Path(), record=parse_record(draft.name, text, PLACE), text=text)
    assert file.record.title == title
    moved = accept(file, [], accepting())[draft.name]
    assert parse_record(draft.name, moved, PLACE).title == title
    assert moved.startswith("\ufeff---")
    assert ("\r\n" in moved) == (line_end == "\r\n")


def test_direction_overrides_are_spelled_out_in_the_file() -> None:
    text = render_record(record(title="\u202egnp.exe", assessment=assessment(state_text="\u202etxt")))
    assert "\u202e" not in text
    assert "\\u202egnp.exe" in text


def test_a_snapshot_has_one_line_per_fact_so_that_a_diff_names_what_moved() -> None:
    before, after = (render_record(record(assessment=assessment(facts=(fact("a"), fact("b", value))))) for value in ("1", "2"))
    moved = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(moved) == 1
    assert '"id": "b"' in moved[0]


def test_an_unknown_status_is_told_with_file_value_and_the_words_allowed() -> None:
    assert problems(MINIMAL.replace("accepted", "acepted")) == [
        f"{PLACE}: status 'acepted' is not one of proposed, accepted, rejected, deprecated, superseded"
    ]


@pytest.mark.parametrize("status", ["Accepted", "Accepted (Sunset = 2026-12-01)", "Implemented", "Akzeptiert", "", "true"])
def test_no_status_is_guessed_from_another_word(status: str) -> None:
    assert "status" in problems(MINIMAL.replace("accepted", status))[0]


def test_a_record_without_status_or_front_matter_is_no_record() -> None:
    assert problems(MINIMAL.replace("status: accepted\n", "")) == [f"{PLACE}:2: status: is missing; expected a value"]
    assert "has no front matter" in problems("# Use MQTT\n\nWe use MQTT.\n")[0]
    assert "has no front matter" in problems("# X\r\n\r\n## Status\r\n\r\nAccepted\r\n")[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("title:", "status: proposed\ntitle:"), 'duplicate key "status"'),
        (("title:", "sttatus: x\ntitle:"), ":2: sttatus: is not a known field"),
        (("review-by: 2027-01-06\n", ""), "review-by: is missing"),
        (("date: 2026-07-10", "date: 2026-07-10T23:30:00-05:00"), ":4: date: is '2026-07-10T23:30:00-05:00'"),
        (("date: 2026-07-10", "date: 2026-07-11"), "is dated 2026-07-11; expected 2026-07-10, as in the file's name"),
        (("scope: project", "scope: cluster"), ":5: scope: is 'cluster'"),
        (("scope: project", "scope: fleet\ntechnique: magic"), "technique: is 'magic'; expected one of 'quantization'"),
        (("title: KV cache in u8", "title: [unclosed"), "is not valid YAML"),
        (("Because.", "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch"), ":11: holds a merge-conflict marker (<<<<<<<)"),
        (("Because.", "<!-- inference-adr:begin assessment -->\nlost"), "unpaired or repeated markers"),
        (("scope: project", "scope: project\nsupersedes: [0007]"), "supersedes"),
    ],
)
def test_each_fault_is_told_with_its_place(change: tuple[str, str], said: str) -> None:
    text = MINIMAL.replace(*change)
    assert text != MINIMAL
    assert said in "\n".join(problems(text))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("ttfft: {missing: no sensor}", ["contract.ttfft: is the key 'ttfft'; expected one of 'ttft', 'decode-rate', "]),
        ("ttft: {missing: no senser}", ["contract.ttft.missing: is 'no senser'; expected one of 'not applicable', "]),
        ("ttft: {missing: no sensor, why: x}", ["contract.ttft.why: is not a known field"]),
        (
            "ttft: {value: 1.0, unit: s, samples: 0, run: x}",
            ["contract.ttft.samples: is 0; expected greater than or equal to 1"],
        ),
        ("ttft: {verdict: better}", ["contract.ttft.baseline: is missing", "contract.ttft.candidate: is missing"]),
        ("ttft: fast", ["contract.ttft: is 'fast'; expected a mapping"]),
    ],
)
def test_a_wrong_entry_of_the_contract_is_told_as_the_kind_that_was_meant(entry: str, said: list[str]) -> None:
    """Three kinds of entry are possible; complaints about the two that nobody meant would bury the one that helps."""
    told = problems(MINIMAL.replace("scope: project\n", f"scope: project\ncontract:\n  {entry}\n"))
    assert len(told) == len(said)
    for line, part in zip(told, said, strict=True):
        assert line.startswith(f"{PLACE}:7: {part}")


def test_a_setext_heading_is_no_conflict() -> None:
    body = parse_record("2026-07-10-kv-cache-u8", MINIMAL.replace("Because.", "Why\n=======\n\nBecause."), PLACE).body
    assert "=======" in body


def test_a_damaged_snapshot_is_told_with_its_line() -> None:
    text = render_record(record()).replace('"state": "enabled"', '"state": "on"', 1)
    assert re.search(r"\.md:\d+: assessment\.state: is 'on'; expected one of 'enabled'", problems(text)[0])


def test_text_below_the_snapshot_belongs_to_the_body() -> None:
    text = render_record(record()) + "\n## Review\n\nLooks right.\n"
    read = parse_record(record().name, text, PLACE)
    assert read.body.endswith("Text.\n\n## Review\n\nLooks right.")
    assert read.assessment == record().assessment


def test_one_bad_file_stops_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "adr"
    folder.mkdir()
    (folder / "README.md").write_text("# Not a record\n")
    (folder / "2026-07-10-good.md").write_text(MINIMAL)
    (folder / "2026-07-10-bad.md").write_text(MINIMAL.replace("accepted", "done"))
    (folder / "2026-07-10-latin1.md").write_bytes(MINIMAL.replace("u8", "ü8").encode("latin-1"))
    (folder / "2026-07-10-Good.md").write_text(MINIMAL)
    (folder / "0038-counter.md").write_text(MINIMAL)
    (folder / "2026-07-10-link.md").symlink_to(folder / "2026-07-10-good.md")
    (folder / "2026-07-10-folder.md").mkdir()
    found, wrong = read_records(folder)
    assert [one.name for one in found] == ["2026-07-10-good"]
    assert sorted({problem.place.partition(":")[0] for problem in wrong}) == [
        "adr/0038-counter.md",
        "adr/2026-07-10-Good.md",
        "adr/2026-07-10-bad.md",
        "adr/2026-07-10-folder.md",
        "adr/2026-07-10-latin1.md",
        "adr/2026-07-10-link.md",
    ]


def test_a_folder_that_is_not_there_holds_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path / "adr") == ((), ())


def test_the_folder_keeps_no_list_of_records_that_could_drift() -> None:
    assert not re.search(NAME_PATTERN.strip("^$"), (ROOT / "adr" / "README.md").read_text(encoding="utf-8"))


def test_the_records_of_this_repository_are_sound() -> None:
    found, wrong = read_records(ROOT / "adr")
    assert wrong == ()
    assert "2026-11-30-mkdocs-1-6-1-until-2027" in {one.name for one in found}


def test_two_branches_that_decide_on_one_day_take_different_names() -> None:
    names = {record_name(JULY, technique, scope) for technique in Technique for scope in ("fleet", "local-abc123abc123")}
    assert len(names) == 14


@pytest.mark.parametrize(
    "title", ["日本語のタイトル", "🚀", "-", "—", "", "Größe der KV-Caches", "x" * 300, "../../etc/passwd", "CON", "a/b", "ÅÄÖ"]
)
def test_every_title_gives_a_short_name_that_any_disk_keeps(title: str) -> None:
    name = titled_name(JULY, title)
    assert re.fullmatch(NAME_PATTERN, name)
    assert len(name) <= 80
    assert name == titled_name(JULY, title)


def test_titles_without_ascii_letters_do_not_share_a_name() -> None:
    assert len({titled_name(JULY, title) for title in ("日本語", "中文", "🚀", "—", "-")}) == 5
    assert titled_name(JULY, "Größe") == "2026-07-10-groe"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_superseding_changes_the_link_fields_and_not_one_byte_more(line_end: str) -> None:
    text = (
        MINIMAL.replace(
            "status: accepted", "status:   'accepted'   # since July\n# decided in the room\nsupersedes:\n- 2026-01-01-a # old"
        )
        .replace("Because.", "Because.  \n\n\tTabs, trailing spaces  \n\nÜmläute — and `---`\n---\n")
        .replace("\n", line_end)
    )
    old = file_of(text)
    new = file_of(MINIMAL.replace("2026-07-10", "2026-11-30").replace("accepted", "proposed"), "2026-11-30-next")
    texts = accept(new, [old], accepting())
    assert list(texts) == ["2026-07-10-kv-cache-u8", "2026-11-30-next"]
    after = texts["2026-07-10-kv-cache-u8"]
    expected = text.replace("'accepted'", "superseded", 1).replace("status:   ", "status: ")
    kept = [line for line in after.split(line_end) if not re.match(r"superseded-by|history|  - \{status", line)]
    assert kept == expected.split(line_end)
    assert parse_record(old.record.name, after, PLACE).superseded_by == "2026-11-30-next"
    read = parse_record("2026-11-30-next", texts["2026-11-30-next"], PLACE)
    assert read.supersedes == ("2026-07-10-kv-cache-u8",)
    assert read.decision_makers == ("platform team",)
    assert read.status is Status.ACCEPTED


def test_an_edit_that_would_not_take_is_an_error_and_not_a_silent_success() -> None:
    fields = MINIMAL.partition("---\n\n")[0].splitlines()[1:]
    odd = "---\n{" + ", ".join(fields) + "}\n---\n\n# X\n"
    with pytest.raises(InputError, match="cannot be edited safely; expected by hand: status: deprecated"):
        close(file_of(odd), Move(status=Status.DEPRECATED, on=NOVEMBER, by="x"))


@pytest.mark.parametrize("status", [Status.REJECTED, Status.DEPRECATED, Status.SUPERSEDED])
def test_a_closed_record_moves_no_more(status: Status) -> None:
    with pytest.raises(UsageError, match=f"is {status.value} and can become nothing, not accepted"):
        accept(file_of(MINIMAL.replace("accepted", status.value)), [], accepting())


def test_only_an_accepted_record_takes_anothers_place() -> None:
    new = file_of(MINIMAL.replace("accepted", "proposed").replace("2026-07-10", "2026-11-30"), "2026-11-30-next")
    with pytest.raises(UsageError, match="only an accepted record"):
        supersede(file_of(MINIMAL), new, Move(status=Status.SUPERSEDED, on=NOVEMBER, by="x"))


def test_a_record_moves_on_no_day_before_its_own() -> None:
    with pytest.raises(UsageError, match="cannot be accepted on 2026-07-09"):
        accept(file_of(MINIMAL.replace("accepted", "proposed")), [], accepting(date(2026, 7, 9)))


def test_the_status_of_a_day_follows_the_history() -> None:
    moves = (Move(status=Status.ACCEPTED, on=date(2026, 8, 1), by="x"), Move(status=Status.SUPERSEDED, on=NOVEMBER, by="x"))
    old = record(status=Status.SUPERSEDED, history=moves)
    days = {date(2026, 7, 9): None, JULY: Status.PROPOSED, date(2026, 8, 1): Status.ACCEPTED, NOVEMBER: Status.SUPERSEDED}
    assert {day: status_on(old, day) for day in days} == days
    assert in_force([old], old.technique, "fleet", date(2026, 9, 1)) is old
    assert in_force([old], old.technique, "fleet", NOVEMBER) is None
    assert in_force([old], old.technique, "local-abc123abc123", date(2026, 9, 1)) is None


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_draft_is_untouched_until_somebody_touches_it(line_end: str) -> None:
    text = render_draft(record(status=Status.PROPOSED)).replace("\n", line_end)
    name = record().name
    assert parse_record(name, text, PLACE).untouched
    assert not parse_record(name, text.replace("Text.", "Text!"), PLACE).untouched
    assert not parse_record(name, text + "More.\n", PLACE).untouched


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "2026-07-10-kv-cache-u8.md"
    path.write_text(MINIMAL)

    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    for function in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full_disk)
            patch.setattr(Path, "replace", full_disk)
            with pytest.raises(HostError, match="No space left on device"):
                write_atomic(path, b"other")
        assert path.read_text() == MINIMAL
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_technique_record_decides_and_a_project_record_does_not() -> None:
    assert (
        "a decision for a record about a technique"
        in problems(MINIMAL.replace("scope: project", "scope: fleet\ntechnique: flash-attention"))[0]
    )
    assert record(technique=None, decision=None, scope="project").decision is None
    assert FrontMatter.model_json_schema(by_alias=True)["properties"]["status"]["enum"] == [word.value for word in Status]
    assert Decision.KEEP.value in str(FrontMatter.model_json_schema(by_alias=True))
