"""The question of one person about one model: can EAGLE-3, or a draft model, pay on this device?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from probes.context import Context
from probes.devices.engine import RUNTIME
from probes.drafts.capabilities import Method, broken_chain
from probes.drafts.pair import BUILD_MEMORY_BYTES, paired
from probes.drafts.proof import prove, prove_draft
from probes.drafts.shape import IR_NAME
from probes.errors import InputError, Problem
from probes.evidence import Decoding, Device, ModelFacts, Run, RunKind, Runtime, slug
from probes.micro.catalogue import BREAK_EVEN, BREAK_EVEN_BATCHED
from probes.micro.probe import benchmark
from probes.model import genai_version

# What the runtime reads from a target; a head needs no tokenizer.
TARGET_FILES = (IR_NAME, "openvino_model.bin", "openvino_tokenizer.xml", "openvino_detokenizer.xml")
HEAD_FILES = (IR_NAME, "openvino_model.bin")


@dataclass(frozen=True, kw_only=True)
class Drafter:
    """What is to draft: an EAGLE-3 head or a draft model that the user has; without either, a head built here."""

    head: Path | None = None
    draft: Path | None = None

    @property
    def method(self) -> Method:
        """What the runtime calls this way of drafting."""
        return Method.EAGLE3 if self.draft is None else Method.DRAFT_MODEL

    def check(self, ir: Path) -> None:
        """Say what is wrong with the files before anything is loaded.

        Raises:
            InputError: a folder that is no model, a target that is not llama-like, or a head for another target.
            ProbeError: the runtime could not read or write a model.
        """
        if self.draft is not None:
            check_folder(self.draft, TARGET_FILES, "--draft")
            return
        if self.head is not None:
            check_folder(self.head, HEAD_FILES, "--head")
        with paired(ir, head=self.head):
            pass


def check_folder(folder: Path, files: tuple[str, ...], option: str) -> None:
    """Check that a folder holds a model before an engine is opened on it.

    Raises:
        InputError: with every file that is missing.
    """
    if not folder.is_dir():
        raise InputError([Problem(place=f"{option} {folder}", found="is no folder", expected="one with an OpenVINO model")])
    expected = "a folder as `optimum-cli export openvino` writes it"
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise InputError([Problem(place=f"{option} {folder}", found=f"has no {name}", expected=expected) for name in missing])


def ask(context: Context, ir: Path, device: str, drafter: Drafter, *, budget_s: float) -> tuple[Run, list[Run]]:
    """Prove what drafts do for a model on a device, and measure what they cost.

    Raises:
        InputError: a folder that is no model, a target that is not llama-like, or a head for another target.
        ProbeError: the runtime could not read or write a model.
    """
    check_folder(ir, TARGET_FILES, "--ir")
    drafter.check(ir)
    facts = ModelFacts(id=ir.resolve().name, bytes=(ir / "openvino_model.bin").stat().st_size)
    started_at = context.clock()
    if drafter.draft is None:
        proof = prove(ir, device, quick=context.quick, say=context.say, head=drafter.head, required=True)
    else:
        proof = prove_draft(ir, drafter.draft, device, say=context.say)
    proven = context.run(
        RunKind.DEVICES,
        slug(f"{device}-speculation"),
        started_at,
        server=context.client,
        device=Device(name=device, full_name=proof.full_name or device),
        runtime=Runtime(name=RUNTIME, version=genai_version()),
        model=facts,
        decoding=Decoding(temperature=0.0, do_sample=False, ignore_eos=True),
        capabilities=proof.capabilities,
        native=proof.native,
    )
    memory_bytes = max(BUILD_MEMORY_BYTES, psutil.virtual_memory().available * 3 // 4)
    if broken_chain(proof.capabilities, drafter.method):
        return proven, []
    measured = [
        benchmark(context, ir, facts, subject, device=device, budget_s=budget_s, memory_bytes=memory_bytes, **vars(drafter))
        for subject in (BREAK_EVEN, BREAK_EVEN_BATCHED)
    ]
    return proven, measured
