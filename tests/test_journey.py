"""From the shipped inventory to records and pages: one declared fact moves what it should and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gen.changes import propose
from gen.corpus import Corpus, read_corpus
from gen.site import pages
from probes import strictyaml
from probes.fleet import Declared, Fleet, dangling

ROOT = Path(__file__).parents[1]
TODAY = date(2026, 11, 30)
SWITCHED_ON = date(2026, 11, 29)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """The repository as committed: what a machine measured for itself is left out."""
    return replace(read_corpus(ROOT), local_runs=(), local_records=())


def declaring(corpus: Corpus, service: str, control: str, value: Declared) -> Corpus:
    """The same corpus with one setting declared anew, as an edit of fleet.yml would do it."""
    entry = corpus.fleet.services[service]
    changed = entry.model_copy(update={"settings": {**entry.settings, control: value}})
    return replace(corpus, fleet=corpus.fleet.model_copy(update={"services": {**corpus.fleet.services, service: changed}}))


@pytest.mark.parametrize("service", ["text-4b", "text-8b-b580"])
def test_prefix_caching_off_on_one_service_changes_its_page_and_its_row(corpus: Corpus, service: str) -> None:
    before = pages(corpus, TODAY)
    changed = declaring(corpus, service, "enable_prefix_caching", Declared(value=False, as_of=SWITCHED_ON))
    after = pages(changed, TODAY)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == {
        "index.md",
        "matrix.json",
        f"checklists/{service}.md",
        f"services/{service}.md",
        "techniques/automatic-prefix-caching.md",
    }
    (draft,) = propose(changed, TODAY, "fleet")
    assert draft.name == "2026-11-29-automatic-prefix-caching-fleet"


def test_declaring_the_same_value_on_a_later_day_drafts_nothing(corpus: Corpus) -> None:
    again = declaring(corpus, "text-4b", "enable_prefix_caching", Declared(value=True, as_of=SWITCHED_ON))
    assert propose(again, TODAY, "fleet") == propose(corpus, TODAY, "fleet") == ()


def test_the_same_files_and_day_give_the_same_bytes(corpus: Corpus) -> None:
    assert pages(corpus, TODAY) == pages(read_corpus_again(), TODAY)


def read_corpus_again() -> Corpus:
    return replace(read_corpus(ROOT), local_runs=(), local_records=())


def test_the_shipped_repository_is_sound(corpus: Corpus) -> None:
    assert corpus.problems == ()
    text = (ROOT / "fleet.yml").read_text(encoding="utf-8")
    assert strictyaml.loads(text, Fleet, "fleet.yml", dangling) == corpus.fleet
