"""Evidence files: complete, immutable, and honest about damage."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from probes.context import Context
from probes.errors import HostError, InputError
from probes.evidence import (
    Direction,
    Metric,
    Missing,
    MissingReason,
    Per,
    Run,
    RunKind,
    read_run,
    read_runs,
    run_id,
    slug,
    write_run,
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
        (lambda text: text.replace("0.25", "NaN"), "NaN is not a JSON number"),
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


def test_a_file_is_never_replaced(context: Context) -> None:
    write_run(make(context), context.evidence)
    with pytest.raises(HostError, match="never overwritten"):
        write_run(make(context), context.evidence)
    assert len(list(context.evidence.iterdir())) == 1


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
