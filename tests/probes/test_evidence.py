"""Evidence files: complete, immutable, and honest about damage."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from probes.archive import read_run, read_runs, write_run
from probes.context import Context
from probes.errors import HostError, InputError
from probes.evidence import (
    Direction,
    Metric,
    Missing,
    MissingReason,
    Per,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Setting,
    Technique,
    run_id,
    slug,
)

START = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def make(context: Context, native: dict[str, JsonValue] | None = None) -> Run:
    ttft = Metric(name="ttft_s", unit="s", direction=Direction.LOWER, per=Per.REPETITION, samples=(0.5, 0.25, 1 / 3), arm="")
    return context.run(RunKind.MICRO, "prefix-caching", START, metrics=(ttft,), native=native or {})


def test_a_run_survives_the_disk_unchanged(context: Context) -> None:
    path = write_run(make(context, native={"words": "naïve |pipe| \u2028 <b>"}), context.evidence)
    read = read_run(path)
    assert path.name == "20261130T120000Z-local-abc123-micro-prefix-caching.json"
    assert read.metric("ttft_s") == make(context).metric("ttft_s")
    assert read.native == {"words": "naïve |pipe| \u2028 <b>"}


def test_an_edited_file_is_told_by_its_hash(context: Context) -> None:
    path = write_run(make(context), context.evidence)
    path.write_text(path.read_text(encoding="utf-8").replace("0.25", "0.24"), encoding="utf-8")
    with pytest.raises(InputError, match="content_sha256: does not match"):
        read_run(path)


def test_a_renamed_file_is_told(context: Context) -> None:
    path = write_run(make(context), context.evidence)
    with pytest.raises(InputError, match="expected the file's name"):
        read_run(path.rename(path.with_name("other.json")))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda text: text[: len(text) // 2], "is not JSON"),
        (lambda _: "", "is not JSON"),
        (lambda _: "[]", "schema: is 'list'"),
        (lambda text: text.replace("inference-adr/run/1", "inference-adr/run/7"), "expected 'inference-adr/run/1'"),
        (lambda text: text.replace('"kind": "micro"', '"kind": "macro"'), "kind: is 'macro'; expected"),
        (lambda text: text.replace("0.25", "NaN"), "NaN is no JSON number"),
        (lambda text: text.replace('"subject"', '"subjekt"'), "subjekt: is not a known field"),
        (lambda _: "[" * 100_000, "is not JSON"),
    ],
)
def test_damage_is_one_clear_message(context: Context, damage: object, expected: str) -> None:
    path = write_run(make(context), context.evidence)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")  # type: ignore[operator]
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert expected in str(caught.value)
    assert str(caught.value).startswith(path.name)


def test_one_damaged_file_hides_no_other(context: Context) -> None:
    write_run(make(context), context.evidence)
    (context.evidence / "broken.json").write_text("{", encoding="utf-8")
    runs, problems = read_runs(context.evidence)
    assert len(runs) == 1
    assert [p.place for p in problems] == [f"{context.root.name}/evidence/broken.json"]


@pytest.mark.parametrize(
    ("folder", "shown"),
    [("adr/evidence", "adr/evidence"), ("adr/local/evidence", "adr/local/evidence"), ("adr/adr/evidence", "adr/evidence")],
)
def test_a_place_is_told_as_it_stands_in_the_repository(tmp_path: Path, folder: str, shown: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "broken.json").write_text("{", encoding="utf-8")
    assert [problem.place for problem in read_runs(tmp_path / folder)[1]] == [f"{shown}/broken.json"]


def test_what_is_no_file_is_told_and_waits_for_nobody(context: Context) -> None:
    good = write_run(make(context), context.evidence)
    os.mkfifo(context.evidence / "pipe.json")
    (context.evidence / "folder.json").mkdir()
    (context.evidence / "loop.json").symlink_to("loop.json")
    runs, problems = read_runs(context.evidence)
    assert [run.id for run in runs] == [good.stem]
    assert [problem.found for problem in problems] == [
        "is no regular file",
        "cannot be read (Too many levels of symbolic links)",
        "is no regular file",
    ]


def test_a_folder_that_cannot_be_read_is_a_problem_and_an_absent_one_is_empty(tmp_path: Path) -> None:
    (tmp_path / "adr").mkdir()
    (tmp_path / "adr" / "evidence").write_text("where the folder should be", encoding="utf-8")
    runs, (problem,) = read_runs(tmp_path / "adr" / "evidence")
    assert (runs, str(problem)) == ((), "adr/evidence: cannot be read (Not a directory); expected a folder of evidence files")
    assert read_runs(tmp_path / "adr" / "local" / "evidence") == ((), ())


@pytest.mark.parametrize(("encoding", "found"), [("utf-8-sig", ""), ("utf-16", "is not UTF-8")])
def test_a_byte_order_mark_is_no_content_and_another_encoding_is_told(context: Context, encoding: str, found: str) -> None:
    path = write_run(make(context), context.evidence)
    path.write_text(path.read_text(encoding="utf-8"), encoding=encoding)
    runs, problems = read_runs(context.evidence)
    assert ([problem.found for problem in problems], len(runs)) == ([found], 0) if found else ([], 1)


def test_a_second_run_of_the_same_second_gets_a_number_and_replaces_nothing(context: Context) -> None:
    source = run_id(START, context.client.alias, "micro-prefix-caching")
    provenance = Provenance(kind=ProvenanceKind.OBSERVED, date=START.date(), source=source)
    setting = Setting(technique=Technique.KV_CACHE, control="cache_size", value=1, provenance=provenance)
    runs = [context.run(RunKind.MICRO, "prefix-caching", START, settings=(setting,), native={"n": n}) for n in range(3)]
    paths = [write_run(run, context.evidence) for run in runs]
    assert [path.stem for path in paths] == [source, f"{source}-2", f"{source}-3"]
    read, problems = read_runs(context.evidence)
    assert (problems, [run.native["n"] for run in read]) == ((), [0, 1, 2])
    assert [run.settings[0].provenance.source for run in read] == [run.id for run in read]


def test_a_folder_that_cannot_be_made_is_told(context: Context) -> None:
    context.evidence.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(HostError, match="cannot be written"):
        write_run(make(context), context.evidence)


def test_a_full_disk_leaves_no_half_file(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostError, match="No space left"):
        write_run(make(context), context.evidence)
    assert list(context.evidence.iterdir()) == []


def test_secrets_and_machine_paths_never_reach_the_file(context: Context) -> None:
    native: dict[str, JsonValue] = {
        "/home/someone/x": ["Bearer canary-key-12345", "http://u:p@h/?api_key=K", "/home/someone/models"]
    }
    text = write_run(make(context, native=native), context.evidence).read_text(encoding="utf-8")
    for secret in ("canary", "u:p", "api_key=K", "/home/someone"):
        assert secret not in text
    assert json.loads(text)["native"] == {"~/x": ["Bearer [redacted]", "http://[redacted]@h/?[redacted]", "~/models"]}


@pytest.mark.parametrize(("samples", "missing"), [((), None), ((1.0,), Missing(missing=MissingReason.NO_SENSOR))])
def test_a_metric_has_samples_or_a_reason(samples: tuple[float, ...], missing: Missing | None) -> None:
    with pytest.raises(ValidationError, match="either samples or the reason"):
        Metric(name="power_w", unit="W", direction=Direction.LOWER, per=Per.RUN, samples=samples, missing=missing)


@given(st.text())
def test_a_slug_is_a_safe_name(text: str) -> None:
    name = slug(text)
    assert name
    assert len(name) <= 60
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not name.startswith("-")


def test_run_ids_sort_by_time() -> None:
    assert run_id(START, "Lab PC/1", "endpoint qwen3:8b") == "20261130T120000Z-lab-pc-1-endpoint-qwen3-8b"
