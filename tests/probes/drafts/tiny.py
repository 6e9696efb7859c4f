"""A decoder small enough to be built in a blink, in the form and under the names of an exported one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from probes.drafts.head import build_head
from probes.drafts.shape import IR_NAME, Shape
from probes.telemetry import silence

TINY = Shape(
    layers=12,
    hidden=32,
    intermediate=64,
    heads=4,
    kv_heads=2,
    head_size=8,
    vocab=400,
    rope_theta=10_000.0,
    eps=1e-5,
    residuals=tuple(f"model.layers.{layer}/add" for layer in range(12)),
)


def read(folder: Path) -> Any:
    """Read a model folder back."""
    silence()
    import openvino

    return openvino.Core().read_model(folder / IR_NAME)


def head(folder: Path, shape: Shape = TINY, **options: Any) -> Any:
    """Build a head and read it back."""
    build_head(shape, folder, eos=2, **options)
    return read(folder)
