"""Drafts on the real engine: accepted, lossless, inert and refused, as this CPU shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probes.child import Outcome
from probes.drafts.capabilities import Plain, beside_claim, judge
from probes.drafts.pair import paired
from probes.drafts.proof import EXACT, often_said, prove
from probes.drafts.trial import Trial, try_drafts
from probes.evidence import CapabilityState
from probes.model import ModelFiles


def test_the_token_said_most_often_is_aimed_at() -> None:
    assert often_said(Plain(precision="f32", alone=((1, 2, 2), (3, 2, 1)), at_once=())) == (2,)


@pytest.mark.engine
def test_eagle_3_is_accepted_and_lossless_and_without_drafts_inert(model_files: ModelFiles) -> None:
    said: list[str] = []
    proof = prove(model_files.ir, "CPU", quick=True, say=said.append)
    none, alone, at_once = proof.capabilities
    assert (none.requested, none.state) == ("num_assistant_tokens=0", CapabilityState.INERT)
    assert none.effect.endswith("; 0 of 0 drafted tokens accepted, in 0 draft steps")
    for found in (alone, at_once):
        assert found.name == "EAGLE-3"
        assert found.effect.startswith("6 of 6 answers equal plain decoding (f32 KV cache); ")
        # The head is aimed at a token that the answers hold, so that some drafts are right.
        assert found.state is CapabilityState.EFFECTIVE
    assert proof.full_name
    assert proof.native["skipped"]


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
        stateful = try_drafts(replace(sparse, properties=(), scheduler=(), stateful=True))
        lookup = try_drafts(replace(sparse, properties=(("prompt_lookup", True),), scheduler=()))
    assert found.state is CapabilityState.REFUSED
    assert found.words == "at generation: Port for tensor name xattention_block_size was not found."
    assert (stateful.outcome, stateful.loaded) == (Outcome.RAISED, False)
    assert "SDPA attention backend" in stateful.words
    assert "mutually exclusive" in lookup.words


@pytest.mark.engine
def test_a_target_that_cannot_be_loaded_is_a_state(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").write_text("<net")
    (found,) = prove(tmp_path, "CPU", quick=True, say=lambda _line: None).capabilities
    assert (found.name, found.state) == ("EAGLE-3", CapabilityState.FAILED)
    assert found.words.startswith("not tried: plain decoding: the engine raised: ")
