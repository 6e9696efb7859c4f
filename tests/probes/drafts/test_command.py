"""The command's answer to folders that are no models."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.__main__ import main
from probes.drafts.command import HEAD_FILES, TARGET_FILES, check_folder
from probes.errors import InputError


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speculation", "--ir", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"probes: --ir {tmp_path}/none: is no folder; expected one with an OpenVINO model\n"


def test_every_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").touch()
    with pytest.raises(InputError) as caught:
        check_folder(tmp_path, TARGET_FILES, "--ir")
    found = [problem.found for problem in caught.value.problems]
    assert found == [f"has no {name}" for name in ("openvino_detokenizer.xml", "openvino_model.bin", "openvino_tokenizer.xml")]
    (tmp_path / "openvino_model.bin").touch()
    check_folder(tmp_path, HEAD_FILES, "--head")


def test_a_target_of_nonsense_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in TARGET_FILES:
        (tmp_path / name).write_text("<net")
    assert main(["speculation", "--ir", str(tmp_path)]) == 2
    words = capsys.readouterr().err
    assert words.startswith(f"probes: {tmp_path}: could not be prepared: raised: ")
    assert words.count("\n") == 1


def test_a_budget_of_nothing_is_no_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speculation", "--ir", str(tmp_path), "--budget", "0"]) == 2
    assert "--budget 0: is no time; expected seconds above 0" in capsys.readouterr().err
