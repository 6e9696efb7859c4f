"""What was made before saves time and changes nothing: no byte, and no build that finds it damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import vl_convert

from gen import album
from gen.album import MOST_SPARE, Album, kept_in
from gen.charts import drawing, strips
from gen.charts.rendering import svg_of
from gen.corpus import Corpus, read_corpus
from gen.pages.feed import document
from gen.site import pages
from probes.archive import write_run
from probes.evidence import Per
from tests.gen import ledger
from tests.gen.specimens import corpus, micro_run

TODAY = date(2026, 11, 30)


BODY = """# Keep it

See [the run](evidence/20261128T092000Z-bench-micro-prefix-caching.json),
[no run](evidence/gone.json) and [the fleet](../fleet.yml).

| a | b |
|---|---|
| [how](../docs/contract.md#gates) | x |
"""


@pytest.fixture(autouse=True)
def nothing_in_memory() -> None:
    """What this process rendered before must not hide what an album does; layouts are laid out once for all."""
    drawn(None)
    drawing.rendered.cache_clear()


def whole() -> Corpus:
    """A corpus as it is read from files, with a record that links to some of it."""
    made = corpus(records=(ledger.record(body=BODY),))
    return replace(made, texts={run.id: json.dumps(document(run)) for run in made.runs + made.local_runs})


def drawn(folder: Path | None, value: float = 0.5) -> str:
    drawing.rendered.cache_clear()
    with kept_in(Album(folder) if folder else None):
        return strips("ttft_s", "s", {"cold": (0.41, 0.4, value), "warm": (0.08, 0.079, 0.09)}, Per.REPETITION).svg


@pytest.fixture
def rendering(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every specification that the renderer is given."""
    asked: list[str] = []
    real: Callable[..., str] = vl_convert.vega_to_svg

    def counted(spec: dict[str, object], **options: object) -> str:
        asked.append(str(spec))
        return real(spec, **options)

    monkeypatch.setattr(vl_convert, "vega_to_svg", counted)
    return asked


def test_a_site_is_the_same_bytes_without_an_album_with_a_new_one_and_with_a_full_one(
    tmp_path: Path, rendering: list[str]
) -> None:
    without = pages(whole(), TODAY)
    first = len(rendering)
    drawing.rendered.cache_clear()
    new = pages(whole(), TODAY, Album(tmp_path))
    drawing.rendered.cache_clear()
    full = pages(whole(), TODAY, Album(tmp_path))
    assert without == new == full
    assert first > 0
    assert len(rendering) == 2 * first, "a full album leaves nothing to render"


def test_a_layout_that_was_translated_once_gives_the_same_chart_as_the_whole_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole: list[str] = []

    def seen(spec: str) -> str:
        whole.append(spec)
        return svg_of(spec)

    monkeypatch.setattr(drawing, "svg_of", seen)
    drawn(None, 0.9)
    drawn(None, 0.8)
    assert len(whole) == 2
    for spec in whole:
        assert svg_of(spec) == vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


def test_other_samples_are_another_chart(tmp_path: Path, rendering: list[str]) -> None:
    assert drawn(tmp_path) != drawn(tmp_path, 0.6)
    assert drawn(tmp_path) == drawn(None)
    assert len(rendering) == 3


def test_another_release_of_the_renderer_renders_anew(
    tmp_path: Path, rendering: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn(tmp_path)
    monkeypatch.setattr("gen.charts.rendering._RENDERER", "99.0")
    drawn(tmp_path)
    assert len(rendering) == 2


def test_another_version_of_the_program_writes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(words: str) -> str:
        with kept_in(Album(tmp_path)):
            return album.written("a part", lambda: words)

    assert (said("first"), said("second")) == ("first", "first")
    monkeypatch.setattr(album, "_sources", lambda: "other sources")
    assert (said("third"), said("fourth")) == ("third", "third")


def test_evidence_that_was_proven_sound_is_read_the_same_and_an_edit_is_still_found(tmp_path: Path) -> None:
    root = ledger.checkout(tmp_path / "checkout")
    file = write_run(micro_run(), root / "adr" / "evidence")
    without = read_corpus(root, texts=True)
    for _ in range(2):
        assert read_corpus(root, texts=True, memory=Album(tmp_path / "kept")) == without
    file.write_text(file.read_text().replace("0.412", "0.112"))
    edited = read_corpus(root, texts=True, memory=Album(tmp_path / "kept"))
    assert [problem.place for problem in edited.problems] == [f"adr/evidence/{file.name}: content_sha256"]


def spoil_by_cutting(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoil_by_changing(path: Path) -> None:
    path.write_text(path.read_text().replace("<path", "<script>alert(1)</script><path", 1))


def spoil_by_emptying(path: Path) -> None:
    path.write_bytes(b"")


def spoil_by_other_bytes(path: Path) -> None:
    path.write_bytes(b"\xff\xfe" * 100)


def spoil_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil", [spoil_by_cutting, spoil_by_changing, spoil_by_emptying, spoil_by_other_bytes, spoil_by_a_folder]
)
def test_a_damaged_rendering_is_made_anew(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    sound = drawn(tmp_path)
    (entry,) = tmp_path.iterdir()
    spoil(entry)
    assert drawn(tmp_path) == sound
    assert drawn(tmp_path) == sound


def test_a_folder_that_takes_nothing_stops_nothing(tmp_path: Path, rendering: list[str]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    assert drawn(taken / "charts") == drawn(None)
    assert len(rendering) == 2
    assert taken.read_text() == "a file"


def test_only_what_no_build_asks_for_is_thrown_away_and_the_oldest_first(tmp_path: Path) -> None:
    drawn(tmp_path)
    (used,) = tmp_path.iterdir()
    for number in range(MOST_SPARE + 3):
        (tmp_path / f"{number:064x}").touch()
    drawn(tmp_path)
    assert used.exists()
    assert len(list(tmp_path.iterdir())) == MOST_SPARE + 1
