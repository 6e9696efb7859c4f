"""How fast a device moves memory: a large buffer, read and copied from end to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from probes import telemetry

# Twice the last cache leaves nothing of the last pass in it, and small caches need a buffer that takes time.
SMALLEST_BYTES, LARGEST_BYTES = 2**28, 2**30
_CACHES = Path("sys/devices/system/cpu")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_ROWS = 8


def last_cache_bytes(root: Path = Path("/")) -> int | None:
    """Sum up the caches of the highest level, each shared one once; None where the system does not tell."""
    found: dict[tuple[int, str], int] = {}
    for folder in (root / _CACHES).glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level, size, cores = ((folder / name).read_text().strip() for name in ("level", "size", "shared_cpu_list"))
            found[int(level), cores] = int(size[:-1]) * _UNITS[size[-1]]
        except (OSError, ValueError, KeyError, IndexError):
            continue
    last = max((level for level, _ in found), default=None)
    return None if last is None else sum(size for (level, _), size in found.items() if level == last)


def buffer_bytes(cache: int | None) -> int:
    """Choose a buffer that the last cache cannot hold, as far as a gigabyte goes."""
    return min(max(2 * (cache or 0), SMALLEST_BYTES), LARGEST_BYTES)


class Memory:
    """The memory of the CPU, moved by one thread per core, as the runtime does."""

    def __init__(self, size: int) -> None:
        import numpy as np

        self.bytes = size
        self.threads = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self.threads)
        # Written once, or the system would map every page to one page of zeros.
        self._parts = [np.full(size // 8 // self.threads, number + 1, dtype=np.uint64) for number in range(self.threads)]
        self._copies = [np.zeros_like(part) for part in self._parts]
        self._reduce: Callable[[Any], Any] = np.bitwise_or.reduce
        self._copy: Callable[[Any, Any], None] = np.copyto

    def read_s(self) -> float:
        """Read the whole buffer once."""
        return _seconds(lambda: [*self._pool.map(self._reduce, self._parts)])

    def copy_s(self) -> float:
        """Read the whole buffer and write it elsewhere."""
        return _seconds(lambda: [*self._pool.map(self._copy, self._copies, self._parts)])

    @property
    def copied(self) -> bool:
        """Whether the copy holds what the buffer does."""
        return all((copy == part).all() for copy, part in zip(self._copies, self._parts, strict=True))

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


class DeviceMemory:
    """The memory of any OpenVINO device, moved by a model that adds to a state it keeps: nothing crosses a bus."""

    def __init__(self, device: str, size: int) -> None:
        telemetry.silence()
        import numpy as np
        import openvino
        from openvino import opset6, opset13
        from openvino.op.util import Variable, VariableInfo

        self.bytes = size
        columns = size // 4 // _ROWS
        info = VariableInfo()
        info.data_shape = openvino.PartialShape([_ROWS, columns])
        info.data_type, info.variable_id = openvino.Type.f32, "buffer"
        variable = Variable(info)
        step = opset13.parameter([1], openvino.Type.f32, name="step")
        empty = opset13.broadcast(opset13.constant(np.float32(1)), opset13.constant(np.array([_ROWS, columns])))
        moved = opset13.add(opset6.read_value(empty, variable), step)
        told = opset13.slice(moved, *(opset13.constant(np.array(at)) for at in ([0, 0], [1, 1], [1, 1], [0, 1])))
        model = openvino.Model([opset13.result(told)], [opset6.assign(moved, variable)], [step], "copy")
        # f16 would halve the bytes that are counted.
        compiled = openvino.Core().compile_model(model, device, {"INFERENCE_PRECISION_HINT": "f32"})
        self._request = compiled.create_infer_request()
        self._step = np.ones(1, dtype=np.float32)
        self._request.infer([self._step])

    def copy_s(self) -> float:
        """Read the whole buffer and write it anew."""
        return _seconds(lambda: self._request.infer([self._step]))

    @property
    def value(self) -> float:
        """What each number of the buffer has come to: one more with each pass."""
        return float(self._request.get_output_tensor(0).data.ravel()[0])

    def close(self) -> None:
        """Leave the buffer to the device, which frees it with the request."""


def _seconds(move: Callable[[], object]) -> float:
    started = time.perf_counter()
    move()
    return time.perf_counter() - started
