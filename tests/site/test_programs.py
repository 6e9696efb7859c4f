"""What programs read: each file is what its published schema says, each address leads somewhere, each example runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from probes.evidence import Technique
from tests.site.conftest import ROOT

PAGE = ROOT / "docs" / "for-programs.md"


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def validator(site: Path, name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(
        document(site / "schema" / f"{name}.schema.json"), format_checker=jsonschema.FormatChecker()
    )


@pytest.mark.parametrize(("name", "file"), [("matrix", "matrix.json"), ("evidence", "evidence/index.json")])
def test_each_published_file_is_what_its_schema_says(site: Path, name: str, file: str) -> None:
    checked, published = validator(site, name), document(site / file)
    checked.validate(published)
    assert not checked.is_valid({**published, "schema": "inference-adr/other/9"})
    assert not checked.is_valid({**published, "surprise": 1})


def test_the_index_names_every_run_and_each_file_is_what_the_schema_of_a_run_says(site: Path) -> None:
    checked = validator(site, "run")
    runs = document(site / "evidence" / "index.json")["runs"]
    assert {site / run["file"] for run in runs} == set((site / "evidence").glob("*.json")) - {site / "evidence" / "index.json"}
    assert any(not run["valid"] for run in runs)
    assert any(run["page"] for run in runs)
    for run in runs:
        found = document(site / run["file"])
        checked.validate(found)
        assert run["page"] is None or (site / run["page"]).is_file()
        assert (found["id"], found["content_sha256"]) == (run["id"], run["content_sha256"])


def test_every_row_leads_to_its_why_and_its_evidence(site: Path) -> None:
    matrix = document(site / "matrix.json")
    known = {run["id"] for run in document(site / "evidence" / "index.json")["runs"]}
    for rows in matrix["scopes"].values():
        assert [row["technique"] for row in rows] == [technique.value for technique in Technique]
        for row in rows:
            path, _, anchor = row["page"].partition("#")
            assert f'id="{anchor}"' in (site / path).read_text(encoding="utf-8")
            assert set(row["today"]["evidence"]) <= known


def test_every_file_that_the_page_names_is_there() -> None:
    said = PAGE.read_text(encoding="utf-8")
    schemas = {path.name for path in (ROOT / "docs" / "schema").glob("*.json")}
    assert set(re.findall(r"\(schema/([\w.]+)\)", said)) == schemas


def test_the_examples_run(site: Path, tmp_path: Path) -> None:
    (tmp_path / "site").symlink_to(site, target_is_directory=True)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
        assert (done.returncode, done.stderr) == (0, "")
