"""The question of one person about one model: can EAGLE-3 pay on this device?"""

from __future__ import annotations

from pathlib import Path

import psutil

from probes.context import Context
from probes.devices.engine import RUNTIME
from probes.drafts.capabilities import broken_chain
from probes.drafts.pair import BUILD_MEMORY_BYTES, paired
from probes.drafts.proof import prove
from probes.drafts.shape import IR_NAME
from probes.errors import InputError, Problem
from probes.evidence import Decoding, Device, ModelFacts, Run, RunKind, Runtime, slug
from probes.micro.catalogue import BREAK_EVEN, BREAK_EVEN_BATCHED
from probes.micro.probe import benchmark
from probes.model import genai_version

# What the runtime reads from a target; a head needs no tokenizer.
TARGET_FILES = (IR_NAME, "openvino_model.bin", "openvino_tokenizer.xml", "openvino_detokenizer.xml")
HEAD_FILES = (IR_NAME, "openvino_model.bin")


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


def ask(context: Context, ir: Path, device: str, *, head: Path | None, budget_s: float) -> tuple[Run, list[Run]]:
    """Prove what a head does for a model on a device, and measure what it costs.

    Raises:
        InputError: a folder that is no model, a target that is not llama-like, or a head for another target.
        ProbeError: the runtime could not read or write a model.
    """
    check_folder(ir, TARGET_FILES, "--ir")
    if head is not None:
        check_folder(head, HEAD_FILES, "--head")
    # What is wrong with the files is told before anything is loaded.
    with paired(ir, head=head):
        facts = ModelFacts(id=ir.resolve().name, bytes=(ir / "openvino_model.bin").stat().st_size)
    started_at = context.clock()
    proof = prove(ir, device, quick=context.quick, say=context.say, head=head, required=True)
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
    if broken_chain(proof.capabilities):
        return proven, []
    measured = [
        benchmark(context, ir, facts, subject, device=device, budget_s=budget_s, head=head, memory_bytes=memory_bytes)
        for subject in (BREAK_EVEN, BREAK_EVEN_BATCHED)
    ]
    return proven, measured
