"""The weights of a model in another precision, made from those it came with by OpenVINO's own means, and their bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from probes import telemetry
from probes.drafts.shape import IR_NAME

F16, INT8 = "f16", "int8"
# What stands between a stored weight and its use: it is unpacked while it is read.
_UNPACKING = frozenset({"Convert", "Subtract", "Multiply", "Reshape", "Transpose", "Constant"})
_FULL = frozenset({"f16", "f32", "f64", "bf16"})


def make_f16(ir: Path, folder: Path) -> Path:
    """Write a model folder with the same weights unpacked to 16-bit floats.

    OpenVINO folds the operations that unpack a weight, and saves what they come to. The numbers stay those of
    the packed weights: their speed is that of an f16 model, their answers are not.
    """
    return _write(_unpacked(ir), ir, folder)


def make_int8(ir: Path, folder: Path) -> Path:
    """Write a model folder with each weight matrix as signed 8-bit integers and one scale per output channel.

    The layout is that of NNCF's INT8_SYM mode, which the CPU and GPU plugins unpack inside the product.
    """
    telemetry.silence()
    model = _unpacked(ir)
    for constant in {node.get_friendly_name(): node for node in _matrices(model)}.values():
        _store_as_int8(constant)
    return _write(model, ir, folder)


def shipped_precision(ir: Path) -> str:
    """Name the element type in which most bytes of a model's weight matrices are stored, as OpenVINO does: u4, i8, f16."""
    return max(_stored(ir).items(), key=lambda entry: entry[1])[0]


def is_full(precision: str) -> bool:
    """Tell whether a precision keeps 16 bits of a weight or more."""
    return precision in _FULL


def weight_bytes(ir: Path) -> int:
    """Count the bytes of everything that a product of the model multiplies with, which every token reads.

    A table that is only looked up is left out: a token reads one row of it.
    """
    return sum(_stored(ir).values())


def _stored(ir: Path) -> Counter[str]:
    telemetry.silence()
    import openvino

    model = openvino.Core().read_model(ir / IR_NAME)
    found: dict[str, Any] = {}
    for product in _products(model):
        for port in product.inputs():
            found |= {node.get_friendly_name(): node for node in _constants(port) or ()}
    held: Counter[str] = Counter()
    for node in found.values():
        kind = node.get_element_type()
        held[str(kind.to_string())] += _elements(node) * kind.bitwidth // 8
    return held


def _products(model: Any) -> Iterator[Any]:
    return (node for node in model.get_ordered_ops() if node.get_type_name() == "MatMul")


def _constants(port: Any) -> tuple[Any, ...] | None:
    """Find the stored values that an input comes from; None when it depends on anything else."""
    node = port.get_source_output().get_node()
    if node.get_type_name() == "Constant":
        return (node,)
    if node.get_type_name() not in _UNPACKING:
        return None
    found = [_constants(source) for source in node.inputs()]
    return None if None in found else tuple(one for each in found for one in each or ())


def _elements(node: Any) -> int:
    count = 1
    for size in node.get_output_shape(0):
        count *= size
    return count


def _unpacked(ir: Path) -> Any:
    telemetry.silence()
    import openvino
    from openvino.passes import ConstantFolding, Manager

    model = openvino.Core().read_model(ir / IR_NAME)
    passes = Manager()
    passes.register_pass(ConstantFolding())
    passes.run_passes(model)
    return model


def _matrices(model: Any) -> Iterator[Any]:
    """Give the folded weight of each product that has one of two dimensions, its output channels first."""
    for product in _products(model):
        node = product.input(1).get_source_output().get_node()
        if (
            node.get_type_name() == "Constant"
            and len(node.get_output_shape(0)) == 2
            and product.get_attributes()["transpose_b"]
        ):
            yield node


def _store_as_int8(constant: Any) -> None:
    import numpy as np
    from openvino import opset13 as opset

    values = constant.get_data().astype(np.float32)
    largest = np.abs(values).max(axis=1, keepdims=True)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float16)
    stored = np.clip(np.rint(values / scale.astype(np.float32)), -127, 127).astype(np.int8)
    users = constant.output(0).get_target_inputs()
    unpacked = opset.multiply(opset.convert(opset.constant(stored), "f16"), opset.constant(scale))
    whole = opset.convert(unpacked, "f32")
    for user in users:
        user.replace_source_output(whole.output(0))


def _write(model: Any, ir: Path, folder: Path) -> Path:
    import openvino

    folder.mkdir(parents=True)
    openvino.save_model(model, folder / IR_NAME, compress_to_fp16=True)
    for path in ir.iterdir():
        if not (folder / path.name).exists():
            (folder / path.name).symlink_to(path.resolve())
    return folder
