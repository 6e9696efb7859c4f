"""A target and an EAGLE-3 head that fits it, prepared in a folder that is gone afterwards."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from probes import telemetry
from probes.child import Outcome, run_child
from probes.devices.engine import GREEDY_EOS
from probes.devices.words import runtime_words
from probes.drafts.head import build_head, usual_draft_vocab
from probes.drafts.shape import IR_NAME, Shape, read_config, read_shape
from probes.drafts.target import prepare_target
from probes.errors import InputError, ProbeError, Problem
from probes.schema import Model

BUILD_TIMEOUT_S = 180.0
BUILD_MEMORY_BYTES = 6 * 2**30
EAGLE3_KEY = "eagle3_mode"
LAYERS_KEY = "hidden_layers_list"


class Pair(Model):
    """A target and a head by their folders; `built` tells a head made here from one that was given."""

    target: Path
    head: Path
    shape: Shape
    draft_vocab: int
    built: bool


@contextlib.contextmanager
def paired(ir: Path, *, head: Path | None = None, aim: Sequence[int] = ()) -> Iterator[Pair]:
    """Prepare a pair in a child process and remove what was written when the block ends.

    Raises:
        InputError: the target is not llama-like, or the head is for another target.
        ProbeError: the runtime could not read or write a model, in its words.
    """
    with tempfile.TemporaryDirectory(prefix="inference-adr-") as folder:
        arguments: dict[str, JsonValue] = {
            "ir": str(ir),
            "folder": folder,
            "head": None if head is None else str(head),
            "aim": [*aim],
        }
        result = run_child("probes.drafts.pair:prepare", arguments, timeout_s=BUILD_TIMEOUT_S, memory_bytes=BUILD_MEMORY_BYTES)
        if result.outcome is not Outcome.OK:
            raise ProbeError(f"{head or ir}: could not be prepared: {result.outcome}: {runtime_words(result.words)}")
        value: Any = result.value
        if "problems" in value:
            raise InputError([Problem(**problem) for problem in value["problems"]])
        yield Pair.model_validate_json(json.dumps(value))


def prepare(*, ir: str, folder: str, head: str | None, aim: list[int]) -> JsonValue:
    """Prepare a pair, or say what is wrong with the files (runs in the child)."""
    try:
        pair = make_pair(Path(ir), Path(folder), head=None if head is None else Path(head), aim=aim)
    except InputError as exc:
        return {"problems": [{**vars(problem)} for problem in exc.problems]}
    value: JsonValue = pair.model_dump(mode="json")
    return value


def make_pair(ir: Path, folder: Path, *, head: Path | None = None, aim: Sequence[int] = ()) -> Pair:
    """Prepare a pair in this process; `folder` takes what has to be written.

    Raises:
        InputError: the target is not llama-like, or the head is for another target.
    """
    telemetry.silence()
    import openvino

    core = openvino.Core()
    config = read_config(ir)
    shape = read_shape(core.read_model(ir / IR_NAME), config, str(ir / IR_NAME))
    if head is None:
        vocab = usual_draft_vocab(shape.vocab)
        build_head(shape, folder / "head", eos=GREEDY_EOS, draft_vocab=vocab, aim=aim)
    else:
        vocab = check_head(core.read_model(head / IR_NAME), shape, str(head))
        _check_ids(head, needs_layers="num_hidden_layers" not in config, model=core.read_model(head / IR_NAME))
    target = prepare_target(ir, folder / "target", shape)
    return Pair(target=target, head=head or folder / "head", shape=shape, draft_vocab=vocab, built=head is None)


def check_head(model: Any, shape: Shape, place: str) -> int:
    """Check that a head is an EAGLE-3 head for a target of this shape; give its draft vocabulary.

    Raises:
        InputError: it is none, or is made for another target.
    """
    if not model.has_rt_info([EAGLE3_KEY]):
        raise _wrong(place, f"has no {EAGLE3_KEY} in its rt_info", "an EAGLE-3 head as optimum-cli exports it")
    products = (one for one in model.get_ordered_ops() if one.get_type_name() == "MatMul")
    joined = next((one for one in products if "hidden_states" in _source(one, 0).get_friendly_name()), None)
    if joined is None:
        raise _wrong(place, "multiplies no input hidden_states", "a first projection that takes three hidden states")
    weights = joined.input(1).get_partial_shape()
    widths = [weights[axis].get_length() for axis in range(len(weights)) if weights[axis].is_static]
    if sorted(widths) != [shape.hidden, 3 * shape.hidden]:
        found = f"projects with weights of {' x '.join(map(str, widths))}"
        raise _wrong(place, found, f"{shape.hidden} x {3 * shape.hidden}, three hidden states of this target")
    vocab = int(model.output("logits").get_partial_shape()[2].get_length())
    offsets = next(
        (one for one in model.get_ops() if one.get_type_name() == "Constant" and "d2t" in one.get_friendly_name()), None
    )
    last = vocab - 1 if offsets is None else max(n + int(offset) for n, offset in enumerate(offsets.get_data().ravel()))
    if last >= shape.vocab:
        raise _wrong(place, f"drafts token {last}", f"tokens below {shape.vocab}, the vocabulary of this target")
    return vocab


def _check_ids(head: Path, *, needs_layers: bool, model: Any) -> None:
    """Check for what the runtime asks only when it generates."""
    config = read_config(head)
    generation = head / "generation_config.json"
    if "eos_token_id" not in config and not (generation.exists() and "eos_token_id" in generation.read_text(errors="replace")):
        raise _wrong(str(head), "has no end-of-text id", "eos_token_id in its config.json or generation_config.json")
    if needs_layers and not model.has_rt_info([LAYERS_KEY]):
        expected = f"{LAYERS_KEY} in the head's rt_info, or num_hidden_layers in the target's config.json"
        raise _wrong(str(head), "does not say which layers it takes", expected)


def _source(operation: Any, port: int) -> Any:
    node = operation.input(port).get_source_output().get_node()
    while node.get_type_name() == "Convert":
        node = node.input(0).get_source_output().get_node()
    return node


def _wrong(place: str, found: str, expected: str) -> InputError:
    return InputError([Problem(place=place, found=found, expected=expected)])
