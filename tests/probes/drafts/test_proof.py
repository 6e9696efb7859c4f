"""Drafts on the real engine: accepted, lossless, inert and refused, as this CPU shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probes.child import Outcome
from probes.drafts import trial
from probes.drafts.capabilities import Method, Plain, beside_claim, judge
from probes.drafts.pair import paired
from probes.drafts.proof import EXACT, often_said, prove
from probes.drafts.trial import STATEFUL, Trial, try_drafts
from probes.evidence import CapabilityState
from probes.model import ModelFiles


def test_the_token_said_most_often_is_aimed_at() -> None:
    assert often_said(Plain(precision="f32", alone=((1, 2, 2), (3, 2, 1)), at_once=())) == (2,)


@pytest.mark.engine
def test_eagle_3_is_accepted_and_lossless_and_without_drafts_inert(model_files: ModelFiles) -> None:
    said: list[str] = []
    proven = prove(model_files.ir, "CPU", quick=True, say=said.append)
    none, alone, at_once = proven.capabilities
    assert (none.requested, none.state) == ("num_assistant_tokens=0", CapabilityState.INERT)
    assert none.effect.endswith("; 0 of 0 drafted tokens accepted, in 0 draft steps")
    for found in (alone, at_once):
        assert found.name == "EAGLE-3"
        assert found.effect.startswith("6 of 6 answers equal plain decoding (f32 KV cache); ")
        # The head is aimed at a token that the answers hold, so that some drafts are right.
        assert found.state is CapabilityState.EFFECTIVE
    assert proven.full_name
    assert proven.native["skipped"]


@pytest.mark.engine
def test_what_the_runtime_excludes_is_refused_in_its_words(model_files: ModelFiles) -> None:
    claim = beside_claim("XATTENTION")
    with paired(model_files.ir) as pair:
        sparse = Trial(
            target=pair.target,
            draft=pair.head,
            device="CPU",
            properties=tuple(EXACT.items()),
            scheduler=(("use_sparse_attention", True), ("sparse_attention_config.mode", "XATTENTION")),
            asks=(claim.ask,),
        )
        plain = Plain(precision="f32", alone=((1,),), at_once=((1,),))
        found = judge(claim, tried=try_drafts(sparse), device="CPU", plain=plain)
        beside_draft = try_drafts(replace(sparse, target=model_files.ir, draft=model_files.ir))
        stateful = try_drafts(replace(sparse, properties=(), scheduler=(), observer=STATEFUL))
        lookup = try_drafts(replace(sparse, properties=(("prompt_lookup", True),), scheduler=()))
    assert found.state is CapabilityState.REFUSED
    assert found.words == "at generation: Port for tensor name xattention_block_size was not found."
    refused = judge(beside_claim("XATTENTION", method=Method.DRAFT_MODEL), tried=beside_draft, device="CPU", plain=plain)
    assert (refused.name, refused.state, refused.words) == ("draft model", found.state, found.words)
    assert (stateful.outcome, stateful.loaded) == (Outcome.RAISED, False)
    assert "SDPA attention backend" in stateful.words
    assert "mutually exclusive" in lookup.words


@pytest.mark.parametrize(
    ("breaking", "outcome", "words"),
    [
        ("crash", Outcome.CRASHED, "SIGABRT"),
        ("hang", Outcome.TIMED_OUT, "no end after 3 s"),
        ("eat", Outcome.OUT_OF_MEMORY, ""),
    ],
)
@pytest.mark.usefixtures("planted")
def test_an_engine_that_breaks_is_an_outcome_of_its_claim(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, breaking: str, outcome: Outcome, words: str
) -> None:
    monkeypatch.setattr(trial, "TIMEOUT_S", 3 if breaking == "hang" else 60)
    monkeypatch.setattr(trial, "MEMORY_BYTES", 2**28)
    claim = beside_claim("XATTENTION")
    broken = try_drafts(Trial(target=tmp_path, device="CPU", asks=(claim.ask,), observer=f"planted:{breaking}"))
    found = judge(claim, tried=broken, device="CPU", plain=Plain(precision="f32", alone=((1,),), at_once=((1,),)))
    assert (found.state, found.words.partition(": ")[0]) == (CapabilityState.FAILED, f"the engine {outcome}")
    assert words in found.words


@pytest.mark.engine
def test_a_target_that_cannot_be_loaded_is_a_state(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").write_text("<net")
    (found,) = prove(tmp_path, "CPU", quick=True, say=lambda _line: None).capabilities
    assert (found.name, found.state) == ("EAGLE-3", CapabilityState.FAILED)
    assert found.words.startswith("not tried: plain decoding: the engine raised: ")
