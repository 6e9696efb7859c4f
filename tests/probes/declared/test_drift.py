"""From a file somebody edits to a drift on the site: against a live server, and gone when it is set back."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from gen.corpus import read_corpus
from gen.drift import drifts
from gen.site import pages
from gen.techniques import RULES
from probes.archive import write_run
from probes.context import Context
from probes.declared.probe import probe_declared, read_declared
from probes.endpoints.embedded.server import running
from probes.endpoints.probe import survey
from probes.errors import InputError
from probes.evidence import Missing, MissingReason, ProvenanceKind, RunKind, Technique
from probes.fleet import Fleet, load_fleet
from probes.model import ModelFiles
from tests.declaring import graph
from tests.engines.llamacpp import llamacpp
from tests.gen.reading import read

ROOT = Path(__file__).parents[3]
TODAY = date(2026, 11, 30)
FLEET = """schema: inference-adr/fleet/1
name: Lab
as_of: 2026-11-01
source: a test
hosts: {here: {title: Here, role: test}}
devices: {}
services:
  live:
    title: Live service
    kind: text generation
    runtime: RUNTIME
    runtime_version: {unknown: "Which build?"}
    host: here
    device: {unknown: "Which CPU?"}
    url: ${LIVE_URL}
    settings: {INVENTORY}
    config: CONFIG
embedded:
  title: Embedded
  settings: {max_num_seqs: 8}
"""


class Lab:
    """A repository with one service, its files and its evidence."""

    def __init__(self, root: Path, context: Context, runtime: str, config: str, inventory: str = "") -> None:
        self.root, self.context = root, context
        text = FLEET.replace("RUNTIME", runtime).replace("CONFIG", config).replace("INVENTORY", inventory)
        (root / "fleet.yml").write_text(text)

    @property
    def fleet(self) -> Fleet:
        return load_fleet(self.root / "fleet.yml")

    def ask(self, url: str) -> None:
        reached, seen = survey(self.context, self.fleet, {"LIVE_URL": url})
        self._keep(*reached, seen)

    def read(self) -> None:
        self._keep(*probe_declared(self.context, self.fleet, self.root, {}))

    def _keep(self, *runs: object) -> None:
        for run in runs:
            write_run(run, self.root / "adr" / "local" / "evidence")  # type: ignore[arg-type]

    def drifting(self) -> dict[str, list[str]]:
        found = drifts(read_corpus(self.root), TODAY)
        return {one.control: [seen.said() for seen in one.sightings] for one in found}

    def site(self) -> dict[str, str]:
        return pages(read_corpus(self.root), TODAY)


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llamacpp("n_parallel=2", "n_ctx=2048") as url:
        yield url


@pytest.mark.engine
def test_one_edited_setting_drifts_from_a_live_llamacpp_and_agrees_when_set_back(
    tmp_path: Path, context: Context, llama: str
) -> None:
    lab = Lab(tmp_path, context, "llama.cpp", "[start.sh]")
    start = tmp_path / "start.sh"
    start.write_text("exec llama-server -m model.gguf \\\n  --ctx-size 2048 \\\n  --parallel 2 --api-key S3CRET-canary\n")
    lab.read()
    lab.ask(llama)
    assert lab.drifting() == {}
    page = read(lab.site()["services/live.md"])
    assert "none: the sources agree wherever two of them tell" in page.text
    assert not [row for row in page.rows if row[-1].split() == ["Drift", "drift"]]

    start.write_text(start.read_text().replace("--parallel 2", "--parallel 4"))
    lab.read()
    assert lab.drifting() == {
        "parallel": ["declared 4 (start.sh:3)", "observed 2"],
        "n_ctx_per_slot": ["declared 512 (start.sh:2)", "observed 1024"],
    }
    site = lab.site()
    row = next(row for row in read(site["services/live.md"]).rows if row[0].split() == ["Control", "parallel"])
    assert [" ".join(cell.split()) for cell in row[1:]] == [
        "In files 4 2026-11-01 start.sh:3 run",
        "Observed 2 2026-11-30 run",
        "Drift drift",
    ]
    assert "drift: Live service" in read(site["index.md"]).text
    assert "S3CRET" not in "".join(site.values())

    start.write_text(start.read_text().replace("--parallel 4", "--parallel 2"))
    lab.read()
    assert lab.drifting() == {}
    assert "no drift" in read(lab.site()["index.md"]).text


@pytest.mark.engine
def test_one_edited_line_of_the_inventory_drifts_from_a_live_llamacpp_on_every_page_that_shows_it(
    tmp_path: Path, context: Context, llama: str
) -> None:
    def drifting(declared: int) -> list[str]:
        lab = Lab(tmp_path, context, "llama.cpp", "[]", f"parallel: {{value: {declared}, as_of: 2026-11-20}}")
        if not list(tmp_path.rglob("*.json")):
            lab.ask(llama)
        site = lab.site()
        (row,) = [row for row in read(site["services/live.md"]).rows if row[0].split() == ["Control", "parallel"]]
        assert row[-1].split() == ["Drift", "agrees" if declared == 2 else "drift"]
        return [path for path in ("services/live.md", "index.md") if "drift: " in read(site[path]).text]

    assert drifting(2) == []
    assert drifting(4) == ["services/live.md", "index.md"]
    assert drifting(2) == []


@pytest.mark.engine
def test_a_graph_drifts_from_the_live_embedded_service(tmp_path: Path, context: Context, model_files: ModelFiles) -> None:
    settings = {"max_num_seqs": 4, "max_num_batched_tokens": 256, "enable_prefix_caching": True, "cache_size": 1}
    fields = "max_num_seqs: 4 enable_prefix_caching: true cache_size: 1"
    lab = Lab(tmp_path, context, '"openvino-genai (embedded)"', "[{path: graph.pbtxt, as_of: 2026-11-20}]")
    path = tmp_path / "graph.pbtxt"
    path.write_text(graph(fields))
    with running({**settings, "dynamic_split_fuse": True}, model_files.ir.parent) as address:
        lab.ask(address.url)
    lab.read()
    assert lab.drifting() == {}
    path.write_text(graph(fields.replace("enable_prefix_caching: true", "")))
    lab.read()
    assert lab.drifting() == {"enable_prefix_caching": ["default false (graph.pbtxt)", "observed true"]}
    path.write_text(graph(fields))
    lab.read()
    assert lab.drifting() == {}


def test_the_last_lines_of_a_probe_tell_the_drift_between_inventory_and_file(tmp_path: Path, context: Context) -> None:
    lab = Lab(tmp_path, context, "ovms", "[graph.pbtxt]", "max_num_seqs: 16, enable_prefix_caching: true")
    (tmp_path / "graph.pbtxt").write_text(graph("max_num_seqs: 8"))
    lab.read()
    command = [sys.executable, "-m", "gen", "summary", "--root", str(tmp_path), "--today", TODAY.isoformat()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    assert "Drift: the sources of 2 settings of 1 service disagree" in done.stdout
    assert "Live service: max_num_seqs: declared 16 (2026-11-01), declared 8 (graph.pbtxt:14, 2026-11-01)" in done.stdout


def test_committed_evidence_of_files_reaches_the_matrix(tmp_path: Path, context: Context) -> None:
    lab = Lab(tmp_path, context, "ovms", "[graph.pbtxt]", "enable_prefix_caching: true")
    (tmp_path / "graph.pbtxt").write_text(graph())
    (run,) = probe_declared(context, lab.fleet, tmp_path, {})
    write_run(run, tmp_path / "adr" / "evidence")
    assert set(RULES) == set(Technique)
    text = read(lab.site()["techniques/automatic-prefix-caching.md"]).text
    assert "default false (graph.pbtxt)" in text
    assert "investigate" in text


def test_a_file_that_the_inventory_no_longer_names_says_nothing(tmp_path: Path, context: Context) -> None:
    lab = Lab(tmp_path, context, "ovms", "[graph.pbtxt]", "max_num_seqs: 16")
    (tmp_path / "graph.pbtxt").write_text(graph("max_num_seqs: 8"))
    lab.read()
    assert list(lab.drifting()) == ["max_num_seqs"]
    Lab(tmp_path, context, "ovms", "[other.pbtxt]", "max_num_seqs: 16")
    assert lab.drifting() == {}


def test_an_option_that_the_pipeline_ignores_is_set_and_not_effective(tmp_path: Path, context: Context) -> None:
    """F133, as the matrix says it."""
    lab = Lab(tmp_path, context, "ovms", "[graph.pbtxt]")
    (tmp_path / "graph.pbtxt").write_text(graph("pipeline_type: LM enable_prefix_caching: true"))
    (run,) = probe_declared(context, lab.fleet, tmp_path, {})
    write_run(run, tmp_path / "adr" / "evidence")
    site = lab.site()
    assert "Set, not effective (LM pipeline)" in read(site["index.md"]).text
    assert "set, not effective: LM pipeline" in read(site["services/live.md"]).text


def test_a_pool_of_zero_is_dynamic_on_every_page(tmp_path: Path, context: Context) -> None:
    """F131."""
    lab = Lab(tmp_path, context, "ovms", "[graph.pbtxt]")
    (tmp_path / "graph.pbtxt").write_text(graph())
    (run,) = probe_declared(context, lab.fleet, tmp_path, {})
    write_run(run, tmp_path / "adr" / "evidence")
    site = lab.site()
    assert "cache_size is 0 (no fixed size)" in read(site["techniques/kv-cache-management.md"]).text
    assert not re.search(r"(?<![\d.])0 GiB", "".join(site.values()))
    assert "no fixed size" in read(site["services/live.md"]).text


def test_a_run_holds_what_each_file_said(tmp_path: Path, context: Context) -> None:
    config = "[graph.pbtxt, {path: '${MODELS}/live'}, {path: more.pbtxt, as_of: 2026-11-20}]"
    lab = Lab(tmp_path, context, "ovms", config)
    (tmp_path / "graph.pbtxt").write_text(graph("max_num_seqs: 8"))
    (tmp_path / "more.pbtxt").write_text(graph("cache_size: 2 max_num_seqs: 8"))
    (run,) = probe_declared(context, lab.fleet, tmp_path, {})
    assert (run.kind, run.subject, run.validity.valid) == (RunKind.DECLARED, "live", True)
    assert {setting.provenance.kind for setting in run.settings} == {ProvenanceKind.DECLARED}
    told = {(s.control, s.provenance.source): (s.value, s.provenance.date.day, s.default_of) for s in run.settings}
    assert told["max_num_seqs", "graph.pbtxt:14"] == (8, 1, "")
    assert told["cache_size", "more.pbtxt:14"] == (2, 20, "")
    # A default gives way to a value of another file, and is told once.
    assert [source for control, source in told if control == "cache_size"] == ["more.pbtxt:14"]
    assert [source for control, source in told if control == "dynamic_split_fuse"] == ["graph.pbtxt"]
    files = run.native["files"]
    assert isinstance(files, list)
    assert files[1] == {
        "path": "${MODELS}/live",
        "as_of": "2026-11-01",
        "missing": "not configured",
        "detail": "MODELS is not set",
    }


def test_a_reference_leads_to_a_folder_elsewhere(tmp_path: Path, context: Context) -> None:
    lab = Lab(tmp_path, context, "ovms", "['${MODELS}/live']")
    (tmp_path / "elsewhere" / "live").mkdir(parents=True)
    (tmp_path / "elsewhere" / "live" / "graph.pbtxt").write_text(graph("cache_size: 3"))
    (one,) = read_declared(lab.fleet, tmp_path, {"MODELS": str(tmp_path / "elsewhere")})
    assert {entry.where for entry, _ in one.entries if not entry.default_of} == {"${MODELS}/live/graph.pbtxt:14"}
    (unset,) = read_declared(lab.fleet, tmp_path, {})
    reading = unset.files[0].reading
    assert isinstance(reading, Missing)
    assert reading.missing is MissingReason.NOT_CONFIGURED


def test_everything_wrong_with_any_file_is_told_at_once(tmp_path: Path, context: Context) -> None:
    lab = Lab(tmp_path, context, "ovms", "[a.pbtxt, b.pbtxt, c.json]")
    (tmp_path / "a.pbtxt").write_text(graph("max_num_seq: 8"))
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(InputError) as caught:
        probe_declared(context, lab.fleet, tmp_path, {})
    assert [str(problem).split(":")[0] for problem in caught.value.problems] == ["a.pbtxt", "b.pbtxt", "c.json"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("[/etc/ovms/graph.pbtxt]", "a path relative to the inventory"),
        ("[~/graph.pbtxt]", "a path relative to the inventory"),
        ("['']", "a path relative to the inventory"),
        ("[$HOME/graph.pbtxt]", "a reference to a folder such as"),
        ("[{path: a, kind: toml}]", "one of 'graph.pbtxt'"),
        ("[{path: a, as_of: 20}]", "config.0"),
        ("graph.pbtxt", "config"),
    ],
)
def test_a_wrong_entry_of_the_inventory_is_told_with_its_line(
    tmp_path: Path, context: Context, config: str, expected: str
) -> None:
    lab = Lab(tmp_path, context, "ovms", config)
    with pytest.raises(InputError, match=r"fleet\.yml:\d+: services\.live\.config") as caught:
        assert lab.fleet
    assert expected in str(caught.value)
