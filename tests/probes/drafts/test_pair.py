"""A pair that is gone afterwards, and heads that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.drafts.pair import check_head, paired
from probes.errors import InputError, ProbeError
from probes.model import ModelFiles
from tests.probes.drafts.tiny import TINY, head


class StoppedError(Exception):
    pass


@pytest.mark.engine
def test_a_pair_is_gone_however_its_use_ends(model_files: ModelFiles) -> None:
    seen: list[Path] = []

    def use() -> None:
        with paired(model_files.ir) as pair:
            assert pair.built
            assert pair.draft_vocab == 12_288
            assert (pair.head / "openvino_model.bin").stat().st_size > 20e6
            seen.extend([pair.target, pair.head])
            raise StoppedError

    with pytest.raises(StoppedError):
        use()
    assert [path.exists() for path in (*seen, seen[0].parent)] == [False, False, False]
    assert (model_files.ir / "openvino_model.bin").exists()


@pytest.mark.engine
def test_a_head_for_another_target_is_one_message(model_files: ModelFiles, tmp_path: Path) -> None:
    head(tmp_path)
    with pytest.raises(InputError) as caught, paired(model_files.ir, head=tmp_path):
        pass
    assert str(caught.value) == (
        f"{tmp_path}: projects with weights of 32 x 96; expected 576 x 1728, three hidden states of this target"
    )


def test_a_broken_model_is_told_in_the_runtime_s_words(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").write_text("<net")
    with pytest.raises(ProbeError, match=r"could not be prepared: raised: .*"), paired(tmp_path):
        pass


def test_a_head_of_this_shape_fits(tmp_path: Path) -> None:
    assert check_head(head(tmp_path, draft_vocab=50), TINY, "head") == 50


def test_a_head_that_drafts_what_the_target_cannot_say_is_refused(tmp_path: Path) -> None:
    model = head(tmp_path, draft_vocab=5, aim=(7, 399))
    small = TINY.model_copy(update={"vocab": 399})
    with pytest.raises(InputError, match="head: drafts token 399; expected tokens below 399"):
        check_head(model, small, "head")


def test_any_other_model_is_no_head(tmp_path: Path) -> None:
    model = head(tmp_path)
    model.set_rt_info("x", ["other"])
    plain = head(tmp_path / "b")
    del model
    from openvino import Model

    stripped = Model(plain.get_results(), plain.get_sinks(), plain.get_parameters(), "plain")
    with pytest.raises(InputError, match="head: has no eagle3_mode in its rt_info"):
        check_head(stripped, TINY, "head")


@pytest.mark.engine
@pytest.mark.parametrize(
    ("config", "words"),
    [("{}", "has no end-of-text id; expected eos_token_id in its config.json or generation_config.json"), (None, "")],
)
def test_a_head_needs_an_end_of_text_id(model_files: ModelFiles, tmp_path: Path, config: str | None, words: str) -> None:
    from probes.drafts.shape import read_shape
    from tests.probes.drafts.tiny import read

    head(tmp_path, read_shape(read(model_files.ir), {}, "ir"), draft_vocab=10)
    if config is None:
        with paired(model_files.ir, head=tmp_path) as pair:
            assert (pair.built, pair.draft_vocab, pair.head) == (False, 10, tmp_path)
        return
    (tmp_path / "generation_config.json").write_text(config)
    with pytest.raises(InputError, match=words), paired(model_files.ir, head=tmp_path):
        pass
