"""Names from any text are safe, distinct on every disk, and stay where they are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.paths import check, destination, names, relative
from probes.errors import InputError
from tests.gen.specimens import HOSTILE


@given(st.sets(st.one_of(st.text(max_size=40), st.text(alphabet="aA/-: .", max_size=6), st.sampled_from(HOSTILE)), max_size=8))
def test_distinct_texts_get_distinct_safe_names(texts: set[str]) -> None:
    found = names(texts)
    assert set(found) == texts
    assert len({name.lower() for name in found.values()}) == len(texts)
    assert all(re.fullmatch(r"[a-z0-9-]{1,70}", name) for name in found.values())


def test_a_name_gains_a_hash_only_where_two_texts_would_share_it() -> None:
    found = names(["a/b", "a-b", "A/B", "qwen3:8b", "google/gemma-2-9b-it"])
    assert found["google/gemma-2-9b-it"] == "google-gemma-2-9b-it"
    assert found["qwen3:8b"] == "qwen3-8b"
    assert {found[text][:4] for text in ("a/b", "a-b", "A/B")} == {"a-b-"}


@pytest.mark.parametrize("text", ["CON", "nul", "com1", "LPT9", "index"])
def test_names_with_a_meaning_of_their_own_are_avoided(text: str) -> None:
    assert names([text])[text] != text.lower()


@pytest.mark.parametrize(
    ("target", "here", "expected"),
    [
        ("index.md", "index.md", "index.md"),
        ("techniques/a.md#fleet", "index.md", "techniques/a.md#fleet"),
        ("techniques/a.md#fleet", "techniques/a.md", "#fleet"),
        ("fleet.md", "services/x.md", "../fleet.md"),
        ("runs/a.md", "runs/index.md", "a.md"),
    ],
)
def test_links_are_relative_to_the_page(target: str, here: str, expected: str) -> None:
    assert relative(target, here) == expected


@pytest.mark.parametrize(
    "path", ["../x.md", "/etc/x.md", "a/../../x.md", "a\\b.md", "a\x00.md", "", "a//b.md", ".hidden.md", "a b.md", "ä.md", "a/"]
)
def test_a_path_that_leaves_the_site_or_a_disk_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="is not a safe path"):
        check([path])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("model/q.md", "model/q/index.md"),
        ("Case.md", "case.md"),
        ("README.md", "index.md"),
        ("a/readme.md", "a/index.md"),
        ("a.md", "a.html"),
        ("coverage.md", "coverage.md"),
    ],
)
def test_two_sources_of_one_address_are_refused(one: str, other: str) -> None:
    with pytest.raises(InputError, match="would replace"):
        check([one, other])


def test_a_page_beside_a_folder_of_another_name_is_fine() -> None:
    check(["records/index.md", "records/a.md", "runs/a.md", "evidence/20261128T0900Z-a.json", "assets/site.css"])
    assert destination("a/index.md") == "a.html"
