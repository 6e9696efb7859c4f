"""The pictures of the documentation: each kind of page has both of its own, the page shows them, and they stay small."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.gallery import FOLDER, KINDS, MOST_BYTES, README, ROOT, main

DOCS = ROOT / "docs"
PAGE = (DOCS / "what-each-page-shows.md").read_text(encoding="utf-8")
PICTURES = {f"{kind.name}-{size}.webp" for kind in KINDS for size in ("wide", "phone")}


def test_each_kind_of_page_has_its_pictures_and_none_is_left_over() -> None:
    found = {path.name: path.read_bytes() for path in (DOCS / FOLDER).iterdir()}
    assert set(found) == PICTURES
    assert all(data[:4] == b"RIFF" and data[8:12] == b"WEBP" for data in found.values())
    assert sum(map(len, found.values())) <= MOST_BYTES
    assert (DOCS / README).read_bytes().startswith(b"\x89PNG")


def test_the_page_shows_every_picture_with_words() -> None:
    shown = re.findall(rf"!\[([^\]]+)\]\({FOLDER}/([a-z-]+\.webp)\)", PAGE)
    assert {name for _, name in shown} == PICTURES
    assert all(len(words) > 10 for words, _ in shown)


def test_a_folder_without_a_site_is_told(tmp_path: Path) -> None:
    assert main(["--site", str(tmp_path), "--out", str(tmp_path / "docs")]) == 2
    assert not (tmp_path / "docs").exists()
